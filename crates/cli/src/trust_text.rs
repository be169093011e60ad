//! How far blocks can be trusted, in words: for people and for programs.

use chain::BlockRange;
use chain::trust::{AnchoredBy, LinkedTo, TrustStatus};
use serde_json::{Value, json};

/// One sentence on how far ranges can be trusted to be canonical.
pub(crate) fn verdict(statuses: &[(BlockRange, TrustStatus)]) -> String {
    match statuses {
        [(_, status)] => sentence(status),
        several => {
            let parts =
                several.iter().map(|(range, status)| format!("{range} {}", sentence(status)));
            parts.collect::<Vec<_>>().join("; ")
        }
    }
}

pub(crate) fn sentence(status: &TrustStatus) -> String {
    match status {
        TrustStatus::Anchored(_) => status.to_string(),
        TrustStatus::Linked(_) => format!("consistent, {status}"),
        TrustStatus::Unanchored => format!("consistent but {status}"),
    }
}

/// A status in one word.
pub(crate) fn word(status: &TrustStatus) -> &'static str {
    match status {
        TrustStatus::Anchored(_) => "anchored",
        TrustStatus::Linked(_) => "linked",
        TrustStatus::Unanchored => "unanchored",
    }
}

/// What a status rests on; `null` if on nothing.
pub(crate) fn anchor(status: &TrustStatus) -> Value {
    match status {
        TrustStatus::Anchored(AnchoredBy::Genesis) | TrustStatus::Linked(LinkedTo::Genesis) => {
            json!("genesis")
        }
        TrustStatus::Anchored(AnchoredBy::Operator(anchor))
        | TrustStatus::Linked(LinkedTo::Anchor(anchor)) => json!(anchor.to_string()),
        TrustStatus::Anchored(AnchoredBy::Epoch(epoch))
        | TrustStatus::Linked(LinkedTo::Epoch(epoch)) => {
            json!(format!("accumulator epoch {epoch}"))
        }
        TrustStatus::Unanchored => Value::Null,
    }
}
