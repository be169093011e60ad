//! The headers of a branch, held against their parents'.
//!
//! A branch is proven over all cores, each block by itself: what a header must have of its parent's
//! (timestamp, gas limit, base fee, excess blob gas) is checked here, before any of it is shown.

use alloy_primitives::B256;
use chain::{Block, BlockNumber, Fault, Mismatch, StepFields, Verified, check_step, decode_header};
use node::FetchError;
use store::read::block_on;
use store::{Reader, StoreError};

use super::{FollowError, Follower};

impl Follower {
    /// Holds blocks, lowest first, against their parents, where those are held or among them.
    /// `senders` are the nodes that sent them.
    pub(super) fn check_headers(
        &self,
        blocks: &[Verified<Block>],
        senders: &[usize],
    ) -> Result<(), FollowError> {
        let mut before: Option<(B256, StepFields)> = None;
        for (block, sender) in blocks.iter().zip(senders) {
            let fields = StepFields::of(&block.header, &block.header_rlp);
            let parent = match before.filter(|(hash, _)| *hash == block.header.parent_hash) {
                Some((_, parent)) => Some(parent),
                None => self.parent_fields(block)?,
            };
            before = Some((block.hash, fields));
            let checked = parent.map_or(Ok(()), |parent| check_step(&self.spec, &parent, &fields));
            let Err(fault) = checked else { continue };
            let name = self.upstreams.name(*sender).to_owned();
            let number = block.header.number;
            let error = if fault.may_be_later_fork() {
                // An honest node shows the same after a fork that this build does not know.
                let (hash, reason) = (Some(block.hash), fault.to_string());
                FollowError::Fetch { name, cause: FetchError::UnknownFork { number, hash, reason } }
            } else {
                let fault = Box::new(Fault::Rule(fault));
                FollowError::False { name, mismatch: Mismatch { number, fault } }
            };
            self.blame(*sender, &error);
            return Err(error);
        }
        Ok(())
    }

    /// The header of a block's parent, as far as rules need it; `None` if only its hash is known.
    fn parent_fields(&self, block: &Block) -> Result<Option<StepFields>, StoreError> {
        let hash = block.header.parent_hash;
        if let Some(known) = self.writer.find_known(&hash) {
            let parent = known.block();
            return Ok(Some(StepFields::of(&parent.header, &parent.header_rlp)));
        }
        let Some(number) = block.header.number.checked_sub(1) else { return Ok(None) };
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let held = block_on(self.writer.view().read_header(&mut reader, BlockNumber(number)))?;
        let held = held.filter(|held| held.hash == hash);
        Ok(held.and_then(|held| {
            let header = decode_header(&held.rlp).ok()?;
            Some(StepFields::of(&header, &held.rlp))
        }))
    }
}
