// JSON-RPC by POST, one call or a batch.

export async function post(url, body) {
    const answer = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
    });
    return await answer.json();
}

export async function ask(url, method, ...params) {
    const answer = await post(url, { jsonrpc: "2.0", id: 1, method, params });
    if (answer.error) throw new Error(`${url} ${method} ${JSON.stringify(params)}: ${answer.error.message}`);
    return answer.result;
}

export const hex = (number) => `0x${number.toString(16)}`;

// Lets a development node send a transaction and waits until it is in a block; its receipt.
export async function mined(url, transaction) {
    const hash = await ask(url, "eth_sendTransaction", { gas: hex(1_000_000), ...transaction });
    for (;;) {
        const receipt = await ask(url, "eth_getTransactionReceipt", hash).catch(() => null);
        if (receipt !== null) return receipt;
    }
}
