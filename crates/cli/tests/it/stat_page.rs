//! `/stat.json`: what is held, as `quipu stat --json` tells it, and how serving goes.

use std::fs;

use serde_json::{Value, json};

use crate::admission::new_key;
use crate::harness::data::Data;
use crate::harness::long::Long;
use crate::harness::run::{quipu, text};
use crate::harness::served::Served;
use crate::harness::stores::data_folder;
use crate::harness::wait::wait_for;

#[test]
fn the_page_is_that_of_stat_with_what_was_asked_so_far() {
    let folder = data_folder("gap");
    let served = Served::start(&folder, &[]);
    for _ in 0..3 {
        served.result("eth_blockNumber", &json!([]));
    }
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"eth_chainId"},{"jsonrpc":"2.0","id":2,"method":"eth_chainId"}]"#;
    assert_eq!(served.post(batch).status, 200);
    let answer = served.get("/stat.json?files=1");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.head.contains("content-type: application/json"), "{answer:?}");
    let mut page = answer.json();
    let live = page.as_object_mut().unwrap().remove("live").unwrap();
    assert_eq!(page.as_object_mut().unwrap().remove("follow"), Some(Value::Null));
    let stat = quipu(&["stat", "--json", "--data-dir", text(&folder)]).ends_with(0).json();
    assert_eq!(page, stat);
    assert_eq!((&live["requests"], &live["calls"]), (&json!(4), &json!(5)), "{live}");
    assert!(live["answer_bytes"].as_u64().unwrap() > 100, "{live}");
    assert_eq!((&live["ready"], &live["troubles"]), (&json!(true), &json!([])), "{live}");
    let rate = &live["rates"]["requests_per_second"];
    assert!(rate.as_f64().unwrap() > 0.0, "{live}");
    // Pages for machines are no requests of clients.
    let again = served.get("/stat.json").json();
    assert_eq!(again["live"]["requests"], 4, "{again}");
}

/// Seen: at the size of mainnet the page had 578 KB, which the explorer read every two seconds.
#[test]
fn the_page_lists_no_file_unless_it_is_asked_to() {
    let long = Long::new();
    let served = Served::start(&long.path(), &[]);
    let members = |path: &str| {
        let mut page = served.get(path).json();
        let page = page.as_object_mut().unwrap();
        page.remove("live");
        page.clone()
    };
    let mut whole = members("/stat.json?files=1");
    let lists = ["segments", "runs", "unlisted_segments"].map(|name| whole.remove(name).unwrap());
    assert_eq!((&whole["segment_count"], lists[0].as_array().unwrap().len()), (&json!(3), 3));
    assert_eq!(whole["run_count"], lists[1].as_array().unwrap().len());
    for path in ["/stat.json", "/stat.json?files=0", "/stat.json?profiles=1"] {
        assert_eq!(members(path), whole, "{path}");
    }
    let text = String::from_utf8(served.get("/stat.json").body).unwrap();
    assert!(!text.contains(".segment") && !text.contains(".run"), "{text}");
}

/// Names of nodes are in errors too.
#[test]
fn where_there_are_keys_nodes_are_named_to_requests_with_one_alone() {
    let data = Data::imported();
    let (key, table) = new_key("a", "");
    let config = data.folder.path().join("quipu.toml");
    fs::write(&config, format!("[server]\nrequire_key = \"never\"\n{table}")).unwrap();
    let args = ["--config", text(&config), "--upstream", "http://localhost:1/"];
    let served = Served::start(&data.path(), &args);
    let page = |path: &str| String::from_utf8(served.get(path).body).unwrap();
    let with_key = format!("/v1/{key}/stat.json");
    let is_told = || {
        let told: Value = serde_json::from_str(&page(&with_key)).unwrap();
        let errors = [&told["follow"]["error"], &told["live"]["troubles"][0]];
        let is_named = |it: &Value| it.as_str().is_some_and(|it| it.contains("localhost:1"));
        (errors.into_iter().any(is_named) && !told["follow"]["upstreams"][0].is_null())
            .then_some(())
    };
    wait_for(is_told, || page(&with_key));
    let told: Value = serde_json::from_str(&page("/stat.json")).unwrap();
    assert!(!told.to_string().contains("localhost:1"), "{told}");
    assert_eq!(told["follow"]["upstreams"], json!([]), "{told}");
    assert_eq!(told["live"]["troubles"], json!(["shown to requests with an API key"]), "{told}");
    for (path, expected) in [("/readyz".to_owned(), false), (format!("/v1/{key}/readyz"), true)] {
        let answer = served.get(&path);
        let said = String::from_utf8(answer.body).unwrap();
        assert_eq!((answer.status, said.contains("localhost:1")), (503, expected), "{said}");
    }
    // Without keys there is nothing to ask for.
    served.stop();
    let served = Served::start(&data.path(), &["--upstream", "http://localhost:1/"]);
    let found = || {
        let told = served.get("/stat.json").json();
        (!told["follow"]["upstreams"][0].is_null()).then_some(())
    };
    wait_for(found, || served.get("/stat.json").json().to_string());
}

/// Seen: nothing in any log told of a request.
#[test]
fn requests_are_logged_at_level_debug_and_at_no_other() {
    for (level, is_logged) in [("debug", true), ("info", false)] {
        let (served, lines) = Served::start_logged_at(&data_folder("gap"), &[], level);
        served.result("eth_blockNumber", &json!([]));
        assert_eq!(served.stop(), Some(0));
        let said: Vec<String> = lines.iter().collect();
        let is_told =
            |line: &String| line.contains("answered") && line.contains("\"eth_blockNumber\"");
        assert_eq!(said.iter().any(is_told), is_logged, "{said:#?}");
    }
}

#[test]
fn the_head_of_a_page_is_answered_without_it() {
    let served = Served::start(&data_folder("gap"), &[]);
    for (path, status) in [("/healthz", 200), ("/readyz", 200), ("/", 200), ("/nothing", 404)] {
        let request = format!("HEAD {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        let (head, page) = (served.send(request.as_bytes()), served.get(path));
        assert_eq!((head.status, head.body.len()), (status, 0), "{path}: {head:?}");
        let length = format!("content-length: {}", page.body.len());
        assert!(head.head.contains(&length), "{path}: {head:?}");
    }
}
