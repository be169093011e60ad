//! Configuration: limits that are set reach the server.

use std::fs;

use serde_json::json;

use crate::harness::run::text;
use crate::harness::served::Served;
use crate::harness::stores::data_folder;

const ASKED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;

#[test]
fn limits_of_the_file_and_of_flags_are_those_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quipu.toml");
    fs::write(&file, "[limits]\nbatch_items_max = 2\nbody_bytes_max = \"1KiB\"\n").unwrap();
    let batch = |count: usize| format!("[{}]", vec![ASKED; count].join(","));
    let served = Served::start(&data_folder("sample"), &["--config", text(&file)]);
    assert_eq!(served.post(&batch(2)).json().as_array().unwrap().len(), 2);
    let refused = served.post(&batch(3)).json();
    assert!(refused.to_string().contains("-32"), "{refused}");
    let long = format!("{}{}", " ".repeat(1100), ASKED);
    assert_eq!(served.post(&long).status, 413);
    // A flag is stronger.
    let args = ["--config", text(&file), "--batch-items-max", "3", "--body-bytes-max", "2KiB"];
    let served = Served::start(&data_folder("sample"), &args);
    assert_eq!(served.post(&batch(3)).json().as_array().unwrap().len(), 3);
    assert_eq!(served.post(&long).json()["result"], json!("0x3ff"));
}
