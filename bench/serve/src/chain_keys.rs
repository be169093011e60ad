//! What can be asked for: hashes of blocks and transactions, told by the server itself.

use anyhow::{Context as _, Result};
use bench_store::random::Random;
use serde_json::Value;

use crate::http::ask;

/// Blocks that are asked for together.
const BATCH: u64 = 200;

/// A block and its transactions.
#[derive(Clone, Debug)]
pub struct BlockKeys {
    /// Its number, as in JSON.
    pub number: String,
    /// Its hash.
    pub hash: String,
    /// Hashes of its transactions.
    pub transactions: Vec<String>,
}

/// All blocks of a server.
#[derive(Clone, Debug)]
pub struct ChainKeys {
    /// In order.
    pub blocks: Vec<BlockKeys>,
    transaction_count: usize,
}

impl ChainKeys {
    /// Asks a server for all of its blocks.
    pub fn read(address: &str) -> Result<Self> {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}"#;
        let latest: Value =
            serde_json::from_slice(&ask(address, "/", Some(call.as_bytes()), &[])?)?;
        let latest =
            latest.pointer("/result").and_then(Value::as_str).context("no latest block")?;
        Self::read_to(address, u64::from_str_radix(latest.trim_start_matches("0x"), 16)?)
    }

    /// Asks a server for its blocks up to this one.
    pub fn read_to(address: &str, latest: u64) -> Result<Self> {
        let mut blocks = Vec::new();
        let mut first = 0;
        while first <= latest {
            let last = first.saturating_add(BATCH - 1).min(latest);
            blocks.extend(read_blocks(address, first, last)?);
            first = last.saturating_add(1);
        }
        Ok(Self::new(blocks))
    }

    fn new(blocks: Vec<BlockKeys>) -> Self {
        let transaction_count = blocks.iter().map(|block| block.transactions.len()).sum();
        Self { blocks, transaction_count }
    }

    /// How many transactions there are.
    #[must_use]
    pub fn transaction_count(&self) -> usize {
        self.transaction_count
    }

    /// Hashes of all transactions.
    pub fn transactions(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().flat_map(|block| &block.transactions).map(String::as_str)
    }

    /// So many transactions, each as likely as any other.
    #[must_use]
    pub fn pick(&self, random: &mut Random, count: usize) -> Vec<&str> {
        let all: Vec<&str> = self.transactions().collect();
        random.pick(&all, count).into_iter().copied().collect()
    }

    /// Blocks whose number of transactions is at most a tenth off `wanted`; all of them if none is.
    #[must_use]
    pub fn blocks_of_about(&self, wanted: usize) -> Vec<&BlockKeys> {
        let is_near = |block: &&BlockKeys| block.transactions.len().abs_diff(wanted) <= wanted / 10;
        let near: Vec<&BlockKeys> = self.blocks.iter().filter(is_near).collect();
        if near.is_empty() { self.blocks.iter().collect() } else { near }
    }
}

/// Of several requests the one whose answer has the middle length.
pub fn usual<'a>(
    address: &str,
    bodies: impl IntoIterator<Item = &'a String>,
) -> Result<Option<&'a String>> {
    let mut by_length = Vec::new();
    for body in bodies {
        by_length.push((ask(address, "/", Some(body.as_bytes()), &[])?.len(), body));
    }
    by_length.sort_unstable();
    Ok(by_length.get(by_length.len() / 2).map(|(_, body)| *body))
}

fn read_blocks(address: &str, first: u64, last: u64) -> Result<Vec<BlockKeys>> {
    let calls: Vec<String> = (first..=last)
        .map(|number| crate::call::block_by_number(&format!("{number:#x}"), false))
        .collect();
    let body = format!("[{}]", calls.join(","));
    let answers: Value = serde_json::from_slice(&ask(address, "/", Some(body.as_bytes()), &[])?)?;
    let answers = answers.as_array().context("a batch gets a list")?;
    answers.iter().map(|answer| keys_of(answer).context("a block without hashes")).collect()
}

/// The keys in an answer that is a block with hashes; `None` if it is anything else.
#[must_use]
pub fn keys_of(answer: &Value) -> Option<BlockKeys> {
    let block = answer.get("result")?;
    let text = |value: &Value| Some(value.as_str()?.to_owned());
    let transactions = block.get("transactions")?.as_array()?.iter().map(text);
    Some(BlockKeys {
        number: text(block.get("number")?)?,
        hash: text(block.get("hash")?)?,
        transactions: transactions.collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_of_about_the_wanted_size_are_found() {
        let block = |number: usize, count: usize| BlockKeys {
            number: format!("{number:#x}"),
            hash: format!("{number}"),
            transactions: (0..count).map(|index| format!("{number}.{index}")).collect(),
        };
        let keys = ChainKeys::new(vec![block(0, 0), block(1, 19), block(2, 22), block(3, 23)]);
        let near: Vec<&str> =
            keys.blocks_of_about(20).iter().map(|block| block.number.as_str()).collect();
        assert_eq!(near, ["0x1", "0x2"]);
        assert_eq!(keys.blocks_of_about(1000).len(), 4);
        assert_eq!(keys.transaction_count(), 64);
        assert_eq!(keys.pick(&mut Random::default(), 100).len(), 100);
    }

    #[test]
    fn keys_are_read_from_a_block_with_hashes_only() {
        let block =
            json!({"result": {"number": "0x7", "hash": "0xc", "transactions": ["0xa", "0xb"]}});
        let keys = keys_of(&block).unwrap();
        assert_eq!((keys.number.as_str(), keys.transactions.len()), ("0x7", 2));
        assert!(keys_of(&json!({"result": null})).is_none());
        let full =
            json!({"result": {"number": "0x7", "hash": "0xc", "transactions": [{"hash": "0xa"}]}});
        assert!(keys_of(&full).is_none());
    }
}
