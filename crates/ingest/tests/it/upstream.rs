//! Upstream nodes: asked, followed, and not believed.

mod backfill;
mod decider;
mod follow;
mod future;
mod memory;
mod merge;
mod quorum;
mod rules;
mod script;
mod unsealed;
