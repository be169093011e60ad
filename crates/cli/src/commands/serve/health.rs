//! What clients and supervisors are told of following a node.

use std::sync::Arc;

use ingest::follow::{Status, StatusBoard};
use rpc::{CatchingUp, Health};

/// So far behind its node a server is still at the tip: blocks come in bursts.
const LAG_MAX: u64 = 8;

/// How following goes, in the words of `/readyz` and `eth_syncing`.
#[derive(Debug)]
pub(crate) struct FollowHealth {
    board: Arc<StatusBoard>,
    /// The newest block that was held when it began.
    starting: u64,
}

impl FollowHealth {
    pub(super) fn of(board: Arc<StatusBoard>, starting: u64) -> Self {
        Self { board, starting }
    }
}

impl Health for FollowHealth {
    fn troubles(&self) -> Vec<String> {
        troubles(&self.board.status())
    }

    fn catching_up(&self) -> Option<CatchingUp> {
        let status = self.board.status();
        let highest = status.upstream_tip.filter(|_| is_behind(&status))?;
        Some(CatchingUp { starting: self.starting, highest })
    }

    fn conflict(&self) -> Option<String> {
        self.board.status().conflict.map(|conflict| conflict.to_string())
    }
}

fn is_behind(status: &Status) -> bool {
    status.lag().is_some_and(|lag| lag > LAG_MAX)
}

fn troubles(status: &Status) -> Vec<String> {
    let conflict = status.conflict.map(|conflict| {
        format!("{conflict}; nothing is followed until quipu rewind says which is right")
    });
    let lag = status.lag().filter(|_| is_behind(status));
    let behind = lag.map(|lag| format!("{lag} blocks behind the upstream"));
    // A conflict is an error of its own: once is enough.
    let error = status.last_error.as_ref().filter(|_| conflict.is_none());
    let failing = error.map(|error| format!("the upstream cannot be followed: {error}"));
    [conflict, behind, failing].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use ingest::follow::Conflict;

    use super::*;

    #[test]
    fn troubles_are_a_conflict_a_long_way_behind_or_a_node_that_fails() {
        let at_tip =
            Status { tip: Some((100, B256::ZERO)), upstream_tip: Some(108), ..Status::default() };
        assert!(troubles(&at_tip).is_empty());
        let behind = Status { upstream_tip: Some(109), ..at_tip.clone() };
        assert_eq!(troubles(&behind), ["9 blocks behind the upstream"]);
        let failing = Status { last_error: Some("no answer".to_owned()), ..at_tip.clone() };
        assert_eq!(troubles(&failing), ["the upstream cannot be followed: no answer"]);
        let (ours, theirs) = (B256::repeat_byte(1), B256::repeat_byte(2));
        let conflict = Some(Conflict { number: 90, ours, theirs });
        let told = troubles(&Status { conflict, ..failing });
        let [told] = told.as_slice() else { panic!("{told:?}") };
        assert!(told.contains(&ours.to_string()) && told.contains(&theirs.to_string()), "{told}");
    }
}
