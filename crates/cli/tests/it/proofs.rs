//! Proof bundles of whole chains, each verified by the crate that shares no code with the server.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::hex;
use chain::SplitMix64;
use ingest::folder_chain::held_spec;
use proof::{
    AnchorTrust, MAINNET_ACCUMULATOR, ProofAnchor, ProofBundle, ProofVerdict, ProvenClaim, verify,
};
use rpc::Service;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::disk::Folder;
use store::read::Inline;
use store::{Limits, Store};
use tempfile::TempDir;
use testing::shared_data::shared_data;

use crate::harness::hosted::service_of;
use crate::harness::run::{command, quipu, ran, text};
use crate::harness::stores::data_folder;

/// A hash that no block has.
const ABSENT: &str = "0x7777777777777777777777777777777777777777777777777777777777777777";

/// A chain that is asked.
struct Chain {
    service: Service,
    last: u64,
    folder: Option<TempDir>,
}

impl Chain {
    fn of(data: &Path) -> Self {
        let disk = Arc::new(Folder::open(data).unwrap());
        let store = Store::open(disk, Arc::new(Inline), Limits::default()).unwrap();
        let service = service_of(data, held_spec(&store).unwrap());
        Self { service, last: store.view().tip().unwrap().get(), folder: None }
    }

    fn imported(archive: &Path, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        import(&data, archive, args);
        Self { folder: Some(folder), ..Self::of(&data) }
    }

    /// An answer as it was written: the text of a bundle is part of it.
    fn answer(&self, method: &str, params: &Value) -> BTreeMap<String, Box<RawValue>> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (request, time) = (request.to_string(), Duration::from_mins(1));
        let answer = runtime.block_on(self.service.respond(request.as_bytes(), time));
        serde_json::from_slice(&answer.unwrap()).unwrap()
    }

    fn raw(&self, method: &str, params: &Value) -> String {
        let answer = self.answer(method, params);
        let result =
            answer.get("result").unwrap_or_else(|| panic!("{method} {params}: {answer:?}"));
        result.get().to_owned()
    }

    fn ask(&self, method: &str, params: &Value) -> Value {
        serde_json::from_str(&self.raw(method, params)).unwrap()
    }

    /// A bundle that the verifier takes, and what it proves.
    fn prove(&self, method: &str, params: &Value) -> (String, ProofVerdict) {
        let bundle = self.raw(method, params);
        let verdict = verdict(&bundle, &[]);
        (bundle, verdict)
    }

    /// The first blocks, or all of them.
    fn searched(&self) -> RangeInclusive<u64> {
        let first = self.ask("eth_getBlockByNumber", &json!(["earliest", false]));
        let first = number(&first["number"]);
        if is_everything_proven() { first..=self.last } else { first..=self.last.min(first + 149) }
    }
}

fn import(data: &Path, archive: &Path, args: &[&str]) {
    let import = ["import", "--data-dir", text(data), "--unanchored"];
    quipu(&[&import[..], args, &[text(archive)]].concat()).ends_with(0);
}

/// Every block of the real chains, and every transaction, receipt and log: a matter of minutes.
fn is_everything_proven() -> bool {
    std::env::var_os("QUIPU_PROVE_EVERYTHING").is_some()
}

/// The anchor that a bundle leads to by headers, as it is named to a verifier.
fn bundle_anchor(bundle: &str) -> String {
    let bundle: Value = serde_json::from_str(bundle).unwrap();
    let anchor = &bundle["anchor"];
    format!("{}:{}", anchor["number"], anchor["hash"].as_str().unwrap())
}

fn verdict(bundle: &str, trusted: &[ProofAnchor]) -> ProofVerdict {
    let read = ProofBundle::parse(bundle.as_bytes()).and_then(|it| verify(&it, trusted));
    read.unwrap_or_else(|refusal| panic!("{refusal}: {}", &bundle[..bundle.len().min(2000)]))
}

fn number(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

fn data(bytes: impl AsRef<[u8]>) -> String {
    hex::encode_prefixed(bytes)
}

/// What was proven of a chain.
#[derive(Debug, Default)]
struct ProvenCounts {
    blocks: usize,
    transactions: usize,
    receipts: usize,
    logs: usize,
}

/// Proves the first blocks, and of transactions, receipts and logs one of so many; gives all logs. If
/// everything is to be proven, none is left out.
fn prove_all(chain: &Chain, each: usize) -> (Vec<Value>, ProvenCounts) {
    let step = |each: usize| if is_everything_proven() { 1 } else { each };
    let (mut logs, mut counts) = (Vec::new(), ProvenCounts::default());
    for block in chain.searched() {
        let header = chain.ask("debug_getRawHeader", &json!([block]));
        if header.is_null() {
            continue;
        }
        let hash = &chain.ask("eth_getBlockByNumber", &json!([block, false]))["hash"];
        let receipts = chain.ask("eth_getBlockReceipts", &json!([block]));
        let raw_receipts = chain.ask("debug_getRawReceipts", &json!([block]));
        let own = receipts.as_array().unwrap().iter();
        for receipt in receipts.as_array().unwrap() {
            logs.extend(receipt["logs"].as_array().unwrap().iter().cloned());
        }
        let own = own.zip(raw_receipts.as_array().unwrap());
        // A block of the conformance chain has 21 MB.
        let step = step(each.max(own.len() / 20));
        for (receipt, raw_receipt) in own.step_by(step) {
            let wanted = &receipt["transactionHash"];
            let raw = chain.ask("eth_getRawTransactionByHash", &json!([wanted]));
            for (method, has_receipt) in
                [("quipu_proveTransaction", false), ("quipu_proveReceipt", true)]
            {
                let (_, found) = chain.prove(method, &json!([wanted, block]));
                let ProvenClaim::Transaction { block, hash: own, transaction, receipt, .. } =
                    found.claim
                else {
                    panic!("{method} of {wanted} proves something else");
                };
                assert_eq!(json!(block.hash.to_string()), *hash);
                assert_eq!(json!(own.to_string()), *wanted);
                assert_eq!(json!(data(transaction)), raw);
                let count =
                    if has_receipt { &mut counts.receipts } else { &mut counts.transactions };
                *count += 1;
                let expected = has_receipt.then(|| raw_receipt.clone());
                assert_eq!(receipt.map(|it| json!(data(it))), expected, "{method} of {wanted}");
            }
        }
        let (_, found) = chain.prove("quipu_proveBlock", &json!([block]));
        let ProvenClaim::Block { block: proven, transactions, receipts } = found.claim else {
            panic!("block {block}: something else is proven");
        };
        assert_eq!(json!(proven.hash.to_string()), *hash);
        assert_eq!(transactions.len(), receipts.len());
        assert_eq!(json!(receipts.iter().map(data).collect::<Vec<_>>()), raw_receipts);
        counts.blocks += 1;
    }
    for log in logs.iter().step_by(step(each.max(logs.len() / 50))) {
        let params = json!([log["blockNumber"], log["logIndex"], log["blockNumber"]]);
        let (_, found) = chain.prove("quipu_proveLog", &params);
        let ProvenClaim::Transaction { log: Some(proven), hash, .. } = found.claim else {
            panic!("{params}: no log is proven");
        };
        assert_eq!(json!(hash.to_string()), log["transactionHash"]);
        assert_eq!(json!(data(proven.address)), log["address"]);
        assert_eq!(json!(data(&proven.data)), log["data"]);
        let topics: Vec<String> = proven.topics.iter().map(ToString::to_string).collect();
        assert_eq!(json!(topics), log["topics"]);
        counts.logs += 1;
    }
    (logs, counts)
}

/// Random filters: what is proven to be all is what a scan of all logs finds.
fn prove_filters(chain: &Chain, logs: &[Value], count: usize) {
    let mut random = SplitMix64::new(7);
    let (first, last) = chain.searched().into_inner();
    let mut below = |limit: u64| random.below(limit.max(1));
    for round in 0..count {
        let place = usize::try_from(below(u64::try_from(logs.len()).unwrap())).unwrap();
        let some = logs.get(place);
        let address = some.filter(|_| below(3) > 0).map(|log| log["address"].clone());
        let topic = some.filter(|_| below(2) > 0).map(|log| log["topics"][0].clone());
        let topic = topic.filter(|it| !it.is_null());
        let from = first + below(last - first + 1);
        let to = from + below(last - from + 1);
        let mut filter = json!({ "toBlock": format!("{to:#x}") });
        if let Some(address) = &address {
            filter["address"] = address.clone();
        }
        if let Some(topic) = &topic {
            filter["topics"] = json!([topic]);
        }
        let expected: Vec<&Value> = logs
            .iter()
            .filter(|log| (from..=to).contains(&number(&log["blockNumber"])))
            .filter(|log| address.as_ref().is_none_or(|it| log["address"] == *it))
            .filter(|log| topic.as_ref().is_none_or(|it| log["topics"][0] == *it))
            .collect();
        let (mut found, mut next, mut before) = (Vec::new(), from, None);
        while next <= to {
            filter["fromBlock"] = json!(format!("{next:#x}"));
            let (_, verdict) = chain.prove("quipu_proveLogs", &json!([filter]));
            let ProvenClaim::Logs { filter: asked, parent, last, logs } = verdict.claim else {
                panic!("{filter}: something else is proven");
            };
            // One bundle goes on where the one before ends.
            assert_eq!(before.unwrap_or(parent), parent);
            before = Some(last.hash);
            assert_eq!(asked.from_block, next);
            assert!((next..=to).contains(&asked.to_block), "{asked:?}");
            next = asked.to_block + 1;
            found.extend(logs);
        }
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.block_number, it.log_index.unwrap(), data(&it.data)))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|it| {
                let data = it["data"].as_str().unwrap().to_owned();
                (number(&it["blockNumber"]), number(&it["logIndex"]), data)
            })
            .collect();
        assert_eq!(found, expected, "round {round}: {filter} from {from}");
    }
}

#[test]
fn everything_of_the_sample_chain_is_proven_and_nothing_is_left_out() {
    let chain = Chain::of(&data_folder("sample"));
    let (logs, _) = prove_all(&chain, 20);
    assert!(logs.len() > 100, "{}", logs.len());
    prove_filters(&chain, &logs, 40);
}

#[test]
fn everything_of_real_chains_is_proven() {
    let Some(folder) = shared_data() else { return };
    let genesis = |path: &str| folder.join(path).to_str().unwrap().to_owned();
    let conformance = genesis("execution-apis/genesis.json");
    let amsterdam = genesis("amsterdam/genesis.json");
    for (archive, genesis, each) in [
        ("ere/hivechain-00000-d226371d-noproofs.ere", Some(conformance), 1),
        ("amsterdam/amsterdam-00000-41511eb0-noproofs.ere", Some(amsterdam), 1),
        ("ere/mainnet-01896", None, 1),
        ("ere/mainnet-02079", None, 1),
        ("ere/relinked-02560", None, 40),
        ("ere/relinked8k-02562", None, 40),
        ("era1/sepolia-00021", None, 1),
    ] {
        let archive = find(&folder, archive);
        let args: Vec<&str> = genesis.iter().flat_map(|it| ["--genesis", it.as_str()]).collect();
        let chain = Chain::imported(&archive, &args);
        let (logs, counts) = prove_all(&chain, each);
        println!("{}: {counts:?} of {} logs", archive.display(), logs.len());
        assert!(counts.blocks > 0, "{}", archive.display());
        prove_filters(&chain, &logs, 10);
    }
}

/// The file whose path begins so.
fn find(folder: &Path, begin: &str) -> PathBuf {
    let whole = folder.join(begin);
    let name = whole.file_name().unwrap().to_str().unwrap().to_owned();
    let files = fs::read_dir(whole.parent().unwrap()).unwrap().map(|it| it.unwrap().path());
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&name);
    files.filter(|path| named(path)).min().unwrap()
}

#[test]
fn blocks_before_the_merge_lead_to_the_accumulator() {
    let Some(folder) = shared_data() else { return };
    // With genesis, and an ommer.
    let first = Chain::imported(&find(&folder, "era1/mainnet-00000"), &[]);
    let archive = find(&folder, "era1/mainnet-00001");
    let second = Chain::imported(&archive, &[]);
    let prove = |chain: &Chain, block: u64| chain.prove("quipu_proveBlock", &json!([block]));
    for (chain, blocks) in [(&first, [0, 1, 8187, 8191]), (&second, [8192, 8193, 9001, 16_383])] {
        for block in blocks {
            let (bundle, found) = prove(chain, block);
            assert_eq!(found.trust, AnchorTrust::MainnetAccumulator, "{block}");
            assert_eq!(verdict(&bundle, &[MAINNET_ACCUMULATOR]).trust, AnchorTrust::Named);
        }
    }
    // By headers, if that is wanted.
    let (_, found) = second.prove("quipu_proveBlock", &json!([9001, 9050]));
    assert!(matches!(found.anchor, ProofAnchor::Block { number: 9050, .. }), "{found}");
    // The epoch's tree is kept. What is proven depends on what is held all the same.
    let (whole, _) = prove(&second, 9001);
    let data = second.folder.as_ref().unwrap().path().join("data");
    let hash = second.ask("eth_getBlockByNumber", &json!([12_000, false]))["hash"].clone();
    let to = format!("12000:{}", hash.as_str().unwrap());
    quipu(&["rewind", "--data-dir", text(&data), "--to", &to]).ends_with(0);
    second.service.store().refresh().unwrap();
    let (_, found) = prove(&second, 9001);
    assert!(matches!(found.anchor, ProofAnchor::Block { .. }), "{found}");
    import(&data, &archive, &[]);
    second.service.store().refresh().unwrap();
    assert_eq!(prove(&second, 9001).0, whole);
}

#[test]
fn a_way_leads_to_the_block_that_is_wanted_or_is_refused() {
    let chain = Chain::of(&data_folder("sample"));
    let hash = |block: u64| {
        let block = chain.ask("eth_getBlockByNumber", &json!([block, false]));
        (block["hash"].as_str().unwrap().to_owned(), block["transactions"][0].clone())
    };
    let (_, transaction) = hash(20);
    for to in [20, 21, 60, 1020] {
        let (bundle, _) = chain.prove("quipu_proveReceipt", &json!([transaction, to]));
        let anchor: ProofAnchor = format!("{to}:{}", hash(to).0).parse().unwrap();
        assert_eq!(verdict(&bundle, &[anchor]).trust, AnchorTrust::Named, "{to}");
        // Of another block, the bundle proves nothing.
        let other: ProofAnchor = format!("{to}:{}", hash(19).0).parse().unwrap();
        let bundle = ProofBundle::parse(bundle.as_bytes()).unwrap();
        verify(&bundle, &[other]).unwrap_err();
    }
    for (to, said) in [
        (json!(19), "does not prove block 20"),
        (json!(chain.last), "more than 1000 headers"),
        (json!(chain.last + 1), "no block that exists"),
    ] {
        let answer = chain.answer("quipu_proveReceipt", &json!([transaction, to]));
        let error = answer["error"].get();
        assert!(error.contains(said) && error.contains("-32602"), "{error}");
    }
    // A search ends with the wanted anchor, and one that is too far is refused before it.
    let filter = |to: u64| json!({ "fromBlock": "0x14", "toBlock": format!("{to:#x}") });
    for (asked, to, last) in [(60, 40, 40), (60, 60, 60), (60, 70, 60), (20, 20, 20)] {
        let (_, verdict) = chain.prove("quipu_proveLogs", &json!([filter(asked), to]));
        let ProvenClaim::Logs { last: proven, .. } = verdict.claim else { panic!("{verdict}") };
        assert_eq!(proven.number, last, "{asked} to {to}");
        assert!(matches!(verdict.anchor, ProofAnchor::Block { number, .. } if number == to));
    }
    for (to, said) in [
        (json!(19), "does not prove block 20"),
        (json!(chain.last), "more than 1000 headers"),
        (json!(chain.last + 1), "no block that exists"),
    ] {
        let error = chain.answer("quipu_proveLogs", &json!([filter(20), to]));
        assert!(error["error"].get().contains(said), "{error:?}");
    }
    let unknown = data([9; 32]);
    for (method, params) in [
        ("quipu_proveTransaction", json!([unknown])),
        ("quipu_proveLog", json!([20, 1_000_000])),
        ("quipu_proveBlock", json!([chain.last + 1])),
    ] {
        assert_eq!(chain.raw(method, &params), "null", "{method}");
    }
    let late = Chain::of(&data_folder("no-receipts"));
    let answer = late.answer("quipu_proveReceipt", &json!([transaction]));
    assert!(answer["error"].get().contains("4444"), "{answer:?}");
    late.prove("quipu_proveTransaction", &json!([transaction]));
}

#[test]
fn commands_prove_and_verify() {
    let data = data_folder("sample");
    let chain = Chain::of(&data);
    let block = chain.ask("eth_getBlockByNumber", &json!([20, false]));
    let (hash, anchor) =
        (block["transactions"][3].as_str().unwrap(), block["hash"].as_str().unwrap());
    let prove = ["prove", "--data-dir", text(&data)];
    let work = tempfile::tempdir().unwrap();
    let file = work.path().join("bundle.json");
    let filter = json!({ "fromBlock": "0x10", "toBlock": "0x20" }).to_string();
    for subject in [
        &[hash, "--to", "20"][..],
        &[hash, "--without-receipt", "--to", "20"],
        &["--block", "20", "--to", "20"],
        &["--log", "20:0", "--to", "20"],
        &["--logs", &filter, "--to", "32"],
    ] {
        let proven = quipu(&[&prove[..], subject].concat()).ends_with(0);
        let is_of_logs = subject[0] == "--logs";
        assert_eq!(
            proven.err.contains("answers for blocks 16..32\n"),
            is_of_logs,
            "{}",
            proven.err
        );
        let bundle = proven.out;
        fs::write(&file, &bundle).unwrap();
        let verified = quipu(&["verify-proof", text(&file)]).ends_with(0);
        assert!(
            verified.out.contains("proven: ") && verified.out.contains("untrusted"),
            "{}",
            verified.out
        );
        // The question is shown with the answer.
        let question = r#"the filter {"fromBlock":16,"toBlock":32,"address":[],"topics":[]}"#;
        assert_eq!(verified.out.contains(question), is_of_logs, "{}", verified.out);
        let named = format!("20:{anchor}");
        if subject.last() == Some(&"20") {
            let trusted = quipu(&["verify-proof", text(&file), "--anchor", &named]).ends_with(0);
            assert!(trusted.out.contains("trusted by you"), "{}", trusted.out);
        }
        // What a folder trusts is not what a bundle from elsewhere has to lead to.
        for (variable, is_trusted) in [("QUIPU_ANCHOR", false), ("QUIPU_VERIFY_PROOF_ANCHOR", true)]
        {
            let mut verify = command(&["verify-proof", text(&file)]);
            let given = format!("32:{ABSENT},{}", bundle_anchor(&bundle));
            let verified = ran(verify.env(variable, given)).ends_with(0);
            assert_eq!(verified.out.contains("trusted by you"), is_trusted, "{}", verified.out);
        }
        let other = format!("20:{}", "0x".to_owned() + &"7".repeat(64));
        quipu(&["verify-proof", text(&file), "--anchor", &other]).ends_with(1);
        // From a pipe, and damaged.
        let mut piped = command(&["verify-proof", "-"]);
        let mut child = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(bundle.as_bytes()).unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
        fs::write(&file, bundle.replacen("0xf9", "0xf8", 1)).unwrap();
        let refused = ran(&mut command(&["verify-proof", text(&file)])).ends_with(1);
        assert!(refused.err.contains("bundle.json: "), "{}", refused.err);
    }
}

#[test]
fn what_cannot_be_proven_is_refused_with_the_reason() {
    let data = data_folder("sample");
    let chain = Chain::of(&data);
    let block = chain.ask("eth_getBlockByNumber", &json!([20, false]));
    let (hash, anchor) =
        (block["transactions"][3].as_str().unwrap(), block["hash"].as_str().unwrap());
    let prove = ["prove", "--data-dir", text(&data)];
    let unknown = "0x".to_owned() + &"9".repeat(64);
    let ran = quipu(&[&prove[..], &[&unknown]].concat()).ends_with(1);
    assert!(ran.err.contains("nothing to prove"), "{}", ran.err);
    quipu(&prove).ends_with(2);
    let large = "18446744073709551616";
    let twice = r#"{"fromBlock":"0x1","fromBlock":"0x2"}"#;
    for (asked, said) in [
        (&["--block", "20", "--without-receipt"][..], "--without-receipt"),
        (&["--without-receipt", "--block=20"], "--without-receipt"),
        (&["--without-receipt", "--log", "20:0"], "--without-receipt"),
        (&["--without-receipt", "--logs", "{}"], "--without-receipt"),
        (&["--without-receipt"], "required"),
        (&[hash, "--block", "20"], "cannot be used with"),
        (&["--block", large], "more than 64 bits"),
        (&["--block", "0x10000000000000000"], "more than 64 bits"),
        (&["--block", "newest"], "latest, finalized, safe, earliest"),
        (&["--block", "0x"], "latest, finalized, safe, earliest"),
        (&["--block", ""], "latest, finalized, safe, earliest"),
        (&["--block", "20", "--to", large], "more than 64 bits"),
        (&["--block", "20", "--to", hash], "latest, finalized, safe, earliest"),
        (&["--block", "20", "--to", "19"], "does not prove block 20"),
        (&["--log", "20"], "such as 17000000:12"),
        (&["--log", "20:+1"], "such as 17000000:12"),
        (&["--log", &format!("{large}:1")], "more than 64 bits"),
        (&["--logs", "{"], "not a filter in JSON"),
        (&["--logs", "[]"], "where a filter object belongs"),
        (&["--logs", twice], "stands twice"),
    ] {
        let ran = quipu(&[&prove[..], asked].concat()).ends_with(2);
        assert!(ran.err.contains(said), "{asked:?}: {}", ran.err);
    }
    let by_hash = quipu(&[&prove[..], &["--block", anchor, "--to", "20"]].concat()).ends_with(0);
    let by_number = quipu(&[&prove[..], &["--block", "0x14", "--to", "20"]].concat()).ends_with(0);
    assert_eq!(by_hash.out, by_number.out);
}

#[test]
fn blocks_that_a_bundle_of_logs_leaves_out_are_told_and_so_are_files_that_cannot_be_read() {
    let work = tempfile::tempdir().unwrap();
    let (archives, data) = (work.path().join("archives"), work.path().join("data"));
    let size = ["--block-count", "1100", "--txs-per-block", "1"];
    quipu(&[&["sample", "--to", text(&archives)], &size[..]].concat()).ends_with(0);
    import(&data, &archives, &["--genesis", text(&archives.join("genesis.json"))]);
    let prove = |rest: &[&str]| quipu(&[&["prove", "--data-dir", text(&data)], rest].concat());
    for (filter, said) in [
        (
            r#"{"fromBlock":"0x0","toBlock":"0x400"}"#,
            "warning: the bundle answers for blocks 0..999",
        ),
        (r#"{"fromBlock":"0x0"}"#, "and not for 1000..1099: ask again from 1000 on"),
        (r#"{"fromBlock":"0x0","toBlock":"finalized"}"#, "for any above ask again from 1000 on"),
    ] {
        let ran = prove(&["--logs", filter, "--to", "999"]).ends_with(0);
        assert!(ran.err.contains(said), "{filter}: {}", ran.err);
        let quiet = prove(&["-q", "--logs", filter, "--to", "999"]).ends_with(0);
        assert_eq!(quiet.err.is_empty(), filter.contains("finalized"), "{}", quiet.err);
    }
    // Where a server says that something failed, its operator reads what.
    let segment = find(&data, "blocks-0000000000-");
    let bytes = fs::read(&segment).unwrap();
    fs::write(&segment, bytes.iter().map(|byte| !byte).collect::<Vec<u8>>()).unwrap();
    let ran = prove(&["--block", "20"]).ends_with(1);
    let name = segment.file_name().unwrap().to_str().unwrap();
    assert!(ran.err.contains(name) && ran.err.contains("quipu check"), "{}", ran.err);
}
