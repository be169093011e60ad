//! Whatever comes over a WebSocket: the session ends when its client does, what it says are frames
//! as RFC 6455 has them, and it holds no more memory than the server's budget lets it.
//!
//! The first byte of an input chooses how the rest is read: as the bytes of frames, or as a list of
//! frames that are put together here, so that masks and lengths need not be guessed. Bytes are held
//! against the budget twice: by what the budget counted, and by what was allocated.

#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chain::ChainSpec;
use libfuzzer_sys::fuzz_target;
use rpc::http::{FirstReader, HttpSettings, Server};
use rpc::{Service, ServiceSettings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex, split};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

const HANDSHAKE: &str = "GET / HTTP/1.1\r\nhost: fuzz\r\nconnection: upgrade\r\n\
    upgrade: websocket\r\nsec-websocket-version: 13\r\n\
    sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

const BODY_BYTES_MAX: usize = 32 << 10;
const BUDGET_BYTES: usize = 128 << 10;
/// Of a batch, after which the rest of it is refused.
const BATCH_BYTES_MAX: usize = 32 << 10;
/// The longest answer of the data folder to one call.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// What a connection has beside what the budget counts: its buffers, and the copies of a message
/// that is being handed on.
const CONNECTION_BYTES_MAX: usize = 512 << 10;
/// Sent at the most: a good deal more than may be held.
const SENT_BYTES_MAX: usize = 4 << 20;
const PIPE_BYTES: usize = 16 << 10;
/// Shorter than any time that the server waits for, by a clock that moves only when nothing else does.
const MOMENT: Duration = Duration::from_millis(1);
/// By the same clock.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Counts what is allocated.
struct CountingAllocator;

static HELD: AtomicUsize = AtomicUsize::new(0);
static HELD_PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

// SAFETY: All is done by the system's allocator; counting touches no memory of its callers.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        HELD_PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: As our own caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: As our own caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

static SERVICE: LazyLock<Arc<Service>> = LazyLock::new(|| {
    let settings = ServiceSettings {
        batch_items_max: 16,
        batch_bytes_max: BATCH_BYTES_MAX,
        // What is kept for other clients is no memory of a connection.
        cache_bytes_max: 0,
        ..ServiceSettings::default()
    };
    Arc::new(fuzz::service(ChainSpec::bare("fuzz", Some(1), None), settings))
});

static RUNTIME: LazyLock<Runtime> = LazyLock::new(fuzz::runtime);

fuzz_target!(init: prepare(), |data: &[u8]| check_input(data));

/// What takes long is no input's fault.
fn prepare() {
    LazyLock::force(&SERVICE);
    LazyLock::force(&RUNTIME);
}

fn check_input(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let sent = if choice & 1 == 0 { rest.to_vec() } else { put_frames(rest) };
    let settings = HttpSettings {
        body_bytes_max: BODY_BYTES_MAX,
        bytes_under_way_max: BUDGET_BYTES,
        socket_requests_max: 4,
        subscriptions_max: 4,
        ..HttpSettings::default()
    };
    let server = Arc::new(Server::new(Arc::clone(&SERVICE), settings));
    let answered = RUNTIME.block_on(exchange(&server, &sent));
    assert_eq!(server.budget().bytes(), 0, "what is over is counted");
    let bytes_max = BUDGET_BYTES + BATCH_BYTES_MAX + ANSWER_BYTES_MAX;
    assert!(server.budget().bytes_peak() <= bytes_max, "{}", server.budget().bytes_peak());
    check_frames(&answered);
}

/// Connects, sends all of it and ends; what came back. Fails if the server does not end then.
async fn exchange(server: &Arc<Server>, sent: &[u8]) -> Vec<u8> {
    let (client, stream) = duplex(PIPE_BYTES);
    let (mut from_server, mut to_server) = split(client);
    let mut answered = Vec::with_capacity(SENT_BYTES_MAX);
    // What the first connection of all sets up for those after it is there by now.
    let held = HELD.load(Ordering::Relaxed);
    HELD_PEAK.store(held, Ordering::Relaxed);
    {
        let serving =
            pin!(timeout(END_TIMEOUT, server.serve_in_memory(stream, FirstReader::Hyper)));
        let sending = async {
            // One that has closed reads no more.
            let _ = to_server.write_all(HANDSHAKE.as_bytes()).await;
            let _ = to_server.write_all(sent).await;
            // Not before all is answered that will be.
            sleep(MOMENT).await;
            let _ = to_server.shutdown().await;
        };
        let reading =
            async { while from_server.read_buf(&mut answered).await.is_ok_and(|it| it > 0) {} };
        let (served, (), ()) = tokio::join!(serving, sending, reading);
        served.expect("a session ends when its client does");
    }
    let grown = HELD_PEAK.load(Ordering::Relaxed).saturating_sub(held);
    let own = answered.capacity().saturating_sub(SENT_BYTES_MAX);
    let bytes_max = BUDGET_BYTES + ANSWER_BYTES_MAX + CONNECTION_BYTES_MAX;
    assert!(grown <= bytes_max + 2 * own, "{grown} bytes were held");
    answered
}

/// Frames of a client: for each a byte with FIN and opcode as they are sent, a length, and some bytes
/// that are repeated until there are so many.
fn put_frames(mut data: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    while let Some(([begin, low, high, unit], rest)) = data.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (payload, rest) = rest.split_at(usize::from(*unit).min(rest.len()));
        data = rest;
        let length = if payload.is_empty() { 0 } else { length.max(payload.len()) };
        if frames.len() + length > SENT_BYTES_MAX {
            break;
        }
        frames.push(*begin);
        match u8::try_from(length) {
            Ok(short @ ..=125) => frames.push(0x80 | short),
            _ => {
                frames.push(0x80 | 126);
                frames.extend_from_slice(&u16::try_from(length).expect("of 16 bits").to_be_bytes());
            }
        }
        // A mask of zeros changes nothing.
        frames.extend_from_slice(&[0; 4]);
        frames.extend(payload.iter().cycle().take(length));
    }
    frames
}

/// Behind the answer to the handshake come whole messages of text, and control frames between them;
/// the last frame may be cut off, as by a client that is gone.
fn check_frames(answered: &[u8]) {
    let end = answered.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.expect("a handshake is answered");
    assert!(answered.starts_with(b"HTTP/1.1 101 "), "a handshake is accepted");
    let mut rest = &answered[end + 4..];
    let mut message: Option<Vec<u8>> = None;
    let mut is_closed = false;
    while let Some((begin, payload, behind)) = read_frame(rest) {
        rest = behind;
        assert!(!is_closed, "nothing comes behind a close frame");
        let (is_last, opcode) = (begin & 0x80 != 0, begin & 0x0f);
        assert_eq!(begin & 0x70, 0, "no extension was agreed on");
        match opcode {
            0 => message.as_mut().expect("a message goes on").extend_from_slice(payload),
            1 => {
                assert!(message.is_none(), "a message begins in another");
                message = Some(payload.to_vec());
            }
            8..=10 => {
                assert!(is_last && payload.len() <= 125, "a control frame");
                is_closed = opcode == 8;
                continue;
            }
            _ => panic!("opcode {opcode}"),
        }
        if is_last {
            let whole = message.take().expect("a message");
            serde_json::from_slice::<serde::de::IgnoredAny>(&whole).expect("an answer is JSON");
        }
    }
}

/// First byte, payload and what comes behind, if the frame is there whole.
fn read_frame(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let ([begin, length], rest) = bytes.split_first_chunk()?;
    assert_eq!(length & 0x80, 0, "servers do not mask");
    let (length, rest) = match length {
        126 => {
            let (length, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        127 => {
            let (length, rest) = rest.split_first_chunk()?;
            (usize::try_from(u64::from_be_bytes(*length)).expect("a length"), rest)
        }
        short => (usize::from(*short), rest),
    };
    let (payload, rest) = rest.split_at_checked(length)?;
    Some((*begin, payload, rest))
}
