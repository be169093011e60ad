// ethers, unmodified: a provider's getLogs, and queryFilter of a contract.
//
// usage: node logs_ethers.mjs URL queries.json
import fs from 'node:fs'
import { Contract, JsonRpcProvider } from 'ethers'
import { agree, conclude, each, expected, plain, url } from './agree.mjs'

const provider = new JsonRpcProvider(url)
const abi = JSON.parse(fs.readFileSync(new URL('events.json', import.meta.url)))
// ethers names the index otherwise, and does not hand on the block's time.
const UNSEEN = ['logIndex', 'blockTimestamp']

const logOf = (log) => ({ ...plain(log.toJSON()), removed: log.removed })
const end = (block) => (block.startsWith('0x') ? Number(block) : block)

await each(expected.queries, async ({ name, filter, logs, event, args }) => {
  const hold = (path, found) => {
    agree(path, found.map(logOf), logs, UNSEEN)
    agree(`${path}: indexes`, found.map((log) => plain(log.index)), logs.map((log) => log.logIndex))
  }
  hold(name, await provider.getLogs(filter))
  // queryFilter knows ranges only.
  if (!event || filter.blockHash) return
  const contract = new Contract(filter.address, abi, provider)
  const indexed = abi.find((item) => item.name === event).inputs.filter((input) => input.indexed)
  const asked = contract.filters[event](...indexed.map((input) => args[input.name] ?? null))
  const found = await contract.queryFilter(asked, end(filter.fromBlock), end(filter.toBlock))
  hold(`${name}: queryFilter`, found)
  agree(`${name}: decoded`, found.map((log) => plain(log.args.value)), logs.map((log) => plain(BigInt(log.data))))
})
provider.destroy()
conclude()
