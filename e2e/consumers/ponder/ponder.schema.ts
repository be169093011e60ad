import { onchainTable } from 'ponder'

export const event = onchainTable('event', (table) => ({
  id: table.text().primaryKey(),
  name: table.text().notNull(),
  args: table.text().notNull(),
  address: table.hex().notNull(),
  blockNumber: table.bigint().notNull(),
  blockHash: table.hex().notNull(),
  timestamp: table.bigint().notNull(),
  transactionHash: table.hex().notNull(),
  transactionFrom: table.hex().notNull(),
  gasUsed: table.bigint().notNull(),
  logIndex: table.integer().notNull(),
}))
