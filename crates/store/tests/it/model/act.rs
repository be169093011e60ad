//! What can be done to a store, what it should lead to, and the choice of the next thing to do.

use std::collections::BTreeMap;
use std::fmt;

use alloy_primitives::B256;
use chain::trust::Anchor;
use chain::{BlockNumber, BlockRange};
use store::layout::HeldRange;
use store::manifest::Network;
use store::{BlockId, CommitFacts, Finality, StoreError, Writer};

use super::blocks::{Place, first_place, get, make};
use super::dice::Dice;
use super::state::{HeadState, Sealed};

/// Final blocks by number: nothing ever contradicts them.
pub(super) type Truth = BTreeMap<u64, B256>;

/// One change. Blocks are named by their hashes, so that a change is a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Extend {
        blocks: Vec<B256>,
        has_receipts: bool,
    },
    Reorg {
        kept: usize,
        blocks: Vec<B256>,
        has_receipts: bool,
    },
    Rewind {
        kept: usize,
    },
    Switch {
        tip: B256,
    },
    /// A block is said to be final.
    Finalize {
        block: BlockId,
    },
    Seal {
        finalized: BlockNumber,
        told: Learned,
    },
    /// Blocks above the head's tip, without the first `skipped`, are sealed: all of them are final.
    SealAbove {
        blocks: Vec<B256>,
        skipped: usize,
    },
    /// A human drops what is above a block, sealed or not.
    RewindTo {
        block: BlockId,
    },
    /// Ranges of final blocks arrive, as an import brings them.
    Import {
        held: Vec<HeldRange>,
        told: Learned,
    },
}

/// What is told of the chain together with segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Learned {
    pub(super) anchor: Option<Anchor>,
    pub(super) genesis_hash: Option<B256>,
}

impl Act {
    /// A word for it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Extend { .. } => "extend",
            Self::Reorg { .. } => "reorg",
            Self::Rewind { .. } => "rewind",
            Self::Switch { .. } => "switch",
            Self::Finalize { .. } => "finalize",
            Self::Seal { .. } => "seal",
            Self::SealAbove { .. } => "seal above",
            Self::RewindTo { .. } => "rewind to",
            Self::Import { .. } => "import",
        }
    }

    /// Does it to the store; tells what was sealed.
    pub(super) fn perform(
        &self,
        writer: &mut Writer,
        head: &HeadState,
        truth: &Truth,
    ) -> Result<Option<BlockRange>, StoreError> {
        let blocks = |hashes: &[B256], has_receipts| {
            hashes.iter().map(|hash| get(*hash, has_receipts)).collect::<Vec<_>>()
        };
        let fork_point = |kept| head.place_above(kept).unwrap().parent;
        match self {
            Self::Extend { blocks: hashes, has_receipts } => {
                writer.extend(blocks(hashes, *has_receipts))
            }
            Self::Reorg { kept, blocks: hashes, has_receipts } => {
                writer.reorg(fork_point(*kept), blocks(hashes, *has_receipts))
            }
            Self::Rewind { kept } => writer.rewind(fork_point(*kept)),
            Self::Switch { tip } => writer.adopt(Vec::new(), Some(*tip)),
            Self::Finalize { block } => {
                writer.set_finality(Finality { safe: None, finalized: Some(*block) })
            }
            Self::Seal { finalized, told } => return writer.seal(*finalized, told.facts()),
            Self::SealAbove { blocks, skipped } => {
                let numbers = blocks[*skipped..].iter().map(|hash| get(*hash, true).header.number);
                let range = BlockRange::from_count(numbers.min().unwrap(), count(blocks, *skipped));
                let sealed = HeldRange { range: range.unwrap(), has_receipts: true };
                import(writer, &[sealed], truth, CommitFacts::default())
            }
            Self::RewindTo { block } => return writer.rewind_to(block.number, block.hash),
            Self::Import { held, told } => import(writer, held, truth, told.facts()),
        }?;
        Ok(None)
    }

    /// What it should lead to.
    pub(super) fn expected(
        &self,
        sealed: &Sealed,
        head: &HeadState,
        truth: &Truth,
    ) -> (Sealed, HeadState) {
        let (mut sealed, mut head) = (sealed.clone(), head.clone());
        match self {
            Self::Extend { blocks, has_receipts } => {
                let first = blocks.first().map(|hash| get(*hash, true));
                let place = first.map(|block| Place {
                    number: block.header.number,
                    parent: block.header.parent_hash,
                });
                head.base = head.base.or(place);
                head.branch_off(head.chain.len(), blocks, *has_receipts);
            }
            Self::Reorg { kept, blocks, has_receipts } => {
                head.branch_off(*kept, blocks, *has_receipts);
            }
            Self::Rewind { kept } => head.branch_off(*kept, &[], false),
            Self::Switch { tip } => head.switch_to(*tip),
            Self::Finalize { block } => {
                let before = head.finalized.filter(|before| before.number >= block.number);
                head.finalized = before.or(Some(*block));
            }
            Self::Seal { finalized, told } => {
                let due = head.due(finalized.get());
                let canonical = head.canonical();
                for number in &due {
                    let (hash, has_receipts) = canonical[number];
                    sealed.take(*number, hash, has_receipts);
                }
                if let Some(last) = due.last() {
                    head.seal_below(*last, canonical[last].0);
                    told.learn(&mut sealed);
                }
            }
            Self::SealAbove { blocks, skipped } => {
                for hash in &blocks[*skipped..] {
                    sealed.take(get(*hash, true).header.number, *hash, true);
                }
            }
            Self::RewindTo { block } => {
                sealed.blocks.retain(|number, _| *number <= block.number.get());
                sealed.anchors.retain(|number, _| *number <= block.number.get());
                head.rewind_to(*block);
            }
            Self::Import { held, told } => {
                for HeldRange { range, has_receipts } in held {
                    for number in range.first()..range.end() {
                        sealed.take(number, truth[&number], *has_receipts);
                    }
                }
                told.learn(&mut sealed);
            }
        }
        (sealed, head)
    }
}

impl Learned {
    fn facts(self) -> CommitFacts {
        CommitFacts {
            network: Network { genesis_hash: self.genesis_hash, ..Network::default() },
            anchors: self.anchor.into_iter().collect(),
            ..CommitFacts::default()
        }
    }

    fn learn(self, sealed: &mut Sealed) {
        sealed.anchors.extend(self.anchor.map(|anchor| (anchor.number, anchor.hash)));
        sealed.genesis_hash = sealed.genesis_hash.or(self.genesis_hash);
    }
}

fn count(blocks: &[B256], skipped: usize) -> u64 {
    u64::try_from(blocks.len() - skipped).unwrap()
}

/// Brings final blocks as an import does: past the head, into segments at once.
pub(super) fn import(
    writer: &mut Writer,
    held: &[HeldRange],
    truth: &Truth,
    facts: CommitFacts,
) -> Result<(), StoreError> {
    let arriving = |number: BlockNumber| {
        let mut ranges = held.iter().filter(|held| held.range.contains(number)).peekable();
        ranges.peek()?;
        Some(get(truth[&number.get()], ranges.any(|held| held.has_receipts)))
    };
    let mut segments = Vec::new();
    for target in writer.plan(held) {
        segments.push(writer.build(target, &arriving)?);
    }
    writer.commit(segments, facts)
}

/// What the choice of the next change depends on.
#[derive(Debug)]
pub(super) struct Situation<'a> {
    pub(super) sealed: &'a Sealed,
    pub(super) head: &'a HeadState,
    pub(super) truth: &'a Truth,
    pub(super) window: BlockRange,
    /// Where the head begins; `None` in a folder without a head.
    pub(super) head_from: Option<u64>,
    /// How many changes there were: a letter for new branches follows from it.
    pub(super) count: usize,
}

impl Situation<'_> {
    /// The next change.
    pub(super) fn choose(&self, dice: &mut Dice) -> Act {
        if self.head_from.is_none() {
            return self.import(dice);
        }
        if self.head.base.is_none() {
            return if dice.one_in(3) { self.import(dice) } else { self.extend(dice) };
        }
        match dice.below(20) {
            0..=4 => self.extend(dice),
            5 | 6 => self.reorg(dice),
            7 => self.same_with_receipts(dice),
            8 => Act::Rewind { kept: self.kept(dice) },
            9 => self.switch(dice),
            10..=12 => self.seal(dice),
            13 | 14 => self.finalize(dice),
            15 => self.seal_above(dice),
            16 => self.rewind_to(dice),
            _ => self.import(dice),
        }
    }

    /// How many canonical blocks a reorg leaves: final ones stay.
    fn kept(&self, dice: &mut Dice) -> usize {
        let is_final = |hash: &B256| self.truth.contains_key(&self.head.tree[hash].place.number);
        let least = self.head.chain.iter().rposition(is_final).map_or(0, |position| position + 1);
        let loose = u64::try_from(self.head.chain.len() - least).unwrap();
        let dropped = if dice.one_in(4) { dice.below(loose + 1) } else { dice.below(9).min(loose) };
        self.head.chain.len() - usize::try_from(dropped).unwrap()
    }

    /// Blocks from a place on, as many as the window has room for. Final ones are what they are.
    fn grow(&self, place: Place, letter: u8, count: u64) -> Vec<B256> {
        let mut place = place;
        let mut blocks = Vec::new();
        while blocks.len() < usize::try_from(count).unwrap() && self.window.contains(place.number) {
            let hash = match self.truth.get(&place.number) {
                Some(hash) => *hash,
                None => make(place, letter),
            };
            blocks.push(hash);
            place = Place::above(place.number, hash);
        }
        blocks
    }

    fn extend(&self, dice: &mut Dice) -> Act {
        let number = self.head_from.unwrap();
        let place =
            self.head.next().unwrap_or_else(|| match self.truth.get(&(number.max(1) - 1)) {
                Some(hash) if number > 0 => Place { number, parent: *hash },
                _ => first_place(number),
            });
        let letter = if dice.one_in(3) { b'b' } else { b'a' };
        let blocks = self.grow(place, letter, dice.between(1, 40));
        Act::Extend { blocks, has_receipts: !dice.one_in(4) }
    }

    fn reorg(&self, dice: &mut Dice) -> Act {
        let kept = self.kept(dice);
        let letter = b'b' + u8::try_from(self.count % 5).unwrap();
        let place = self.head.place_above(kept).unwrap();
        let blocks = self.grow(place, letter, dice.between(1, 12));
        Act::Reorg { kept, blocks, has_receipts: !dice.one_in(4) }
    }

    /// The newest blocks come again, this time with receipts.
    fn same_with_receipts(&self, dice: &mut Dice) -> Act {
        let count = usize::try_from(dice.below(30)).unwrap().min(self.head.chain.len());
        let kept = self.head.chain.len() - count;
        Act::Reorg { kept, blocks: self.head.chain[kept..].to_vec(), has_receipts: true }
    }

    /// Any block of the head becomes the tip, if all final blocks are below it.
    fn switch(&self, dice: &mut Dice) -> Act {
        let fits = |tip: &B256| {
            let mut head = self.head.clone();
            head.switch_to(*tip);
            let canonical = head.canonical();
            let base = head.base.map_or(0, |base| base.number);
            self.truth
                .range(base..)
                .all(|(number, hash)| canonical.get(number).is_some_and(|(found, _)| found == hash))
        };
        let tips: Vec<B256> = self.head.tree.keys().copied().filter(fits).collect();
        match dice.pick(&tips) {
            Some(tip) => Act::Switch { tip: *tip },
            None => Act::Rewind { kept: self.head.chain.len() },
        }
    }

    fn finalize(&self, dice: &mut Dice) -> Act {
        let canonical: Vec<_> = self.head.canonical().into_iter().collect();
        match dice.pick(&canonical) {
            Some((number, (hash, _))) => {
                Act::Finalize { block: BlockId { number: BlockNumber(*number), hash: *hash } }
            }
            None => self.seal(dice),
        }
    }

    fn seal(&self, dice: &mut Dice) -> Act {
        let tip = self.head.tip().unwrap_or(self.window.first());
        let finalized = match dice.below(4) {
            0 => tip + dice.below(300),
            1 => tip,
            _ => tip.saturating_sub(dice.below(40)),
        };
        let due = self.head.due(finalized);
        let canonical = self.head.canonical();
        let anchor = dice.pick(&due).filter(|_| dice.one_in(4));
        let anchor = anchor.map(|number| Anchor { number: *number, hash: canonical[number].0 });
        Act::Seal {
            finalized: BlockNumber(finalized),
            told: Learned { anchor, genesis_hash: None },
        }
    }

    fn seal_above(&self, dice: &mut Dice) -> Act {
        let (Some(_), Some(place)) = (self.head.tip(), self.head.next()) else {
            return self.import(dice);
        };
        let blocks = self.grow(place, b'a', dice.between(1, 40));
        if blocks.is_empty() {
            return self.import(dice);
        }
        let skipped = dice.below(u64::try_from(blocks.len()).unwrap());
        Act::SealAbove { blocks, skipped: usize::try_from(skipped).unwrap() }
    }

    /// Any block that is held stays with all below it.
    fn rewind_to(&self, dice: &mut Dice) -> Act {
        let mut held: BTreeMap<u64, (B256, bool)> = self.head.canonical();
        held.extend(&self.sealed.blocks);
        let held: Vec<_> = held.into_iter().collect();
        match dice.pick(&held) {
            Some((number, (hash, _))) => {
                Act::RewindTo { block: BlockId { number: BlockNumber(*number), hash: *hash } }
            }
            None => self.import(dice),
        }
    }

    fn import(&self, dice: &mut Dice) -> Act {
        let (Some(first), Some(last)) =
            (self.truth.keys().next().copied(), self.truth.keys().last().copied())
        else {
            return self.seal(dice);
        };
        // What is told may be of blocks that are held already: then no segment comes with it.
        let count = match dice.below(8) {
            0 if !self.sealed.blocks.is_empty() => 0,
            1 | 2 => 2,
            _ => 1,
        };
        let mut held: Vec<HeldRange> = Vec::new();
        for _ in 0..count {
            let begin = self.edge(dice).unwrap_or_else(|| dice.between(first, last));
            let end = match self.edge(dice) {
                Some(edge) if edge >= begin && edge - begin < 300 => edge,
                _ if dice.one_in(3) => begin + dice.below(280),
                _ => begin + dice.below(60),
            };
            let range = BlockRange::from_ends(begin.clamp(first, last), end.clamp(first, last));
            held.push(HeldRange { range: range.unwrap(), has_receipts: !dice.one_in(3) });
        }
        let mut numbers: Vec<u64> = self.sealed.blocks.keys().copied().collect();
        numbers.extend(held.iter().flat_map(|held| [held.range.first(), held.range.last()]));
        let anchor = dice.pick(&numbers).filter(|_| dice.one_in(6));
        let anchor = anchor.map(|number| Anchor { number: *number, hash: self.truth[number] });
        let genesis_hash = self.truth.get(&0).copied().filter(|_| dice.one_in(6));
        Act::Import { held, told: Learned { anchor, genesis_hash } }
    }

    /// A block at or beside an end of what is held, so that ranges often touch.
    fn edge(&self, dice: &mut Dice) -> Option<u64> {
        let coverage = self.sealed.coverage();
        let range = dice.pick(&coverage).filter(|_| dice.one_in(2))?;
        let ends = [range.first().saturating_sub(1), range.first(), range.last(), range.end()];
        dice.pick(&ends).copied()
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let receipts = |has| if has { "" } else { " without receipts" };
        let blocks = |hashes: &[B256]| match (hashes.first(), hashes.last()) {
            (Some(first), Some(last)) => {
                let text = |hash| {
                    let block = get(hash, true);
                    format!("{}:{:.6}", block.header.number, hash.to_string())
                };
                format!("{} .. {}", text(*first), text(*last))
            }
            _ => "no blocks".to_owned(),
        };
        match self {
            Self::Extend { blocks: hashes, has_receipts } => {
                write!(f, "extend by {}{}", blocks(hashes), receipts(*has_receipts))
            }
            Self::Reorg { kept, blocks: hashes, has_receipts } => {
                write!(f, "keep {kept}, then {}{}", blocks(hashes), receipts(*has_receipts))
            }
            Self::Rewind { kept } => write!(f, "rewind to {kept} blocks"),
            Self::Switch { tip } => write!(f, "switch to {}", blocks(&[*tip])),
            Self::Finalize { block } => write!(f, "{} is final", block.number),
            Self::Seal { finalized, told } => write!(f, "seal to {finalized}{told}"),
            Self::SealAbove { blocks: hashes, skipped } => {
                write!(f, "seal {} without {skipped}", blocks(hashes))
            }
            Self::RewindTo { block } => write!(f, "rewind to block {}", block.number),
            Self::Import { held, told } => {
                f.write_str("import")?;
                for HeldRange { range, has_receipts } in held {
                    write!(f, " {range}{}", receipts(*has_receipts))?;
                }
                write!(f, "{told}")
            }
        }
    }
}

impl fmt::Display for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(anchor) = self.anchor {
            write!(f, ", anchored at {}", anchor.number)?;
        }
        if self.genesis_hash.is_some() {
            f.write_str(", genesis is known")?;
        }
        Ok(())
    }
}
