// Transactions that anvil signs itself, one of each of its accounts.

import { ask, post } from "./ask.mjs";

// What is made writes a log whenever it is called.
const CODE_WITH_LOG = "0x6a602a5f52600760205fa1005f52600b6015f3";

// Takes mining into our hands; gives the function that sends so many transactions.
export async function takeOver(node) {
    const accounts = await ask(node, "eth_accounts");
    await ask(node, "evm_setAutomine", false);
    const made = await ask(node, "eth_sendTransaction", { from: accounts[0], data: CODE_WITH_LOG });
    await ask(node, "anvil_mine", "0x1");
    const { contractAddress } = await ask(node, "eth_getTransactionReceipt", made);
    return async (count) => {
        const body = accounts.slice(0, count).map((from, id) => {
            // Calls that write a log, and transfers.
            const to = id % 2 === 0 ? contractAddress : accounts[accounts.length - 1 - id];
            return { jsonrpc: "2.0", id, method: "eth_sendTransaction", params: [{ from, to, value: "0x0" }] };
        });
        const failed = (await post(node, body)).find((answer) => answer.error);
        if (failed) throw new Error(failed.error.message);
    };
}
