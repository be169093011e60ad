//! Memory that the allocator holds, given back to the system.
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
/// Growth of the heap from which on it is looked through, unless what is under way explains it.
const GROWTH_BYTES_MIN: usize = 8 << 20;
/// The longest pause before it is looked through once more: clients that take nothing are gone by
/// then.
const PAUSE_MAX: Duration = Duration::from_secs(128);

/// Lets long buffers have pages of their own, and gives back what the heap keeps when the bytes that
/// it was needed for are gone.
pub(super) async fn give_back_free_pages(budget: Arc<Budget>) {
    allocator::set_thresholds();
    let Some(heap_bytes) = allocator::heap_bytes() else { return };
    let mut schedule = TrimSchedule::new(heap_bytes);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(heap_bytes) = allocator::heap_bytes() else { return };
        if schedule.is_due(heap_bytes, budget.bytes()) {
            tokio::task::block_in_place(allocator::trim);
            schedule.reset(allocator::heap_bytes().unwrap_or(heap_bytes));
        }
    }
}

/// When the heap is looked through: after it has grown, and then again each time after twice as long,
/// because some of what was used the first time is free later, and nothing tells when.
#[derive(Debug)]
struct TrimSchedule {
    /// The least that the heap had since it was last looked through.
    heap_bytes_least: usize,
    since: Duration,
    pause: Duration,
}

impl TrimSchedule {
    fn new(heap_bytes: usize) -> Self {
        Self { heap_bytes_least: heap_bytes, since: Duration::ZERO, pause: PAUSE_MAX * 2 }
    }

    /// Whether the heap is to be looked through; asked every [`LOOK_EVERY`].
    fn is_due(&mut self, heap_bytes: usize, bytes_under_way: usize) -> bool {
        self.heap_bytes_least = self.heap_bytes_least.min(heap_bytes);
        self.since = self.since.saturating_add(LOOK_EVERY);
        let growth = heap_bytes.saturating_sub(self.heap_bytes_least);
        // While much is under way, the heap is needed as it is.
        if growth >= GROWTH_BYTES_MIN && bytes_under_way < growth / 8 {
            self.pause = LOOK_EVERY;
            return true;
        }
        self.pause <= PAUSE_MAX && self.since >= self.pause
    }

    /// It was looked through, and has so many bytes now.
    fn reset(&mut self, heap_bytes: usize) {
        *self = Self {
            heap_bytes_least: heap_bytes,
            since: Duration::ZERO,
            pause: self.pause.saturating_mul(2),
        };
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator {
    /// From here on a buffer has pages of its own: what the system does for that is little beside
    /// filling it.
    const OWN_PAGES_BYTES_MIN: libc::c_int = 4 << 20;
    /// Free bytes at the end of a heap that stay for the next answers; from twice as many on the rest
    /// is given back. Nearly every thread has a heap, and only a free at its end does that.
    const SPARE_BYTES_MAX: libc::c_int = 1 << 20;

    pub(super) fn set_thresholds() {
        for (name, value) in [
            (libc::M_MMAP_THRESHOLD, OWN_PAGES_BYTES_MIN),
            (libc::M_TRIM_THRESHOLD, SPARE_BYTES_MAX),
            // So much is left when the end is cut, or the next answer would ask for it page by page.
            (libc::M_TOP_PAD, SPARE_BYTES_MAX),
        ] {
            #[expect(unsafe_code, reason = "the allocator's own function has no safe one")]
            // SAFETY: it sets a number of the allocator under the allocator's lock.
            let _ = unsafe { libc::mallopt(name, value) };
        }
    }

    /// Memory of this process that is no file's.
    pub(super) fn heap_bytes() -> Option<usize> {
        let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
        let mut pages = pages.split(' ').map(|count| count.parse::<usize>().ok());
        let (resident, of_files) = (pages.nth(1)??, pages.next()??);
        resident.checked_sub(of_files)?.checked_mul(rustix::param::page_size())
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

    pub(super) fn heap_bytes() -> Option<usize> {
        None
    }

    pub(super) fn trim() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_is_looked_through_after_growth_that_nothing_explains() {
        let mut schedule = TrimSchedule::new(GROWTH_BYTES_MIN);
        assert!(!schedule.is_due(2 * GROWTH_BYTES_MIN - 1, 0));
        assert!(!schedule.is_due(2 * GROWTH_BYTES_MIN, GROWTH_BYTES_MIN / 8));
        assert!(schedule.is_due(2 * GROWTH_BYTES_MIN, 0));
        schedule.reset(2 * GROWTH_BYTES_MIN);
        // What is less than it was counts from there.
        assert!(!schedule.is_due(0, 0));
        assert!(schedule.is_due(GROWTH_BYTES_MIN, 0));
    }

    #[test]
    fn it_is_looked_through_again_a_few_times_and_then_left() {
        let mut schedule = TrimSchedule::new(0);
        let is_due = |schedule: &mut TrimSchedule, heap_bytes| {
            let is_due = schedule.is_due(heap_bytes, 0);
            if is_due {
                schedule.reset(heap_bytes);
            }
            is_due
        };
        assert!((0..1000).all(|_| !is_due(&mut schedule, 0)), "nothing has grown");
        assert!(is_due(&mut schedule, GROWTH_BYTES_MIN));
        let due: Vec<usize> =
            (1..1000).filter(|_| is_due(&mut schedule, GROWTH_BYTES_MIN)).collect();
        assert_eq!(due, [2, 6, 14, 30, 62, 126, 254]);
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn what_is_allocated_and_written_counts_as_the_heap() {
        let before = allocator::heap_bytes().unwrap();
        // Without it, an optimised build never makes what nobody reads.
        let large = std::hint::black_box(vec![1_u8; 64 << 20]);
        let during = allocator::heap_bytes().unwrap();
        assert!(
            during.saturating_sub(before) > 32 << 20,
            "{before} and {during} with {} bytes",
            large.len()
        );
    }
}
