//! Abuse of HTTP/1.1: much at once, little at a time, and what is malformed.

use std::io::{self, Write as _};

use anyhow::Result;

use crate::attack::{Attack, RawConnection, send_and_receive};
use crate::http1::{BROWSER, PLAIN, post, post_head};
use crate::raw_requests::{RawRequest, raw_requests, valid_request};

const ASKED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;
const LONG_BODY_BYTES: usize = 4 << 20;
const PIPELINED_COUNT: usize = 52_000;

/// Half of the connections go through hyper.
pub(super) fn fields(index: usize) -> &'static str {
    if index.is_multiple_of(2) { PLAIN } else { BROWSER }
}

/// A long body, then many short requests, without waiting for answers; those are read.
pub(super) fn pipelined(attack: &Attack<'_>) -> Result<()> {
    let mut long = ASKED.as_bytes().to_vec();
    long.resize(LONG_BODY_BYTES, b' ');
    let short = post(PLAIN, ASKED.as_bytes());
    let all = [post(PLAIN, &long), short.repeat(PIPELINED_COUNT)].concat();
    let count = PIPELINED_COUNT.saturating_add(1);
    attack.repeat(|_| {
        let send = |connection: &mut RawConnection<'_>| connection.write_all(&all);
        let receive = |connection: &mut RawConnection<'_>| connection.read_answers(count);
        let statuses = send_and_receive(attack.connect()?, send, receive)?;
        let right = statuses.iter().filter(|status| **status == 200).count();
        if right < count {
            attack.tally.complain(format!("{right} of {count} pipelined requests were answered"));
        }
        Ok(())
    })
}

/// Heads that never end.
pub(super) fn slow_heads(attack: &Attack<'_>) -> Result<()> {
    let request = valid_request();
    let head = request.as_bytes();
    let open = |_| attack.connect()?.without_waiting();
    attack.keep(open, |connection| {
        let at = connection.sent;
        // All but the end of the head, which would be the end of the waiting.
        let byte = head.get(at).filter(|_| at < 32).unwrap_or(&b'y');
        connection.send_at_once(&[*byte])
    })
}

/// Bodies that never end.
pub(super) fn slow_bodies(attack: &Attack<'_>) -> Result<()> {
    let open = |index| {
        let mut connection = attack.connect()?;
        connection.write_all(post_head(fields(index), LONG_BODY_BYTES).as_bytes())?;
        connection.without_waiting()
    };
    attack.keep(open, |connection| connection.send_at_once(b" "))
}

/// Answers of which a byte is taken now and then.
pub(super) fn slow_readers(attack: &Attack<'_>) -> Result<()> {
    let open = |index| {
        let mut connection = attack.connect_narrow()?;
        connection.write_all(&post(fields(index), attack.largest.batch.as_bytes()))?;
        connection.without_waiting()
    };
    attack.keep(open, |connection| connection.take_at_once(1))
}

/// All of the table, over both paths of the server.
pub(super) fn malformed(attack: &Attack<'_>) -> Result<()> {
    let requests = raw_requests();
    attack.repeat(|_| {
        for request in &requests {
            for is_hyper in [false, true] {
                send_raw(attack, request, is_hyper)?;
            }
        }
        Ok(())
    })
}

fn send_raw(attack: &Attack<'_>, request: &RawRequest, is_hyper: bool) -> io::Result<()> {
    let RawRequest { name, raw, statuses, is_closed } = request;
    let mut connection = attack.connect()?;
    if is_hyper {
        connection.write_all(b"GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n")?;
        connection.read_answers(1)?;
    }
    // The server may have closed before all of it is sent.
    let _ = connection.write_all(raw);
    let path = if is_hyper { "through hyper" } else { "directly" };
    let found = connection.read_answers(statuses.len()).inspect_err(|error| {
        attack.tally.complain(format!("{name}, {path}: {error} instead of {statuses:?}"));
    })?;
    if found != *statuses {
        attack.tally.complain(format!("{name}, {path}: {found:?} instead of {statuses:?}"));
    }
    // Ended by a reset where not all was read, which is an end too.
    if *is_closed && let Ok(more @ 1..) = connection.read_answers(1).map(|more| more.len()) {
        attack.tally.complain(format!("{name}: {more} more answers"));
    }
    Ok(())
}
