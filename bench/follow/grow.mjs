// Makes a chain: node grow.mjs NODE BLOCKS TXS_PER_BLOCK. Prints the number of the last block with transactions,
// which is final then.

import { ask, hex } from "./ask.mjs";
import { takeOver } from "./transact.mjs";

const [node, blocks, txsPerBlock] = process.argv.slice(2);
// Anvil calls a block final that lies so far below its tip.
const FINAL_BELOW = 64;

const send = await takeOver(node);
for (let count = Number(blocks); count > 0; count -= 1) {
    await send(Number(txsPerBlock));
    await ask(node, "anvil_mine", "0x1");
}
const last = await ask(node, "eth_getBlockByNumber", "latest", false);
if (last.transactions.length !== Number(txsPerBlock)) throw new Error(`a block has ${last.transactions.length} transactions`);
await ask(node, "anvil_mine", hex(FINAL_BELOW));
console.log(Number(last.number));
