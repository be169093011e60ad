//! What clients and supervisors are told of following a node.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ingest::follow::{FollowStatus, StatusBoard};
use rpc::{CatchingUp, Health};
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::info;

use crate::output::counted;

use super::source::BucketSource;

/// So far behind its node a server is still at the tip: blocks come in bursts.
const LAG_MAX: u64 = 8;

/// How following goes, in the words of `/readyz` and `eth_syncing`.
#[derive(Debug, Default)]
pub(crate) struct FollowHealth {
    /// There as soon as it is known which chain is followed.
    board: OnceLock<Arc<StatusBoard>>,
    /// Why it is not known yet.
    chain_error: Mutex<Option<String>>,
    /// The newest block that was held when it began.
    starting: AtomicU64,
}

impl FollowHealth {
    /// From now on this board tells how it goes.
    pub(super) fn follow(&self, board: Arc<StatusBoard>) {
        // A server follows one chain.
        let _ = self.board.set(board);
    }

    pub(super) fn starts_at(&self, number: u64) {
        self.starting.store(number, Ordering::Relaxed);
    }

    /// How following goes; none before it is known which chain is followed.
    pub(super) fn status(&self) -> Option<FollowStatus> {
        Some(self.board.get()?.status())
    }

    /// The same, for programs. Before it is known which chain is followed, its error says so.
    pub(super) fn page(&self) -> Value {
        let unknown = || {
            let last_error = Some(self.unknown_chain());
            FollowStatus { last_error, ..FollowStatus::default() }
        };
        page(&self.status().unwrap_or_else(unknown))
    }

    /// It is not known yet which chain is followed.
    pub(super) fn waits(&self, error: &str) {
        let mut chain_error = self.chain_error.lock().unwrap_or_else(PoisonError::into_inner);
        *chain_error = Some(error.to_owned());
    }

    /// That it is not known which chain is followed, and why.
    fn unknown_chain(&self) -> String {
        let error = self.chain_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let error = error.map_or(String::new(), |error| format!(": {error}"));
        format!("no upstream has said yet which chain it follows{error}")
    }
}

fn page(status: &FollowStatus) -> Value {
    let upstreams: Vec<String> = status.upstreams.iter().map(ToString::to_string).collect();
    let block_time = status.block_time.filter(|_| status.has_regular_blocks);
    json!({
        "tip": status.tip.map(|(number, hash)| json!({ "number": number, "hash": hash })),
        "upstream_tip": status.upstream_tip,
        "lag": status.lag(),
        "block_seconds": block_time.map(|time| time.as_secs_f64()),
        "ready": troubles(status).is_empty(),
        "reorgs": status.reorg_count,
        "gap": status.gap.map(|it| json!({ "first": it.first(), "last": it.last() })),
        "error": status.last_error,
        "backfill_error": status.backfill_error,
        "upstreams": upstreams,
    })
}

/// How the whole server is: what it follows and what it reads.
#[derive(Debug)]
pub(super) struct ServerHealth {
    pub(super) follow: Option<Arc<FollowHealth>>,
    pub(super) source: Option<Arc<BucketSource>>,
}

impl Health for ServerHealth {
    fn troubles(&self) -> Vec<String> {
        let mut troubles = self.follow.as_ref().map(|it| it.troubles()).unwrap_or_default();
        troubles.extend(self.source.as_ref().and_then(|source| source.trouble()));
        troubles
    }

    fn catching_up(&self) -> Option<CatchingUp> {
        self.follow.as_ref()?.catching_up()
    }

    fn conflict(&self) -> Option<String> {
        self.follow.as_ref()?.conflict()
    }
}

/// Logs now and then how following goes, for as long as the process runs. Nothing else would tell a
/// server that is well from one that hangs.
pub(super) async fn log_heartbeat(health: Arc<FollowHealth>, every: Duration) {
    if every.is_zero() {
        return;
    }
    let mut last_tip = None;
    loop {
        sleep(every).await;
        let Some(status) = health.board.get().map(|board| board.status()) else { continue };
        let tip = status.tip.map(|(number, _)| number);
        let blocks = tip.zip(last_tip).map(|(tip, last): (u64, u64)| tip.saturating_sub(last));
        last_tip = tip;
        info!(
            tip,
            blocks,
            upstream_tip = status.upstream_tip,
            lag = status.lag(),
            silent_seconds = status.heard_at.map(|heard| heard.elapsed().as_secs()),
            reorgs = status.reorg_count,
            "following"
        );
    }
}

impl Health for FollowHealth {
    fn troubles(&self) -> Vec<String> {
        if let Some(board) = self.board.get() {
            return troubles(&board.status());
        }
        vec![self.unknown_chain()]
    }

    fn catching_up(&self) -> Option<CatchingUp> {
        let status = self.board.get()?.status();
        let highest = status.upstream_tip.filter(|_| is_behind(&status))?;
        Some(CatchingUp { starting: self.starting.load(Ordering::Relaxed), highest })
    }

    fn conflict(&self) -> Option<String> {
        self.board.get()?.status().conflict.map(|conflict| conflict.to_string())
    }
}

/// Whether so many blocks are missing, or one for so long, that this is not the tip.
fn is_behind(status: &FollowStatus) -> bool {
    status.lag().is_some_and(|lag| lag > LAG_MAX) || status.delay().is_some()
}

fn troubles(status: &FollowStatus) -> Vec<String> {
    let conflict = status.conflict.map(|conflict| {
        format!("{conflict}; nothing is followed until quipu rewind says which is right")
    });
    let behind = status.lag().filter(|_| is_behind(status)).map(|lag| {
        let since = status.delay();
        let since = since.map_or(String::new(), |time| format!(", for {} s", time.as_secs()));
        format!("{} behind the upstream{since}", counted(lag, "block"))
    });
    // A conflict is an error of its own: once is enough.
    let error = status.lasting_error().filter(|_| conflict.is_none());
    let failing = error.map(|error| format!("the upstream cannot be followed: {error}"));
    let log = status.log_error.as_ref();
    let log = log.map(|error| format!("the head's log cannot be written: {error}"));
    let finality = status.lasting_finality_error();
    let finality = finality.map(|error| format!("it is not known what is final: {error}"));
    let (silence, still, apart) = (silence(status), stillness(status), disagreement(status));
    let reasons = [conflict, behind, failing, log, silence, still, apart, finality];
    reasons.into_iter().flatten().collect()
}

/// That too few nodes agree on what is new, if so.
fn disagreement(status: &FollowStatus) -> Option<String> {
    let (tip, reached) = (status.upstream_tip?, status.upstream_reached?);
    let is_apart = status.disagreement() > LAG_MAX;
    is_apart.then(|| {
        format!(
            "the upstreams agree on no block above {tip}, though they have blocks up to {reached}"
        )
    })
}

/// That the tip does not move, if it does not.
fn stillness(status: &FollowStatus) -> Option<String> {
    let (seconds, number) = (status.stillness()?.as_secs(), status.upstream_highest?.0);
    Some(format!("the upstream has told of no block above {number} for {seconds} s"))
}

/// Why it is not known what the tip is, if it is not.
fn silence(status: &FollowStatus) -> Option<String> {
    let heard = status.heard_at.map_or_else(
        || "no upstream has told its tip yet".to_owned(),
        |heard_at| format!("no upstream has told its tip for {} s", heard_at.elapsed().as_secs()),
    );
    let error = status.lasting_tip_error();
    let is_silent = status.heard_at.is_none() || status.silence().is_some() || error.is_some();
    let error = error.map_or(String::new(), |error| format!(": {error}"));
    is_silent.then(|| format!("{heard}{error}"))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use ingest::follow::FinalityConflict;
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn a_node_that_is_silent_is_followed_nevertheless() {
        let health = FollowHealth::default();
        health.waits("no answer");
        let page = health.page();
        let error = "no upstream has said yet which chain it follows: no answer";
        assert_eq!(page["error"], error);
        assert_eq!((&page["tip"], &page["lag"]), (&Value::Null, &Value::Null));
        assert_eq!(health.troubles(), [error]);
    }

    fn at_tip() -> FollowStatus {
        FollowStatus {
            tip: Some((100, B256::ZERO)),
            upstream_tip: Some(108),
            heard_at: Some(Instant::now()),
            block_time: Some(Duration::from_secs(3)),
            has_regular_blocks: true,
            ..FollowStatus::default()
        }
    }

    #[test]
    fn troubles_are_a_conflict_a_long_way_behind_or_a_node_that_fails() {
        let at_tip = at_tip();
        assert!(troubles(&at_tip).is_empty());
        let behind = FollowStatus { upstream_tip: Some(109), ..at_tip.clone() };
        assert_eq!(troubles(&behind), ["9 blocks behind the upstream"]);
        let failing = FollowStatus {
            last_error: Some("no answer".to_owned()),
            failing_since: ago(7),
            ..at_tip.clone()
        };
        assert_eq!(troubles(&failing), ["the upstream cannot be followed: no answer"]);
        let (ours, theirs) = (B256::repeat_byte(1), B256::repeat_byte(2));
        let conflict = Some(FinalityConflict { number: 90, ours, theirs });
        let told = troubles(&FollowStatus { conflict, ..failing });
        let [told] = told.as_slice() else { panic!("{told:?}") };
        assert!(told.contains(&ours.to_string()) && told.contains(&theirs.to_string()), "{told}");
    }

    #[test]
    fn a_failure_that_passes_is_no_trouble_and_one_that_lasts_is() {
        let last_error = Some("the chain moved".to_owned());
        let once = FollowStatus { last_error, failing_since: ago(5), ..at_tip() };
        assert!(troubles(&once).is_empty());
        let expected = ["the upstream cannot be followed: the chain moved"];
        assert_eq!(troubles(&FollowStatus { failing_since: ago(7), ..once.clone() }), expected);
        // What a human must act on is told at once.
        assert_eq!(troubles(&FollowStatus { is_failure_lasting: true, ..once }), expected);
        let tip_error = Some("the connection broke".to_owned());
        let silent = |seconds| FollowStatus {
            tip_error: tip_error.clone(),
            heard_at: ago(seconds),
            ..at_tip()
        };
        assert!(troubles(&silent(2)).is_empty());
        assert!(!troubles(&silent(4)).is_empty());
    }

    #[test]
    fn a_tip_that_stands_still_a_lost_quorum_and_unknown_finality_are_troubles() {
        let still = |seconds| FollowStatus {
            upstream_highest: Some((108, ago(seconds).unwrap())),
            ..at_tip()
        };
        assert!(troubles(&still(110)).is_empty());
        let told = troubles(&still(600));
        assert_eq!(told, ["the upstream has told of no block above 108 for 600 s"]);
        // An epoch of twelve seconds a block.
        let slow =
            |seconds| FollowStatus { block_time: Some(Duration::from_secs(12)), ..still(seconds) };
        assert!(troubles(&slow(380)).is_empty() && !troubles(&slow(390)).is_empty());
        let apart = |reached| FollowStatus { upstream_reached: Some(reached), ..at_tip() };
        assert!(troubles(&apart(116)).is_empty());
        let expected =
            "the upstreams agree on no block above 108, though they have blocks up to 117";
        assert_eq!(troubles(&apart(117)), [expected]);
        let log_error = Some("no space left".to_owned());
        let unwritten = troubles(&FollowStatus { log_error, ..at_tip() });
        assert_eq!(unwritten, ["the head's log cannot be written: no space left"]);
        let finality = |seconds| {
            let since = ago(seconds).unwrap();
            FollowStatus { finality_error: Some((since, "no answer".to_owned())), ..at_tip() }
        };
        assert!(troubles(&finality(600)).is_empty());
        assert_eq!(troubles(&finality(700)), ["it is not known what is final: no answer"]);
    }

    fn ago(seconds: u64) -> Option<Instant> {
        Instant::now().checked_sub(Duration::from_secs(seconds))
    }

    #[test]
    fn two_block_times_of_silence_or_of_waiting_for_a_block_are_troubles() {
        let check = |status: &FollowStatus, begin: &str, end: &str| {
            let told = troubles(status);
            let [told] = told.as_slice() else { panic!("{told:?}") };
            assert!(told.starts_with(begin) && told.ends_with(end), "{told}");
        };
        check(&FollowStatus { heard_at: None, ..at_tip() }, "no upstream has told its tip yet", "");
        let heard = |seconds| FollowStatus { heard_at: ago(seconds), ..at_tip() };
        assert!(troubles(&heard(2)).is_empty());
        check(&heard(600), "no upstream has told its tip for 60", " s");
        let refused = FollowStatus { tip_error: Some("HTTP 429".to_owned()), ..heard(600) };
        check(&refused, "no upstream has told its tip for 60", " s: HTTP 429");
        // A node that is asked seldom is not silent between two questions.
        let poll_every = Duration::from_secs(500);
        assert!(troubles(&FollowStatus { poll_every, ..heard(600) }).is_empty());
        // Heard of ever since, but never reached.
        let awaited = |seconds| FollowStatus {
            awaited: vec![(101, ago(seconds).unwrap())],
            upstream_tip: Some(101),
            ..at_tip()
        };
        assert!(!is_behind(&awaited(2)) && troubles(&awaited(2)).is_empty());
        check(&awaited(600), "1 block behind the upstream, for 60", " s");
        assert!(is_behind(&awaited(600)));
    }
}
