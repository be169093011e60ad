//! What is said of a head's log that was not taken whole.

use store::head::{CutKind, Recovery};

/// What is damaged: bytes that were whole once, and blocks that do not prove themselves.
pub(crate) fn head_faults(recovery: &Recovery) -> Vec<String> {
    let log = recovery.log.as_deref().unwrap_or("head");
    let cuts = recovery.cuts.iter().filter(|cut| cut.kind != CutKind::TornTail);
    let refused = recovery.refused.iter();
    let refused = refused.map(|it| format!("{log}: block {} is refused: {}", it.hash, it.reason));
    cuts.map(ToString::to_string).chain(refused).collect()
}

/// What is no damage: a change that was not finished, and blocks that others have superseded.
pub(crate) fn head_notes(recovery: &Recovery) -> Vec<String> {
    let log = recovery.log.as_deref().unwrap_or("head");
    let cuts = recovery.cuts.iter().filter(|cut| cut.kind == CutKind::TornTail);
    let superseded = recovery.superseded.map(|it| {
        format!(
            "{log}: not shown: its block {} is {}, but {} was sealed since; `quipu serve --upstream` \
             begins another head",
            it.number, it.found, it.sealed
        )
    });
    cuts.map(ToString::to_string).chain(superseded).collect()
}
