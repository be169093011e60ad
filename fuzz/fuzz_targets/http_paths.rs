//! Whatever a connection sends, both paths answer alike: the fast path takes no request that hyper
//! reads in another way, or refuses.
//!
//! Each input is served twice by a whole server: once as ever, once by hyper from the first byte on.
//! Statuses, headers, bodies and whether the connection ends are compared, so a head that is read in
//! another way shows: by where its body begins and ends, how its answer is packed, and what comes
//! next. The first byte of an input chooses the server's settings and in how many pieces the rest
//! comes.

#![no_main]

use std::io::Read as _;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chain::ChainSpec;
use libfuzzer_sys::fuzz_target;
use rpc::ServiceSettings;
use rpc::http::{FirstReader, HttpSettings, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::runtime::Runtime;
use tokio::time::sleep;

/// How HTTP/2 begins. It is hyper's alone, and its answers have dates inside. Behind a request the fast
/// path refuses it with a reason, and hyper closes without one.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Sent last: hyper refuses a malformed head without an end at once or when its end comes, by how its
/// reads fall.
const HEAD_END: &[u8] = b"\r\n\r\n";
/// Small, so that a request beyond it is soon found.
const BODY_BYTES_MAX: usize = 2048;
/// More than all answers to one input.
const PIPE_BYTES: usize = 8 << 20;
/// Shorter than any time that the server waits for.
const MOMENT: Duration = Duration::from_millis(1);

/// With every host, and with one; with every origin, and with none.
static SERVERS: LazyLock<[Arc<Server>; 2]> = LazyLock::new(|| {
    let settings =
        ServiceSettings { batch_items_max: 16, batch_bytes_max: 65_536, ..Default::default() };
    let spec = ChainSpec::bare("fuzz", Some(1), None);
    let service = Arc::new(fuzz::service(spec, settings));
    let open = HttpSettings { body_bytes_max: BODY_BYTES_MAX, ..HttpSettings::default() };
    let closed = HttpSettings {
        hosts: vec!["localhost".to_owned()],
        cors_origins: Vec::new(),
        ..open.clone()
    };
    [open, closed].map(|settings| Arc::new(Server::new(Arc::clone(&service), settings)))
});

static RUNTIME: LazyLock<Runtime> = LazyLock::new(fuzz::runtime);

/// What a client has seen.
#[derive(Debug, PartialEq, Eq)]
struct SeenExchange {
    answers: Vec<SeenAnswer>,
    /// What is no answer.
    rest: Vec<u8>,
    is_closed: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct SeenAnswer {
    status: String,
    /// In their order by name; no date.
    headers: Vec<String>,
    /// Unpacked.
    body: Vec<u8>,
}

fuzz_target!(init: prepare(), |data: &[u8]| check_input(data));

/// What takes long is no input's fault.
fn prepare() {
    LazyLock::force(&SERVERS);
    LazyLock::force(&RUNTIME);
}

fn check_input(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    if bytes.windows(HTTP2_PREFACE.len()).any(|window| window == HTTP2_PREFACE) {
        return;
    }
    let server = &SERVERS[usize::from(choice & 1)];
    let pieces = usize::from(choice >> 1).clamp(1, 64);
    let see = |first| read_exchange(RUNTIME.block_on(exchange(server, first, pieces, bytes)));
    let (found, expected) = (see(FirstReader::FastPath), see(FirstReader::Hyper));
    assert_eq!(found, expected, "left: as ever; right: hyper alone");
    assert_eq!(server.budget().bytes(), 0);
}

/// Sends the bytes in so many pieces; what came back by the time at which nothing moves any more, and
/// whether the server closed.
async fn exchange(
    server: &Arc<Server>,
    first: FirstReader,
    pieces: usize,
    bytes: &[u8],
) -> (Vec<u8>, bool) {
    let (mut client, stream) = duplex(PIPE_BYTES);
    let mut serving = pin!(server.serve_in_memory(stream, first));
    let mut is_served = false;
    let pieces = bytes.chunks(bytes.len().div_ceil(pieces).max(1));
    for piece in pieces.chain([HEAD_END]) {
        // One that has closed reads no more.
        let _ = client.write_all(piece).await;
        tokio::select! {
            biased;
            () = &mut serving, if !is_served => is_served = true,
            () = sleep(MOMENT) => {}
        }
    }
    let mut answered = Vec::new();
    loop {
        tokio::select! {
            biased;
            read = client.read_buf(&mut answered) => match read {
                Ok(0) | Err(_) => return (answered, true),
                Ok(_) => {}
            },
            () = &mut serving, if !is_served => is_served = true,
            () = sleep(MOMENT) => return (answered, false),
        }
    }
}

/// Takes apart what came back.
fn read_exchange((bytes, is_closed): (Vec<u8>, bool)) -> SeenExchange {
    let mut exchange = SeenExchange { answers: Vec::new(), rest: Vec::new(), is_closed };
    let mut rest = &bytes[..];
    while let Some((answer, behind)) = read_answer(rest) {
        rest = behind;
        let is_upgraded = answer.status.starts_with("HTTP/1.1 101");
        exchange.answers.push(answer);
        if is_upgraded {
            // From here on it is a WebSocket, whose ids of subscriptions are never the same.
            return SeenExchange { is_closed: false, ..exchange };
        }
    }
    exchange.rest = rest.to_vec();
    exchange
}

fn read_answer(bytes: &[u8]) -> Option<(SeenAnswer, &[u8])> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let (status, fields) = head.split_once("\r\n").unwrap_or((head, ""));
    let find = |name: &str| {
        fields.split("\r\n").find_map(|field| field.strip_prefix(name)?.strip_prefix(": "))
    };
    let length = find("content-length").map_or(0, |length| length.parse().expect("a number"));
    let (body, rest) = bytes[end + 4..].split_at_checked(length)?;
    let packing = find("content-encoding");
    // A body that is packed at once has another length than one that is put together of packed parts.
    let is_compared = |field: &&str| {
        let name = field.split(':').next().unwrap_or_default();
        !(field.is_empty() || name == "date" || name == "content-length" && packing.is_some())
    };
    let mut headers: Vec<String> =
        fields.split("\r\n").filter(is_compared).map(str::to_owned).collect();
    headers.sort_unstable();
    let body = unpack(packing, body);
    Some((SeenAnswer { status: status.to_owned(), headers, body }, rest))
}

fn unpack(packing: Option<&str>, body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match packing {
        None => plain.extend_from_slice(body),
        Some("gzip") => {
            flate2::read::MultiGzDecoder::new(body).read_to_end(&mut plain).expect("gzip");
        }
        Some("zstd") => plain = zstd::stream::decode_all(body).expect("zstd"),
        Some("br") => {
            brotli::Decompressor::new(body, 4096).read_to_end(&mut plain).expect("brotli");
        }
        Some(other) => panic!("nobody asked for {other}"),
    }
    plain
}
