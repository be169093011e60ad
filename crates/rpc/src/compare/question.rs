//! What is asked of both servers.

use chain::SplitMix64;
use serde_json::{Value, json};

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedCall {
    /// The method.
    pub method: &'static str,
    /// Its parameters.
    pub params: Value,
}

impl ComparedCall {
    fn new(method: &'static str, params: Value) -> Self {
        Self { method, params }
    }

    /// The request's body.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        let Self { method, params } = self;
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
            .to_string()
            .into_bytes()
    }
}

/// Questions about a block that is held, and about some of its transactions. `block` is our own
/// answer, with the hashes of its transactions.
#[must_use]
pub fn questions_of_block(block: &Value, picked: &[u64], has_receipts: bool) -> Vec<ComparedCall> {
    let (number, hash) = (block.get("number"), block.get("hash"));
    let transactions = block.get("transactions").and_then(Value::as_array);
    let transactions = transactions.map_or(&[][..], Vec::as_slice);
    let mut questions = vec![
        ComparedCall::new("eth_getBlockByNumber", json!([number, true])),
        ComparedCall::new("eth_getBlockByNumber", json!([number, false])),
        ComparedCall::new("eth_getBlockByHash", json!([hash, true])),
        ComparedCall::new("eth_getBlockByHash", json!([hash, false])),
    ];
    let of_index = |index: &str| {
        [
            ComparedCall::new("eth_getTransactionByBlockNumberAndIndex", json!([number, index])),
            ComparedCall::new("eth_getTransactionByBlockHashAndIndex", json!([hash, index])),
        ]
    };
    for &index in picked {
        let found = usize::try_from(index).ok().and_then(|index| transactions.get(index));
        let Some(transaction) = found else { continue };
        questions.push(ComparedCall::new("eth_getTransactionByHash", json!([transaction])));
        questions.extend(of_index(&format!("{index:#x}")));
        if has_receipts {
            questions.push(ComparedCall::new("eth_getTransactionReceipt", json!([transaction])));
        }
    }
    // One past the last is not there.
    questions.extend(of_index(&format!("{:#x}", transactions.len())));
    questions
}

/// Questions about what no chain has.
#[must_use]
pub fn questions_of_absent() -> Vec<ComparedCall> {
    let hash = format!("0x{}", "11".repeat(32));
    // No chain will come so far, and every server can read the number.
    let number = "0xffffffffff";
    vec![
        ComparedCall::new("eth_getBlockByNumber", json!([number, false])),
        ComparedCall::new("eth_getBlockByHash", json!([hash, false])),
        ComparedCall::new("eth_getTransactionByHash", json!([hash])),
        ComparedCall::new("eth_getTransactionByBlockNumberAndIndex", json!([number, "0x0"])),
        ComparedCall::new("eth_getTransactionByBlockHashAndIndex", json!([hash, "0x0"])),
        ComparedCall::new("eth_getTransactionReceipt", json!([hash])),
    ]
}

/// At most `count` of the numbers below `total`, in order: one out of each of `count` equal parts,
/// the very first and the very last among them. Another seed picks others.
#[must_use]
pub fn spread(total: u64, count: u64, seed: u64) -> Vec<u64> {
    if count >= total {
        return (0..total).collect();
    }
    // No part is empty: there are fewer parts than numbers.
    let bound = |part: u64| {
        let bound = u128::from(part) * u128::from(total) / u128::from(count);
        u64::try_from(bound).unwrap_or(total)
    };
    let mixed = |number: u64| SplitMix64::new(number).next_number();
    let pick = |part: u64| {
        let (first, end) = (bound(part), bound(part + 1));
        if part + 1 == count {
            end - 1
        } else if part == 0 {
            first
        } else {
            first + mixed(seed ^ mixed(part)) % (end - first)
        }
    };
    (0..count).map(pick).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_both_ends_and_one_of_every_part() {
        assert_eq!(spread(3, 7, 1), [0, 1, 2]);
        assert_eq!(spread(0, 7, 1), [0_u64; 0]);
        assert_eq!(spread(5, 0, 1), [0_u64; 0]);
        assert_eq!(spread(9, 1, 1), [8]);
        let found = spread(1000, 10, 1);
        assert_eq!((found.first(), found.last()), (Some(&0), Some(&999)));
        assert!(found.iter().zip(0..).all(|(&pick, part)| pick / 100 == part), "{found:?}");
        assert_ne!(found, spread(1000, 10, 2));
        assert_eq!(found, spread(1000, 10, 1));
        assert_eq!(spread(u64::MAX, 2, 1), [0, u64::MAX - 1]);
    }

    #[test]
    fn all_six_reads_are_asked_of_a_block_and_of_what_is_not_there() {
        let block = json!({ "number": "0x5", "hash": "0xab", "transactions": ["0x1", "0x2"] });
        let names = |questions: &[ComparedCall]| {
            let mut names: Vec<&str> = questions.iter().map(|question| question.method).collect();
            names.sort_unstable();
            names.dedup();
            names.len()
        };
        let questions = questions_of_block(&block, &[1, 7], true);
        assert_eq!((questions.len(), names(&questions)), (4 + 4 + 2, 6));
        assert_eq!(questions[4].params, json!(["0x2"]));
        assert_eq!(questions[9].params, json!(["0xab", "0x2"]), "one past the last");
        assert_eq!(names(&questions_of_block(&block, &[1], false)), 5);
        assert_eq!(names(&questions_of_absent()), 6);
    }
}
