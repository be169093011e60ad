//! Consequences of responses that cannot be used.

use std::time::Duration;

use super::member::ExcludedBlocks;
use super::{MemberIndex, Upstreams};
use crate::error::FetchError;

/// A node is not asked again this long for a block of an unknown fork. It may offer raw headers by then.
const UNKNOWN_FORK_REST: Duration = Duration::from_mins(1);

impl Upstreams {
    /// A node gave an invalid response: it is quarantined.
    pub fn quarantine(&self, member_index: MemberIndex, reason: &str) {
        if let Some(member) = self.members.get(member_index) {
            member.quarantine(reason, true, self.rest);
        }
    }

    /// A node contradicts a block that is final here and according to nodes whose word counts for
    /// more. Nothing proves it wrong, but it is of no use: it is quarantined.
    pub fn outvoted(&self, member_index: MemberIndex, reason: &str) {
        if let Some(member) = self.members.get(member_index) {
            member.quarantine(reason, false, self.rest);
        }
    }

    /// A block of a node cannot be rebuilt: the consequence depends on why.
    pub fn blame(&self, member_index: MemberIndex, cause: &FetchError) {
        let Some(member) = self.members.get(member_index) else { return };
        match cause {
            FetchError::UnknownFork { .. } => drop(self.left_known_forks(member_index, cause)),
            FetchError::NoPostState { number, .. } => {
                let last = self.pre_byzantium.unwrap_or(*number).max(*number);
                let blocks = ExcludedBlocks::UpTo(last);
                member.exclude(blocks, &cause.to_string(), self.rest.quarantine);
            }
            FetchError::Invalid { .. } => self.quarantine(member_index, &cause.to_string()),
            FetchError::Ask(_) | FetchError::NotThere { .. } | FetchError::Elsewhere { .. } => {
                member.failed(&cause.to_string(), self.rest);
            }
        }
    }

    /// Blocks of a node do not fit those of the data folder, or of another node, and nothing says which
    /// are right: it is not asked for blocks by number for long.
    pub fn differs(&self, member_index: MemberIndex, against: Option<MemberIndex>, reason: &str) {
        let Some(member) = self.members.get(member_index) else { return };
        member.exclude(ExcludedBlocks::ByNumber { against }, reason, self.rest.quarantine);
        if against.is_none() {
            // Nodes that were excluded because of this one may be right.
            self.members.iter().for_each(|other| other.fits_without(member_index));
        }
    }

    /// A node gave a block of an unknown fork, which is valid for all that is known: it is asked for other
    /// blocks. Returns the reason.
    pub(super) fn left_known_forks(&self, member_index: MemberIndex, cause: &FetchError) -> String {
        let reason = format!("upstream {}: {cause}", self.name(member_index));
        if let FetchError::UnknownFork { number, hash, .. } = *cause
            && let Some(member) = self.members.get(member_index)
        {
            let blocks = ExcludedBlocks::UnknownFork { number, hash };
            member.exclude(blocks, &reason, UNKNOWN_FORK_REST);
        }
        reason
    }
}
