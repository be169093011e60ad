//! Upstream nodes: asked, followed, and not believed.

mod backfill;
mod chains;
mod faults;
mod node;
mod told;
