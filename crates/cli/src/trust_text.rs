//! How far blocks can be trusted, in words: for people and for programs.

use chain::BlockRange;
use chain::trust::{AnchoredBy, LinkedTo, Status};
use serde_json::{Value, json};

/// One sentence on how far ranges can be trusted to be canonical.
pub(crate) fn verdict(statuses: &[(BlockRange, Status)]) -> String {
    match statuses {
        [(_, status)] => sentence(status),
        several => {
            let parts =
                several.iter().map(|(range, status)| format!("{range} {}", sentence(status)));
            parts.collect::<Vec<_>>().join("; ")
        }
    }
}

pub(crate) fn sentence(status: &Status) -> String {
    match status {
        Status::Anchored(_) => status.to_string(),
        Status::Linked(_) => format!("consistent, {status}"),
        Status::Unanchored => format!("consistent but {status}"),
    }
}

/// A status in one word.
pub(crate) fn word(status: &Status) -> &'static str {
    match status {
        Status::Anchored(_) => "anchored",
        Status::Linked(_) => "linked",
        Status::Unanchored => "unanchored",
    }
}

/// What a status rests on; `null` if on nothing.
pub(crate) fn anchor(status: &Status) -> Value {
    match status {
        Status::Anchored(AnchoredBy::Genesis) | Status::Linked(LinkedTo::Genesis) => {
            json!("genesis")
        }
        Status::Anchored(AnchoredBy::Operator(anchor))
        | Status::Linked(LinkedTo::Anchor(anchor)) => json!(anchor.to_string()),
        Status::Anchored(AnchoredBy::Epoch(epoch)) | Status::Linked(LinkedTo::Epoch(epoch)) => {
            json!(format!("accumulator epoch {epoch}"))
        }
        Status::Unanchored => Value::Null,
    }
}
