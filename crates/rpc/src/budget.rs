//! The server's budget: bytes under way, over all connections and protocols.
//!
//! Buffers of up to [`spare::BYTES`] are not counted: they belong to what every connection costs,
//! and counting them would make the threads share a counter for every request. Everything larger is
//! leased before it is kept, and the lease goes wherever the memory goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::spare;

/// Bytes under way, and how many there may be. The server has one, shared by all its connections.
///
/// Answers are admitted up to [`Self::bytes_max`], and one at a time beyond it, so that the largest
/// answer is never refused for ever. Request bodies are admitted up to half of it: clients that send
/// much cannot keep those from their answers that ask for little. So memory is bounded by
/// `bytes_max`, one largest answer, and what each thread has just made and not yet counted.
#[derive(Debug)]
pub struct Budget {
    bytes_max: AtomicUsize,
    bytes: AtomicUsize,
    /// Those of request bodies among them.
    body_bytes: AtomicUsize,
    bytes_peak: AtomicUsize,
    /// One answer is admitted beyond the limit.
    is_overdrawn: AtomicBool,
    pauses: AtomicU64,
    refusals: AtomicU64,
}

/// Bytes under way, and how many there may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetCounts {
    /// How many there are.
    pub bytes: u64,
    /// The most that there have been.
    pub bytes_peak: u64,
    /// How many there may be.
    pub bytes_max: u64,
    /// How often somebody was told that there is no room.
    pub refusals: u64,
    /// How often work was interrupted to let others in.
    pub pauses: u64,
}

/// There is no room for more bytes under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfBudget;

/// What leased bytes are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeasedFor {
    /// A request's body, as it came or decompressed.
    Body,
    /// An answer, being made or being taken.
    Answer,
}

/// Bytes that are counted until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct ByteLease {
    /// Where they are counted; `None` while they are too few to be.
    budget: Option<Arc<Budget>>,
    bytes: usize,
    is_overdraft: bool,
    /// They are counted as bodies too.
    is_body: bool,
}

impl Budget {
    /// Room for so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_max: AtomicUsize::new(bytes_max),
            bytes: AtomicUsize::new(0),
            body_bytes: AtomicUsize::new(0),
            bytes_peak: AtomicUsize::new(0),
            is_overdrawn: AtomicBool::new(false),
            pauses: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
        })
    }

    /// No limit, for those who answer only themselves.
    pub(crate) fn unbounded() -> Arc<Self> {
        Self::new(usize::MAX)
    }

    /// How many bytes there may be.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Room for so many bytes from now on; what is under way stays.
    pub(crate) fn set_bytes_max(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// How many there are.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The most that there have been.
    #[must_use]
    pub fn bytes_peak(&self) -> usize {
        self.bytes_peak.load(Ordering::Relaxed)
    }

    /// How often work was interrupted to let others in.
    #[must_use]
    pub fn pauses(&self) -> u64 {
        self.pauses.load(Ordering::Relaxed)
    }

    /// What is counted, for a page.
    pub(crate) fn counts(&self) -> BudgetCounts {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        BudgetCounts {
            bytes: number(self.bytes()),
            bytes_peak: number(self.bytes_peak()),
            bytes_max: number(self.bytes_max()),
            refusals: self.refusals.load(Ordering::Relaxed),
            pauses: self.pauses(),
        }
    }

    /// Somebody is told that there is no room.
    pub(crate) fn count_refusal(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }

    /// Work was interrupted to let others in.
    pub(crate) fn count_pause(&self) {
        self.pauses.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds to what is counted; tells whether that overdraws it.
    fn add(&self, count: usize, purpose: LeasedFor) -> Result<bool, OutOfBudget> {
        let order = Ordering::Relaxed;
        let fitting = |bytes_max: usize| {
            move |bytes: usize| bytes.checked_add(count).filter(|sum| *sum <= bytes_max)
        };
        let is_body = purpose == LeasedFor::Body;
        let bytes_max = self.bytes_max();
        let half = bytes_max / 2;
        if is_body && self.body_bytes.fetch_update(order, order, fitting(half)).is_err() {
            return Err(OutOfBudget);
        }
        if let Ok(before) = self.bytes.fetch_update(order, order, fitting(bytes_max)) {
            self.note_peak(before.saturating_add(count));
            return Ok(false);
        }
        if is_body {
            self.body_bytes.fetch_sub(count, order);
            return Err(OutOfBudget);
        }
        if self.is_overdrawn.swap(true, order) {
            return Err(OutOfBudget);
        }
        self.overdraw(count);
        Ok(true)
    }

    fn overdraw(&self, count: usize) {
        let before = self.bytes.fetch_add(count, Ordering::Relaxed);
        self.note_peak(before.saturating_add(count));
    }

    /// Takes off what was counted.
    fn give_back(&self, count: usize, is_body: bool) -> usize {
        if is_body {
            self.body_bytes.fetch_sub(count, Ordering::Relaxed);
        }
        self.bytes.fetch_sub(count, Ordering::Relaxed).saturating_sub(count)
    }

    fn note_peak(&self, bytes: usize) {
        self.bytes_peak.fetch_max(bytes, Ordering::Relaxed);
    }
}

impl ByteLease {
    /// A lease of so many bytes.
    pub(crate) fn of(
        budget: &Arc<Budget>,
        bytes: usize,
        purpose: LeasedFor,
    ) -> Result<Self, OutOfBudget> {
        let mut lease = Self::default();
        lease.resize(budget, bytes, purpose)?;
        Ok(lease)
    }

    /// Whether it counts anything.
    pub(crate) fn is_counted(&self) -> bool {
        self.bytes > 0
    }

    /// Whether it is the one that is admitted beyond the limit.
    pub(crate) fn is_overdraft(&self) -> bool {
        self.is_overdraft
    }

    /// Makes it a lease of so many bytes. One that cannot grow stays as it is.
    pub(crate) fn resize(
        &mut self,
        budget: &Arc<Budget>,
        bytes: usize,
        purpose: LeasedFor,
    ) -> Result<(), OutOfBudget> {
        let bytes = if bytes <= spare::BYTES { 0 } else { bytes };
        if let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) {
            if self.is_overdraft {
                budget.overdraw(more);
            } else {
                self.is_overdraft = budget.add(more, purpose)?;
                self.is_body = purpose == LeasedFor::Body;
            }
            self.budget.get_or_insert_with(|| Arc::clone(budget));
        } else if let Some(budget) = &self.budget {
            let left = budget.give_back(self.bytes.saturating_sub(bytes), self.is_body);
            // An answer that was too long only while it grew leaves its place to the next one.
            if self.is_overdraft && left <= budget.bytes_max() {
                self.is_overdraft = false;
                budget.is_overdrawn.store(false, Ordering::Relaxed);
            }
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for ByteLease {
    fn drop(&mut self) {
        let Some(budget) = &self.budget else { return };
        budget.give_back(self.bytes, self.is_body);
        if self.is_overdraft {
            budget.is_overdrawn.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    fn lease(budget: &Arc<Budget>, bytes: usize) -> Result<ByteLease, OutOfBudget> {
        ByteLease::of(budget, bytes, LeasedFor::Answer)
    }

    #[test]
    fn answers_fill_the_budget_and_one_is_admitted_beyond_it() {
        let budget = Budget::new(100 * KIB);
        let first = lease(&budget, 60 * KIB).unwrap();
        // Larger than all there is: the one beyond the limit, and it may grow.
        let mut largest = lease(&budget, 1000 * KIB).unwrap();
        largest.resize(&budget, 2000 * KIB, LeasedFor::Answer).unwrap();
        assert_eq!(lease(&budget, 50 * KIB).unwrap_err(), OutOfBudget);
        assert_eq!(budget.bytes(), 2060 * KIB);
        drop(largest);
        assert_eq!(budget.bytes(), 60 * KIB);
        let fitting = lease(&budget, 40 * KIB).unwrap();
        let again = lease(&budget, 50 * KIB).unwrap();
        drop((first, fitting, again));
        assert_eq!((budget.bytes(), budget.bytes_peak()), (0, 2060 * KIB));
    }

    #[test]
    fn bodies_leave_half_of_it_to_answers() {
        let budget = Budget::new(100 * KIB);
        let body = |bytes| ByteLease::of(&budget, bytes, LeasedFor::Body);
        let mut first = body(30 * KIB).unwrap();
        assert_eq!(body(21 * KIB).unwrap_err(), OutOfBudget);
        assert_eq!(first.resize(&budget, 51 * KIB, LeasedFor::Body), Err(OutOfBudget));
        assert_eq!(budget.bytes(), 30 * KIB);
        first.resize(&budget, 10 * KIB, LeasedFor::Body).unwrap();
        assert_eq!(budget.bytes(), 10 * KIB);
        let answer = lease(&budget, 90 * KIB).unwrap();
        assert_eq!(budget.bytes(), 100 * KIB);
        drop((first, answer));
        assert_eq!(budget.bytes(), 0);
        // And answers leave it to bodies.
        let answer = lease(&budget, 60 * KIB).unwrap();
        let first = body(40 * KIB).unwrap();
        assert_eq!(body(10 * KIB).unwrap_err(), OutOfBudget);
        drop((first, answer));
        let first = body(50 * KIB).unwrap();
        assert_eq!(body(10 * KIB).unwrap_err(), OutOfBudget);
        drop(first);
        assert_eq!(budget.bytes(), 0);
    }

    #[test]
    fn an_answer_that_was_too_long_while_it_grew_gives_its_place_back() {
        let budget = Budget::new(100 * KIB);
        let mut grown = lease(&budget, 150 * KIB).unwrap();
        grown.resize(&budget, 80 * KIB, LeasedFor::Answer).unwrap();
        let next = lease(&budget, 50 * KIB).unwrap();
        drop((grown, next));
        assert_eq!(budget.bytes(), 0);
    }

    #[test]
    fn what_every_connection_has_is_not_counted() {
        let budget = Budget::new(0);
        let mut small = lease(&budget, spare::BYTES).unwrap();
        assert_eq!(budget.bytes(), 0);
        small.resize(&budget, spare::BYTES + 1, LeasedFor::Answer).unwrap();
        assert_eq!(budget.bytes(), spare::BYTES + 1);
        small.resize(&budget, spare::BYTES, LeasedFor::Answer).unwrap();
        assert_eq!(budget.bytes(), 0);
    }
}
