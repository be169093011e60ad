//! The explorer as it is served: to whom, with which fields, and how heavy it is. What it shows is tested in
//! a browser (`e2e/explorer.sh`).

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::TcpStream;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::admission::new_key;
use crate::harness::run::text;
use crate::harness::served::{Answer, Served};
use crate::harness::socket::Socket;
use crate::harness::stores::data_folder;

const BROWSER: &str = "accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";
/// All files together, compressed with the most common encoding.
const PAGE_BYTES_MAX: usize = 120_000;

fn get(served: &Served, path: &str, fields: &str) -> Answer {
    let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{fields}\r\n");
    served.send(head.as_bytes())
}

fn page(served: &Served) -> String {
    let answer = get(served, "/", BROWSER);
    assert_eq!(answer.status, 200, "{answer:?}");
    String::from_utf8(answer.body).unwrap()
}

fn field<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let mut lines = answer.head.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The files that a text names: links and scripts of the page, imports of scripts.
fn named_files(text: &str) -> BTreeSet<String> {
    let ends = |begin: &str| text.match_indices(begin).map(|(at, it)| at + it.len()).collect();
    let begins: [Vec<usize>; 3] = ["\"explorer/", "from \"./", "import(\"./"].map(ends);
    let names = begins.concat().into_iter().map(|at| text[at..].split('"').next().unwrap());
    names.map(str::to_owned).collect()
}

/// All files that the page leads to, each with its text.
fn all_files(served: &Served) -> Vec<(String, String)> {
    let mut known = named_files(&page(served));
    let mut found = Vec::new();
    while let Some(name) = known.iter().find(|it| !found.iter().any(|(name, _)| name == *it)) {
        let answer = served.get(&format!("/explorer/{name}"));
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
        let text = String::from_utf8(answer.body).unwrap();
        found.push((name.clone(), text.clone()));
        known.extend(named_files(&text));
    }
    found
}

#[test]
fn browsers_get_the_page_and_programs_a_line_of_json() {
    let served = Served::start(&data_folder("gap"), &[]);
    let shown = get(&served, "/", BROWSER);
    assert_eq!(field(&shown, "content-type"), Some("text/html; charset=utf-8"), "{shown:?}");
    assert!(shown.body.starts_with(b"<!doctype html>"), "{shown:?}");
    for fields in
        ["", "accept: */*\r\n", "accept: application/json\r\n", "accept: text/html;q=0\r\n"]
    {
        let told = get(&served, "/", fields);
        assert_eq!(field(&told, "content-type"), Some("application/json"), "{fields}{told:?}");
        assert!(told.json()["server"].as_str().unwrap().starts_with("quipu/"), "{told:?}");
        assert!(
            told.head.contains("vary: accept\r\n") || told.head.ends_with("vary: accept"),
            "{told:?}"
        );
    }
    let head = served.send(
        format!("HEAD / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{BROWSER}\r\n").as_bytes(),
    );
    assert_eq!((head.status, head.body.len()), (200, 0), "{head:?}");
    assert_eq!(field(&head, "content-length"), Some(shown.body.len().to_string().as_str()));
    // Calls are answered as ever, whatever a client says that it takes.
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;
    let called = served.post_with(&format!("content-type: application/json\r\n{BROWSER}"), body);
    assert_eq!(called.json()["result"], "0x63", "{called:?}");
}

#[test]
fn every_file_has_its_type_and_a_policy_that_lets_nobody_else_in() {
    let served = Served::start(&data_folder("gap"), &[]);
    let mut paths = vec![("/".to_owned(), BROWSER)];
    paths.extend(all_files(&served).into_iter().map(|(name, _)| (format!("/explorer/{name}"), "")));
    assert!(paths.len() > 10, "{paths:?}");
    for (path, fields) in &paths {
        let answer = get(&served, path, fields);
        let expected = match path.rsplit_once('.').map(|(_, it)| it) {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            _ => "text/html; charset=utf-8",
        };
        assert_eq!(field(&answer, "content-type"), Some(expected), "{path}");
        let policy = field(&answer, "content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ] {
            assert!(policy.split(';').any(|it| it.trim() == part), "{path}: {part}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(field(&answer, "x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(field(&answer, "referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(field(&answer, "cache-control"), Some("no-cache"), "{path}");
    }
    for path in ["/explorer/", "/explorer/nothing.js", "/explorer/..%2fmain.js", "/explorer"] {
        assert_eq!(served.get(path).status, 404, "{path}");
    }
}

#[test]
fn no_file_names_anybody_else() {
    let served = Served::start(&data_folder("gap"), &[]);
    let mut texts = all_files(&served);
    texts.push(("/".to_owned(), page(&served)));
    for (name, text) in texts {
        for begin in ["http://", "https://"] {
            let found = text.find(begin).map(|at| text[at..].chars().take(60).collect::<String>());
            assert_eq!(found, None, "{name}");
        }
    }
}

#[test]
fn what_a_browser_has_is_not_sent_again() {
    let served = Served::start(&data_folder("gap"), &[]);
    for (path, fields) in [("/", BROWSER), ("/explorer/main.js", ""), ("/explorer/style.css", "")] {
        let first = get(&served, path, fields);
        // Heads are compared in lower case here, and tags are not.
        let tag = field(&first, "etag").unwrap().replace("w/", "W/");
        let named = format!("{fields}if-none-match: \"other\", {tag}\r\n");
        let again = get(&served, path, &named);
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}: {}", again.head);
        assert_eq!(field(&again, "etag"), field(&first, "etag"), "{path}");
        assert!(field(&again, "content-security-policy").is_some(), "{path}");
        let other = get(&served, path, &format!("{fields}if-none-match: \"other\"\r\n"));
        assert_eq!((other.status, other.body), (200, first.body), "{path}");
    }
}

#[test]
fn all_files_together_are_light() {
    let served = Served::start(&data_folder("gap"), &[]);
    let files: Vec<String> =
        all_files(&served).into_iter().map(|(name, _)| format!("/explorer/{name}")).collect();
    let mut weights = Vec::new();
    for path in ["/".to_owned()].iter().chain(&files) {
        let packed = get(&served, path, &format!("{BROWSER}accept-encoding: gzip\r\n"));
        assert_eq!(field(&packed, "content-encoding"), Some("gzip"), "{path}");
        let mut plain = Vec::new();
        GzDecoder::new(&packed.body[..]).read_to_end(&mut plain).unwrap();
        assert_eq!(plain, get(&served, path, BROWSER).body, "{path}");
        weights.push((path.clone(), packed.body.len()));
    }
    let sum: usize = weights.iter().map(|(_, bytes)| bytes).sum();
    println!("{sum} bytes with gzip in {} files", weights.len());
    assert!(sum <= PAGE_BYTES_MAX, "{sum} bytes: {weights:#?}");
}

#[test]
fn without_an_explorer_browsers_get_what_programs_get() {
    let temporary = tempfile::tempdir().unwrap();
    let demo = ["--no-explorer", "--block-count", "140", "--txs-per-block", "2"];
    let (demo, _) = Served::demo(temporary.path(), &demo);
    for served in [Served::start(&data_folder("gap"), &["--no-explorer"]), demo] {
        let told = get(&served, "/", BROWSER);
        assert_eq!(field(&told, "content-type"), Some("application/json"), "{told:?}");
        assert_eq!(field(&told, "content-security-policy"), None);
        assert_eq!(served.get("/explorer/main.js").status, 404);
    }
}

/// The page holds no data and asks for a key; everything that it asks for needs one.
#[test]
fn where_keys_are_needed_the_page_is_open_and_what_it_asks_for_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quipu.toml");
    let (key, table) = new_key("app", "");
    std::fs::write(&path, table).unwrap();
    let served = Served::start(&data_folder("gap"), &["--config", text(&path)]);
    let files = all_files(&served);
    assert!(files.iter().any(|(name, _)| name == "main.js"));
    for path in ["/stat.json", "/openrpc.json", "/metrics"] {
        assert_eq!(get(&served, path, BROWSER).status, 401, "{path}");
    }
    // A line of JSON tells what is held.
    assert_eq!(served.get("/").status, 401);
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;
    let fields = "content-type: application/json\r\n";
    assert_eq!(served.post_with(fields, body).status, 401);
    let sent = format!("{fields}authorization: Bearer {key}\r\n");
    assert_eq!(served.post_with(&sent, body).json()["result"], "0x63");
    let stat = get(&served, "/stat.json", &format!("authorization: Bearer {key}\r\n"));
    assert_eq!(stat.json()["blocks"], 80, "{stat:?}");
    // Below a key the page finds its files relative to itself, and a path without a slash leads there.
    for key in [key.as_str(), "unknown"] {
        let moved = get(&served, &format!("/v1/{key}"), BROWSER);
        assert_eq!(moved.status, 308, "{moved:?}");
        let place = format!("./{key}/").to_ascii_lowercase();
        assert_eq!(field(&moved, "location"), Some(place.as_str()), "{moved:?}");
        assert!(get(&served, &format!("/v1/{key}/"), BROWSER).body.starts_with(b"<!doctype"));
        let file = served.get(&format!("/v1/{key}/explorer/main.js"));
        assert_eq!(file.status, 200, "{file:?}");
    }
}

#[test]
fn a_page_of_this_server_may_open_a_socket_whichever_origins_are_named() {
    let served = Served::start(&data_folder("gap"), &["--cors-origin", "https://app.example"]);
    let status = |origin: &str| {
        let mut request = format!("ws://{}/", served.address).into_client_request().unwrap();
        request.headers_mut().insert("origin", origin.parse().unwrap());
        let stream = TcpStream::connect(&served.address).unwrap();
        Socket::handshake(request, stream).map_or_else(|(status, _)| status, |_| 101)
    };
    assert_eq!(status(&format!("http://{}", served.address)), 101);
    assert_eq!(status("https://app.example"), 101);
    assert_eq!(status("https://evil.example"), 403);
    assert_eq!(status("http://127.0.0.1:1"), 403);
}

#[test]
fn latency_is_told_of_the_calls_of_the_last_seconds() {
    let served = Served::start(&data_folder("gap"), &[]);
    assert_eq!(served.get("/stat.json").json()["live"]["latency"], Value::Null);
    for _ in 0..3 {
        served.result("eth_blockNumber", &json!([]));
    }
    let latency = served.get("/stat.json").json()["live"]["latency"].clone();
    assert_eq!(latency["calls"], 3, "{latency}");
    let [p50, p99] = ["p50_seconds", "p99_seconds"].map(|name| latency[name].as_f64().unwrap());
    assert!(0.0 < p50 && p50 <= p99 && p99 < 8.5, "{latency}");
}
