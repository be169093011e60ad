//! `quipu prove`: a bundle that proves something of the data folder to somebody else.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::anyhow;
use rpc::{Service, ServiceSettings};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::Failure;
use crate::args::prove::ProveArgs;
use crate::data_folder::DataFolder;
use crate::output::print_lines;

/// Nobody else waits for the answer.
const ANSWER_TIME: Duration = Duration::from_hours(1);

pub(crate) fn run(args: &ProveArgs) -> Result<(), Failure> {
    let folder = DataFolder::open(&args.data)?;
    let service = Service::new(folder.store.clone(), folder.spec()?, ServiceSettings::default());
    let (method, params) = question(args)?;
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(service.respond(request.to_string().as_bytes(), ANSWER_TIME));
    let answer = answer.unwrap_or_default();
    let answer: BTreeMap<&str, &RawValue> = serde_json::from_slice(&answer)
        .map_err(|error| anyhow!("the answer cannot be read: {error}"))?;
    let place = folder.path.display();
    if let Some(error) = answer.get("error") {
        let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
        let said = error.get("message").and_then(Value::as_str).unwrap_or("no reason is told");
        return Err(Failure::Work(anyhow!("{place}: {said}")));
    }
    match answer.get("result").map(|result| result.get()).filter(|it| *it != "null") {
        // Its text is part of it: not a byte may change.
        Some(bundle) => Ok(print_lines(&[bundle.to_owned()])?),
        None => Err(Failure::Work(anyhow!(
            "{place}: there is no such thing in this history, so there is nothing to prove"
        ))),
    }
}

/// The method that answers, and its parameters.
fn question(args: &ProveArgs) -> Result<(&'static str, Value), Failure> {
    let to = args.to.as_deref().map(block);
    if let Some(hash) = args.hash {
        let (alone, both) = ("quipu_proveTransaction", "quipu_proveReceipt");
        return Ok((if args.without_receipt { alone } else { both }, json!([hash, to])));
    }
    if let Some(text) = &args.block {
        return Ok(("quipu_proveBlock", json!([block(text), to])));
    }
    if let Some(text) = &args.log {
        let (of, index) = text.rsplit_once(':').unzip();
        let index = index.and_then(|index| index.parse::<u64>().ok());
        let (Some(of), Some(index)) = (of, index) else {
            return Err(Failure::Usage(anyhow!(
                "--log: {text:?} is not a block, a colon and an index, such as 17000000:12"
            )));
        };
        return Ok(("quipu_proveLog", json!([block(of), index, to])));
    }
    let text = args.logs.as_deref().unwrap_or_default();
    let filter: Value = serde_json::from_str(text)
        .map_err(|error| Failure::Usage(anyhow!("--logs: not a filter in JSON: {error}")))?;
    Ok(("quipu_proveLogs", json!([filter, to])))
}

/// A number as a number, anything else as it is written.
fn block(text: &str) -> Value {
    text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number))
}
