//! What a manifest records of the head, so that a log that was removed or cut is not taken for none.

use crate::block_id::BlockId;

/// There is a head's log. It is written before the manifest that records it, and a manifest that
/// asks less of the log is written before the log loses anything: so whatever a crash leaves, the log
/// has what the manifest asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadRecord {
    /// A final block that the log holds, or the block on which it stands; `None` if its first block is
    /// genesis and none is final.
    pub block: Option<BlockId>,
}
