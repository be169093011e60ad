//! In which order files are taken, so that each finds what it links to.

use std::path::{Path, PathBuf};

use archive::{Archive, ArchiveName};
use chain::BlockRange;
use chain::accumulator::EPOCH_BLOCKS;
use chain::trust::Anchors;

/// Orders files so that trust reaches each of them if it can: upwards from what is held, from genesis
/// or from an anchor, and downwards from an anchor first where nothing below is known. Files that
/// cannot be read keep their place at the end, to be refused with the reason.
#[must_use]
pub fn order_files(
    files: Vec<PathBuf>,
    coverage: &[BlockRange],
    anchors: &Anchors,
) -> Vec<PathBuf> {
    let mut known: Vec<(u64, PathBuf)> = Vec::new();
    let mut unknown = Vec::new();
    for path in files {
        match epoch_of(&path) {
            Some(epoch) => known.push((epoch, path)),
            None => unknown.push(path),
        }
    }
    // Names have the numbers of parts without leading zeros.
    let first_of = |path: &PathBuf| {
        ArchiveName::parse(path).and_then(|name| name.part).map_or(0, |part| part.first())
    };
    known.sort_by_cached_key(|(epoch, path)| (*epoch, first_of(path), path.clone()));
    let is_next = |(one, _): &(u64, PathBuf), (next, _): &(u64, PathBuf)| {
        *next == *one || *next == one.saturating_add(1)
    };
    let mut ordered = Vec::new();
    for group in known.chunk_by(is_next) {
        let lowest = group.first().map_or(0, |(epoch, _)| *epoch);
        let before = lowest.saturating_mul(EPOCH_BLOCKS).checked_sub(1);
        let is_rooted = before.is_none_or(|number| coverage.iter().any(|it| it.contains(number)));
        let has_anchor =
            |epoch: u64| anchors.operator().any(|anchor| anchor.number / EPOCH_BLOCKS == epoch);
        let anchored = group.iter().rposition(|(epoch, _)| has_anchor(*epoch));
        // Everything up to the highest anchor is proven by it, from there downwards.
        let turn = anchored.filter(|_| !is_rooted).map_or(0, |position| position.saturating_add(1));
        let (down, up) = group.split_at(turn);
        ordered.extend(down.iter().rev().chain(up).map(|(_, path)| path.clone()));
    }
    ordered.extend(unknown);
    ordered
}

/// The era that a file belongs to: its name says so, or its index.
fn epoch_of(path: &Path) -> Option<u64> {
    let named = ArchiveName::parse(path).map(|name| name.era);
    named.or_else(|| Some(Archive::open(path).ok()?.range().first() / EPOCH_BLOCKS))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use chain::trust::Anchor;

    use super::*;

    fn check(epochs: &[u64], held: &[(u64, u64)], anchor: Option<u64>, expected: &[u64]) {
        let name = |epoch: &u64| PathBuf::from(format!("chain-{epoch:05}-00000000.ere"));
        let coverage: Vec<_> = held
            .iter()
            .map(|(first, last)| {
                BlockRange::from_ends(first * EPOCH_BLOCKS, last * EPOCH_BLOCKS + 8191).unwrap()
            })
            .collect();
        let anchors = anchor.map_or_else(Anchors::none, |epoch| {
            let number = epoch * EPOCH_BLOCKS + 7;
            Anchors::none().with_operator(Anchor { number, hash: B256::ZERO }).unwrap()
        });
        let files: Vec<PathBuf> = epochs.iter().map(name).collect();
        let expected: Vec<PathBuf> = expected.iter().map(name).collect();
        assert_eq!(order_files(files, &coverage, &anchors), expected);
    }

    #[test]
    fn files_are_taken_upwards_from_what_is_known() {
        check(&[2, 0, 1], &[], None, &[0, 1, 2]);
        check(&[7, 6], &[(0, 5)], None, &[6, 7]);
        check(&[3, 0, 1], &[], None, &[0, 1, 3]);
    }

    #[test]
    fn files_below_an_anchor_are_taken_downwards_from_it() {
        check(&[5, 6, 7, 8], &[], Some(7), &[7, 6, 5, 8]);
        check(&[5, 6, 7, 8], &[(0, 4)], Some(7), &[5, 6, 7, 8]);
        check(&[5, 6, 0, 1], &[], Some(6), &[0, 1, 6, 5]);
    }

    #[test]
    fn parts_of_an_era_are_taken_by_the_numbers_of_their_blocks() {
        let name = |part: &str| PathBuf::from(format!("chain-00000-00000000-part-{part}.ere"));
        let files = ["1000-1999", "0-199", "200-999"].map(name).to_vec();
        let ordered = order_files(files, &[], &Anchors::none());
        assert_eq!(ordered, ["0-199", "200-999", "1000-1999"].map(name));
        // Downwards from an anchor, where nothing below is held.
        let name = |part: &str| PathBuf::from(format!("chain-00001-00000000-part-{part}.ere"));
        let files = ["9000-9999", "10000-10999", "8200-8999"].map(name).to_vec();
        let anchors =
            Anchors::none().with_operator(Anchor { number: 10_999, hash: B256::ZERO }).unwrap();
        let ordered = order_files(files, &[], &anchors);
        assert_eq!(ordered, ["10000-10999", "9000-9999", "8200-8999"].map(name));
    }
}
