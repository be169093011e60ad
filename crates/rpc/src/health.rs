//! How the part that brings blocks is doing, as far as clients and supervisors are told.

use std::fmt;

/// The part that brings new blocks; whoever wires the server has one if it follows a node.
pub trait Health: fmt::Debug + Send + Sync {
    /// Why what is configured cannot be answered now, in words for an operator; none if it can.
    fn troubles(&self) -> Vec<String>;

    /// How far there is to go, while the tip is not yet reached.
    fn catching_up(&self) -> Option<CatchingUp>;

    /// Where the node that is followed contradicts what is final here, in words; none if it does not.
    /// Nothing is passed to a node meanwhile: its answers would be of another chain.
    fn conflict(&self) -> Option<String> {
        None
    }
}

/// The way from where catching up began to the tip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatchingUp {
    /// The newest block that was held when it began.
    pub starting: u64,
    /// The newest block that anyone is known to have.
    pub highest: u64,
}
