//! How `stat` is shown: one JSON object, or a page for people.

use chain::BlockRange;
use chain::trust::{AnchoredBy, TrustStatus};
use serde_json::{Map, Value, json};
use store::BlockId;
use store::manifest::Manifest;
use store::stat::Stat;

use crate::folder_text::{lost_blocks, pending_merge};
use crate::output::{counted_grouped, grouped, ratio};
use crate::trust_text::{anchor, sentence, word};

/// Files that cannot be read, in the short form.
const UNREADABLE_MAX: usize = 100;

/// The object of `stat --json`, as far as the numbers tell it. In the short form accumulator epochs that
/// follow each other are one range.
pub(super) fn members(stat: &Stat, is_short: bool) -> Map<String, Value> {
    let bytes = &stat.bytes;
    let coverage: Vec<Value> = if is_short {
        stat.statuses.chunk_by(are_epochs).filter_map(covered).collect()
    } else {
        stat.statuses.chunks(1).filter_map(covered).collect()
    };
    let unreadable_max = if is_short { UNREADABLE_MAX } else { usize::MAX };
    let unreadable = stat.unreadable.iter().take(unreadable_max).map(|it| {
        json!({
            "file": it.file_name,
            "first": it.blocks.map(|blocks| blocks.first()),
            "last": it.blocks.map(|blocks| blocks.last()),
            "error": it.reason,
        })
    });
    let page = json!({
        "network": stat.network.name,
        "chain_id": stat.network.chain_id,
        "genesis_hash": stat.network.genesis_hash,
        "coverage": coverage,
        "coverage_receipts": ranges(&stat.coverage_receipts),
        "gaps": ranges(&stat.gaps),
        "lost": ranges(&stat.lost),
        "unreadable": unreadable.collect::<Vec<_>>(),
        "unreadable_count": stat.unreadable.len(),
        "tip": block(stat.tip),
        "finalized": block(stat.finalized),
        "head": stat.head.map(|it| json!({ "first": it.first(), "last": it.last() })),
        "blocks": stat.block_count,
        "transactions": stat.transaction_count,
        "logs": stat.log_count,
        "bytes": {
            "total": bytes.total(),
            "headers": bytes.headers,
            "transactions": bytes.transactions,
            "receipts": bytes.receipts,
            "lookups": bytes.lookups,
            "log_index": bytes.log_index,
            "head": bytes.head,
            "other": bytes.other,
        },
        "segment_count": stat.segment_count,
        "run_count": stat.run_count,
        "pending_merges": ranges(&stat.pending_merges),
        "without_log_index": ranges(&stat.without_log_index),
    });
    object(page)
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(members) = value { members } else { Map::new() }
}

/// The lists of files of `stat --json`.
pub(super) fn files(manifest: &Manifest) -> Map<String, Value> {
    let segments = manifest.segments().iter().map(|entry| {
        json!({
            "first": entry.range.first(),
            "last": entry.range.last(),
            "bytes": entry.bytes,
            "digest": entry.digest,
            "file": entry.file_name,
        })
    });
    let runs = manifest.runs().iter().map(|entry| {
        json!({
            "subject": entry.subject.to_string(),
            "first_slot": entry.span.first_slot(),
            "last_slot": entry.span.end_slot().saturating_sub(1),
            "bytes": entry.bytes,
            "digest": entry.digest,
            "file": entry.file_name,
        })
    });
    let (segments, runs): (Vec<Value>, Vec<Value>) = (segments.collect(), runs.collect());
    object(json!({ "segments": segments, "runs": runs }))
}

/// A range with its status, or epochs that follow each other.
fn covered(ranges: &[(BlockRange, TrustStatus)]) -> Option<Value> {
    let ((first, status), (last, other)) = (ranges.first()?, ranges.last()?);
    let anchor = match epochs(status, other) {
        Some((low, high)) => json!(format!("accumulator epochs {low} to {high}")),
        None => anchor(status),
    };
    let (first, last) = (first.first(), last.last());
    Some(json!({ "first": first, "last": last, "status": word(status), "anchor": anchor }))
}

fn ranges(ranges: &[BlockRange]) -> Vec<Value> {
    ranges.iter().map(|it| json!({ "first": it.first(), "last": it.last() })).collect()
}

fn block(block: Option<BlockId>) -> Value {
    let text = |BlockId { number, hash }| json!({ "number": number.get(), "hash": hash });
    block.map_or(Value::Null, text)
}

/// The page for people.
pub(super) fn text(place: &str, stat: &Stat) -> Vec<String> {
    let name = stat.network.name.as_deref().unwrap_or("no chain yet");
    let chain_id = stat.network.chain_id.map(|chain_id| format!(", chain id {chain_id}"));
    let mut lines = vec![format!("{name}{} in {place}", chain_id.unwrap_or_default())];
    let held: Vec<BlockRange> = stat.statuses.iter().map(|(range, _)| *range).collect();
    let lost = stat.lost.iter().map(|range| lost_blocks(*range, &held));
    let unreadable = stat.unreadable.iter().map(|it| {
        let blocks = it.blocks.map_or(String::new(), |blocks| format!(" (blocks {blocks})"));
        format!("{}{blocks} cannot be read: {}", it.file_name, it.reason)
    });
    if stat.block_count == 0 {
        let is_damaged = !stat.unreadable.is_empty();
        lines.push(
            if is_damaged { "no block can be read" } else { "holds no block yet" }.to_owned(),
        );
        lines.extend(unreadable.chain(lost));
        if !stat.without_log_index.is_empty() {
            let ranges: Vec<String> =
                stat.without_log_index.iter().map(ToString::to_string).collect();
            lines.push(format!(
                "no log index of blocks {}: `quipu index` builds it",
                ranges.join(", ")
            ));
        }
        return lines;
    }
    lines.push(format!(
        "{}, {}, {}",
        counted_grouped(stat.block_count, "block"),
        counted_grouped(stat.transaction_count, "transaction"),
        counted_grouped(stat.log_count, "log")
    ));
    lines.extend(trust(stat));
    lines.push(receipts(stat));
    lines.extend(stat.tip.map(|tip| format!("tip        {} {}", tip.number, tip.hash)));
    lines.push(match stat.finalized {
        Some(block) => format!("finalized  {} {}", block.number, block.hash),
        None => "finalized  none: nothing says that the highest range is canonical".to_owned(),
    });
    lines.extend(stat.head.map(|range| format!("head       {range}, not sealed yet")));
    lines.extend(table(stat));
    lines.push(format!(
        "{}, {}",
        counted_grouped(u64::try_from(stat.segment_count).unwrap_or(u64::MAX), "segment"),
        counted_grouped(u64::try_from(stat.run_count).unwrap_or(u64::MAX), "lookup run")
    ));
    lines.extend(unreadable.chain(lost));
    if !stat.without_log_index.is_empty() {
        let ranges: Vec<String> = stat.without_log_index.iter().map(ToString::to_string).collect();
        lines
            .push(format!("no log index of blocks {}: `quipu index` builds it", ranges.join(", ")));
    }
    let pending = stat.pending_merges.iter();
    lines.extend(pending.map(|blocks| pending_merge(*blocks)));
    lines
}

/// Every range with its status, and the gaps between them.
fn trust(stat: &Stat) -> Vec<String> {
    let held = stat.statuses.chunk_by(are_epochs).filter_map(together);
    let gaps = stat.gaps.iter().map(|range| (*range, "not held".to_owned()));
    let mut rows: Vec<(BlockRange, String)> = held.chain(gaps).collect();
    rows.sort_by_key(|(range, _)| range.first());
    let width = rows.iter().map(|(range, _)| range.to_string().len()).max().unwrap_or_default();
    let row =
        |(range, says): &(BlockRange, String)| format!("  {:width$}  {says}", range.to_string());
    rows.iter().map(row).collect()
}

/// Whether two ranges follow each other and are each anchored by an accumulator epoch: pre-merge
/// mainnet has 1897 of them, and one line says it all.
fn are_epochs(
    (one, status): &(BlockRange, TrustStatus),
    (next, other): &(BlockRange, TrustStatus),
) -> bool {
    let is_epoch = |status| matches!(status, TrustStatus::Anchored(AnchoredBy::Epoch(_)));
    one.end() == next.first() && is_epoch(*status) && is_epoch(*other)
}

/// Ranges that are told in one line.
fn together(ranges: &[(BlockRange, TrustStatus)]) -> Option<(BlockRange, String)> {
    let ((first, status), (last, other)) = (ranges.first()?, ranges.last()?);
    let range = BlockRange::from_ends(first.first(), last.last())?;
    let says = match epochs(status, other) {
        Some((low, high)) => format!("anchored by accumulator epochs {low} to {high}"),
        None => sentence(status),
    };
    Some((range, says))
}

/// The first and the last epoch of a range, if there is more than one.
fn epochs(first: &TrustStatus, last: &TrustStatus) -> Option<(u64, u64)> {
    let anchored_by = |status: &TrustStatus| match status {
        TrustStatus::Anchored(anchor) => Some(*anchor),
        TrustStatus::Linked(_) | TrustStatus::Unanchored => None,
    };
    let (AnchoredBy::Epoch(low), AnchoredBy::Epoch(high)) =
        (anchored_by(first)?, anchored_by(last)?)
    else {
        return None;
    };
    (low != high).then_some((low, high))
}

fn receipts(stat: &Stat) -> String {
    let count: u64 = stat.coverage_receipts.iter().map(BlockRange::count).sum();
    if count == stat.block_count {
        return "receipts   of all blocks".to_owned();
    }
    if count == 0 {
        return "receipts   of no block".to_owned();
    }
    let ranges: Vec<String> = stat.coverage_receipts.iter().map(ToString::to_string).collect();
    format!("receipts   of {} only", ranges.join(", "))
}

/// Bytes by part, with their share and what they come to for each transaction.
fn table(stat: &Stat) -> Vec<String> {
    let bytes = &stat.bytes;
    let total = bytes.total();
    let rows = [
        ("headers", bytes.headers),
        ("transactions", bytes.transactions),
        ("receipts", bytes.receipts),
        ("lookups", bytes.lookups),
        ("log index", bytes.log_index),
        ("head", bytes.head),
        ("other", bytes.other),
        ("total", total),
    ];
    let width = grouped(total).len().max("bytes".len());
    let row = |part: &str, bytes: String, percent: String, each: String| {
        format!("  {part:<12}  {bytes:>width$}  {percent:>6}  {each:>15}")
    };
    let title = row("", "bytes".into(), "%".into(), "per transaction".into());
    let row = |(part, bytes): (&str, u64)| {
        let percent = ratio(bytes.saturating_mul(100), total, 1);
        row(part, grouped(bytes), percent, ratio(bytes, stat.transaction_count, 1))
    };
    [title].into_iter().chain(rows.map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_that_follow_each_other_are_one_line() {
        let range = |first, last| BlockRange::from_ends(first, last).unwrap();
        let epoch = |number| TrustStatus::Anchored(AnchoredBy::Epoch(number));
        let held = [
            (range(0, 8191), epoch(0)),
            (range(8192, 16383), epoch(1)),
            (range(16384, 16400), TrustStatus::Unanchored),
            (range(81920, 90111), epoch(10)),
            (range(98304, 106_495), epoch(12)),
        ];
        let lines: Vec<String> = held
            .chunk_by(are_epochs)
            .filter_map(together)
            .map(|(range, says)| format!("{range} {says}"))
            .collect();
        let expected = [
            "0..16383 anchored by accumulator epochs 0 to 1",
            "16384..16400 consistent but not anchored",
            "81920..90111 anchored by accumulator epoch 10",
            "98304..106495 anchored by accumulator epoch 12",
        ];
        assert_eq!(lines, expected);
        let mut covered = held.chunk_by(are_epochs).filter_map(covered);
        let epochs = json!({
            "first": 0, "last": 16383, "status": "anchored", "anchor": "accumulator epochs 0 to 1",
        });
        assert_eq!(covered.next(), Some(epochs));
        assert_eq!(covered.nth(1).unwrap()["anchor"], "accumulator epoch 10");
    }
}
