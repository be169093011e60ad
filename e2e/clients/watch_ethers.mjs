// ethers, unmodified: a provider's on(filter) over WebSocket. It does not hand on logs that are removed.
//
// usage: node watch_ethers.mjs SOCKET filters.json
//
// Prints what it watches when the server has confirmed all of it, and then each log that comes.
import { WebSocketProvider } from 'ethers'
import { expected, plain, url } from './agree.mjs'

const provider = new WebSocketProvider(url)
const asked = new Set()
let confirmed = 0

await provider.on('debug', ({ action, payload, result }) => {
  if (action === 'sendRpcPayload' && payload.method === 'eth_subscribe') asked.add(payload.id)
  if (action === 'receiveRpcResult') confirmed += result.filter((answer) => asked.has(answer.id) && answer.result).length
})
const watching = expected.queries.map(({ name }) => ({ name, over: 'ws' }))
for (const { name, filter } of expected.queries) {
  // A filter is known by its members: one without any is no event.
  await provider.on({ topics: [], ...filter }, (log) => {
    // ethers names the index otherwise.
    const found = { ...plain(log.toJSON()), logIndex: plain(log.index), removed: log.removed }
    console.log(JSON.stringify({ name, over: 'ws', log: found }))
  })
}
while (confirmed < watching.length) await new Promise((resolve) => setTimeout(resolve, 20))
console.log(JSON.stringify({ watching }))
