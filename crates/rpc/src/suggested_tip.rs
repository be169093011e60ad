//! The priority fee that was last suggested, so that it is worked out once a block.

use std::sync::{Mutex, PoisonError};

use alloy_primitives::B256;

/// The last suggested tip, and the block that was the newest then.
#[derive(Debug, Default)]
pub(crate) struct SuggestedTip(Mutex<Option<(B256, u128)>>);

impl SuggestedTip {
    pub(crate) fn find(&self, tip: B256) -> Option<u128> {
        let kept = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.filter(|(block, _)| *block == tip).map(|(_, price)| price)
    }

    pub(crate) fn keep(&self, tip: B256, price: u128) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((tip, price));
    }
}
