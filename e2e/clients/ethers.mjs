// ethers, unmodified: the reads by its provider, and what it recomputes from them.
//
// usage: node ethers.mjs URL expected.json
//
// ethers has no function for a transaction by its block and index: those go through `send`.
import { JsonRpcProvider, Transaction, encodeRlp, keccak256, toBeHex } from 'ethers'
import { ABSENT_HASH, agree, conclude, each, expected, plain, url } from './agree.mjs'

const provider = new JsonRpcProvider(url)

// What ethers does not hand on of a block, a transaction, a receipt.
const UNSEEN = {
  block: ['sha3Uncles', 'transactionsRoot', 'logsBloom', 'size', 'uncles', 'withdrawals',
    'withdrawalsRoot', 'requestsHash', 'blockAccessListHash', 'slotNumber', 'mixHash', 'blockTimestamp'],
  transaction: ['blockTimestamp', 'v'],
  receipt: ['blockTimestamp', 'removed'],
}

function transactionOf(found) {
  const { signature } = found
  const authorizationList = found.authorizationList?.map(({ address, nonce, chainId, signature }) => {
    const { r, s, yParity } = signature
    return { address: plain(address), nonce: plain(nonce), chainId: plain(chainId), r: short(r), s: short(s), yParity: plain(yParity) }
  })
  return {
    ...plain(found.toJSON()), gas: plain(found.gasLimit), input: found.data, authorizationList,
    gasPrice: plain(found.gasPrice), value: plain(found.value), chainId: plain(found.chainId),
    blobVersionedHashes: found.blobVersionedHashes, accessList: plain(found.accessList),
    maxFeePerGas: plain(found.maxFeePerGas), maxPriorityFeePerGas: plain(found.maxPriorityFeePerGas),
    maxFeePerBlobGas: plain(found.maxFeePerBlobGas), transactionIndex: plain(found.index),
    r: short(signature.r), s: short(signature._s), yParity: plain(signature.yParity),
  }
}

// A word as a quantity: without leading zeros.
function short(word) {
  return '0x' + BigInt(word).toString(16)
}

function receiptOf(found) {
  const logs = found.logs.map((log) => ({ ...plain(log.toJSON()), logIndex: plain(log.index) }))
  return {
    ...plain(found.toJSON()), logs, transactionHash: found.hash, transactionIndex: plain(found.index),
    effectiveGasPrice: plain(found.gasPrice), gasUsed: plain(found.gasUsed),
    cumulativeGasUsed: plain(found.cumulativeGasUsed), type: plain(found.type),
    blobGasUsed: plain(found.blobGasUsed), blobGasPrice: plain(found.blobGasPrice),
  }
}

function blockOf(found, transactions) {
  const { difficulty, gasLimit, gasUsed, baseFeePerGas, blobGasUsed, excessBlobGas } = found
  return { ...plain(found.toJSON()), ...plain({ difficulty, gasLimit, gasUsed, baseFeePerGas, blobGasUsed, excessBlobGas }), transactions }
}

const HEADER = ['parentHash', 'sha3Uncles', 'miner', 'stateRoot', 'transactionsRoot', 'receiptsRoot',
  'logsBloom', 'difficulty', 'number', 'gasLimit', 'gasUsed', 'timestamp', 'extraData', 'mixHash',
  'nonce', 'baseFeePerGas', 'withdrawalsRoot', 'blobGasUsed', 'excessBlobGas',
  'parentBeaconBlockRoot', 'requestsHash', 'blockAccessListHash', 'slotNumber']
const QUANTITIES = ['difficulty', 'number', 'gasLimit', 'gasUsed', 'timestamp', 'baseFeePerGas',
  'blobGasUsed', 'excessBlobGas', 'slotNumber']

function headerHash(block) {
  const items = HEADER.filter((name) => name in block).map((name) => {
    if (!QUANTITIES.includes(name)) return block[name]
    return BigInt(block[name]) ? toBeHex(BigInt(block[name])) : '0x'
  })
  return keccak256(encodeRlp(items))
}

await each(expected.blocks, async ({ block, receipts, raw }) => {
  const number = Number(block.number)
  const hashes = { ...block, transactions: block.transactions.map((transaction) => transaction.hash) }
  const whole = await provider.getBlock(number, true)
  agree(`block ${number}`, blockOf(whole, whole.prefetchedTransactions.map(transactionOf)), block,
    [...UNSEEN.block, ...UNSEEN.transaction])
  const byHash = await provider.getBlock(block.hash)
  agree(`block ${number} by hash`, blockOf(byHash, byHash.transactions), hashes, UNSEEN.block)
  const sent = await provider.send('eth_getBlockByNumber', [block.number, false])
  agree(`hash of block ${number}`, headerHash(sent), block.hash)
  await each(block.transactions, async (wanted, index) => {
    const { hash } = wanted
    const found = await provider.getTransaction(hash)
    agree(`transaction ${hash}`, transactionOf(found), wanted, UNSEEN.transaction)
    const fetched = await byHash.getTransaction(index)
    agree(`transaction ${index} of block ${number}`, transactionOf(fetched), wanted, UNSEEN.transaction)
    for (const [method, at] of [['Number', block.number], ['Hash', block.hash]]) {
      const sent = await provider.send(`eth_getTransactionByBlock${method}AndIndex`, [at, '0x' + index.toString(16)])
      agree(`transaction ${at}/${index}`, sent, wanted)
    }
    const receipt = await provider.getTransactionReceipt(hash)
    agree(`receipt ${hash}`, receiptOf(receipt), receipts[index], UNSEEN.receipt)
    // ethers refuses the high s that only Frontier allowed.
    if (BigInt(wanted.s) > 2n ** 255n) return
    // Its own reading of the bytes that were signed, and its own bytes of what it was given.
    const signed = Transaction.from(raw[index])
    agree(`hash of ${hash}`, signed.hash, hash)
    agree(`sender of ${hash}`, signed.from?.toLowerCase(), found.from.toLowerCase())
    const again = Transaction.from({ ...found.toJSON(), ...own(found), signature: found.signature })
    agree(`bytes of ${hash}`, again.serialized, raw[index])
  })
})

// What ethers calls otherwise in a transaction that is sent than in one that came.
function own(found) {
  const { gasLimit, gasPrice, value, chainId, maxFeePerGas, maxPriorityFeePerGas, maxFeePerBlobGas } = found
  const { accessList, blobVersionedHashes, authorizationList, data, nonce, to, type } = found
  const fees = type < 2 ? { gasPrice } : { maxFeePerGas, maxPriorityFeePerGas }
  const blobs = type === 3 ? { maxFeePerBlobGas, blobVersionedHashes } : {}
  const authorizations = type === 4 ? { authorizationList } : {}
  const access = type > 0 ? { accessList } : {}
  return { gasLimit, value, chainId, data, nonce, to, type, from: undefined, hash: undefined, gasPrice: undefined, ...fees, ...blobs, ...authorizations, ...access }
}

const past = expected.blocks.length
for (const call of [
  () => provider.getBlock(past), () => provider.getBlock(ABSENT_HASH),
  () => provider.getTransaction(ABSENT_HASH), () => provider.getTransactionReceipt(ABSENT_HASH),
  () => provider.send('eth_getTransactionByBlockNumberAndIndex', ['0x0', '0x63']),
  () => provider.send('eth_getTransactionByBlockHashAndIndex', [ABSENT_HASH, '0x0']),
]) {
  agree(`what is not there: ${call}`, await call(), null)
}
provider.destroy()
conclude()
