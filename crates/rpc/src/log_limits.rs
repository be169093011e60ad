//! Limits of answers with logs: of `eth_getLogs`, and of polls of filters.

/// How much one answer may be, unless it is of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Logs.
    pub count_max: usize,
    /// Bytes of the result: clients refuse long answers, viem those of more than 10 MiB.
    pub bytes_max: usize,
    /// Blocks that are read because no index tells of them.
    pub unindexed_blocks_max: u64,
    /// Bytes of blocks that are read, whether they have such logs or not.
    pub read_bytes_max: u64,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            count_max: 50_000,
            bytes_max: 10_000_000,
            unindexed_blocks_max: 10_000,
            read_bytes_max: 512 << 20,
        }
    }
}
