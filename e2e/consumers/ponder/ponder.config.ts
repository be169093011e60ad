// A project of ponder: the events of one contract, from the chain whose JSON-RPC is RPC_URL. WS_URL, where
// it is set, tells ponder of new blocks.
import fs from 'node:fs'
import { createConfig } from 'ponder'

const { contracts } = JSON.parse(fs.readFileSync(process.env.EVENTS!, 'utf8'))
const abi = JSON.parse(fs.readFileSync('../events.json', 'utf8'))

export default createConfig({
  database: { kind: 'pglite', directory: process.env.DATABASE! },
  chains: { chain: { id: Number(process.env.CHAIN_ID), rpc: process.env.RPC_URL!, ws: process.env.WS_URL } },
  contracts: {
    Token: { chain: 'chain', abi, address: contracts, startBlock: 0, includeTransactionReceipts: true },
  },
})
