//! Calls and requests are counted once, and with their own time, however they end.

use serde_json::{Value, json};
use store::Limits;
use store::read::Inline;
use testing::disk::faulty::FaultyDisk;
use tokio::time::{sleep, timeout};

use super::*;
use crate::budget::{ByteLease, LeasedFor};
use crate::pass_through::{AnswerRoom, Passing};

/// How long the node takes.
const NODE_TIME: Duration = Duration::from_millis(800);

/// A node that answers after a time.
#[derive(Debug)]
struct SlowNode;

impl PassThrough for SlowNode {
    fn ask<'a>(&'a self, _: Vec<u8>, _: &'a mut AnswerRoom) -> Passing<'a> {
        Box::pin(async {
            sleep(NODE_TIME).await;
            Ok(br#"{"result":"0x7"}"#.to_vec())
        })
    }
}

fn service(settings: ServiceSettings) -> Service {
    let disk = Arc::new(FaultyDisk::new(1));
    let store = Store::open(disk, Arc::new(Inline), Limits::default()).unwrap();
    let service = Service::new(Arc::new(store), ChainSpec::bare("live", Some(7), None), settings);
    service.with_pass_through(vec!["eth_call".parse().unwrap()], Arc::new(SlowNode))
}

/// A batch of calls of these methods.
fn batch(methods: &[&str]) -> Vec<u8> {
    let call = |method: &&str| json!({ "jsonrpc": "2.0", "id": 1, "method": method });
    Value::from(methods.iter().map(call).collect::<Vec<_>>()).to_string().into_bytes()
}

/// A method, how often its calls ended how, and how many milliseconds they took together.
type CountedCalls = (&'static str, Vec<(&'static str, u64)>, f64);

/// Which calls were counted.
fn counted(service: &Service) -> Vec<CountedCalls> {
    let by_method = service.traffic.by_method().into_iter();
    let seen = by_method.filter(|it| it.times.count() > 0).map(|it| {
        let ended = CallOutcome::ALL.iter().map(|outcome| (outcome.label(), it.ended(*outcome)));
        let ended: Vec<_> = ended.filter(|(_, count)| *count > 0).collect();
        let count: u64 = ended.iter().map(|(_, count)| count).sum();
        assert_eq!(count, it.times.count(), "{it:?}");
        (it.method, ended, (it.times.seconds * 1000.0).round())
    });
    seen.collect()
}

/// The time of the node was counted as that of the call behind it.
#[tokio::test(start_paused = true)]
async fn a_call_of_a_batch_does_not_have_the_time_of_one_that_a_node_answers() {
    let service = service(ServiceSettings::default());
    let body = batch(&["eth_call", "eth_chainId", "eth_call"]);
    service.respond(&body, Duration::from_secs(5)).await.unwrap();
    let expected = [
        ("eth_chainId", vec![("result", 1)], 0.0),
        // Both were on their way at the same time.
        ("forwarded", vec![("result", 2)], 1600.0),
    ];
    assert_eq!(counted(&service), expected);
}

/// A limit that was raised while a batch was answered put answers into the places of others.
#[tokio::test(start_paused = true)]
async fn settings_that_change_change_nothing_of_a_batch_under_way() {
    let tight = ServiceSettings { batch_bytes_max: 10, ..ServiceSettings::default() };
    let service = service(tight);
    let body = batch(&["eth_call"; 20]);
    let answering = service.respond(&body, Duration::from_secs(5));
    let raising = async {
        sleep(NODE_TIME / 2).await;
        service.set_settings(ServiceSettings::default());
    };
    let (answer, ()) = tokio::join!(answering, raising);
    let answer: Vec<Value> = serde_json::from_slice(&answer.unwrap()).unwrap();
    let refused = answer.iter().filter(|it| it["error"]["code"] == -32003).count();
    assert_eq!((answer.len(), refused), (20, 19), "{answer:?}");
    let body = batch(&["eth_call"; 20]);
    let answer = service.respond(&body, Duration::from_secs(5)).await.unwrap();
    assert!(!String::from_utf8(answer).unwrap().contains("error"));
}

/// A call that was on its way and then refused was counted as both.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_refused_while_it_is_on_its_way_is_counted_once() {
    let settings = ServiceSettings { batch_bytes_max: 10, ..ServiceSettings::default() };
    let too_long = service(settings);
    let body = batch(&["eth_call", "eth_call", "eth_call", "eth_chainId"]);
    too_long.respond(&body, Duration::from_secs(5)).await.unwrap();
    let expected = [
        ("eth_chainId", vec![("limit", 1)], 0.0),
        ("forwarded", vec![("result", 1), ("limit", 2)], 2400.0),
    ];
    assert_eq!(counted(&too_long), expected);
    let late = service(ServiceSettings::default());
    late.respond(&body, Duration::from_millis(500)).await.unwrap();
    let expected =
        [("eth_chainId", vec![("timeout", 1)], 0.0), ("forwarded", vec![("timeout", 3)], 1500.0)];
    assert_eq!(counted(&late), expected);
}

/// Seen: whoever asked for much and left was in no counter.
#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_is_counted_as_cancelled() {
    let patience = Duration::from_millis(500);
    let both = batch(&["eth_chainId", "eth_call", "eth_call"]);
    let alone = r#"{"jsonrpc":"2.0","id":1,"method":"eth_call"}"#.as_bytes();
    for (body, calls, expected) in [
        (
            &both[..],
            3,
            vec![
                ("eth_chainId", vec![("result", 1)], 0.0),
                ("forwarded", vec![("cancelled", 2)], 1000.0),
            ],
        ),
        (alone, 1, vec![("forwarded", vec![("cancelled", 1)], 500.0)]),
    ] {
        let service = service(ServiceSettings::default());
        let answering = service.respond(body, Duration::from_secs(5));
        assert!(timeout(patience, answering).await.is_err());
        assert_eq!(counted(&service), expected);
        let traffic = service.traffic();
        let found = (traffic.requests, traffic.calls, traffic.body_bytes, traffic.answer_bytes);
        assert_eq!(found, (1, calls, u64::try_from(body.len()).unwrap(), 0));
    }
}

/// Leases that failed were counted, refusals or not.
#[tokio::test(start_paused = true)]
async fn a_refusal_for_want_of_room_is_counted_once_it_is_answered() {
    let service = service(ServiceSettings { cache_bytes_max: 0, ..ServiceSettings::default() });
    let full = Budget::new(1);
    let taken = ByteLease::of(&full, 10_000, LeasedFor::Answer).unwrap();
    let body = batch(&["rpc.discover"; 3]);
    for (refusals, room) in [(1, Some(taken)), (1, None)] {
        let limits = RequestLimits::anybodys(&full);
        let reply = service.reply(None, &body, limits).await.unwrap();
        let status = reply.status();
        let expected = if room.is_some() { ReplyStatus::Overloaded } else { ReplyStatus::Answered };
        assert_eq!((status, full.counts().refusals), (expected, refusals));
    }
}
