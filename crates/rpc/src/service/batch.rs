//! The answer to a batch while it is made: its bytes are counted and its work is sliced.

use std::sync::Arc;

use crate::budget::{Budget, ByteLease, LeasedFor, OutOfBudget};
use crate::envelope::{Batch, Id, Item, RequestBody};
use crate::refusal::{ExceededRate, Refusal};
use crate::reply::{Reply, ReplyStatus, give_back_room, overload_refusal, put_refusal};
use crate::spare;
use crate::work_slice::WorkSlice;

/// The answers of a batch, as far as they are made.
#[derive(Debug)]
pub(super) struct BatchAnswer<'a> {
    pub(super) out: Vec<u8>,
    pub(super) lease: ByteLease,
    budget: &'a Arc<Budget>,
    slice: WorkSlice,
}

impl<'a> BatchAnswer<'a> {
    pub(super) fn new(out: Vec<u8>, budget: &'a Arc<Budget>) -> Self {
        Self { out, lease: ByteLease::default(), budget, slice: WorkSlice::default() }
    }

    /// Before the first: one batch begins in a turn, however many there are.
    pub(super) async fn wait_for_turn(&mut self) {
        self.slice.wait(self.budget).await;
    }

    /// Begins the answer to one request, once others had their turn; tells where.
    pub(super) async fn begin_item(&mut self) -> usize {
        self.slice.go_on(self.budget).await;
        self.out.len()
    }

    /// Ends the answer to one request, which began there: its bytes and its work are counted.
    pub(super) fn end_item(&mut self, begin: usize) -> Result<(), OutOfBudget> {
        self.slice.count_request(self.out.len().saturating_sub(begin));
        self.lease.resize(self.budget, self.out.capacity(), LeasedFor::Answer)
    }

    /// Ends the list; nothing if nothing is in it.
    pub(super) fn end(mut self) -> Result<Option<Self>, OutOfBudget> {
        self.out.push(b']');
        give_back_room(&mut self.out);
        self.lease.resize(self.budget, self.out.capacity(), LeasedFor::Answer)?;
        Ok((self.out.len() > 2).then_some(self))
    }
}

/// Refuses a batch: every call by its id, so that whoever waits for it is told. What is no call is
/// passed over, or a body of nothing but commas and digits would get an answer forty times its size;
/// if there is nothing else, one refusal stands for all.
pub(super) async fn put_batch_refused<'a>(
    mut answer: BatchAnswer<'a>,
    batch: Batch<'_>,
    refusal: &Refusal,
) -> Result<Option<BatchAnswer<'a>>, OutOfBudget> {
    let mut is_invalid = false;
    answer.out.push(b'[');
    for item in batch.items() {
        let before = answer.begin_item().await;
        match item {
            Item::Call(call) => {
                if before > 1 {
                    answer.out.push(b',');
                }
                put_refusal(&mut answer.out, call.id, refusal);
            }
            Item::Invalid(..) => is_invalid = true,
            Item::Notification => {}
        }
        answer.end_item(before)?;
    }
    if answer.out.len() == 1 && is_invalid {
        put_refusal(&mut answer.out, Id::NULL, refusal);
    }
    answer.end()
}

/// What a call is told whose answer there is no room for.
pub(super) fn overloaded(id: Id<'_>) -> Reply {
    let mut out = spare::take();
    put_refusal(&mut out, id, &overload_refusal());
    Reply::overloaded(out, ByteLease::default())
}

/// The same for a batch: every call by its id, if there is room at least for that.
pub(super) async fn overloaded_batch(budget: &Arc<Budget>, batch: Batch<'_>) -> Reply {
    let answer = BatchAnswer::new(spare::take(), budget);
    match put_batch_refused(answer, batch, &overload_refusal()).await {
        Ok(Some(answer)) => Reply::overloaded(answer.out, answer.lease),
        Ok(None) | Err(OutOfBudget) => overloaded(Id::NULL),
    }
}

/// What whoever has asked too much is told: every call by its id, if there is room for that; nothing if
/// all that it asked are notifications.
pub(super) async fn rate_limited(
    budget: &Arc<Budget>,
    asked: Option<&RequestBody<'_>>,
    exceeded: ExceededRate,
) -> Option<Reply> {
    let refusal = &Refusal::RateLimited(exceeded);
    let reply = match asked {
        Some(RequestBody::Batch(batch)) => {
            let answer = BatchAnswer::new(spare::take(), budget);
            match put_batch_refused(answer, *batch, refusal).await {
                Ok(answer) => answer.map(|answer| Reply::leased(answer.out, answer.lease))?,
                Err(OutOfBudget) => refused_alone(Id::NULL, refusal),
            }
        }
        Some(RequestBody::Single(Item::Notification)) => return None,
        Some(RequestBody::Single(item)) => refused_alone(item.id(), refusal),
        None => refused_alone(Id::NULL, refusal),
    };
    Some(with_wait(reply, exceeded))
}

/// The same for one who asked nothing but notifications and is told nevertheless, by the code of an
/// answer.
pub(super) fn rate_limited_without_id(exceeded: ExceededRate) -> Reply {
    with_wait(refused_alone(Id::NULL, &Refusal::RateLimited(exceeded)), exceeded)
}

fn refused_alone(id: Id<'_>, refusal: &Refusal) -> Reply {
    let mut out = spare::take();
    put_refusal(&mut out, id, refusal);
    Reply::of(out)
}

fn with_wait(reply: Reply, exceeded: ExceededRate) -> Reply {
    reply.with_status(ReplyStatus::RateLimited { seconds: exceeded.seconds })
}
