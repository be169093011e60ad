//! What transactions are used for.

/// A use of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// Ether to a wallet, without calldata or logs.
    Payment,
    TokenTransfer,
    TokenApproval,
    NftTransfer,
    Swap,
    /// A contract that does several things at once.
    Bundle,
    /// A call whose logs have few topics or none.
    Notice,
    Creation,
    /// A rollup's batch: large and already compressed.
    Batch,
}
