//! Segments that the manifest lists and that are gone or cut: the others are served.

use std::fs;

use serde_json::{Value, json};

use crate::harness::long::{Long, refused_code};
use crate::harness::served::Served;
use crate::harness::wait::wait_for;

fn ready(served: &Served) -> (u16, String) {
    let answer = served.get("/readyz");
    (answer.status, String::from_utf8(answer.body).unwrap())
}

fn first_transaction(served: &Served, number: u64) -> Value {
    let params = json!([format!("{number:#x}"), false]);
    served.result("eth_getBlockByNumber", &params)["transactions"][0].clone()
}

/// Seen: without the segment of block 0 the server did not start; without another it said that it is
/// ready, and that its blocks are an internal error.
#[test]
fn a_missing_or_cut_segment_is_told_and_the_others_are_served() {
    let long = Long::new();
    let whole = Served::start(&long.path(), &[]);
    let with_transactions = [200, 300, 560];
    let hashes = with_transactions.map(|number| first_transaction(&whole, number));
    whole.stop();
    for (place, name) in long.segments().iter().enumerate() {
        let path = long.path().join(name);
        let bytes = fs::read(&path).unwrap();
        if place == 1 {
            fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        let served = Served::start(&long.path(), &[]);
        let (status, body) = ready(&served);
        assert_eq!(status, 503, "{body}");
        assert!(body.contains(name), "{body}");
        for (other, (number, hash)) in with_transactions.iter().zip(&hashes).enumerate() {
            let expected = (other == place).then_some(4444);
            assert_eq!(refused_code(&served, *number), expected, "{name}: block {number}");
            for method in ["eth_getTransactionByHash", "eth_getTransactionReceipt"] {
                let answer = served.call(method, &json!([hash]));
                assert_eq!(answer["error"]["code"].as_i64(), expected, "{name}: {answer}");
                assert_eq!(answer["result"].is_object(), expected.is_none(), "{name}: {answer}");
            }
        }
        // Whoever brings it back has all of it again, without a restart.
        fs::write(&path, &bytes).unwrap();
        wait_for(|| (ready(&served).0 == 200).then_some(()), || format!("{:?}", ready(&served)));
        assert_eq!(refused_code(&served, with_transactions[place]), None);
        served.stop();
    }
}
