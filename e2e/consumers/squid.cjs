// A squid: events of two contracts, from the chain whose JSON-RPC is URL, into files of JSON lines.
//
// usage: node squid.cjs URL events.json FOLDER
const fs = require('node:fs')
const { EvmBatchProcessor } = require('@subsquid/evm-processor')
const { Database, LocalDest } = require('@subsquid/file-store')
const { Table } = require('@subsquid/file-store-json')

const [url, path, folder] = process.argv.slice(2)
const { contracts, last } = JSON.parse(fs.readFileSync(path))

// No field of receipts: with one, a squid takes the logs from the receipts and never asks for logs.
const processor = new EvmBatchProcessor()
  .setRpcEndpoint({ url, maxBatchCallSize: 50 })
  .setFinalityConfirmation(0)
  .setBlockRange({ from: 0, to: last })
  .setFields({
    log: { topics: true, data: true, transactionHash: true },
    transaction: { from: true, to: true, hash: true, input: true },
    block: { timestamp: true },
  })
  .addLog({ address: contracts, transaction: true })

const database = new Database({
  tables: { logs: new Table('logs.jsonl', { lines: true }) },
  dest: new LocalDest(folder),
})

processor.run(database, async ({ blocks, store }) => {
  for (const { header, logs } of blocks) {
    for (const { transaction, block, ...log } of logs) {
      const { id, from, to, hash, input } = transaction
      store.logs.write({
        block: header.height, hash: header.hash, timestamp: header.timestamp, id: log.id,
        logIndex: log.logIndex, address: log.address, topics: log.topics, data: log.data,
        transaction: { id, from, to, hash, input },
      })
    }
  }
  store.setForceFlush(true)
})
