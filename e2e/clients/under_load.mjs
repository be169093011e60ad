// Calls a server in every way, several callers of each at once, until SIGTERM, the time is over or the
// server is gone, and tells how many were answered. The ids of those go to a file, a line each.
//
// usage: node under_load.mjs URL KEY AUTHORITY SECONDS BLOCK_COUNT ANSWERED_FILE
import fs from 'node:fs'
import { callers } from './callers.mjs'

const [url, key, authority, secondsText, countText, file] = process.argv.slice(2)
const ca = fs.readFileSync(authority)
const blockCount = Number(countText)
let end = performance.now() + Number(secondsText) * 1000
process.on('SIGTERM', () => { end = 0 })
const answered = []

/// Asks one request after the other; why it could not go on, if it could not.
async function ask(name, caller) {
  for (let round = 0; performance.now() < end; round += 1) {
    const id = `${name}-${round}`
    const number = `0x${(round % blockCount).toString(16)}`
    try {
      const text = await caller(id, JSON.stringify({ jsonrpc: '2.0', id, method: 'eth_getBlockByNumber', params: [number, true] }))
      const answer = JSON.parse(text)
      if (answer.id !== id || answer.result.number !== number) throw new Error(`answered ${text.slice(0, 200)}`)
    } catch (error) {
      return `${id}: ${error.code ?? ''} ${error.message}`
    }
    answered.push(id)
  }
  return undefined
}

const all = [0, 1, 2].flatMap((which) => Object.entries(callers(url, key, ca)).map(([way, caller]) => [`${way}${which}`, caller]))
const ends = await Promise.all(all.map(([name, caller]) => ask(name, caller)))
fs.writeFileSync(file, answered.map((id) => `${id}\n`).join(''))
const broken = ends.filter((why) => why !== undefined)
for (const why of broken) console.log(`broken off: ${why}`)
console.log(`${answered.length} answered, ${broken.length} broken off`)
process.exit(broken.length === 0 ? 0 : 1)
