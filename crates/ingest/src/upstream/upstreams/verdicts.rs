//! What becomes of a node that gave what cannot be taken.
//!
//! Knows: what a lie, a lack, a later fork and a contradiction mean for what a node is asked.
//! Never knows: how they are found out; whoever proves a block tells.

use tracing::{error, warn};

use super::{MemberIndex, Upstreams};
use crate::upstream::error::FetchError;

impl Upstreams {
    /// A node told what is not true: it is named, counted and not asked for long.
    pub fn lied(&self, place: MemberIndex, said: &str) {
        if let Some(member) = self.members.get(place)
            && member.lied(said, self.rest)
        {
            error!(upstream = member.upstream.name(), said, "set aside: it told what is not true");
        }
    }

    /// A node's block cannot be rebuilt: what becomes of the node depends on why.
    pub fn blame(&self, place: MemberIndex, cause: &FetchError) {
        match cause {
            FetchError::UnknownFork { .. } => {
                self.left_known_forks(place, cause);
            }
            FetchError::Rebuild { number, fault } if !fault.is_lie() => {
                self.lacks_post_states(place, *number, &fault.to_string());
            }
            FetchError::Rebuild { .. } => self.lied(place, &cause.to_string()),
            FetchError::Ask(_)
            | FetchError::NotThere { .. }
            | FetchError::Elsewhere { .. }
            | FetchError::Moved { .. }
            | FetchError::UnservedTip { .. } => {
                if let Some(member) = self.members.get(place) {
                    member.failed(&cause.to_string(), self.rest);
                }
            }
        }
    }

    /// A node's blocks do not fit those that are held, or those of another node. Nobody knows which of
    /// both is right: it is not asked for blocks by number for long, and for all else as before.
    pub fn differs(&self, place: MemberIndex, against: Option<MemberIndex>, said: &str) {
        let Some(member) = self.members.get(place) else { return };
        if member.differs(against, said, self.rest) {
            let upstream = member.upstream.name();
            warn!(upstream, said, "not asked to fill gaps: its blocks do not fit");
        }
        if against.is_none() {
            // Whoever was doubted because of this one may be right.
            self.members.iter().for_each(|other| other.fits_without(place));
        }
    }

    /// A node contradicts a block that is final here and that those have whose word counts for more. It
    /// proved no lie, but its word is of no use: it is not asked for long.
    pub fn outvoted(&self, place: MemberIndex, said: &str) {
        if let Some(member) = self.members.get(place).filter(|member| !member.is_set_aside()) {
            member.set_aside(said, self.rest);
            let upstream = member.upstream.name();
            error!(upstream, said, "set aside: it contradicts what is final here and elsewhere");
        }
    }

    /// A node gave a block of a fork that this build does not know, which is no lie: it is named once
    /// and asked for other blocks. Tells what is to be said of it.
    pub fn left_known_forks(&self, place: MemberIndex, cause: &FetchError) -> String {
        let said = format!("upstream {}: {cause}", self.name(place));
        if let FetchError::UnknownFork { number, hash, .. } = cause
            && let Some(member) = self.members.get(place)
            && member.left_known_forks(*number, *hash, &said)
        {
            warn!(said, "not followed there; upgrade Quipu");
        }
        said
    }

    /// A node cannot give a block whole, though it does not lie: it has no root that receipts before
    /// Byzantium commit to. It is not asked for such blocks for long, and for all others as before.
    pub fn lacks_post_states(&self, place: MemberIndex, number: u64, said: &str) {
        let last = self.pre_byzantium.unwrap_or(number).max(number);
        if let Some(member) = self.members.get(place)
            && member.lacks_blocks(last, said, self.rest)
        {
            let name = member.upstream.name();
            warn!(upstream = name, said, last, "not asked for blocks up to the last of these");
        }
    }
}
