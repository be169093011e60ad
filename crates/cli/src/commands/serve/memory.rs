//! Memory that the allocator holds, given back to the system.
//!
//! Knows: which buffers have pages of their own, and when the heap is worth looking through.
//! Never knows: what the memory was for.
//!
//! glibc raises the size from which a buffer has pages of its own whenever such a buffer is freed,
//! up to 32 MiB. Long answers then grow in the heap and leave holes there: five rounds of 60 clients
//! that asked for long answers and took none left 262 MiB behind and reached 461 MiB, with a budget
//! of 256 MiB. Without that they leave what there was before.

use std::sync::Arc;
use std::time::Duration;

use rpc::Budget;

/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Bytes under way after which the heap is looked through, once most of them are gone.
const PEAK_BYTES_MIN: usize = 32 << 20;

/// Lets long buffers have pages of their own, and gives back what the heap keeps after many bytes were
/// under way.
pub(super) async fn give_back_after_peaks(budget: Arc<Budget>) {
    allocator::set_thresholds();
    let mut peak = 0;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        peak = budget.take_peak().max(peak);
        if peak >= PEAK_BYTES_MIN && budget.bytes() < peak / 8 {
            peak = 0;
            tokio::task::block_in_place(allocator::trim);
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator {
    /// From here on a buffer has pages of its own: what the system does for that is little beside
    /// filling it.
    const OWN_PAGES_BYTES_MIN: libc::c_int = 4 << 20;
    /// Free bytes at the end of a heap that stay for the next answers.
    const SPARE_BYTES_MAX: libc::c_int = 8 << 20;

    pub(super) fn set_thresholds() {
        for (name, value) in [
            (libc::M_MMAP_THRESHOLD, OWN_PAGES_BYTES_MIN),
            (libc::M_TRIM_THRESHOLD, SPARE_BYTES_MAX),
        ] {
            #[expect(unsafe_code, reason = "the allocator's own function has no safe one")]
            // SAFETY: it sets a number of the allocator under the allocator's lock.
            let _ = unsafe { libc::mallopt(name, value) };
        }
    }

    pub(super) fn trim() {
        #[expect(unsafe_code, reason = "the allocator's own function has no safe one")]
        // SAFETY: it gives back free pages under the allocator's locks; nothing that is used moves.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod allocator {
    pub(super) fn set_thresholds() {}

    pub(super) fn trim() {}
}
