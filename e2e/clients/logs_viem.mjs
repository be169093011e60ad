// viem, unmodified: getLogs in every form that it has.
//
// usage: node logs_viem.mjs URL queries.json
import fs from 'node:fs'
import { createPublicClient, http } from 'viem'
import { agree, conclude, each, expected, plain, url } from './agree.mjs'

const client = createPublicClient({ transport: http(url, { retryCount: 0 }) })
const abi = JSON.parse(fs.readFileSync(new URL('events.json', import.meta.url)))

const logOf = (log) => ({ ...plain(log), removed: log.removed })
const place = ({ fromBlock, toBlock, blockHash }) => {
  const end = (block) => (block.startsWith('0x') ? BigInt(block) : block)
  return blockHash ? { blockHash } : { fromBlock: end(fromBlock), toBlock: end(toBlock) }
}

await each(expected.queries, async ({ name, filter, logs, event, args }) => {
  const at = { ...place(filter), ...(filter.address && { address: filter.address }) }
  if (event) {
    const item = abi.find((item) => item.name === event)
    // viem holds what it decodes against the arguments, and decodes numbers as bigints.
    const wanted = { ...args, ...(args.id && { id: BigInt(args.id) }) }
    const found = await client.getLogs({ ...at, event: item, args: wanted, strict: true })
    agree(name, found.map(logOf), logs)
    agree(`${name}: decoded`, found.map((log) => plain(log.args.value)), logs.map((log) => plain(BigInt(log.data))))
  } else if (!filter.topics) {
    agree(name, (await client.getLogs(at)).map(logOf), logs)
  }
})
// The only form of topics without arguments: alternatives of events, here all that are known.
const { fromBlock, toBlock } = expected.queries[0].filter
const known = expected.queries[0].logs.filter((log) => log.topics.length > 0)
agree('all events', (await client.getLogs({ fromBlock, toBlock, events: abi })).map(logOf), known)
conclude()
