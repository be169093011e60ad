//! `eth_getLogs` against a look at every receipt, and folders without a log index.

use std::fs;
use std::path::Path;

use chain::{BlockRange, ChainSpec, SplitMix64};
use rpc::{LogLimits, Service, ServiceSettings};
use serde_json::{Value, json};
use testing::shared_data::shared_data;

use crate::harness::data::Data;
use crate::harness::hosted::{respond, service};
use crate::harness::run::{quipu, text};
use crate::harness::served::Served;
use crate::harness::stores::data_folder;
use crate::harness::wait::{wait_for, wait_until};

/// Filters that are tried of each chain, unless `QUIPU_LOG_FILTERS` says otherwise.
const FILTER_COUNT: u64 = 1000;

/// A log, and what of it can be asked for.
struct KnownLog {
    block: u64,
    address: String,
    topics: Vec<String>,
    json: Value,
}

/// All logs of a chain, and questions about them.
struct KnownLogs {
    blocks: BlockRange,
    logs: Vec<KnownLog>,
    dice: SplitMix64,
}

impl KnownLogs {
    /// Takes them from the receipts of every block.
    fn of(service: &Service, blocks: BlockRange) -> Self {
        let mut logs = Vec::new();
        for number in blocks.first()..blocks.end() {
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getBlockReceipts",
                               "params": [number] });
            let answer = respond(service, &call.to_string()).unwrap();
            for receipt in answer["result"].as_array().unwrap() {
                for log in receipt["logs"].as_array().unwrap() {
                    let text = |value: &Value| value.as_str().unwrap().to_owned();
                    logs.push(KnownLog {
                        block: number,
                        address: text(&log["address"]),
                        topics: log["topics"].as_array().unwrap().iter().map(text).collect(),
                        json: log.clone(),
                    });
                }
            }
        }
        Self { blocks, logs, dice: SplitMix64::new(19) }
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.dice.below(u64::try_from(count).unwrap())).unwrap()
    }

    /// None, one or more values of logs at random; now and then one that no log has.
    fn values(
        &mut self,
        value: impl Fn(&KnownLog) -> Option<String>,
        nowhere: &str,
    ) -> Vec<String> {
        let count = [0, 0, 1, 1, 1, 2, 5][self.below(7)];
        let mut values = Vec::new();
        for _ in 0..count {
            let drawn = self.below(self.logs.len());
            let drawn = if self.below(9) == 0 { None } else { value(&self.logs[drawn]) };
            values.push(drawn.unwrap_or_else(|| nowhere.to_owned()));
        }
        values
    }

    /// A filter, and the logs that it asks for.
    fn draw(&mut self) -> (Value, Vec<Value>) {
        let addresses =
            self.values(|log| Some(log.address.clone()), &format!("0x{}", "0".repeat(40)));
        let mut topics: Vec<Vec<String>> = Vec::new();
        for position in 0..[0, 0, 1, 1, 2, 3, 4][self.below(7)] {
            let nowhere = format!("0x{}", "0f".repeat(32));
            topics.push(self.values(|log| log.topics.get(position).cloned(), &nowhere));
        }
        let first = self.blocks.first() + self.dice.below(self.blocks.count());
        let most = self.blocks.end() - first;
        let most = [1, 8.min(most), most, most][self.below(4)];
        let last = first + self.dice.below(most);
        let is_asked = |log: &&KnownLog| {
            (first..=last).contains(&log.block)
                && (addresses.is_empty() || addresses.contains(&log.address))
                && topics.len() <= log.topics.len()
                && topics
                    .iter()
                    .zip(&log.topics)
                    .all(|(any, it)| any.is_empty() || any.contains(it))
        };
        let expected = self.logs.iter().filter(is_asked).map(|log| log.json.clone()).collect();
        let topics: Vec<Value> = topics
            .iter()
            .map(|any| match any.as_slice() {
                [] => Value::Null,
                [one] => json!(one),
                many => json!(many),
            })
            .collect();
        let filter = json!({ "fromBlock": first, "toBlock": last, "address": addresses,
                             "topics": topics });
        (filter, expected)
    }
}

fn check_filters(service: &Service, blocks: BlockRange) {
    let mut known = KnownLogs::of(service, blocks);
    let told = std::env::var("QUIPU_LOG_FILTERS").ok().and_then(|count| count.parse().ok());
    let (mut empty, mut found_count) = (0, 0);
    for round in 0..told.unwrap_or(FILTER_COUNT) {
        let (filter, expected) = known.draw();
        let call =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [filter] });
        let found = respond(service, &call.to_string()).unwrap();
        empty += u64::from(expected.is_empty());
        found_count += expected.len();
        assert!(
            found["result"] == Value::Array(expected.clone()),
            "{round}: {call}: {} logs, expected {}; {:?}",
            found["result"].as_array().map_or(0, Vec::len),
            expected.len(),
            found["error"]
        );
    }
    println!("{blocks}: {found_count} logs were found, {empty} filters find none");
}

/// Limits are tested elsewhere.
fn unlimited() -> ServiceSettings {
    let log_limits = LogLimits {
        count_max: usize::MAX,
        bytes_max: usize::MAX,
        unindexed_blocks_max: u64::MAX,
        read_bytes_max: u64::MAX,
    };
    ServiceSettings { log_limits, ..ServiceSettings::default() }
}

#[test]
fn random_filters_find_what_a_look_at_every_receipt_finds() {
    let sample = service(&data_folder("sample"), unlimited());
    check_filters(&sample, BlockRange::from_ends(0, 1023).unwrap());
}

#[test]
fn random_filters_find_what_a_look_at_every_real_receipt_finds() {
    let Some(folder) = shared_data() else { return };
    let work = tempfile::tempdir().unwrap();
    let archive = folder.join("ere/relinked-02560-8eb90bff-noproofs.ere");
    let import = ["import", "--data-dir", text(work.path()), "--unanchored", "--chain-id", "1"];
    quipu(&[&import[..], &[text(&archive)]].concat()).ends_with(0);
    let stat = quipu(&["stat", "--data-dir", text(work.path()), "--json"]).json();
    let held = &stat["coverage"][0];
    let ends = ["first", "last"].map(|end| held[end].as_u64().unwrap());
    let blocks = BlockRange::from_ends(ends[0], ends[1]).unwrap();
    check_filters(&real_service(work.path()), blocks);
}

fn real_service(folder: &Path) -> Service {
    let disk = std::sync::Arc::new(store::disk::Folder::open(folder).unwrap());
    let blocking = std::sync::Arc::new(store::read::Inline);
    let store = store::Store::open(disk, blocking, store::Limits::default()).unwrap();
    let spec = ChainSpec::bare("relinked", Some(1), None);
    Service::new(std::sync::Arc::new(store), spec, unlimited())
}

/// The topic of `Transfer(address,address,uint256)`.
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

#[test]
fn all_transfers_of_the_demo_chain_are_had_by_the_ranges_that_are_told() {
    let sample = service(&data_folder("sample"), ServiceSettings::default());
    let (mut from, mut count) = (json!("0x0"), 0);
    for _ in 0..3 {
        let ask = |to: &Value| {
            let filter = json!({ "fromBlock": from, "toBlock": to, "topics": [TRANSFER] });
            let call =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [filter] });
            respond(&sample, &call.to_string()).unwrap()
        };
        let mut answer = ask(&json!("latest"));
        let fits = answer["error"]["data"]["to"].clone();
        if fits.is_string() {
            let said = answer["error"]["message"].as_str().unwrap();
            assert!(said.contains("10000000 bytes of results (--logs-bytes-max)"), "{said}");
            answer = ask(&fits);
        }
        // viem takes no more.
        assert!(answer.to_string().len() < 10 << 20, "{} bytes", answer.to_string().len());
        count += answer["result"].as_array().unwrap_or_else(|| panic!("{answer}")).len();
        let Some(fits) = fits.as_str() else { break };
        from = json!(format!("{:#x}", u64::from_str_radix(&fits[2..], 16).unwrap() + 1));
    }
    assert!(count > 20_000, "{count} logs");
}

/// It said that the query returned more than 14160 results, a number that no limit had.
#[test]
fn an_answer_of_too_many_bytes_is_refused_with_that_limit_and_the_range_that_fits() {
    let log_limits = LogLimits { bytes_max: 100_000, ..LogLimits::default() };
    let settings = ServiceSettings { log_limits, ..ServiceSettings::default() };
    let sample = service(&data_folder("sample"), settings);
    let ask = |to: &Value| {
        let filter = json!({ "fromBlock": "0x0", "toBlock": to, "topics": [TRANSFER] });
        let call =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [filter] });
        respond(&sample, &call.to_string()).unwrap()
    };
    let refused = ask(&json!("latest"));
    let error = &refused["error"];
    assert_eq!((&error["code"], &error["data"]["limit"]), (&json!(-32005), &json!(100_000)));
    let message = error["message"].as_str().unwrap();
    let begin = "query returned more than 100000 bytes of results (--logs-bytes-max). Try with this \
                 block range [0x0, 0x";
    assert!(message.starts_with(begin), "{message}");
    let fits = &error["data"]["to"];
    assert!(ask(fits)["result"].is_array(), "{message}");
    // The next block is too much.
    let next = u64::from_str_radix(&fits.as_str().unwrap()[2..], 16).unwrap() + 1;
    assert_eq!(ask(&json!(format!("{next:#x}")))["error"], *error);
}

#[test]
fn blocks_without_an_index_are_read_up_to_a_limit() {
    let data = Data::new();
    let (genesis, archive) = (data.genesis(), data.archive());
    let args = ["--genesis", text(&genesis), "--without-log-index", text(&archive)];
    data.run("import", &args).ends_with(0);
    let told = data.run("stat", &[]).ends_with(0).out;
    assert!(told.contains("no log index of blocks 0..99: `quipu index` builds it"), "{told}");
    let other = Data::imported();
    let indexed = Served::start(&other.path(), &[]);
    let all = indexed.result("eth_getLogs", &json!([{ "fromBlock": 0, "toBlock": 99 }]));
    let address = &all[0]["address"];
    let filter = |last: u64| json!([{ "fromBlock": 0, "toBlock": last, "address": address }]);
    {
        let served = Served::start(&data.path(), &["--logs-unindexed-blocks-max", "60"]);
        let logs_held = || served.result("eth_capabilities", &json!([]))["logs"].clone();
        assert_eq!(logs_held(), json!({ "disabled": true }));
        let found = served.result("eth_getLogs", &filter(50));
        assert_eq!(found, indexed.result("eth_getLogs", &filter(50)));
        assert!(!found.as_array().unwrap().is_empty());
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getLogs",
                           "params": filter(99) });
        let refused = served.post(&call.to_string()).json();
        assert_eq!(refused["error"]["code"], -32005);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("quipu index"), "{message}");
        // The range that is told is answered.
        let fits = &refused["error"]["data"];
        assert_eq!((&fits["from"], &fits["to"]), (&json!("0x0"), &json!("0x3b")), "60 blocks");
        let range =
            json!([{ "fromBlock": fits["from"], "toBlock": fits["to"], "address": address }]);
        assert_eq!(served.result("eth_getLogs", &range), indexed.result("eth_getLogs", &range));
        // A server that is running sees the index that is built beside it.
        let built = data.run("index", &[]).ends_with(0).out;
        assert!(built.contains("the logs of 100 blocks indexed"), "{built}");
        wait_until(|| served.post(&call.to_string()).json().get("result").is_some());
        assert_eq!(logs_held(), json!({ "disabled": false, "oldestBlock": "0x0" }));
    }
    let again = data.run("index", &[]).ends_with(0).out;
    assert!(again.contains("every sealed block has its log index"), "{again}");
    let refused = data.run("import", &args).ends_with(1).err;
    assert!(refused.contains("has a log index"), "{refused}");
    assert!(refused.contains("nothing was changed"), "{refused}");
    assert_eq!(data.files().keys().filter(|name| name.contains("-logs-")).count(), 1);
    data.run("check", &[]).ends_with(0);
}

/// Seen: `quipu index` said that every block has its index, and only a file that was removed by hand was
/// built again.
#[test]
fn a_damaged_file_of_the_index_is_built_again_beside_a_server() {
    let data = Data::imported();
    let before = data.files();
    let name = before.keys().find(|name| name.contains("-logs-")).unwrap().clone();
    let (path, bytes) = (data.path().join(&name), before[&name].clone());
    // In place, cut, and gone; the first is read by whoever has it open.
    let damages: [&dyn Fn(); 3] = [
        &|| {
            let end = bytes.len() / 2;
            let damaged = bytes[..end].iter().map(|byte| byte ^ 0x55);
            fs::write(&path, damaged.chain(bytes[end..].iter().copied()).collect::<Vec<_>>())
                .unwrap();
        },
        &|| fs::write(&path, &bytes[..bytes.len() - 1]).unwrap(),
        &|| fs::remove_file(&path).unwrap(),
    ];
    for (place, damage) in damages.iter().enumerate() {
        let (served, lines) = Served::start_logged(&data.path(), &[]);
        let all = served.result("eth_getLogs", &json!([{ "fromBlock": 0, "toBlock": 99 }]));
        let filter = json!([{ "fromBlock": 0, "toBlock": 99, "address": all[0]["address"] }]);
        let expected = served.result("eth_getLogs", &filter);
        assert!(!expected.as_array().unwrap().is_empty());
        damage();
        let answer = served.call("eth_getLogs", &filter);
        let is_answered = answer["result"] == expected;
        assert!(is_answered || answer["error"]["code"] == -32603, "{place}: {answer}");
        let checked = data.run("check", &[]).ends_with(1);
        assert!(checked.err.contains(&name), "{}", checked.err);
        assert!(checked.out.contains("hint: quipu index"), "{}", checked.out);
        assert!(!checked.out.contains("from a copy"), "{}", checked.out);
        // It looks at names and lengths, and does not read all of a file.
        if place > 0 {
            let examined = data.run("doctor", &[]).ends_with(1).out;
            assert!(examined.contains("next: quipu index"), "{examined}");
        }
        let built = data.run("index", &[]).ends_with(0).out;
        let expected_lines = [
            format!("{name}: was damaged or missing, built again"),
            "the logs of 100 blocks".to_owned(),
        ];
        assert!(expected_lines.iter().all(|line| built.contains(line)), "{built}");
        assert_eq!(data.files(), before, "{place}");
        data.run("check", &[]).ends_with(0);
        // The server opens the new file, and says so.
        let look = || (served.call("eth_getLogs", &filter), served.get("/readyz").status);
        let is_well =
            |(answer, status): (Value, u16)| answer["result"] == expected && status == 200;
        wait_for(|| is_well(look()).then_some(()), || format!("{:?}", look()));
        served.stop();
        let advice: Vec<String> = lines.iter().filter(|line| line.contains("ERROR")).collect();
        assert!(
            advice.iter().all(|line| line.contains(&name) && line.contains("quipu index")),
            "{advice:?}"
        );
        assert_eq!(advice.len(), usize::from(!is_answered), "{place}: {advice:?}");
    }
    let again = data.run("index", &[]).ends_with(0).out;
    assert!(again.contains("every sealed block has its log index"), "{again}");
    assert_eq!(data.files(), before);
}
