//! How much memory and how many descriptors a store may take.

/// How much a store may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory for the directories and tables of segments that were read lately.
    pub tail_bytes_max: u64,
    /// Segments that are open at once, each with a descriptor. Readers may hold a few more for as long as
    /// they read.
    pub open_segments_max: usize,
    /// Memory for lookup runs that fit it as a whole; first come, first kept.
    pub run_bytes_max: u64,
}

impl Limits {
    /// No more than what one read needs.
    pub(crate) const NONE: Self =
        Self { tail_bytes_max: 0, open_segments_max: 1, run_bytes_max: 0 };
}

impl Default for Limits {
    fn default() -> Self {
        Self { tail_bytes_max: 256 << 20, open_segments_max: 512, run_bytes_max: 32 << 20 }
    }
}
