// viem, unmodified: the six reads by its actions, and what it recomputes from them.
//
// usage: node viem.mjs URL expected.json
import {
  createPublicClient, http, keccak256, numberToHex, recoverTransactionAddress,
  serializeTransaction, toRlp,
} from 'viem'
import { ABSENT_HASH, agree, conclude, each, expected, plain, url } from './agree.mjs'

const client = createPublicClient({ transport: http(url, { retryCount: 0 }) })

const TYPES = { legacy: '0x0', eip2930: '0x1', eip1559: '0x2', eip4844: '0x3', eip7702: '0x4' }

function transactionOf(found) {
  return { ...plain(found), type: TYPES[found.type] }
}

function receiptOf(found) {
  const status = { success: '0x1', reverted: '0x0' }[found.status]
  const logs = found.logs.map((log) => ({ ...plain(log), removed: log.removed }))
  return { ...plain(found), type: TYPES[found.type], status, logs }
}

function blockOf(found) {
  const isWhole = typeof found.transactions[0] === 'object'
  return { ...plain(found), transactions: isWhole ? found.transactions.map(transactionOf) : found.transactions }
}

// The header's fields in their order; the later ones are there from their fork on.
const HEADER = ['parentHash', 'sha3Uncles', 'miner', 'stateRoot', 'transactionsRoot', 'receiptsRoot',
  'logsBloom', 'difficulty', 'number', 'gasLimit', 'gasUsed', 'timestamp', 'extraData', 'mixHash',
  'nonce', 'baseFeePerGas', 'withdrawalsRoot', 'blobGasUsed', 'excessBlobGas',
  'parentBeaconBlockRoot', 'requestsHash', 'blockAccessListHash', 'slotNumber']

function headerHash(block) {
  const items = HEADER.map((name) => block[name]).filter((value) => value !== undefined && value !== null)
  const rlp = (value) => (typeof value === 'bigint' ? (value ? numberToHex(value) : '0x') : value)
  const even = (hex) => (hex.length % 2 ? '0x0' + hex.slice(2) : hex)
  return keccak256(toRlp(items.map((value) => even(rlp(value)))))
}

// The transaction as it was signed, put together again by viem.
function serialized(found) {
  const { r, s, v, yParity } = found
  const { input: data, gas, nonce, to, value, type, accessList, chainId } = found
  const fees = type === 'legacy' || type === 'eip2930'
    ? { gasPrice: found.gasPrice }
    : { maxFeePerGas: found.maxFeePerGas, maxPriorityFeePerGas: found.maxPriorityFeePerGas }
  const { maxFeePerBlobGas, blobVersionedHashes, authorizationList } = found
  const own = { eip4844: { maxFeePerBlobGas, blobVersionedHashes, sidecars: false }, eip7702: { authorizationList } }[type]
  const fields = { type, chainId, nonce, gas, to, value, data, accessList, ...fees, ...own }
  const pad = (word) => '0x' + word.slice(2).padStart(64, '0')
  return serializeTransaction(fields, { r: pad(r), s: pad(s), v, yParity })
}

await each(expected.blocks, async ({ block, receipts, raw }) => {
  const number = BigInt(block.number)
  const hashes = { ...block, transactions: block.transactions.map((transaction) => transaction.hash) }
  const whole = await client.getBlock({ blockNumber: number, includeTransactions: true })
  agree(`block ${number}`, blockOf(whole), block)
  agree(`block ${number} by hash`, blockOf(await client.getBlock({ blockHash: block.hash })), hashes)
  agree(`hash of block ${number}`, headerHash(whole), block.hash)
  await each(block.transactions, async (wanted, index) => {
    const { hash } = wanted
    const found = await client.getTransaction({ hash })
    agree(`transaction ${hash}`, transactionOf(found), wanted)
    const byNumber = await client.getTransaction({ blockNumber: number, index })
    agree(`transaction ${number}/${index}`, transactionOf(byNumber), wanted)
    const byHash = await client.getTransaction({ blockHash: block.hash, index })
    agree(`transaction ${block.hash}/${index}`, transactionOf(byHash), wanted)
    const receipt = await client.getTransactionReceipt({ hash })
    agree(`receipt ${hash}`, receiptOf(receipt), receipts[index])
    const again = serialized(found)
    agree(`bytes of ${hash}`, again, raw[index])
    agree(`hash of ${hash}`, keccak256(again), hash)
    // viem refuses the high s that only Frontier allowed.
    if (BigInt(found.s) < 2n ** 255n) {
      const sender = await recoverTransactionAddress({ serializedTransaction: again })
      agree(`sender of ${hash}`, sender.toLowerCase(), wanted.from)
    }
  })
})

const past = BigInt(expected.blocks.length)
const absent = {
  BlockNotFoundError: [{ blockNumber: past }, { blockHash: ABSENT_HASH }].map((at) => () => client.getBlock(at)),
  TransactionNotFoundError: [
    { hash: ABSENT_HASH }, { blockNumber: past, index: 0 }, { blockNumber: 0n, index: 99 },
    { blockHash: ABSENT_HASH, index: 0 },
  ].map((at) => () => client.getTransaction(at)),
  TransactionReceiptNotFoundError: [() => client.getTransactionReceipt({ hash: ABSENT_HASH })],
}
for (const [name, calls] of Object.entries(absent)) {
  for (const call of calls) {
    const thrown = await call().then(() => 'nothing', (error) => error.name)
    agree(`what is not there: ${call}`, thrown, name)
  }
}
conclude()
