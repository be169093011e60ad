// Holds the logs of new blocks that a client got from one server against those that it got from a node.
//
// usage: node watched.mjs NODE filters.json FIRST THEIRS OURS
//
// THEIRS and OURS are files to which the watchers write; FIRST is the first new block. The last log that the
// node has of a filter must come. Logs that are removed are taken out again, and what is left must be what
// the node has; a node may say nothing of them.
import fs from 'node:fs'
import { agree, conclude, expected, url } from './agree.mjs'

const [first, theirs, ours] = process.argv.slice(4)
const WAIT_MS = 30_000

const logsOf = async (filter) => {
  const params = [{ ...filter, fromBlock: `0x${Number(first).toString(16)}`, toBlock: 'latest' }]
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getLogs', params })
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  return (await answer.json()).result
}
const place = ({ blockHash, logIndex }) => `${blockHash} ${logIndex}`

// What a watcher has written until now: whole lines.
function read(path) {
  const lines = fs.readFileSync(path, 'utf8').split('\n').slice(0, -1).map((line) => JSON.parse(line))
  const [{ watching }] = lines
  const delivered = ({ name, over }) =>
    lines.slice(1).filter((line) => line.name === name && line.over === over).map((line) => line.log)
  return { watching, delivered }
}

const held = new Map()
for (const { name, filter } of expected.queries) held.set(name, await logsOf(filter))
const isComplete = ({ watching, delivered }) =>
  watching.every((watch) => {
    const last = held.get(watch.name).at(-1)
    return !last || delivered(watch).some((log) => place(log) === place(last))
  })

const deadline = Date.now() + WAIT_MS
while (!(isComplete(read(ours)) && isComplete(read(theirs))) && Date.now() < deadline) {
  await new Promise((resolve) => setTimeout(resolve, 50))
}

// Several polls later: what is told twice is seen.
await new Promise((resolve) => setTimeout(resolve, 500))
const [found, wanted] = [read(ours), read(theirs)]
agree('watched', found.watching, wanted.watching)
let removals = 0
for (const watch of wanted.watching) {
  const path = `${watch.name} over ${watch.over}`
  const isNew = (log) => log.removed === false
  agree(path, found.delivered(watch).filter(isNew), wanted.delivered(watch).filter(isNew))
  const left = new Map()
  for (const log of found.delivered(watch)) {
    if (isNew(log)) {
      left.set(place(log), log)
    } else {
      removals += 1
      agree(`${path}: removed`, { ...log, removed: false }, left.get(place(log)) ?? 'a log that came before')
      left.delete(place(log))
    }
  }
  agree(`${path}: left`, [...left.keys()], held.get(watch.name).map(place))
}
console.log(`${wanted.watching.length} watched, ${removals} removed`)
conclude()
