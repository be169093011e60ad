//! Standing still: what cannot be followed now is not fetched again and again.

use std::time::Duration;

use alloy_primitives::B256;
use node::{BlockTag, UpstreamsError};
use store::StoreError;
use store::head::HeadError;
use tokio::time::Instant;
use tracing::warn;

use super::{FinalityConflict, FollowError, Follower};

/// After so long the whole way is tried again: a node may offer raw headers by then.
const RETRY_EVERY: Duration = Duration::from_mins(1);

/// Why nothing is fetched.
#[derive(Debug)]
pub(super) struct Standstill {
    cause: StandstillCause,
    retry_at: Option<Instant>,
}

#[derive(Debug)]
enum StandstillCause {
    /// This block is of a fork that this build does not know.
    UnknownBlock { number: u64, hash: B256, error: UpstreamsError },
    /// The branch of this block leaves our chain too far below.
    DeepBranch { number: u64, hash: B256, claims_max: u64 },
    /// What is final here is another block there.
    Conflict(FinalityConflict),
    /// The head was full when it had so many bytes.
    FullHead { head_bytes: u64, wanted_bytes: u64, bytes_max: u64 },
}

impl Follower {
    /// Remembers a block that following cannot go past, or not reach.
    pub(super) fn stand_below(&mut self, number: u64, hash: B256, error: &FollowError) {
        if let FollowError::Upstreams(error) = error {
            // Another node may give it as soon as it has it.
            if matches!(error, UpstreamsError::UnknownFork { is_settled: false, .. }) {
                return;
            }
            let error = error.clone();
            self.stand_still(StandstillCause::UnknownBlock { number, hash, error });
        } else if let FollowError::TooDeep { claims_max, .. } = *error {
            self.stand_still(StandstillCause::DeepBranch { number, hash, claims_max });
        }
    }

    fn stand_still(&mut self, cause: StandstillCause) {
        let retry_at = Instant::now().checked_add(RETRY_EVERY);
        self.standstill = Some(Standstill { cause, retry_at });
    }

    /// An error if what stopped following is as it was: then nothing is fetched in vain.
    pub(super) async fn check_standstill(&mut self) -> Result<(), FollowError> {
        let Some(Standstill { cause, retry_at }) = &self.standstill else { return Ok(()) };
        if retry_at.is_some_and(|time| time <= Instant::now()) {
            self.standstill = None;
            return Ok(());
        }
        match cause {
            StandstillCause::UnknownBlock { number, hash, error } => {
                let error = error.clone();
                if self.is_at(*number, *hash).await? {
                    // Blocks below it become final all the same.
                    self.refresh_finality(false).await?;
                    return Err(error.into());
                }
            }
            StandstillCause::DeepBranch { number, hash, claims_max } => {
                let (number, claims_max) = (*number, *claims_max);
                if self.is_at(number, *hash).await? {
                    return Err(FollowError::TooDeep { number, claims_max });
                }
            }
            StandstillCause::Conflict(conflict) => {
                let conflict = *conflict;
                if self.is_at(conflict.number, conflict.theirs).await? {
                    return Err(FollowError::Conflict(conflict));
                }
            }
            StandstillCause::FullHead { head_bytes, wanted_bytes, bytes_max } => {
                let (head_bytes, bytes, bytes_max) = (*head_bytes, *wanted_bytes, *bytes_max);
                self.refresh_finality(true).await?;
                if self.writer.head_bytes() >= head_bytes {
                    return Err(StoreError::Head(HeadError::Full { bytes, bytes_max }).into());
                }
            }
        }
        self.standstill = None;
        Ok(())
    }

    /// Whether the nodes still have this block in its place.
    async fn is_at(&self, number: u64, hash: B256) -> Result<bool, FollowError> {
        let claim = self.upstreams.fetch_agreed(BlockTag::Number(number)).await?;
        Ok(claim.is_some_and(|claim| claim.hash == hash))
    }

    /// Remembers a head that is full, or where a conflict lies, and leaves or removes the notice for
    /// other processes.
    pub(super) fn note_outcome(&mut self, error: Option<&FollowError>) {
        if let Some((wanted_bytes, bytes_max)) = error.and_then(FollowError::full_head)
            && self.standstill.is_none()
        {
            let head_bytes = self.writer.head_bytes();
            self.stand_still(StandstillCause::FullHead { head_bytes, wanted_bytes, bytes_max });
        }
        if let Some(FollowError::Conflict(conflict)) = error
            && self.standstill.is_none()
        {
            self.stand_still(StandstillCause::Conflict(*conflict));
        }
        let notice = match error {
            Some(error) if error.is_lasting() => Some(error.to_string()),
            // What failed and may pass says nothing about what stood before.
            Some(_) => return,
            None => None,
        };
        if notice == self.notice {
            return;
        }
        match self.writer.set_notice(notice.as_deref()) {
            Ok(()) => (self.notice, self.notice_error) = (notice, None),
            Err(error) => {
                // Once: it is tried again with every step.
                let said = Some(error.to_string());
                if self.notice_error != said {
                    warn!(%error, "the notice in the data folder cannot be changed");
                    self.notice_error = said;
                }
            }
        }
    }
}
