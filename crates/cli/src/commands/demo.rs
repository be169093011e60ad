//! `quipu demo`: make the sample chain, write it as ere, prove what was written.

use std::path::PathBuf;

use anyhow::Context;
use chain::ChainSpec;
use ingest::archive::Format;
use ingest::pool::threads_default;
use ingest::sample::{self, NETWORK_NAME};
use ingest::survey::Job;

use crate::Failure;
use crate::args::{DemoArgs, SampleChainArgs};
use crate::chain_choice;
use crate::commands::sample::{make, settings};
use crate::commands::verify::{Output, prove_all};
use crate::output::print_lines;

pub(crate) fn run(args: &DemoArgs) -> Result<(), Failure> {
    let folder = args.to.clone().unwrap_or_else(|| default_folder(&args.chain));
    let made = make(&folder, Format::Ere, &args.chain)?;
    print_lines(std::slice::from_ref(&made.summary))?;

    let genesis = sample::genesis(&settings(&args.chain));
    let spec = ChainSpec::from_genesis(NETWORK_NAME, &genesis).context("sample genesis")?;
    let anchors = chain_choice::anchors(&spec, &[], None)?;
    let jobs = made
        .written
        .iter()
        .map(|written| Job {
            path: written.path.clone(),
            network: Some(NETWORK_NAME.to_owned()),
            spec: spec.clone(),
            anchors: anchors.clone(),
        })
        .collect();
    let threads = args.chain.work.threads.unwrap_or_else(threads_default);
    prove_all(jobs, threads, Output::Text)?;
    let again = format!("quipu verify --genesis {0}/genesis.json {0}", folder.display());
    print_lines(&[String::new(), format!("Prove it again:  {again}")])?;
    Ok(())
}

/// Another chain, another folder: archives of two chains must not lie together.
fn default_folder(chain: &SampleChainArgs) -> PathBuf {
    let SampleChainArgs { seed, block_count, txs_per_block, payload, .. } = chain;
    let payload = format!("{payload:?}").to_lowercase();
    std::env::temp_dir().join(format!("quipu-demo-{seed}-{block_count}-{txs_per_block}-{payload}"))
}
