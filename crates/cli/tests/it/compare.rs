//! `quipu compare`: equal stores agree, and every other kind of server is told for what it is.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::data::{Data, write_part};
use crate::harness::run::{Ran, quipu, text};
use crate::harness::served::Served;

/// A server that passes on what is asked, and what comes back as it sees fit.
struct Double {
    url: String,
    /// The server whose answers it changes. Threads are never joined: in one of theirs it would be
    /// left behind when the process ends.
    _served: Option<Arc<Served>>,
}

impl Double {
    /// `answer` makes the status line and the body of what is asked.
    fn start(answer: impl Fn(&str) -> (String, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answer = Arc::new(answer);
        // It goes with the process, as the threads do.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let answer = Arc::clone(&answer);
                std::thread::spawn(move || reply(stream.unwrap(), &*answer));
            }
        });
        Self { url, _served: None }
    }

    /// One that changes the answers of a real server.
    fn altering(served: Served, alter: fn(&str, &mut Value)) -> Self {
        let served = Arc::new(served);
        let asked_served = Arc::downgrade(&served);
        let double = Self::start(move |request| {
            let mut answer = asked_served.upgrade().unwrap().post(request).json();
            let asked: Value = serde_json::from_str(request).unwrap();
            alter(asked["method"].as_str().unwrap(), &mut answer["result"]);
            ("200 OK".to_owned(), answer.to_string())
        });
        Self { _served: Some(served), ..double }
    }
}

/// Answers one request and closes: whoever asks must be able to connect again.
fn reply(mut stream: TcpStream, answer: &dyn Fn(&str) -> (String, String)) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut request = vec![0; length];
    reader.read_exact(&mut request).unwrap();
    let (status, body) = answer(std::str::from_utf8(&request).unwrap());
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
}

fn compare(data: &Data, url: &str, args: &[&str]) -> Ran {
    data.run("compare", &[&["--with", url], args].concat())
}

const SIX: [&str; 6] = [
    "eth_getBlockByHash",
    "eth_getBlockByNumber",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionByHash",
    "eth_getTransactionReceipt",
];

#[test]
fn servers_of_equal_stores_do_not_differ() {
    let (ours, theirs) = (Data::imported(), Data::imported());
    let served = Served::start(&theirs.path(), &[]);
    let url = format!("http://{}", served.address);
    for args in [&["--blocks", "0..99", "--txs-per-block", "500"][..], &["--sample", "7"], &[]] {
        let ran = compare(&ours, &url, args).ends_with(0);
        assert!(ran.out.ends_with(": no differences\n"), "{}", ran.out);
        // Every read was asked, about what is there and about what is not.
        for method in SIX {
            let line =
                ran.out.lines().find(|line| line.starts_with(&format!("{method} "))).unwrap();
            let counts: Vec<&str> = line.split_whitespace().skip(1).collect();
            assert!(counts[0].replace(',', "").parse::<u64>().unwrap() > 1, "{line}");
            assert_eq!(counts[1], "0", "{line}");
        }
    }
}

#[test]
fn a_single_altered_field_is_told_by_its_place_and_nothing_else_is() {
    let data = Data::imported();
    let double = Double::altering(Served::start(&data.path(), &[]), |method, result| {
        if let Some(data) = result.pointer_mut("/logs/0/data")
            && method == "eth_getTransactionReceipt"
        {
            *data = json!("0x7");
        }
    });
    let ran = compare(&data, &double.url, &["--blocks", "60..99", "--every"]).ends_with(1);
    let (listed, rest) = ran.out.split_once("\n\n").unwrap();
    let (every, group): (Vec<&str>, Vec<&str>) =
        listed.lines().partition(|line| line.starts_with("eth_getTransactionReceipt ["));
    let [head, example] = group[..] else { panic!("{listed}") };
    let count = every.len();
    let expected = format!("eth_getTransactionReceipt  result.logs.*.data  {count} differences");
    assert_eq!(head, expected);
    assert!(every.iter().all(|line| line.contains("]: result.logs.0.data: ours ")), "{listed}");
    assert!(every.contains(&example.trim()), "{listed}");
    assert!(example.ends_with(", theirs \"0x7\""), "{example}");
    assert!(rest.ends_with(&format!(": {count} differences\n")), "{rest}");
    let differing = |line: &&str| !line.ends_with(" 0") && line.starts_with("eth_");
    let differing: Vec<&str> = rest.lines().filter(differing).collect();
    assert!(matches!(differing[..], [line] if line.starts_with(SIX[5])), "{rest}");
}

#[test]
fn what_only_one_side_has_is_a_difference() {
    let data = Data::imported();
    let double = Double::altering(Served::start(&data.path(), &[]), |method, result| {
        if let Some(transaction) = result.as_object_mut()
            && method == "eth_getTransactionByHash"
        {
            transaction.remove("blockTimestamp");
            transaction.insert("pending".to_owned(), json!(false));
        }
    });
    let ran = compare(&data, &double.url, &["--blocks", "60..69"]).ends_with(1);
    let groups: Vec<&str> = ran.out.lines().take_while(|line| !line.is_empty()).collect();
    let [first, first_example, second, second_example] = groups[..] else { panic!("{}", ran.out) };
    assert!(first.starts_with("eth_getTransactionByHash  result.blockTimestamp  "), "{first}");
    assert!(first_example.ends_with(", theirs absent"), "{first_example}");
    assert!(second.starts_with("eth_getTransactionByHash  result.pending  "), "{second}");
    assert!(second_example.ends_with(": ours absent, theirs false"), "{second_example}");
}

#[test]
fn a_folder_with_gaps_is_compared_where_it_holds_something() {
    let theirs = Data::imported();
    let served = Served::start(&theirs.path(), &[]);
    let url = format!("http://{}", served.address);
    let ours = Data::new();
    let genesis = ours.genesis();
    for (name, blocks) in [("low", 0..=9), ("high", 60..=99)] {
        let has_receipts = name == "low";
        let to = ours.folder.path().join(name);
        let part = write_part(&ours.archive(), blocks, has_receipts, &to);
        let flags = ["--genesis", text(&genesis), "--unanchored", "--without-receipts"];
        ours.run("import", &[&flags[..], &[text(&part)]].concat()).ends_with(0);
    }
    compare(&ours, &url, &["--sample", "1000"]).ends_with(0);
    let ran = compare(&ours, &url, &["--blocks", "5..14"]).ends_with(1);
    assert!(ran.err.contains("5 of blocks 5..14 are held; held are: 0..9, 60..99"), "{}", ran.err);
}

#[test]
fn a_server_that_does_not_answer_is_named_with_the_reason() {
    let data = Data::imported();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ran = compare(&data, &format!("http://{nobody}"), &[]).ends_with(1);
    assert!(ran.err.contains("cannot connect: Connection refused"), "{}", ran.err);
    assert!(ran.err.contains(&format!("{nobody}: asked eth_chainId")), "{}", ran.err);

    let double = Double::start(|_| ("429 Too Many Requests".to_owned(), "later".to_owned()));
    let ran = compare(&data, &double.url, &[]).ends_with(1);
    assert!(ran.err.contains("HTTP 429: later"), "{}", ran.err);

    let double = Double::start(|_| ("200 OK".to_owned(), "<html>".to_owned()));
    let ran = compare(&data, &double.url, &[]).ends_with(1);
    assert!(ran.err.contains("asked eth_chainId []"), "{}", ran.err);
    assert!(ran.err.contains("no JSON-RPC answer: <html>"), "{}", ran.err);
}

#[test]
fn a_server_of_another_chain_is_not_compared() {
    let data = Data::imported();
    let double = Double::altering(Served::start(&data.path(), &[]), |method, result| {
        if method == "eth_chainId" {
            *result = json!("0x1");
        }
    });
    let ran = compare(&data, &double.url, &[]).ends_with(1);
    let said = r#"serves chain id "0x1", the data folder holds "0x1352505""#;
    assert!(ran.err.contains(said), "{}", ran.err);
}

#[test]
fn a_wrong_command_line_is_told_before_anything_is_asked() {
    let with = ["compare", "--with"];
    let ran = quipu(&[&with[..], &["ws://node.example"]].concat()).ends_with(2);
    assert!(ran.err.contains("over http or https"), "{}", ran.err);
    quipu(&["compare"]).ends_with(2);
    quipu(&[&with[..], &["node.example"]].concat()).ends_with(2);
    let both = ["http://node.example", "--blocks", "1..2", "--sample", "3"];
    quipu(&[&with[..], &both].concat()).ends_with(2);
    quipu(&[&with[..], &["http://node.example", "--sample", "0"]].concat()).ends_with(2);
}

/// Seen: 236 differences were listed of a chain that only had the same id.
#[test]
fn another_chain_of_the_same_id_is_told_by_its_genesis() {
    let data = Data::imported();
    let other = tempfile::tempdir().unwrap();
    let (archives, folder) = (other.path().join("archives"), other.path().join("data"));
    let size = ["--block-count", "100", "--txs-per-block", "2"];
    quipu(&[&["sample", "--to", text(&archives)], &size[..]].concat()).ends_with(0);
    let genesis = archives.join("genesis.json");
    let import = ["import", "--data-dir", text(&folder), "--genesis", text(&genesis)];
    quipu(&[&import[..], &[text(&archives)]].concat()).ends_with(0);
    let served = Served::start(&folder, &[]);
    let url = format!("http://{}", served.address());
    let ran = data.run("compare", &["--with", &url]).ends_with(1);
    let said = "serves another chain of the same id: its genesis is 0x";
    assert!(ran.err.contains(said) && ran.out.is_empty(), "{}{}", ran.out, ran.err);
}
