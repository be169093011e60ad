//! The headers of a branch, held against their parents'.
//!
//! Knows: that blocks which were proven one by one are one chain only if each header follows from the
//! one before it, and who is to blame where one does not.
//! Never knows: the rules; `chain` does.
//!
//! A branch is proven over all cores, each block by itself: what a header must have of its parent's
//! (timestamp, gas limit, base fee, excess blob gas) is checked here, before any of it is shown.

use alloy_primitives::B256;
use chain::{Block, Fault, Mismatch, StepFields, Verified, check_step, decode_header};
use store::read::block_on;
use store::{Reader, StoreError};

use super::{FollowError, Follower, Place};

impl Follower {
    /// Holds blocks, each the child of the one before, against their parents, the first against the
    /// block at `fork_point` if that is held. `sender_of` tells which node sent a block.
    pub(super) fn check_headers(
        &self,
        fork_point: Place,
        blocks: &[Verified<Block>],
        sender_of: impl Fn(&B256) -> Option<usize>,
    ) -> Result<(), FollowError> {
        let mut parent = self.step_fields(fork_point)?;
        for block in blocks {
            let fields = StepFields::of(&block.header, &block.header_rlp);
            let checked = parent.map_or(Ok(()), |parent| check_step(&self.spec, &parent, &fields));
            parent = Some(fields);
            let Err(fault) = checked else { continue };
            let may_be_later_fork = fault.may_be_later_fork();
            let sender = sender_of(&block.hash).unwrap_or_default();
            let name = self.upstreams.name(sender).to_owned();
            let (number, fault) = (block.header.number, Box::new(Fault::Rule(fault)));
            let error = FollowError::False { name, mismatch: Mismatch { number, fault } };
            // An honest node shows the same after a fork that this build does not know.
            if may_be_later_fork {
                self.upstreams.unable(sender, &error.to_string());
            } else {
                self.upstreams.lied(sender, &error.to_string());
            }
            return Err(error);
        }
        Ok(())
    }

    /// The header of a block of ours, as far as rules need it; `None` if only its hash is known.
    fn step_fields(&self, (number, hash): Place) -> Result<Option<StepFields>, StoreError> {
        let view = self.writer.view();
        if let Some(held) = view.head().find_block_by_hash(&hash) {
            let block = held.block();
            return Ok(Some(StepFields::of(&block.header, &block.header_rlp)));
        }
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let held = block_on(view.read_header(&mut reader, number))?;
        let held = held.filter(|held| held.hash == hash);
        Ok(held.and_then(|held| {
            let header = decode_header(&held.rlp).ok()?;
            Some(StepFields::of(&header, &held.rlp))
        }))
    }
}
