//! What becomes of a node that gave what cannot be taken.
//!
//! Knows: what a lie, a lack, a later fork and a contradiction mean for what a node is asked.
//! Never knows: how they are found out; whoever proves a block tells.

use tracing::{error, warn};

use super::{MemberIndex, Upstreams};
use crate::error::FetchError;

impl Upstreams {
    /// A node told what is not true: it is named, counted and not asked for long.
    pub fn lied(&self, member_index: MemberIndex, said: &str) {
        if let Some(member) = self.members.get(member_index)
            && member.lied(said, self.rest)
        {
            error!(
                upstream = member.upstream.name(),
                said, "the node is set aside: it told what is not true"
            );
        }
    }

    /// A node's block cannot be rebuilt: what becomes of the node depends on why.
    pub fn blame(&self, member_index: MemberIndex, cause: &FetchError) {
        match cause {
            FetchError::UnknownFork { .. } => {
                self.left_known_forks(member_index, cause);
            }
            FetchError::Rebuild { number, fault } if !fault.is_lie() => {
                self.lacks_post_states(member_index, *number, &fault.to_string());
            }
            FetchError::Rebuild { .. } => self.lied(member_index, &cause.to_string()),
            FetchError::Ask(_)
            | FetchError::NotThere { .. }
            | FetchError::Elsewhere { .. }
            | FetchError::Moved { .. }
            | FetchError::UnservedTip { .. } => {
                if let Some(member) = self.members.get(member_index) {
                    member.failed(&cause.to_string(), self.rest);
                }
            }
        }
    }

    /// A node's blocks do not fit those that are held, or those of another node. Nobody knows which of
    /// both is right: it is not asked for blocks by number for long, and for all else as before.
    pub fn differs(&self, member_index: MemberIndex, against: Option<MemberIndex>, said: &str) {
        let Some(member) = self.members.get(member_index) else { return };
        if member.differs(against, said, self.rest) {
            let upstream = member.upstream.name();
            warn!(upstream, said, "the node is not asked to fill gaps: its blocks do not fit");
        }
        if against.is_none() {
            // Whoever was doubted because of this one may be right.
            self.members.iter().for_each(|other| other.fits_without(member_index));
        }
    }

    /// A node contradicts a block that is final here and that those have whose word counts for more. It
    /// proved no lie, but its word is of no use: it is not asked for long.
    pub fn outvoted(&self, member_index: MemberIndex, said: &str) {
        if let Some(member) = self.members.get(member_index).filter(|member| !member.is_set_aside())
        {
            member.set_aside(said, self.rest);
            let upstream = member.upstream.name();
            error!(
                upstream,
                said, "the node is set aside: it contradicts what is final here and elsewhere"
            );
        }
    }

    /// A node gave a block of a fork that this build does not know, which is no lie: it is named once
    /// and asked for other blocks. Tells what is to be said of it.
    pub fn left_known_forks(&self, member_index: MemberIndex, cause: &FetchError) -> String {
        let said = format!("upstream {}: {cause}", self.name(member_index));
        if let FetchError::UnknownFork { number, hash, .. } = cause
            && let Some(member) = self.members.get(member_index)
            && member.left_known_forks(*number, *hash, &said)
        {
            warn!(
                said,
                "the node is not followed past a fork that this build does not know: upgrade Quipu"
            );
        }
        said
    }

    /// A node cannot give a block whole, though it does not lie: it has no root that receipts before
    /// Byzantium commit to. It is not asked for such blocks for long, and for all others as before.
    pub fn lacks_post_states(&self, member_index: MemberIndex, number: u64, said: &str) {
        let last = self.pre_byzantium.unwrap_or(number).max(number);
        if let Some(member) = self.members.get(member_index)
            && member.lacks_blocks(last, said, self.rest)
        {
            let name = member.upstream.name();
            warn!(
                upstream = name,
                said, last, "the node is not asked for blocks up to the last of these"
            );
        }
    }
}
