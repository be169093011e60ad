//! Nodes that tests ask and follow, and the chains that these have.

pub(crate) mod chains;
pub(crate) mod faults;
pub(crate) mod fill;
pub(crate) mod followed;
pub(crate) mod node;
pub(crate) mod told;
