//! JSON-RPC calls, as text.

fn call(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[{params}]}}"#)
}

/// Asks for a transaction.
#[must_use]
pub fn transaction_by_hash(hash: &str) -> String {
    call("eth_getTransactionByHash", &format!("\"{hash}\""))
}

/// Asks for a receipt.
#[must_use]
pub fn receipt(hash: &str) -> String {
    call("eth_getTransactionReceipt", &format!("\"{hash}\""))
}

/// Asks for a block.
#[must_use]
pub fn block_by_number(number: &str, is_full: bool) -> String {
    call("eth_getBlockByNumber", &format!("\"{number}\",{is_full}"))
}

/// Asks for a block by its hash.
#[must_use]
pub fn block_by_hash(hash: &str, is_full: bool) -> String {
    call("eth_getBlockByHash", &format!("\"{hash}\",{is_full}"))
}

/// Asks for all receipts of a block.
#[must_use]
pub fn receipts_of_block(number: &str) -> String {
    call("eth_getBlockReceipts", &format!("\"{number}\""))
}

/// Asks for a transaction by its place; `by` is `Number` or `Hash`, of the block.
#[must_use]
pub fn transaction_in_block(by: &str, block: &str, index: usize) -> String {
    let method = format!("eth_getTransactionByBlock{by}AndIndex");
    call(&method, &format!("\"{block}\",\"{index:#x}\""))
}

/// Asks for the logs of all blocks with this third topic.
#[must_use]
pub fn logs_to(recipient: &str) -> String {
    let range = r#""fromBlock":"earliest","toBlock":"latest""#;
    call("eth_getLogs", &format!(r#"{{{range},"topics":[null,null,"{recipient}"]}}"#))
}

/// Asks for all logs of some blocks.
#[must_use]
pub fn logs_of(first: &str, last: &str) -> String {
    call("eth_getLogs", &format!(r#"{{"fromBlock":"{first}","toBlock":"{last}"}}"#))
}

/// Several calls in one request.
#[must_use]
pub fn batch(calls: &[String]) -> String {
    format!("[{}]", calls.join(","))
}
