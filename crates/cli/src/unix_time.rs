//! Unix time, for metrics.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time, since 1970.
#[expect(clippy::disallowed_methods, reason = "metrics tell times of the clock on the wall")]
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
