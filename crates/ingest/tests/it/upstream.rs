//! Upstream nodes: asked, followed, and not believed.

mod backfill;
mod chains;
mod faults;
mod follow;
mod followed;
mod future;
mod memory;
mod merge;
mod node;
mod rules;
mod script;
mod told;
mod unsealed;
