// Range splitting as consumers do it, against a server that refuses ranges of too many logs.
//
// usage: node logs_split.mjs URL queries.json ponder|suggested|halves
//
// ponder: the helper of ponder's own package. suggested: the range that the refusal names, then what is
// left, as graph-node and rindexer do. halves: whoever knows no message.
import { getLogsRetryHelper } from '@ponder/utils'
import { createPublicClient, http } from 'viem'
import { agree, conclude, expected, plain, url } from './agree.mjs'

// A splitting that does not converge asks for ever; every log and block once is the most that is needed.
const CALLS_MAX = 1000
const client = createPublicClient({ transport: http(url, { retryCount: 0 }) })
const hex = (number) => `0x${number.toString(16)}`
let calls = 0
let refusals = 0

function halves({ fromBlock, toBlock }) {
  const middle = (BigInt(fromBlock) + BigInt(toBlock)) / 2n
  return [{ fromBlock, toBlock: hex(middle) }, { fromBlock: hex(middle + 1n), toBlock }]
}

function suggested({ toBlock }, error) {
  const [, from, to] = error.details.match(/Try with this block range \[(0x\w+), (0x\w+)\]/)
  return [{ fromBlock: from, toBlock: to }, { fromBlock: hex(BigInt(to) + 1n), toBlock }]
}

function ponder(filter, error) {
  const { shouldRetry, isSuggestedRange, ranges } = getLogsRetryHelper({ params: [filter], error })
  if (!shouldRetry || !isSuggestedRange) throw new Error(`ponder does not know it: ${error.message}`)
  return ranges
}

const split = { ponder, suggested, halves }[process.argv[4]]

async function getLogs(filter) {
  calls += 1
  if (calls > CALLS_MAX) throw new Error(`more than ${CALLS_MAX} calls`)
  try {
    return await client.request({ method: 'eth_getLogs', params: [filter] })
  } catch (error) {
    if (error.code !== -32005) throw error
    refusals += 1
    const parts = []
    for (const range of split(filter, error)) parts.push(...(await getLogs({ ...filter, ...range })))
    return parts
  }
}

const tip = hex(await client.getBlockNumber())
for (const { name, filter, logs } of expected.queries) {
  const ends = filter.blockHash ? {} : {
    fromBlock: filter.fromBlock === 'earliest' ? '0x0' : filter.fromBlock,
    toBlock: filter.toBlock === 'latest' ? tip : filter.toBlock,
  }
  agree(name, plain(await getLogs({ ...filter, ...ends })), plain(logs))
}
console.log(`${calls} calls, of which ${refusals} were refused`)
if (refusals === 0) throw new Error('nothing was refused, so nothing was split')
conclude()
