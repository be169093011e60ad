//! What has the longest answers.

use anyhow::{Context as _, Result};
use bench_serve::call;
use bench_serve::chain_keys::ChainKeys;
use bench_serve::http::ask;

/// Requests of a batch at the most.
const BATCH_MAX: usize = 900;

/// Requests with long answers.
#[derive(Debug)]
pub(crate) struct Largest {
    /// The receipts or the transactions of one block, whichever is longer.
    pub(crate) block: String,
    /// The same several times.
    pub(crate) batch: String,
    /// Bytes of its answer.
    pub(crate) batch_bytes: usize,
}

impl Largest {
    /// Looks for the largest block, and for as many of it as fill an answer of so many bytes.
    pub(crate) fn find(address: &str, keys: &ChainKeys, batch_bytes_max: usize) -> Result<Self> {
        let most = keys.blocks.iter().max_by_key(|block| block.transactions.len());
        let number = &most.context("there is no block")?.number;
        let mut found = None;
        for asked in [call::block_by_number(number, true), call::receipts_of_block(number)] {
            let bytes = ask(address, "/", Some(asked.as_bytes()), &[])?.len();
            found = found.max(Some((bytes, asked)));
        }
        let (bytes, block) = found.context("nothing was asked")?;
        let count = (batch_bytes_max / bytes.max(1)).clamp(1, BATCH_MAX);
        let batch = call::batch(&vec![block.clone(); count]);
        let batch_bytes = ask(address, "/", Some(batch.as_bytes()), &[])?.len();
        Ok(Self { block, batch, batch_bytes })
    }
}
