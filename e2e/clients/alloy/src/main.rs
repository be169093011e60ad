//! alloy's provider, unmodified: the six reads by its functions, and what it recomputes from them; or,
//! where logs are what is expected, those.
//!
//! Knows: where the server is, and the answers that were worked out elsewhere.
//! Never knows: any code of Quipu's.

mod logs;

use std::env;
use std::fs;

use alloy_consensus::transaction::SignerRecoverable as _;
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_primitives::{B256, hex, keccak256};
use alloy_provider::{Provider, ProviderBuilder};
use alloy_rpc_types_eth::{Block, Transaction};
use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use serde_json::{Map, Value};

const ABSENT_HASH: B256 = B256::repeat_byte(0x11);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = env::args().skip(1);
    let url = args.next().context("usage: client-alloy URL expected.json")?;
    let path = args.next().context("usage: client-alloy URL expected.json")?;
    let provider = ProviderBuilder::new().connect_http(url.parse()?);
    let expected: Value = serde_json::from_slice(&fs::read(path)?)?;
    let mut agreement = Agreement::default();
    if let Some(queries) = expected["queries"].as_array() {
        for query in queries {
            agreement.hold_logs(&provider, query).await?;
        }
    } else {
        let blocks = expected["blocks"].as_array().context("no blocks")?;
        agreement.hold_reads(&provider, blocks).await?;
    }
    let Agreement { compared, differences } = agreement;
    println!("{compared} values compared, {differences} differ");
    ensure!(compared > 0 && differences == 0, "alloy was told otherwise than is expected");
    Ok(())
}

/// Both values of all members are the same, and neither has one more.
#[derive(Default)]
struct Agreement {
    compared: usize,
    differences: usize,
}

impl Agreement {
    async fn hold_reads(&mut self, provider: &impl Provider, blocks: &[Value]) -> Result<()> {
        for held in blocks {
            self.hold_block(provider, held).await?;
        }
        let past = u64::try_from(blocks.len())?;
        ensure!(provider.get_block_by_number(past.into()).await?.is_none(), "a block past the tip");
        ensure!(provider.get_block_by_hash(ABSENT_HASH).await?.is_none(), "an unknown block");
        ensure!(provider.get_transaction_by_hash(ABSENT_HASH).await?.is_none(), "an unknown hash");
        ensure!(provider.get_transaction_receipt(ABSENT_HASH).await?.is_none(), "no receipt");
        let by_number = provider.get_transaction_by_block_number_and_index(0.into(), 99).await?;
        ensure!(by_number.is_none(), "a transaction past the end of its block");
        let by_hash = provider.get_transaction_by_block_hash_and_index(ABSENT_HASH, 0).await?;
        ensure!(by_hash.is_none(), "a transaction of an unknown block");
        Ok(())
    }

    async fn hold_block(&mut self, provider: &impl Provider, held: &Value) -> Result<()> {
        let wanted = &held["block"];
        let number: u64 = quantity(&wanted["number"])?;
        let hash: B256 = serde_json::from_value(wanted["hash"].clone())?;
        let block = provider.get_block_by_number(number.into()).full().await?.context("block")?;
        self.hold(&format!("block {number}"), &block, wanted)?;
        // From alloy's own fields, by its own RLP.
        let recomputed = block.header.inner.hash_slow();
        self.hold(&format!("hash of block {number}"), &recomputed, &wanted["hash"])?;
        let by_hash: Block = provider.get_block_by_hash(hash).await?.context("block by hash")?;
        let transactions = wanted["transactions"].as_array().context("transactions")?;
        let mut hashes = wanted.clone();
        hashes["transactions"] = transactions.iter().map(|it| it["hash"].clone()).collect();
        self.hold(&format!("block {number} by hash"), &by_hash, &hashes)?;
        for (index, wanted) in transactions.iter().enumerate() {
            let of: B256 = serde_json::from_value(wanted["hash"].clone())?;
            let found = provider.get_transaction_by_hash(of).await?.context("transaction")?;
            self.hold_transaction(&found, wanted, &held["raw"][index])?;
            let at = provider.get_transaction_by_block_number_and_index(number.into(), index);
            self.hold(&format!("{number}/{index}"), &at.await?, wanted)?;
            let at = provider.get_transaction_by_block_hash_and_index(hash, index);
            self.hold(&format!("{hash}/{index}"), &at.await?, wanted)?;
            let receipt = provider.get_transaction_receipt(of).await?;
            self.hold(&format!("receipt {of}"), &receipt, &held["receipts"][index])?;
        }
        Ok(())
    }

    fn hold_transaction(&mut self, found: &Transaction, wanted: &Value, raw: &Value) -> Result<()> {
        let hash = &wanted["hash"];
        self.hold(&format!("transaction {hash}"), found, wanted)?;
        let encoded = found.inner.encoded_2718();
        self.hold(&format!("bytes of {hash}"), &hex::encode_prefixed(&encoded), raw)?;
        self.hold(&format!("keccak of {hash}"), &keccak256(&encoded), hash)?;
        // Without the rule on high s, which Frontier did not have.
        let sender = found.inner.inner().recover_signer_unchecked()?;
        self.hold(&format!("sender of {hash}"), &sender, &wanted["from"])
    }

    fn hold(&mut self, path: &str, found: &impl Serialize, wanted: &Value) -> Result<()> {
        self.differ(path, &serde_json::to_value(found)?, wanted);
        Ok(())
    }

    fn differ(&mut self, path: &str, found: &Value, wanted: &Value) {
        match (found, wanted) {
            (Value::Object(found), Value::Object(wanted)) => {
                for name in wanted.keys().chain(found.keys().filter(|it| !wanted.contains_key(*it)))
                {
                    let (found, wanted) = (member(found, name), member(wanted, name));
                    self.differ(&format!("{path}.{name}"), &found, &wanted);
                }
            }
            (Value::Array(found), Value::Array(wanted)) if found.len() == wanted.len() => {
                for (index, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                    self.differ(&format!("{path}.{index}"), found, wanted);
                }
            }
            _ => {
                self.compared += 1;
                if found != wanted {
                    self.differences += 1;
                    println!("{path}: found {found}, expected {wanted}");
                }
            }
        }
    }
}

/// A member that is not there is as good as null.
fn member(object: &Map<String, Value>, name: &str) -> Value {
    object.get(name).cloned().unwrap_or_default()
}

fn quantity(value: &Value) -> Result<u64> {
    let text = value.as_str().and_then(|text| text.strip_prefix("0x")).context("no quantity")?;
    Ok(u64::from_str_radix(text, 16)?)
}
