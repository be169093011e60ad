//! Which build this is.

/// The version with the commit, as `quipu --version` tells it.
pub(crate) const VERSION: &str = env!("BUILT_VERSION");

/// The day of the commit, as in 2026-11-18; empty where it is not known.
pub(crate) const COMMIT_DATE: &str = env!("BUILT_DATE");
