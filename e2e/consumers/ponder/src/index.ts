import { ponder } from 'ponder:registry'
import { event as table } from 'ponder:schema'

// Not Note, of which one block has many: where a refusal leaves a single block to ask for, ponder 0.16
// goes on with chunks of no block at all and never ends.
for (const name of ['Transfer', 'Approval', 'Moved'] as const) {
  ponder.on(`Token:${name}`, async ({ event, context }) => {
    const { args, block, log, transaction, transactionReceipt } = event
    await context.db.insert(table).values({
      id: event.id,
      name,
      args: JSON.stringify(args, (_, value) => (typeof value === 'bigint' ? value.toString() : value)),
      address: log.address,
      blockNumber: block.number,
      blockHash: block.hash,
      timestamp: block.timestamp,
      transactionHash: transaction.hash,
      transactionFrom: transaction.from,
      gasUsed: transactionReceipt.gasUsed,
      logIndex: log.logIndex,
    })
  })
}
