//! Absent or not held: what it means that a block or a transaction is not found here.

use chain::BlockRange;

/// What an unknown hash gets where it may exist and not be held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownHash {
    /// Refused where nothing is followed, null where a tip is: wallets poll for what is not mined.
    #[default]
    ByFollowing,
    /// Always null.
    Null,
    /// Always refused.
    Refuse,
}

/// What the store knows of the chain beyond the blocks that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Horizon {
    pub(crate) history: HeldHistory,
    /// A node tells of new blocks.
    pub(crate) is_following: bool,
    /// The chain is one of the public networks, which go on whether or not anybody tells us.
    pub(crate) is_built_in: bool,
}

/// How much of the blocks up to the tip is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldHistory {
    /// No block.
    Nothing,
    /// Some, but not every one from genesis on.
    Parts,
    /// Every one from genesis on.
    Whole,
}

impl HeldHistory {
    /// Of these ranges, lowest first. Others may have been held and be lost.
    pub(crate) fn of(held: &[BlockRange], has_lost: bool) -> Self {
        match held {
            _ if has_lost => Self::Parts,
            [] => Self::Nothing,
            [range] if range.first() == 0 => Self::Whole,
            [..] => Self::Parts,
        }
    }
}

/// What becomes of something that is not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// It does not exist: null.
    Absent,
    /// It may exist, and is not held: 4444.
    NotHeld,
}

impl Horizon {
    /// A block above the tip. Where a node is followed it does not exist yet; a public network that
    /// nobody tells us of has gone on; of any other chain the tip is all there is.
    pub(crate) fn above_tip(self) -> Absence {
        if self.has_gone_on() { Absence::NotHeld } else { Absence::Absent }
    }

    /// Whether a hash that is not found here may be a node's to know.
    pub(crate) fn may_be_elsewhere(self) -> bool {
        self.history != HeldHistory::Whole || self.has_gone_on()
    }

    /// A hash that is not found. Wallets poll for receipts of what is not mined yet and give up at
    /// any error, so whoever follows a tip says null in spite of gaps.
    pub(crate) fn unknown_hash(self, wanted: UnknownHash) -> Absence {
        let is_refused = match wanted {
            UnknownHash::Null => false,
            UnknownHash::Refuse => self.may_be_elsewhere(),
            UnknownHash::ByFollowing if self.is_following => false,
            UnknownHash::ByFollowing => self.has_gone_on() || self.history == HeldHistory::Parts,
        };
        if is_refused { Absence::NotHeld } else { Absence::Absent }
    }

    fn has_gone_on(self) -> bool {
        self.is_built_in && !self.is_following
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers for a store: above the tip, and for unknown hashes by default, with
    /// `--unknown-hash null` and with `--unknown-hash refuse`.
    fn check(horizon: Horizon, expected: [Absence; 4]) {
        let by = |wanted| horizon.unknown_hash(wanted);
        let found = [
            horizon.above_tip(),
            by(UnknownHash::ByFollowing),
            by(UnknownHash::Null),
            by(UnknownHash::Refuse),
        ];
        assert_eq!(found, expected, "{horizon:?}");
    }

    #[test]
    fn a_public_network_that_nobody_follows_has_gone_on_and_other_chains_end_at_their_tip() {
        use Absence::{Absent, NotHeld};
        let store = |is_built_in, is_following, is_whole| {
            let history = if is_whole { HeldHistory::Whole } else { HeldHistory::Parts };
            Horizon { history, is_following, is_built_in }
        };
        // Built in, following, whole.
        check(store(true, false, true), [NotHeld, NotHeld, Absent, NotHeld]);
        check(store(true, false, false), [NotHeld, NotHeld, Absent, NotHeld]);
        check(store(true, true, true), [Absent, Absent, Absent, Absent]);
        check(store(true, true, false), [Absent, Absent, Absent, NotHeld]);
        check(store(false, false, true), [Absent, Absent, Absent, Absent]);
        check(store(false, false, false), [Absent, NotHeld, Absent, NotHeld]);
        check(store(false, true, true), [Absent, Absent, Absent, Absent]);
        check(store(false, true, false), [Absent, Absent, Absent, NotHeld]);
    }

    #[test]
    fn history_is_whole_from_genesis_on_without_a_gap() {
        let ranges = |ends: &[(u64, u64)]| {
            let range = |it: &(u64, u64)| BlockRange::from_ends(it.0, it.1).unwrap();
            HeldHistory::of(&ends.iter().map(range).collect::<Vec<_>>(), false)
        };
        assert_eq!(ranges(&[]), HeldHistory::Nothing);
        assert_eq!(ranges(&[(0, 9)]), HeldHistory::Whole);
        assert_eq!(ranges(&[(1, 9)]), HeldHistory::Parts);
        assert_eq!(ranges(&[(0, 9), (11, 12)]), HeldHistory::Parts);
        assert_eq!(HeldHistory::of(&[], true), HeldHistory::Parts);
        assert_eq!(
            HeldHistory::of(&[BlockRange::from_ends(0, 9).unwrap()], true),
            HeldHistory::Parts
        );
    }

    #[test]
    fn an_empty_store_knows_of_nothing_but_the_network_that_it_is_of() {
        use Absence::{Absent, NotHeld};
        let empty = |is_built_in, is_following| Horizon {
            history: HeldHistory::Nothing,
            is_following,
            is_built_in,
        };
        check(empty(false, false), [Absent, Absent, Absent, NotHeld]);
        check(empty(true, true), [Absent, Absent, Absent, NotHeld]);
        check(empty(true, false), [NotHeld, NotHeld, Absent, NotHeld]);
    }
}
