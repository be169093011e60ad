//! `quipu prove`: a bundle that proves something of the data folder to somebody else.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::anyhow;
use chain::BlockNumber;
use rpc::{Service, ServiceSettings};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::Failure;
use crate::args::prove::{LogSubject, ProveArgs};
use crate::data_folder::DataFolder;
use crate::output::{note, print_lines};

/// Nobody else waits for the answer.
const ANSWER_TIME: Duration = Duration::from_hours(1);

/// What a method cannot be asked, such as a filter that is none or an anchor to which no way leads.
const INVALID_PARAMS: i64 = -32602;

pub(crate) fn run(args: &ProveArgs) -> Result<(), Failure> {
    let folder = DataFolder::open(&args.data)?;
    let service = Service::new(folder.store.clone(), folder.spec()?, ServiceSettings::default());
    let (method, params) = question(args);
    let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(service.respond(request.as_bytes(), ANSWER_TIME));
    let answer = answer.unwrap_or_default();
    let answer: BTreeMap<&str, &RawValue> = serde_json::from_slice(&answer)
        .map_err(|error| anyhow!("the answer cannot be read: {error}"))?;
    let place = folder.path.display();
    if let Some(error) = answer.get("error") {
        return Err(refusal(&folder, error));
    }
    match answer.get("result").map(|result| result.get()).filter(|it| *it != "null") {
        Some(bundle) => {
            if let Some(filter) = &args.logs {
                tell_portion(filter, bundle, folder.store.view().tip());
            }
            // Its text is part of it: not a byte may change.
            Ok(print_lines(&[bundle.to_owned()])?)
        }
        None => Err(Failure::Work(anyhow!(
            "{place}: there is no such thing in this history, so there is nothing to prove"
        ))),
    }
}

/// Why there is no bundle: a file that cannot be read is named, which a server does not do.
fn refusal(folder: &DataFolder, error: &RawValue) -> Failure {
    let place = folder.path.display();
    let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
    let said = error.get("message").and_then(Value::as_str).unwrap_or("no reason is told");
    let code = error.get("code").and_then(Value::as_i64);
    let faults = folder.store.faulty_files();
    if code == Some(INVALID_PARAMS) {
        Failure::Usage(anyhow!("{place}: {said}"))
    } else if faults.is_empty() {
        Failure::Work(anyhow!("{place}: {said}"))
    } else {
        let faults: Vec<String> = faults.into_iter().map(|fault| fault.text).collect();
        Failure::Work(anyhow!(
            "{place}: {said}: {}\n  hint: quipu check --data-dir {place} tells all that is wrong",
            faults.join("; ")
        ))
    }
}

/// A bundle of logs has so many blocks at the most, whatever the filter asks for. That blocks are left
/// out is told also to whoever wants no notes.
fn tell_portion(filter: &RawValue, bundle: &str, tip: Option<BlockNumber>) {
    let members: BTreeMap<&str, &RawValue> = serde_json::from_str(bundle).unwrap_or_default();
    let answered: Value = members
        .get("filter")
        .and_then(|it| serde_json::from_str(it.get()).ok())
        .unwrap_or_default();
    let end = |name| answered.get(name).and_then(Value::as_u64);
    let Some((first, last)) = end("fromBlock").zip(end("toBlock")) else { return };
    let asked: Value = serde_json::from_str(filter.get()).unwrap_or_default();
    let wanted = match asked.get("toBlock").map_or(Some("latest"), Value::as_str) {
        _ if asked.get("blockHash").is_some() => Some(last),
        Some("latest") => tip.map(BlockNumber::get),
        Some(text) => text.strip_prefix("0x").and_then(|it| u64::from_str_radix(it, 16).ok()),
        None => asked.get("toBlock").and_then(Value::as_u64),
    };
    let answers = format!("the bundle answers for blocks {first}..{last}");
    let next = last.saturating_add(1);
    match wanted {
        Some(wanted) if wanted > last => {
            eprintln!("warning: {answers}, and not for {next}..{wanted}: ask again from {next} on");
        }
        Some(_) => note(&answers),
        None => note(&format!("{answers}; for any above ask again from {next} on")),
    }
}

/// The method that answers, and its parameters.
fn question(args: &ProveArgs) -> (&'static str, String) {
    let to = json!(args.to);
    if let Some(hash) = args.hash {
        let (alone, both) = ("quipu_proveTransaction", "quipu_proveReceipt");
        return (if args.without_receipt { alone } else { both }, json!([hash, to]).to_string());
    }
    if let Some(block) = &args.block {
        return ("quipu_proveBlock", json!([block, to]).to_string());
    }
    if let Some(LogSubject { block, index }) = &args.log {
        return ("quipu_proveLog", json!([block, index, to]).to_string());
    }
    let filter = args.logs.as_deref().map_or("null", RawValue::get);
    ("quipu_proveLogs", format!("[{filter},{to}]"))
}
