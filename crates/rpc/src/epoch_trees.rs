//! Trees of mainnet's epochs before the merge, kept for proofs that lead to the accumulator.
//!
//! A tree is kept by its root, and only if it has that root. Whoever takes a branch from it names the
//! hash of the block. So a tree that is kept is right whatever a rewind or an import does to the store.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use alloy_primitives::B256;
use chain::accumulator::EpochTree;
use tokio::sync::Mutex as Turn;
use tokio::time::timeout;

/// Each takes 768 KiB.
const TREES_MAX: usize = 4;
/// How long a proof waits for another one that makes the same tree. It goes on no further while its
/// client takes no answers, and others must not wait for that.
const TURN_TIMEOUT: Duration = Duration::from_secs(1);

/// The trees of the epochs that were asked for last, newest first.
#[derive(Debug, Default)]
pub(crate) struct EpochTrees(Mutex<VecDeque<Arc<EpochSlot>>>);

/// The place of one tree.
#[derive(Debug)]
pub(crate) struct EpochSlot {
    root: B256,
    tree: OnceLock<EpochTree>,
    turn: Turn<()>,
}

impl EpochTrees {
    /// The place of the tree with this root.
    pub(crate) fn slot(&self, root: B256) -> Arc<EpochSlot> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = slots.iter().position(|slot| slot.root == root);
        let slot = place.and_then(|place| slots.remove(place)).unwrap_or_else(|| {
            Arc::new(EpochSlot { root, tree: OnceLock::new(), turn: Turn::new(()) })
        });
        slots.push_front(Arc::clone(&slot));
        slots.truncate(TREES_MAX);
        slot
    }
}

impl EpochSlot {
    /// The tree. If it is not there, `make` makes it, while others wait. `None` if what is made has
    /// another root, or if nothing is.
    pub(crate) async fn tree<E>(
        &self,
        make: impl Future<Output = Result<Option<EpochTree>, E>>,
    ) -> Result<Option<&EpochTree>, E> {
        if let Some(tree) = self.tree.get() {
            return Ok(Some(tree));
        }
        let _turn = match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(_) => timeout(TURN_TIMEOUT, self.turn.lock()).await.ok(),
        };
        if let Some(tree) = self.tree.get() {
            return Ok(Some(tree));
        }
        let tree = make.await?.filter(|tree| tree.root() == self.root);
        Ok(tree.map(|tree| self.tree.get_or_init(|| tree)))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{pending, poll_fn, ready};

    use alloy_primitives::U256;
    use futures_util::FutureExt as _;
    use tokio::join;
    use tokio::sync::oneshot;

    use super::*;

    type Made = Result<Option<EpochTree>, Infallible>;

    fn tree(byte: u8) -> EpochTree {
        EpochTree::new(&[(B256::repeat_byte(byte), U256::from(byte))])
    }

    fn made(byte: u8) -> impl Future<Output = Made> {
        ready(Ok(Some(tree(byte))))
    }

    fn unused() -> impl Future<Output = Made> {
        poll_fn(|_| panic!("a tree that is there is made again"))
    }

    #[tokio::test]
    async fn a_tree_is_made_once_and_only_with_its_root() {
        let trees = EpochTrees::default();
        let root = tree(1).root();
        assert!(trees.slot(root).tree(made(2)).await.unwrap().is_none(), "another root");
        assert!(trees.slot(root).tree(ready(Made::Ok(None))).await.unwrap().is_none());
        assert_eq!(trees.slot(root).tree(made(1)).await.unwrap().unwrap().root(), root);
        assert_eq!(trees.slot(root).tree(unused()).await.unwrap().unwrap().root(), root);
    }

    #[tokio::test]
    async fn the_trees_of_the_epochs_that_were_asked_for_last_are_kept() {
        let trees = EpochTrees::default();
        for byte in [1, 2, 3, 4, 1, 5] {
            trees.slot(tree(byte).root()).tree(made(byte)).await.unwrap().unwrap();
        }
        let is_kept = |byte| trees.slot(tree(byte).root()).tree.get().is_some();
        assert_eq!([1, 3, 4, 5, 2].map(is_kept), [true, true, true, true, false]);
    }

    #[tokio::test]
    async fn others_wait_for_a_tree_that_is_being_made() {
        let slot = EpochTrees::default().slot(tree(1).root());
        let (send, receive) = oneshot::channel();
        let mut first = Box::pin(slot.tree(receive.map(|it| Made::Ok(it.ok()))));
        assert!(first.as_mut().now_or_never().is_none());
        let mut second = Box::pin(slot.tree(unused()));
        assert!(second.as_mut().now_or_never().is_none());
        send.send(tree(1)).unwrap();
        let (first, second) = join!(first, second);
        assert!(first.unwrap().is_some() && second.unwrap().is_some());
    }

    /// As a call over a WebSocket whose client takes nothing.
    #[tokio::test(start_paused = true)]
    async fn whoever_makes_a_tree_and_does_not_go_on_holds_up_others_for_a_second() {
        let slot = EpochTrees::default().slot(tree(1).root());
        let mut stuck = Box::pin(slot.tree(pending::<Made>()));
        assert!(stuck.as_mut().now_or_never().is_none());
        assert!(slot.tree(made(1)).await.unwrap().is_some());
        // And whoever is gone, for no time at all.
        let slot = EpochTrees::default().slot(tree(2).root());
        let mut gone = Box::pin(slot.tree(pending::<Made>()));
        assert!(gone.as_mut().now_or_never().is_none());
        let mut waiting = Box::pin(slot.tree(made(2)));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(gone);
        assert!(waiting.now_or_never().unwrap().unwrap().is_some());
    }
}
