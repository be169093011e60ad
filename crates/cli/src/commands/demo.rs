//! `quipu demo`: make the sample chain, write it as ere, prove what was written, import it.

use std::path::PathBuf;

use anyhow::Context;
use chain::ChainSpec;
use ingest::archive::Format;
use ingest::import::Settings;
use ingest::pool::threads_default;
use ingest::sample::{self, NETWORK_NAME};
use ingest::survey::Job;

use crate::Failure;
use crate::args::{ChainArgs, DemoArgs, SampleChainArgs};
use crate::chain_choice;
use crate::commands::import::import;
use crate::commands::sample::{make, settings};
use crate::commands::stat;
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
    let files: Vec<PathBuf> = made.written.into_iter().map(|written| written.path).collect();
    let genesis = Some(folder.join("genesis.json"));
    let chain_args = ChainArgs { genesis, ..ChainArgs::default() };
    let settings = Settings {
        is_unanchored_allowed: false,
        is_without_receipts_allowed: false,
        blocks: None,
        threads,
    };
    let data = import(&folder.join("data"), &files, &chain_args, settings)?;
    let page = stat::text(&data, &stat::gather(&data)?);
    let (archives, data) = (folder.display(), data.path.display());
    let again = [
        String::new(),
        format!("Prove it again:     quipu verify --genesis {archives}/genesis.json {archives}"),
        format!("See what is held:   quipu stat --data-dir {data}"),
    ];
    print_lines(&[vec![String::new()], page, again.to_vec()].concat())?;
    Ok(())
}

/// Another chain, another folder: archives of two chains must not lie together.
fn default_folder(chain: &SampleChainArgs) -> PathBuf {
    let SampleChainArgs { seed, block_count, txs_per_block, payload, .. } = chain;
    let payload = format!("{payload:?}").to_lowercase();
    std::env::temp_dir().join(format!("quipu-demo-{seed}-{block_count}-{txs_per_block}-{payload}"))
}
