// Every row, in the order of the chain.
import { Hono } from 'hono'
import { asc } from 'ponder'
import { db } from 'ponder:api'
import { event } from 'ponder:schema'

const app = new Hono()

app.get('/rows', async (context) => {
  const rows = await db.select().from(event).orderBy(asc(event.blockNumber), asc(event.logIndex))
  const text = rows.map((row) => JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? `${value}` : value)))
  return context.text(text.map((row) => `${row}\n`).join(''))
})

export default app
