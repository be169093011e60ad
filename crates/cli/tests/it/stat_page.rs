//! `/stat.json`: what is held, as `quipu stat --json` tells it, and how serving goes.

use serde_json::{Value, json};

use crate::harness::run::{quipu, text};
use crate::harness::served::Served;
use crate::harness::stores::data_folder;

#[test]
fn the_page_is_that_of_stat_with_what_was_asked_so_far() {
    let folder = data_folder("gap");
    let served = Served::start(&folder, &[]);
    for _ in 0..3 {
        served.result("eth_blockNumber", &json!([]));
    }
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"eth_chainId"},{"jsonrpc":"2.0","id":2,"method":"eth_chainId"}]"#;
    assert_eq!(served.post(batch).status, 200);
    let answer = served.get("/stat.json");
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
