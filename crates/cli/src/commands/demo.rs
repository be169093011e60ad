//! `quipu demo`: make the sample chain, import it as any other archive is, and serve it.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use alloy_primitives::{B256, keccak256};
use anyhow::{Context as _, anyhow};
use archive::Format;
use chain::BlockNumber;
use pool::threads_default;
use rpc::http::HttpSettings;
use serde_json::{Value, json};
use store::read::block_on;
use store::{Reader, RowParts, RowView, StoreError, View};
use tempfile::TempDir;

use crate::Failure;
use crate::args::ChainArgs;
use crate::args::demo::DemoArgs;
use crate::args::sample::SampleChainArgs;
use crate::commands::import::import;
use crate::commands::sample::make;
use crate::commands::serve::{Bound, Wiring, begin_logs};
use crate::commands::stat;
use crate::data_folder::{CONFIG_NAME, DataFolder};
use crate::output::print_lines;

/// How often it is tried to remove a folder that is still being written to.
const REMOVE_TRIES_MAX: u32 = 100;
/// Between two tries.
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn run(args: DemoArgs) -> Result<(), Failure> {
    let settings = args.data_dir.as_deref().map(|folder| folder.join(CONFIG_NAME));
    if let Some(settings) = settings.filter(|path| path.exists()) {
        return Err(Failure::Usage(anyhow!(
            "{}: the demo reads no settings, so that it would serve without keys\n  hint: \
             `quipu serve` serves a folder with its settings",
            settings.display()
        )));
    }
    begin_logs(false, "warn")?;
    // First, so that an address that is taken is told before any work is done.
    let bound = Bound::to(args.listen.resolve()?)?;
    let temporary = tempfile::Builder::new().prefix("quipu-demo-").tempdir()?;
    let outcome = make_and_serve(bound, args, temporary.path());
    // However it ended, nothing stays that nobody asked for.
    remove(temporary)?;
    outcome
}

fn make_and_serve(mut bound: Bound, args: DemoArgs, temporary: &Path) -> Result<(), Failure> {
    let archives = temporary.join("archives");
    let is_kept = args.data_dir.is_some();
    let data = args.data_dir.unwrap_or_else(|| temporary.join("data"));
    let prepared = match bound.prepare(move || prepare(&archives, &data, &args.chain))? {
        Ok(prepared) => prepared,
        Err(code) => {
            let stays = if is_kept {
                "the same command again takes up after what was taken"
            } else {
                "nothing stays"
            };
            eprintln!("\nstopped: the chain was not ready yet; {stays}");
            return Err(Failure::Stopped(code));
        }
    };
    let (folder, held) = prepared?;
    let address = bound.address();
    let path = folder.path.display();
    let end = if is_kept {
        format!("Ctrl-C ends it; {path} stays, for quipu serve --data-dir {path}")
    } else {
        format!("Ctrl-C ends it and removes {}", temporary.display())
    };
    let shown =
        (!args.no_explorer).then(|| "open that address in a browser to look around".to_owned());
    let begin = [String::new(), format!("listening on http://{address}")];
    let told = begin.into_iter().chain(shown).chain([end]).collect::<Vec<_>>();
    print_lines(&[held, examples(&folder, address)?, told].concat())?;
    bound.serve(
        &folder,
        HttpSettings { has_explorer: !args.no_explorer, ..HttpSettings::default() },
        rpc::ServiceSettings::default(),
        Wiring::default(),
    )
}

/// Makes the chain and imports it; gives back what is held, as a page.
fn prepare(
    archives: &Path,
    data: &Path,
    chain: &SampleChainArgs,
) -> Result<(DataFolder, Vec<String>), Failure> {
    let made = make(archives, Format::Ere, chain)?;
    print_lines(std::slice::from_ref(&made.summary))?;
    let files: Vec<PathBuf> = made.written.into_iter().map(|written| written.path).collect();
    let chain_args = ChainArgs { genesis: Some(made.genesis_path), ..ChainArgs::default() };
    let settings = ingest::import::ImportSettings {
        is_unanchored_allowed: false,
        is_without_receipts_allowed: false,
        is_without_log_index: false,
        blocks: None,
        threads: chain.work.threads.unwrap_or_else(threads_default),
    };
    let folder = import(data, &files, &chain_args, settings)?;
    let page = stat::text(&folder, &stat::gather(&folder)?.stat);
    Ok((folder, [vec![String::new()], page].concat()))
}

/// Commands to try, with hashes that are there.
fn examples(folder: &DataFolder, address: SocketAddr) -> Result<Vec<String>, Failure> {
    let transaction = block_on(find_transaction(&folder.store.view()))?;
    let mut calls = vec![("eth_getBlockByNumber", json!(["latest", false]))];
    if let Some(hash) = transaction {
        calls.push(("eth_getTransactionByHash", json!([hash])));
        calls.push(("eth_getTransactionReceipt", json!([hash])));
    }
    calls.push(("eth_getTransactionByHash", json!([B256::repeat_byte(0x11)])));
    let curl = |(method, params): (&str, Value)| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        format!("  curl -s http://{address} -d '{body}'")
    };
    let begin =
        [String::new(), "A block, a transaction, its receipt, and what is not there:".into()];
    Ok(begin.into_iter().chain(calls.into_iter().map(curl)).collect())
}

/// The newest transaction with something to show: one that has logs.
async fn find_transaction(view: &View) -> Result<Option<B256>, StoreError> {
    let mut reader = Reader::new().map_err(StoreError::Reader)?;
    let tip = view.tip().unwrap_or_default();
    for number in (0..=tip.get()).rev().map(BlockNumber) {
        let Some(block) = view.read_block(&mut reader, number, RowParts::Receipt).await? else {
            continue;
        };
        let has_logs = |row: &RowView<'_>| row.receipt.is_some_and(|it| it.log_count() > 0);
        if let Some(row) = block.rows.iter().find(has_logs) {
            return Ok(Some(keccak256(row.encoded)));
        }
    }
    Ok(None)
}

/// Removes the folder. Where the process is told to stop while the chain is being made, files still
/// come in: then it takes more than one try.
fn remove(folder: TempDir) -> anyhow::Result<()> {
    let path = folder.keep();
    let mut tries = 1;
    loop {
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if tries >= REMOVE_TRIES_MAX => {
                return Err(error).with_context(|| path.display().to_string());
            }
            Ok(()) => return Ok(()),
            Err(_) => thread::sleep(REMOVE_PAUSE),
        }
        tries += 1;
    }
}
