//! True blocks by their hashes. Signing and proving them takes longer than everything that is done
//! with them, so each is made once, for all runs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::B256;
use chain::{Block, Verified};

/// Where a block can be put: its number, and its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) number: u64,
    pub(super) parent: B256,
}

impl Place {
    /// The place above a block.
    pub(super) fn above(number: u64, hash: B256) -> Self {
        Self { number: number + 1, parent: hash }
    }
}

/// The place of the first block of a chain: genesis, or a block whose parent nobody has.
pub(super) fn first_place(number: u64) -> Place {
    let parent = if number == 0 { B256::ZERO } else { B256::repeat_byte(0xba) };
    Place { number, parent }
}

#[derive(Default)]
struct Made {
    hashes: BTreeMap<(Place, u8), B256>,
    blocks: BTreeMap<B256, (Place, u8, Verified<Block>)>,
    bare: BTreeMap<B256, Verified<Block>>,
}

static MADE: Mutex<Option<Made>> = Mutex::new(None);

fn with_made<T>(act: impl FnOnce(&mut Made) -> T) -> T {
    let mut made: MutexGuard<'_, Option<Made>> =
        MADE.lock().unwrap_or_else(PoisonError::into_inner);
    act(made.get_or_insert_default())
}

/// The hash of the block at a place: another letter is another block.
pub(super) fn make(place: Place, letter: u8) -> B256 {
    if let Some(hash) = with_made(|made| made.hashes.get(&(place, letter)).copied()) {
        return hash;
    }
    let block = testing::blocks::block(place.number, place.parent, letter, true);
    let hash = block.hash;
    with_made(|made| {
        made.hashes.insert((place, letter), hash);
        made.blocks.insert(hash, (place, letter, block));
    });
    hash
}

/// The hashes of so many blocks, each above the one before.
pub(super) fn branch(mut place: Place, letter: u8, count: u64) -> Vec<B256> {
    let mut hashes = Vec::new();
    for _ in 0..count {
        let hash = make(place, letter);
        hashes.push(hash);
        place = Place::above(place.number, hash);
    }
    hashes
}

/// A block that was made, with its receipts or without.
pub(super) fn get(hash: B256, has_receipts: bool) -> Verified<Block> {
    let whole = with_made(|made| {
        if has_receipts {
            return made.blocks.get(&hash).map(|(.., block)| (None, block.clone()));
        }
        let (place, letter, block) = made.blocks.get(&hash)?;
        Some(match made.bare.get(&hash) {
            Some(bare) => (None, bare.clone()),
            None => (Some((*place, *letter)), block.clone()),
        })
    });
    match whole.unwrap() {
        (None, block) => block,
        (Some((place, letter)), _) => {
            let bare = testing::blocks::block(place.number, place.parent, letter, false);
            with_made(|made| made.bare.insert(hash, bare.clone()));
            bare
        }
    }
}
