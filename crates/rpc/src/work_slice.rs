//! Fair scheduling on a serving thread: a slice of work for everybody, then one at a time.
//!
//! Whoever has something to do gets a slice at once. Whoever has more to do waits in line, and each
//! turn of the thread's event loop lets one of the line go on, after everybody else who is ready.
//! There are two lines, one for the first wait of some work and one for all further ones: what takes
//! a few slices does not wait for what takes hundreds. So a client that asks for little waits for two
//! slices of those that ask for much, however many they are.

use std::collections::VecDeque;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::budget::Budget;

/// A slice: bytes that were worked on, and [`REQUEST_COST`] for each request. A fraction of a
/// millisecond.
const SLICE_COST: usize = 256 * 1024;
/// What a request costs beside its bytes: 32 of the shortest are one slice.
const REQUEST_COST: usize = 8192;
/// Bytes that a socket takes are less work than those that are made: they count as one of so many.
const WRITTEN_SHARE: usize = 4;
/// A slice of work whose cost is not known: frames of a protocol, where a byte may be much work.
const SLICE_TIME: Duration = Duration::from_micros(200);
/// Work on more bytes does not begin at once: it waits for its turn before its first slice.
const LONG_BYTES: usize = 8192;
/// A slice of requests ends after this time too: the answer to a few blocks' work may be a few bytes.
const REQUESTS_TIME: Duration = Duration::from_micros(250);

thread_local! {
    /// The lines of a thread.
    static LINE: Arc<WaitingLine> = Arc::default();
}

/// Which wait it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LineKind {
    #[default]
    First,
    Further,
}

/// Lets others in: whoever is ready, and those who have waited in the same line for longer.
async fn wait_in_line(budget: &Budget, kind: LineKind) {
    budget.count_pause();
    let Ok(runtime) = Handle::try_current() else { return yield_now().await };
    let line = LINE.with(Arc::clone);
    let (go_on, turn) = oneshot::channel();
    if line.enter(kind, go_on) {
        runtime.spawn(LineService { line, has_ended: false }.run());
    }
    // A line that ends lets everybody go on.
    let _ = turn.await;
}

/// Those who wait, in their order. Nobody in it can hold up another: whoever may go on is told so, and
/// not waited for.
#[derive(Debug, Default)]
struct WaitingLine(Mutex<LineState>);

#[derive(Debug, Default)]
struct LineState {
    first: VecDeque<oneshot::Sender<()>>,
    further: VecDeque<oneshot::Sender<()>>,
    /// A task lets them go on.
    is_served: bool,
}

impl WaitingLine {
    /// Waits behind all others; tells whether the line is to be served from now on.
    fn enter(&self, kind: LineKind, go_on: oneshot::Sender<()>) -> bool {
        let mut state = self.state();
        match kind {
            LineKind::First => state.first.push_back(go_on),
            LineKind::Further => state.further.push_back(go_on),
        }
        !mem::replace(&mut state.is_served, true)
    }

    /// Lets those go on who are the first and still wait; tells whether there were any.
    fn let_go_on(&self) -> bool {
        let mut state = self.state();
        let LineState { first, further, .. } = &mut *state;
        let mut is_any = false;
        for line in [first, further] {
            while let Some(go_on) = line.pop_front() {
                if go_on.send(()).is_ok() {
                    is_any = true;
                    break;
                }
            }
        }
        state.is_served = is_any;
        is_any
    }

    fn state(&self) -> MutexGuard<'_, LineState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves a line until nobody waits. A runtime that ends takes it along, and nobody waits for ever.
struct LineService {
    line: Arc<WaitingLine>,
    has_ended: bool,
}

impl LineService {
    async fn run(mut self) {
        while !self.has_ended {
            // The runtime goes on with who yields when all others that are ready had their turn and
            // sockets were looked at.
            yield_now().await;
            self.has_ended = !self.line.let_go_on();
        }
    }
}

impl Drop for LineService {
    fn drop(&mut self) {
        if !self.has_ended {
            *self.line.state() = LineState::default();
        }
    }
}

/// Work since others had their turn, by its cost.
#[derive(Debug, Default)]
pub(crate) struct WorkSlice {
    cost: usize,
    /// When the second request of the slice was counted, or the slice was given.
    since: Option<Instant>,
    next: LineKind,
}

impl WorkSlice {
    /// Counts a request with so many bytes, read or made.
    pub(crate) fn count_request(&mut self, bytes: usize) {
        let is_first = self.cost == 0 && self.since.is_none();
        self.cost = self.cost.saturating_add(bytes).saturating_add(REQUEST_COST);
        // Clients that send one request at a time need no clock.
        if is_first {
            return;
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        if now.saturating_duration_since(since) >= REQUESTS_TIME {
            self.cost = SLICE_COST;
        }
    }

    /// Counts bytes that a socket took.
    pub(crate) fn count_written(&mut self, bytes: usize) {
        self.cost = self.cost.saturating_add(bytes / WRITTEN_SHARE);
    }

    /// Before more work: lets others in if the slice is used up.
    pub(crate) async fn go_on(&mut self, budget: &Budget) {
        if self.cost >= SLICE_COST {
            self.wait(budget).await;
        }
    }

    /// Before work on so many bytes: lets others in if they are many, and begins a slice.
    pub(crate) async fn begin_long(&mut self, bytes: usize, budget: &Budget) {
        if bytes > LONG_BYTES {
            self.wait(budget).await;
        }
    }

    /// Lets others in, and begins a slice.
    pub(crate) async fn wait(&mut self, budget: &Budget) {
        wait_in_line(budget, mem::replace(&mut self.next, LineKind::Further)).await;
        (self.cost, self.since) = (0, Some(Instant::now()));
    }

    /// There was nothing to do: what comes next is other work.
    pub(crate) fn begin(&mut self) {
        *self = Self::default();
    }
}

/// Work since others had their turn, by its time: for streams whose reader is not ours.
pub(crate) struct TimeSlice {
    budget: Arc<Budget>,
    /// `None` before the first work of a slice.
    since: Option<Instant>,
    next: LineKind,
    /// The wait for the next slice.
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl TimeSlice {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self { budget, since: None, next: LineKind::First, waiting: None }
    }

    /// Before more work: lets others in if the slice is used up.
    pub(crate) fn poll_go_on(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.waiting.is_none() {
            let now = Instant::now();
            let since = *self.since.get_or_insert(now);
            if now.saturating_duration_since(since) < SLICE_TIME {
                return Poll::Ready(());
            }
            let budget = Arc::clone(&self.budget);
            let kind = mem::replace(&mut self.next, LineKind::Further);
            self.waiting = Some(Box::pin(async move { wait_in_line(&budget, kind).await }));
        }
        if let Some(waiting) = &mut self.waiting {
            ready!(waiting.as_mut().poll(context));
            self.waiting = None;
            self.since = Some(Instant::now());
        }
        Poll::Ready(())
    }

    /// There was nothing to do: what comes next is other work.
    pub(crate) fn begin(&mut self) {
        self.since = None;
        self.next = LineKind::First;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;

    use super::*;

    /// Every one of them had its slice in each turn.
    #[tokio::test]
    async fn one_of_those_who_have_used_their_slice_goes_on_in_a_turn_however_many_they_are() {
        let budget = Budget::unbounded();
        let slices = Arc::new(AtomicUsize::new(0));
        let heavy = |_| {
            let (budget, slices) = (Arc::clone(&budget), Arc::clone(&slices));
            tokio::spawn(async move {
                let mut slice = WorkSlice::default();
                for _ in 0..10 {
                    slice.go_on(&budget).await;
                    slices.fetch_add(1, Ordering::Relaxed);
                    slice.count_request(SLICE_COST);
                }
            })
        };
        let heavies: Vec<_> = (0..50).map(heavy).collect();
        // Everybody begins at once.
        yield_now().await;
        assert_eq!(slices.load(Ordering::Relaxed), 50);
        let mut most = 0;
        while slices.load(Ordering::Relaxed) < 500 {
            let before = slices.load(Ordering::Relaxed);
            yield_now().await;
            most = most.max(slices.load(Ordering::Relaxed).saturating_sub(before));
        }
        // One that waits for the first time, and one that has waited before.
        assert_eq!(most, 2);
        for heavy in heavies {
            heavy.await.unwrap();
        }
        assert_eq!(budget.pauses(), 450);
    }

    /// A hundred calls that decode whole blocks for a few bytes were one slice.
    #[tokio::test]
    async fn requests_that_take_long_use_up_a_slice_whatever_their_bytes_are() {
        let budget = Budget::unbounded();
        let mut slice = WorkSlice::default();
        slice.count_request(0);
        slice.go_on(&budget).await;
        assert_eq!(budget.pauses(), 0);
        slice.since = Instant::now().checked_sub(REQUESTS_TIME);
        slice.count_request(0);
        slice.go_on(&budget).await;
        assert_eq!(budget.pauses(), 1);
    }

    #[tokio::test]
    async fn those_in_line_go_on_in_their_order_and_who_leaves_holds_up_nobody() {
        let budget = Budget::unbounded();
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiting = |index: usize| {
            let (budget, order) = (Arc::clone(&budget), Arc::clone(&order));
            tokio::spawn(async move {
                wait_in_line(&budget, LineKind::Further).await;
                order.lock().unwrap().push(index);
            })
        };
        let waiting: Vec<_> = (0..6).map(waiting).collect();
        yield_now().await;
        // The first, whose turn is next, and one behind it.
        for index in [0_usize, 3] {
            waiting[index].abort();
        }
        for waits in waiting {
            let _ = waits.await;
        }
        assert_eq!(*order.lock().unwrap(), [1, 2, 4, 5]);
    }

    #[tokio::test]
    async fn what_takes_two_slices_does_not_wait_for_those_that_take_hundreds() {
        let budget = Budget::unbounded();
        let further = |_| {
            let budget = Arc::clone(&budget);
            tokio::spawn(async move { wait_in_line(&budget, LineKind::Further).await })
        };
        let waiting: Vec<_> = (0..100).map(further).collect();
        yield_now().await;
        wait_in_line(&budget, LineKind::First).await;
        let left = waiting.iter().filter(|it| !it.is_finished()).count();
        assert!(left >= 95, "{left} of a hundred still wait");
    }

    /// A WebSocket whose client takes nothing looks at none of the calls that it answers.
    #[tokio::test]
    async fn who_does_not_look_whether_it_may_go_on_holds_up_nobody() {
        let budget = Budget::unbounded();
        let mut stuck = Box::pin(wait_in_line(&budget, LineKind::First));
        look_once(stuck.as_mut()).await;
        wait_in_line(&budget, LineKind::First).await;
        wait_in_line(&budget, LineKind::First).await;
        stuck.await;
    }

    #[test]
    fn a_line_ends_with_its_runtime() {
        let budget = Budget::unbounded();
        for _ in 0..2 {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                look_once(Box::pin(wait_in_line(&budget, LineKind::First)).as_mut()).await;
            });
            // With somebody in line, and its task not yet begun.
            drop(runtime);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(wait_in_line(&budget, LineKind::First));
        // Whoever has no runtime waits for nobody.
        wait_in_line(&budget, LineKind::First).now_or_never();
    }

    /// Begins to wait, and looks no further.
    async fn look_once(mut waiting: Pin<&mut impl Future<Output = ()>>) {
        let is_over = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_ready()));
        assert!(!is_over.await);
    }
}
