//! Clients that ask for much and take little, beside the server's budget.
//!
//! Nothing here measures time: bytes are those that the budget counts, turns those that it gave to
//! others, and what is waited for is that nothing is under way any more.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use rpc::ServiceSettings;
use rpc::http::HttpSettings;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::harness::hosted::{Hosted, service};
use crate::harness::http2::{DATA, HEADERS, Http2, PING, SETTINGS, frame};
use crate::harness::socket::Socket;
use crate::harness::stores::data_folder;
use crate::harness::wait::{wait_for, wait_until};
use crate::limits::request;

const MIB: usize = 1 << 20;
/// Requests of one slice at the most.
const SLICE_REQUESTS_MAX: u64 = 32;
const ASKED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;

fn hosted(settings: HttpSettings) -> Hosted {
    let own = ServiceSettings { cache_bytes_max: 0, ..ServiceSettings::default() };
    Hosted::start(service(&data_folder("sample"), own), settings)
}

/// A batch whose answer is some megabytes long: more than sockets take that nobody reads from.
fn long_batch() -> String {
    let call = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "method": "eth_getBlockByNumber", "params": [20, true] });
    Value::from((0..80).map(call).collect::<Vec<_>>()).to_string()
}

/// Bytes of its answer.
fn long_bytes(hosted: &Hosted) -> usize {
    let mut stream = hosted.connect();
    stream.write_all(closing(&request(&long_batch())).as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer.len()
}

/// The same request, on a connection that ends with its answer.
fn closing(request: &str) -> String {
    request.replace("host: test", "host: test\r\nconnection: close")
}

/// The same request with a field that no other path than hyper's knows.
fn through_hyper(request: &str) -> String {
    request.replace("host: test", "host: test\r\norigin: http://a.example")
}

/// The status line of an answer that has begun.
fn status(stream: &mut TcpStream) -> String {
    let mut line = [0; 12];
    stream.read_exact(&mut line).unwrap();
    String::from_utf8(line.to_vec()).unwrap()
}

#[test]
fn a_long_body_before_many_short_requests_is_read_once() {
    const COUNT: u64 = 52_000;
    let hosted =
        hosted(HttpSettings { threads: Some(1.try_into().unwrap()), ..HttpSettings::default() });
    let long = format!("{ASKED}{}", " ".repeat(4 * MIB));
    let all = [request(&long), request(ASKED).repeat(usize::try_from(COUNT).unwrap())].concat();
    let mut stream = hosted.connect();
    let mut writer = stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            writer.write_all(all.as_bytes()).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut answers = String::new();
        stream.read_to_string(&mut answers).unwrap();
        let count = answers.matches("\"result\":\"0x3ff\"").count();
        assert_eq!(count, usize::try_from(COUNT).unwrap() + 1);
    });
    // The body, what its buffer grew from, and one read behind it.
    let peak = hosted.budget.bytes_peak();
    assert!((4 * MIB..9 * MIB).contains(&peak), "{peak}");
    hosted.settle(&stream);
}

#[test]
fn a_body_of_a_million_requests_is_worked_on_in_slices_packed_or_not() {
    let body = format!("[{}{{}}]", "{},".repeat(1_600_000));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    assert!(packed.len() < 8192);
    let head = |length: usize, more: &str| {
        closing(&request(""))
            .replace("content-length: 0", &format!("content-length: {length}{more}"))
    };
    let plain = [head(body.len(), "").as_bytes(), body.as_bytes()].concat();
    let packed = [head(packed.len(), "\r\ncontent-encoding: gzip").as_bytes(), &packed].concat();
    // The same without a field that sends it to hyper at once.
    let direct = [request(&body), closing(&request(ASKED))].concat().into_bytes();
    for asked in [plain, packed, direct] {
        let hosted = hosted(HttpSettings::default());
        let mut stream = hosted.connect();
        stream.write_all(&asked).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(answer.matches("batch too large").count(), 1, "{answer}");
        let (pauses, peak) = (hosted.budget.pauses(), hosted.budget.bytes_peak());
        assert!(pauses >= 1_600_000 / SLICE_REQUESTS_MAX, "{pauses} turns for others");
        // What a body becomes counts, not what came.
        assert!((body.len()..4 * body.len()).contains(&peak), "{peak}");
        hosted.settle(&stream);
    }
}

#[test]
fn answers_that_nobody_takes_stay_within_the_budget_and_more_are_told_to_come_again() {
    let bytes = long_bytes(&hosted(HttpSettings::default()));
    for shape in [request as fn(&str) -> String, |body| through_hyper(&request(body))] {
        let bytes_under_way_max = bytes * 5 / 2;
        let hosted = hosted(HttpSettings { bytes_under_way_max, ..HttpSettings::default() });
        let mut refused = 0;
        let mut streams = Vec::new();
        for _ in 0..8 {
            let mut stream = hosted.connect();
            stream.write_all(shape(&long_batch()).as_bytes()).unwrap();
            let found = status(&mut stream);
            if found == "HTTP/1.1 503" {
                refused += 1;
                let mut rest = vec![0; 2048];
                let count = stream.read(&mut rest).unwrap();
                let rest = String::from_utf8_lossy(&rest[..count]);
                assert!(rest.contains("retry-after: 1\r\n"), "{rest}");
            } else {
                assert_eq!(found, "HTTP/1.1 200");
            }
            streams.push(stream);
        }
        // Two fit, and one more is always admitted. A buffer may be some bytes larger than its answer.
        assert!((5..=6).contains(&refused), "{refused} of 8");
        let peak = hosted.budget.bytes_peak();
        assert!(peak <= bytes_under_way_max + 2 * bytes, "{peak} of {bytes_under_way_max}");
        // Short answers take no room: they go on.
        let mut beside = hosted.connect();
        beside.write_all(request(ASKED).as_bytes()).unwrap();
        assert_eq!(status(&mut beside), "HTTP/1.1 200");
        drop(streams);
        hosted.settle(&beside);
        assert_eq!(long_bytes(&hosted) / 1024, bytes / 1024);
    }
}

/// A number of kibibytes that the system tells of a process.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn kibibytes(process: u32, name: &str) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches(|it: char| !it.is_ascii_digit()).parse().unwrap()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn memory_stays_near_the_budget_and_goes_back_to_the_system() {
    let served = crate::harness::stores::serve("sample", &["--bytes-under-way-max", "67108864"]);
    served.post(ASKED);
    let before = kibibytes(served.id(), "VmRSS:");
    let long: Value = serde_json::from_str(&long_batch()).unwrap();
    let long = long.as_array().unwrap();
    for count in [80, 20, 80, 7, 80] {
        let asked = request(&Value::from(&long[..count]).to_string());
        let mut streams: Vec<TcpStream> =
            (0..40).map(|_| TcpStream::connect(served.address()).unwrap()).collect();
        for stream in &mut streams {
            stream.write_all(asked.as_bytes()).unwrap();
        }
        for stream in &mut streams {
            status(stream);
        }
    }
    // The budget, one answer beyond it, one that each thread makes, and as much again for their growing.
    let most = kibibytes(served.id(), "VmHWM:") - before;
    let threads = std::thread::available_parallelism().unwrap().get();
    assert!(most < (96 + 32 * threads) * 1024, "{most} KiB");
    wait_for_memory(served.id(), before);
}

/// Waits until a process has not much more memory than it had before.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn wait_for_memory(process: u32, before: usize) {
    let more = || kibibytes(process, "VmRSS:").saturating_sub(before);
    wait_for(|| (more() < 24 * 1024).then_some(()), || format!("{} KiB stay", more()));
}

/// A socket kept the memory of its longest message for as long as it was open, and nobody counted it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn sockets_that_stay_give_the_memory_of_long_messages_back() {
    let served = crate::harness::stores::serve("sample", &[]);
    served.post(ASKED);
    let before = kibibytes(served.id(), "VmRSS:");
    let long = format!("{}{ASKED}", " ".repeat(4 * MIB));
    let mut sockets: Vec<Socket> = (0..24).map(|_| Socket::at(served.address())).collect();
    for (index, socket) in sockets.iter_mut().enumerate() {
        // In one frame, and in a long one and its short end.
        if index.is_multiple_of(2) {
            socket.send_text(&long);
        } else {
            let (begin, end) = long.split_at(long.len() - 20);
            for (code, text, is_last) in [(Data::Text, begin, false), (Data::Continue, end, true)] {
                let frame = Frame::message(text.to_owned(), OpCode::Data(code), is_last);
                socket.send(Message::Frame(frame));
            }
        }
        assert_eq!(socket.next()["result"], "0x3ff");
    }
    wait_for_memory(served.id(), before);
    for socket in &mut sockets {
        assert_eq!(socket.call("eth_blockNumber", &json!([]))["result"], "0x3ff");
    }
}

/// The length of a frame was reserved when its head came, and nobody counted it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn what_sockets_only_announce_takes_no_memory() {
    let served = crate::harness::stores::serve("sample", &[]);
    served.post(ASKED);
    let before = kibibytes(served.id(), "VmData:");
    // The pong is written when the head behind its ping has been read.
    let ping = [&[0x89, 0x81, 0, 0, 0, 0][..], b"p"].concat();
    let sent = [&ping[..], &frame_head(0x81, 4 * MIB)].concat();
    let announced = 64 * 4 * MIB / 1024;
    let streams: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut stream = TcpStream::connect(served.address()).unwrap();
            stream.write_all(UPGRADE.as_bytes()).unwrap();
            let mut came = Vec::new();
            while !came.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                came.extend(byte);
            }
            stream.write_all(&sent).unwrap();
            let mut answer = [0; 3];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [0x8a, 1, b'p']);
            stream
        })
        .collect();
    let more = kibibytes(served.id(), "VmData:").saturating_sub(before);
    assert!(more < announced / 4, "{more} KiB more for {announced} KiB that were announced");
    drop(streams);
}

/// A message in parts had three times the memory that was counted for it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn messages_in_parts_have_the_memory_that_is_counted_for_them() {
    let served = crate::harness::stores::serve("sample", &[]);
    served.post(ASKED);
    let before = kibibytes(served.id(), "VmRSS:");
    let mut sockets: Vec<Socket> = (0..20).map(|_| Socket::at(served.address())).collect();
    for socket in &mut sockets {
        let part = Frame::message(vec![b' '; 4 * MIB], OpCode::Data(Data::Text), false);
        socket.send(Message::Frame(part));
    }
    let counted = wait_for(
        || {
            let page: Value = serde_json::from_slice(&served.get("/stat.json").body).unwrap();
            let bytes = usize::try_from(page["live"]["bytes_under_way"].as_u64()?).ok()?;
            (bytes >= 20 * 4 * MIB).then_some(bytes / 1024)
        },
        || "not all of it is counted".to_owned(),
    );
    let more = kibibytes(served.id(), "VmRSS:").saturating_sub(before);
    assert!(more < counted + counted / 4, "{more} KiB more where {counted} KiB are counted");
}

#[test]
fn bodies_that_there_is_no_room_for_are_refused_on_every_path() {
    let settings = || HttpSettings { bytes_under_way_max: 4 * MIB, ..HttpSettings::default() };
    let long = format!("{ASKED}{}", " ".repeat(3 * MIB));
    for shape in [request as fn(&str) -> String, |body| through_hyper(&request(body))] {
        let hosted = hosted(settings());
        let mut stream = hosted.connect();
        let asked = closing(&shape(&long));
        // The server may have closed before all of it is sent.
        let _ = stream.write_all(asked.as_bytes());
        assert_eq!(status(&mut stream), "HTTP/1.1 503");
        hosted.settle(&stream);
        assert!(hosted.budget.bytes_peak() <= 2 * MIB, "{}", hosted.budget.bytes_peak());
    }
    let hosted = hosted(settings());
    let mut socket = Socket::open(&hosted);
    socket.send_text(&long);
    assert_eq!(socket.closed(), (1013, "too many bytes under way".to_owned()));
    hosted.settle(&socket);
}

#[test]
fn over_a_websocket_an_answer_without_room_is_refused_by_its_ids() {
    let bytes = long_bytes(&hosted(HttpSettings::default()));
    let settings = HttpSettings { bytes_under_way_max: bytes / 2, ..HttpSettings::default() };
    let hosted = hosted(settings);
    // The one that is always admitted is held by somebody else.
    let mut idle = hosted.connect();
    idle.write_all(request(&long_batch()).as_bytes()).unwrap();
    assert_eq!(status(&mut idle), "HTTP/1.1 200");
    let mut socket = Socket::open(&hosted);
    // Short enough not to be counted itself.
    let short: Value = serde_json::from_str(&long_batch()).unwrap();
    socket.send_text(&Value::from(&short.as_array().unwrap()[..30]).to_string());
    let answer = socket.next();
    let error = json!({ "code": -32000, "message": "too many bytes under way; try again" });
    assert_eq!(answer.as_array().unwrap().len(), 30);
    for (id, answer) in answer.as_array().unwrap().iter().enumerate() {
        assert_eq!((&answer["id"], &answer["error"]), (&json!(id), &error));
    }
    assert_eq!(socket.call("eth_blockNumber", &json!([]))["result"], "0x3ff");
}

const UPGRADE: &str = "GET / HTTP/1.1\r\nhost: test\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                       sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Pings were counted as if they were kept, until the next message.
#[test]
fn pings_take_nothing_of_the_budget() {
    let hosted = hosted(HttpSettings::default());
    let mut stream = hosted.connect();
    stream.write_all(UPGRADE.as_bytes()).unwrap();
    assert_eq!(status(&mut stream), "HTTP/1.1 101");
    let ping = |letter: u8| [&[0x89, 0xfd, 0, 0, 0, 0][..], &[letter; 125]].concat();
    let mut reader = stream.try_clone().unwrap();
    let answered = std::thread::spawn(move || {
        let mut part = [0; 4096];
        while !part.contains(&0x7f) {
            let count = reader.read(&mut part).unwrap();
            assert!(count > 0, "closed");
            part[count..].fill(0);
        }
    });
    for _ in 0..2_000 {
        stream.write_all(&ping(b'a')).unwrap();
    }
    stream.write_all(&ping(0x7f)).unwrap();
    answered.join().unwrap();
    // The last pong may be on its way before its ping is forgotten.
    wait_until(|| hosted.budget.bytes() == 0);
}

/// Without a time of their own, such messages held what they had for as long as pings came.
#[test]
fn a_message_whose_rest_does_not_come_ends_its_socket_whatever_pings_come() {
    let body_timeout = Duration::from_millis(500);
    let hosted = hosted(HttpSettings { body_timeout, ..HttpSettings::default() });
    let mut socket = Socket::open(&hosted);
    // The first part of a text, which is not the last.
    let part = Frame::message(vec![b' '; MIB], OpCode::Data(Data::Text), false);
    socket.send(Message::Frame(part));
    wait_until(|| hosted.budget.bytes_peak() >= MIB);
    while socket.try_send(Message::Ping(Bytes::new())).is_ok() && hosted.budget.bytes() > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(socket.closed(), (1008, "a message took too long".to_owned()));
    hosted.settle(&socket);
    // One that comes in parts, with time between them, is answered.
    let mut socket = Socket::open(&hosted);
    let (begin, end) = ASKED.split_at(20);
    for (code, text, is_last) in [(Data::Text, begin, false), (Data::Continue, end, true)] {
        socket.send(Message::Frame(Frame::message(text, OpCode::Data(code), is_last)));
    }
    assert_eq!(socket.next()["result"], "0x3ff");
    // Silence between messages is not timed as they are.
    std::thread::sleep(body_timeout * 2);
    assert_eq!(socket.call("eth_blockNumber", &json!([]))["result"], "0x3ff");
}

/// The bytes of a client's frame before its payload, which is masked with zeros.
fn frame_head(begin: u8, payload_bytes: usize) -> Vec<u8> {
    let length = u64::try_from(payload_bytes).unwrap().to_be_bytes();
    [&[begin, 0xff][..], &length, &[0; 4]].concat()
}

/// A text that came together with the end of the one before was not timed.
#[test]
fn a_message_that_begins_behind_another_is_timed_too() {
    let body_timeout = Duration::from_millis(500);
    let hosted = hosted(HttpSettings { body_timeout, ..HttpSettings::default() });
    // A short message, and one that is longer than what is read at a time.
    for blanks in [0, 100_000] {
        let mut stream = hosted.connect();
        stream.write_all(UPGRADE.as_bytes()).unwrap();
        assert_eq!(status(&mut stream), "HTTP/1.1 101");
        let asked = format!("{ASKED}{}", " ".repeat(blanks));
        let begun = frame_head(0x81, 4 * MIB);
        let sent = [&frame_head(0x81, asked.len())[..], asked.as_bytes(), &begun].concat();
        stream.write_all(&sent).unwrap();
        let mut answered = Vec::new();
        let ended = stream.read_to_end(&mut answered);
        let text = String::from_utf8_lossy(&answered);
        assert!(ended.is_ok() && text.contains(r#""result":"0x3ff""#), "{ended:?}: {text}");
        assert!(text.ends_with("a message took too long"), "{text}");
    }
}

/// What is read with the end of a long message is read into memory that is given back.
#[test]
fn what_comes_behind_a_long_message_is_answered_too() {
    let hosted = hosted(HttpSettings::default());
    let mut stream = hosted.connect();
    let mut sent = UPGRADE.as_bytes().to_vec();
    for (id, blanks) in [20_000, 0, 9_000, 300_000, 8_192, 1, 0].into_iter().enumerate() {
        let asked = ASKED.replace("\"id\":1", &format!("\"id\":{id}")) + &" ".repeat(blanks);
        let (begin, end) = asked.split_at(asked.len() / 2);
        for (code, text) in [(0x01, begin), (0x89, "ping"), (0x80, end)] {
            sent.extend(frame_head(code, text.len()));
            sent.extend(text.as_bytes());
        }
    }
    // As it comes, and cut where nobody expects it.
    let mut writer = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        for part in sent.chunks(12_345) {
            writer.write_all(part).unwrap();
        }
    });
    let (mut answered, mut part) = (Vec::new(), [0; 4096]);
    let is_there = |answered: &[u8], id: usize| {
        String::from_utf8_lossy(answered).contains(&format!(r#""id":{id},"result":"0x3ff""#))
    };
    while !(0..7).all(|id| is_there(&answered, id)) {
        let count = stream.read(&mut part).unwrap_or(0);
        assert!(count > 0, "{}", String::from_utf8_lossy(&answered));
        answered.extend(&part[..count]);
    }
    writing.join().unwrap();
    let pongs = answered.windows(6).filter(|window| window == b"\x8a\x04ping").count();
    assert_eq!(pongs, 7, "{}", String::from_utf8_lossy(&answered));
}

#[test]
fn a_client_that_takes_a_byte_now_and_then_is_closed_on_every_path() {
    let settings =
        || HttpSettings { write_timeout: Duration::from_millis(500), ..HttpSettings::default() };
    for shape in [request as fn(&str) -> String, |body| through_hyper(&request(body))] {
        let hosted = hosted(settings());
        let mut stream = hosted.connect();
        stream.write_all(shape(&long_batch()).as_bytes()).unwrap();
        assert_eq!(status(&mut stream), "HTTP/1.1 200");
        trickle(&hosted, &stream);
    }
    let hosted = hosted(settings());
    let mut stream = hosted.connect();
    stream.write_all(UPGRADE.as_bytes()).unwrap();
    let batch = long_batch();
    let length = u16::try_from(batch.len()).unwrap().to_be_bytes();
    // A text frame, masked with zeros.
    stream.write_all(&[&[0x81, 0xfe], &length[..], &[0; 4], batch.as_bytes()].concat()).unwrap();
    assert_eq!(status(&mut stream), "HTTP/1.1 101");
    wait_until(|| hosted.budget.bytes_peak() > MIB);
    trickle(&hosted, &stream);
}

/// Reads a byte at a time until the server has given up.
fn trickle(hosted: &Hosted, stream: &TcpStream) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (is_over, mut reader) = (&is_over, stream.try_clone().unwrap());
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let _ = reader.read(&mut [0; 1]);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        hosted.settle(stream);
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn http_2_streams_without_a_window_end_whatever_else_their_client_sends() {
    let settings =
        HttpSettings { write_timeout: Duration::from_secs(5), ..HttpSettings::default() };
    let hosted = hosted(settings);
    // No byte of any answer may be sent: the initial window is zero.
    let mut http2 = Http2::open(&hosted, &[(4, 0)]);
    let offered = http2.next_of(SETTINGS, 0).payload;
    let pairs: Vec<(u16, u32)> = offered
        .chunks(6)
        .map(|pair| {
            let id = u16::from_be_bytes([pair[0], pair[1]]);
            (id, u32::from_be_bytes([pair[2], pair[3], pair[4], pair[5]]))
        })
        .collect();
    assert!(pairs.contains(&(3, 32)), "few streams: {pairs:?}");
    assert!(pairs.contains(&(4, 64 * 1024)), "small windows: {pairs:?}");
    assert!(pairs.contains(&(6, 16 * 1024)), "small heads: {pairs:?}");
    let asked = long_batch();
    for stream in [1, 3, 5, 7] {
        http2.post(stream, asked.as_bytes());
        http2.next_of(HEADERS, stream);
    }
    assert!(hosted.budget.bytes() > 4 * MIB, "{}", hosted.budget.bytes());
    // It pings, is answered, and is closed nevertheless.
    let mut pinging = http2.stream.try_clone().unwrap();
    let pinged = std::thread::spawn(move || {
        while pinging.write_all(&frame(PING, 0, 0, b"12345678")).is_ok() {
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let mut pongs = 0;
    while let Some(frame) = http2.next() {
        assert_ne!(frame.kind, DATA);
        pongs += u32::from(frame.kind == PING && frame.flags == 1);
    }
    assert!(pongs > 0);
    pinged.join().unwrap();
    hosted.settle(&http2.stream);
}

#[test]
fn pages_that_nobody_takes_count_as_answers_do() {
    let hosted = hosted(HttpSettings::default());
    let mut http2 = Http2::open(&hosted, &[(4, 0)]);
    for stream in [1, 3, 5] {
        http2.get(stream, "/openrpc.json", "test");
        http2.next_of(HEADERS, stream);
    }
    let mut stream = hosted.connect();
    let get = "GET /openrpc.json HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
    stream.write_all(get.as_bytes()).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let bytes = page.split_once("\r\n\r\n").unwrap().1.len();
    assert!(hosted.budget.bytes() >= 3 * bytes, "{} of {bytes}", hosted.budget.bytes());
    drop(http2);
    hosted.settle(&stream);
}

#[test]
fn a_batch_that_only_computes_ends_with_its_time() {
    let answer_timeout = Duration::from_millis(1);
    let hosted = hosted(HttpSettings { answer_timeout, ..HttpSettings::default() });
    for shape in [request as fn(&str) -> String, |body| through_hyper(&request(body))] {
        let mut stream = hosted.connect();
        stream.write_all(closing(&shape(&long_batch())).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        let late = json!({ "code": -32002, "message": "request timed out" });
        assert_eq!(body.as_array().unwrap().len(), 80);
        assert_eq!(body[79]["error"], late, "{}", body[79]);
    }
}
