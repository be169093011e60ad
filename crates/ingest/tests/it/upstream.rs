//! Upstream nodes: asked, followed, and not believed.

mod backfill;
mod chains;
mod decider;
mod faults;
mod follow;
mod followed;
mod future;
mod memory;
mod merge;
mod node;
mod quorum;
mod rules;
mod script;
mod told;
mod unsealed;
