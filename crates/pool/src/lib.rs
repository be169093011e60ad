//! Work over all cores that comes back in order.
//!
//! Knows: threads, a bounded window of items under way, order.
//! Never knows: what the work is.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Items under way or waiting for an earlier one, per thread. Enough that a slow item does not
/// leave the other threads idle, few enough that memory stays bounded by a handful of items.
const WINDOW_PER_THREAD: usize = 4;

/// Runs `work` on every item on `threads` threads and hands the results to `consume` in the
/// items' order, on the calling thread. When `consume` breaks, no further item is begun.
///
/// With one thread everything happens on the calling thread.
pub fn map_in_order<I, O, B>(
    threads: NonZeroUsize,
    items: impl Iterator<Item = I> + Send,
    work: impl Fn(I) -> O + Sync,
    mut consume: impl FnMut(O) -> ControlFlow<B>,
) -> ControlFlow<B>
where
    I: Send,
    O: Send,
{
    if threads.get() == 1 {
        for item in items {
            consume(work(item))?;
        }
        return ControlFlow::Continue(());
    }
    let desk = WorkQueue {
        state: Mutex::new(PoolState {
            items: items.fuse(),
            begun: 0,
            consumed: 0,
            results: BTreeMap::new(),
            is_stopped: false,
            has_panicked: false,
        }),
        changed: Condvar::new(),
        window: WINDOW_PER_THREAD.saturating_mul(threads.get()),
    };
    thread::scope(|scope| {
        // Dropped when `consume` breaks or panics: workers must not wait for a turn for ever.
        let _stop = StopOnDrop(&desk);
        for _ in 0..threads.get() {
            scope.spawn(|| {
                // Dropped when `work` panics: the consumer must not wait for its result for ever.
                let _stop = StopOnDrop(&desk);
                while let Some((number, item)) = desk.begin() {
                    desk.deliver(number, work(item));
                }
            });
        }
        while let Some(result) = desk.next_result() {
            consume(result)?;
        }
        ControlFlow::Continue(())
    })
}

/// How many threads to use when nobody says: one per core.
#[must_use]
pub fn threads_default() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Where workers fetch items and leave results.
struct WorkQueue<T, O> {
    state: Mutex<PoolState<T, O>>,
    changed: Condvar,
    window: usize,
}

struct PoolState<T, O> {
    items: T,
    begun: usize,
    consumed: usize,
    results: BTreeMap<usize, O>,
    /// No further item will be begun.
    is_stopped: bool,
    /// A result that was begun may never be delivered.
    has_panicked: bool,
}

impl<T: Iterator, O> WorkQueue<T, O> {
    fn begin(&self) -> Option<(usize, T::Item)> {
        let mut state = self.lock();
        while !state.is_stopped && state.begun - state.consumed >= self.window {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_stopped {
            return None;
        }
        let item = state.items.next()?;
        let number = state.begun;
        state.begun += 1;
        Some((number, item))
    }
}

impl<T, O> WorkQueue<T, O> {
    fn deliver(&self, number: usize, result: O) {
        self.lock().results.insert(number, result);
        self.changed.notify_all();
    }

    /// The next result in order; `None` when no more will come.
    fn next_result(&self) -> Option<O> {
        let mut state = self.lock();
        loop {
            let number = state.consumed;
            if let Some(result) = state.results.remove(&number) {
                state.consumed += 1;
                self.changed.notify_all();
                return Some(result);
            }
            if state.is_stopped && (state.consumed == state.begun || state.has_panicked) {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState<T, O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the work of all when its holder ends: a worker that finds no more items, or a thread that
/// unwinds.
struct StopOnDrop<'a, T, O>(&'a WorkQueue<T, O>);

impl<T, O> Drop for StopOnDrop<'_, T, O> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_stopped = true;
        state.has_panicked |= thread::panicking();
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn threads(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    #[test]
    fn results_come_in_the_items_order_whatever_the_thread_count() {
        for count in [1, 2, 3, 8] {
            let mut seen = Vec::new();
            let ended: ControlFlow<()> = map_in_order(
                threads(count),
                0..500_u64,
                |item| {
                    // Uneven work, so that later items finish before earlier ones.
                    std::hint::black_box((0..(item * 7919) % 3000).sum::<u64>());
                    item
                },
                |result| {
                    seen.push(result);
                    ControlFlow::Continue(())
                },
            );
            assert_eq!(ended, ControlFlow::Continue(()));
            assert_eq!(seen, (0..500).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_item_is_begun_far_ahead_of_the_consumer() {
        let begun = AtomicUsize::new(0);
        let mut consumed = 0;
        let ended: ControlFlow<()> = map_in_order(
            threads(2),
            0..200,
            |_| begun.fetch_add(1, Ordering::SeqCst),
            |_| {
                consumed += 1;
                assert!(begun.load(Ordering::SeqCst) <= consumed + 2 * WINDOW_PER_THREAD);
                ControlFlow::Continue(())
            },
        );
        assert!(ended.is_continue());
    }

    #[test]
    fn breaking_ends_the_work() {
        for count in [1, 4] {
            let ended = map_in_order(
                threads(count),
                0..,
                |item| item,
                |item| {
                    if item == 10 { ControlFlow::Break(item) } else { ControlFlow::Continue(()) }
                },
            );
            assert_eq!(ended, ControlFlow::Break(10));
        }
    }

    #[test]
    fn a_panic_in_the_work_reaches_the_caller() {
        let outcome = std::panic::catch_unwind(|| {
            map_in_order(
                threads(2),
                0..100,
                |item| assert!(item != 50, "as asked"),
                |()| ControlFlow::<()>::Continue(()),
            )
        });
        assert!(outcome.is_err());
    }
}
