//! Blocks that nodes sent, proven one by one over all cores.

use std::ops::ControlFlow;

use chain::{Block, Start, Verified, Verifier};
use node::{HeaderClaim, NodeBlock, UpstreamsError};
use pool::map_in_order;

use super::{FollowError, Follower};
use crate::stop::is_stopped;

impl Follower {
    /// Proves blocks whose hashes and parents are known beforehand, over all cores.
    pub(super) fn prove(
        &self,
        fetched: Vec<(usize, NodeBlock, HeaderClaim)>,
    ) -> Result<Vec<Verified<Block>>, FollowError> {
        let mut proven = Vec::with_capacity(fetched.len());
        let prove_one = |(member_index, block, claim): (usize, NodeBlock, HeaderClaim)| {
            let name = || self.upstreams.name(member_index).to_owned();
            let refused = |error: FollowError| (member_index, Box::new(error));
            let candidate = block
                .rebuild(&self.spec)
                .map_err(|cause| refused(FollowError::Fetch { name: name(), cause }))?;
            let start = match claim.number.checked_sub(1) {
                Some(number) => Start::After { number, hash: claim.parent_hash },
                None => Start::At(0),
            };
            let verified = Verifier::new(&self.spec, &self.anchors, start).verify(candidate);
            verified.map_err(|mismatch| {
                refused(match block.unknown_fork_of(&mismatch) {
                    Some(cause) => FollowError::Fetch { name: name(), cause },
                    None => FollowError::False { name: name(), mismatch },
                })
            })
        };
        let outcome =
            map_in_order(
                self.settings.threads,
                fetched.into_iter(),
                prove_one,
                |done| match done {
                    // What was asked for by nobody any more need not be proven.
                    _ if is_stopped(self.stop.as_ref()) => ControlFlow::Break(None),
                    Ok(block) => {
                        proven.push(block);
                        ControlFlow::Continue(())
                    }
                    Err(refused) => ControlFlow::Break(Some(refused)),
                },
            );
        match outcome {
            ControlFlow::Continue(()) => Ok(proven),
            ControlFlow::Break(None) => Err(UpstreamsError::Stopped.into()),
            ControlFlow::Break(Some((member_index, error))) => {
                self.blame(member_index, &error);
                Err(*error)
            }
        }
    }

    /// Notes an error against the node that it came from, where it says something of that node.
    pub(super) fn blame(&self, member_index: usize, error: &FollowError) {
        match error {
            FollowError::Fetch { cause, .. } => self.upstreams.blame(member_index, cause),
            FollowError::False { .. } => {
                self.upstreams.quarantine(member_index, &error.to_string());
            }
            FollowError::Upstreams(_)
            | FollowError::Store(_)
            | FollowError::Moved { .. }
            | FollowError::Below { .. }
            | FollowError::TooDeep { .. }
            | FollowError::Conflict(_) => {}
        }
    }
}
