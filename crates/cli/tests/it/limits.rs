//! Time and room over real sockets: who is waited for, how long, and who is told to come again.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rpc::ServiceSettings;
use rpc::http::HttpSettings;
use serde_json::{Value, json};

use crate::harness::hosted::{Hosted, service, service_that_stalls};
use crate::harness::http2::frame;
use crate::harness::served::Served;
use crate::harness::stores::{self, data_folder};
use crate::harness::wait::wait_until;

const ASKED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":"0x63"}"#;
const LONG: Duration = Duration::from_mins(5);

fn hosted(settings: HttpSettings) -> Hosted {
    Hosted::start(service(&data_folder("gap"), ServiceSettings::default()), settings)
}

pub(crate) fn request(body: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Asks on a connection that is kept, and reads until the answer is there.
fn ask(stream: &mut TcpStream) {
    stream.write_all(request(ASKED).as_bytes()).unwrap();
    let mut found = Vec::new();
    while !found.ends_with(ANSWER.as_bytes()) {
        let mut part = [0; 1024];
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "closed after {:?}", String::from_utf8_lossy(&found));
        found.extend_from_slice(&part[..count]);
    }
}

#[test]
fn requests_that_come_together_are_answered_in_turn_whoever_answers_them() {
    let hosted = hosted(HttpSettings::default());
    let mut stream = hosted.connect();
    // The last but one goes another way than most, and all after it.
    let get = "GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n";
    let asked = |id: u64| request(&ASKED.replace("\"id\":1", &format!("\"id\":{id}")));
    let last = asked(4).replace("host: test", "host: test\r\nconnection: close");
    let all = [asked(1), asked(2), asked(3), get.to_owned(), last].concat();
    // In pieces that end anywhere.
    for piece in all.as_bytes().chunks(150) {
        stream.write_all(piece).unwrap();
        stream.flush().unwrap();
        // So that most pieces are read alone; nothing tells that one was. The answers are the same
        // however many come together.
        std::thread::sleep(Duration::from_millis(5));
    }
    let (answers, _) = until_closed(&mut stream);
    let place = |part: &str| answers.find(part).unwrap_or_else(|| panic!("{part}: {answers}"));
    let places = ["\"id\":1", "\"id\":2", "\"id\":3", "\"id\":4"].map(place);
    assert!(places.is_sorted(), "{answers}");
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 5, "{answers}");
}

#[test]
fn clients_that_read_late_get_every_short_answer_in_order() {
    // Answers of about 12 MB: more than the sockets between us take.
    const COUNT: usize = 60_000;
    let hosted = hosted(HttpSettings::default());
    let asked = |id: usize| request(&ASKED.replace("\"id\":1", &format!("\"id\":{id}")));
    let all: String = (0..COUNT).map(asked).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (mut stream, all) = (hosted.connect(), &all);
            let mut writer = stream.try_clone().unwrap();
            let written = scope.spawn(move || writer.write_all(all.as_bytes()).unwrap());
            scope.spawn(move || {
                // Long enough for the sockets to fill; no client can see that they did. The answers
                // are the same if they did not.
                std::thread::sleep(Duration::from_millis(300));
                let mut found = Vec::new();
                let last = format!("\"id\":{},\"result\":\"0x63\"}}", COUNT - 1);
                while !found.ends_with(last.as_bytes()) {
                    let mut part = vec![0; 1 << 20];
                    let count = stream.read(&mut part).unwrap();
                    assert!(count > 0, "closed after {} bytes", found.len());
                    found.extend_from_slice(&part[..count]);
                }
                written.join().unwrap();
                let text = String::from_utf8(found).unwrap();
                let mut bodies = text.split("\r\n\r\n").skip(1);
                for id in 0..COUNT {
                    let body = ANSWER.replace("\"id\":1", &format!("\"id\":{id}"));
                    assert!(bodies.next().is_some_and(|it| it.starts_with(&body)), "{id}");
                }
            });
        }
    });
}

/// Whether nothing comes, and the connection stays, for so long.
fn is_kept_for(stream: &mut TcpStream, time: Duration) -> bool {
    stream.set_read_timeout(Some(time)).unwrap();
    let silent = stream.read(&mut [0; 1]);
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    silent.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

/// What comes until the server closes, and after what time it does.
fn until_closed(stream: &mut TcpStream) -> (String, Duration) {
    let begun = Instant::now();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    (String::from_utf8(bytes).unwrap(), begun.elapsed())
}

#[test]
fn a_connection_may_be_idle_for_longer_than_a_head_may_take() {
    let head = Duration::from_millis(200);
    let idle = Duration::from_millis(1500);
    let settings =
        HttpSettings { header_timeout: head, idle_timeout: idle, ..HttpSettings::default() };
    let hosted = hosted(settings);
    let mut stream = hosted.connect();
    // Before the first request, between requests, and then for too long.
    assert!(is_kept_for(&mut stream, head * 2));
    ask(&mut stream);
    assert!(is_kept_for(&mut stream, head * 2));
    ask(&mut stream);
    let (rest, time) = until_closed(&mut stream);
    assert_eq!(rest, "");
    assert!(time + head >= idle, "{time:?}");
}

#[test]
fn a_head_or_a_body_that_does_not_arrive_is_not_waited_for() {
    let short = Duration::from_millis(200);
    let settings = HttpSettings {
        header_timeout: short,
        body_timeout: short,
        idle_timeout: LONG,
        ..HttpSettings::default()
    };
    let hosted = hosted(settings);
    // The first request of a connection, and the second.
    for count in [0, 1] {
        let mut stream = hosted.connect();
        (0..count).for_each(|_| ask(&mut stream));
        stream.write_all(b"POST / HTTP/1.1\r\nhost: te").unwrap();
        assert_eq!(until_closed(&mut stream).0, "");
    }
    let mut stream = hosted.connect();
    let cut = request(ASKED).replace(ASKED, "{");
    stream.write_all(cut.as_bytes()).unwrap();
    let mut begin = [0; 30];
    stream.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"HTTP/1.1 408 Request Timeout\r\n");
    let (rest, _) = until_closed(&mut stream);
    assert!(rest.contains(r#"{"code":-32000,"message":"request body took too long"}"#), "{rest}");
}

#[test]
fn a_call_that_takes_too_long_is_refused_and_all_that_come_after_it() {
    let service = service_that_stalls(&data_folder("gap"));
    let answer_timeout = Duration::from_millis(300);
    let hosted = Hosted::start(service, HttpSettings { answer_timeout, ..HttpSettings::default() });
    let call = |id: usize, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let mut calls = vec![call(0, "eth_blockNumber", json!([]))];
    calls.extend((1..=39).map(|id| call(id, "eth_getBlockByNumber", json!([id, true]))));
    calls.push(call(40, "net_version", json!([])));
    let mut stream = hosted.connect();
    let asked = request(&Value::from(calls).to_string());
    let asked = asked.replace("host: test", "host: test\r\nconnection: close");
    stream.write_all(asked.as_bytes()).unwrap();
    let (answer, time) = until_closed(&mut stream);
    assert!(time < Duration::from_secs(10), "{time:?}");
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let answers = body.as_array().unwrap();
    assert_eq!((answers.len(), &answers[0]["result"]), (41, &json!("0x63")));
    let late = json!({ "code": -32002, "message": "request timed out" });
    let first = answers.iter().position(|answer| answer["error"] == late).unwrap();
    // One read that stalls takes all the time there is: nothing after it is even begun.
    assert!(answers[first..].iter().all(|answer| answer["error"] == late), "{body}");
    for (id, answer) in answers.iter().enumerate() {
        assert_eq!(answer["id"], json!(id));
        assert!(answer.get("result").is_some() || answer["error"] == late, "{answer}");
    }
}

#[test]
fn a_client_that_broke_off_is_not_answered() {
    let service = service_that_stalls(&data_folder("gap"));
    // Nothing else ends what stalls, and nobody else has room meanwhile.
    let settings =
        HttpSettings { answer_timeout: LONG, connections_max: 1, ..HttpSettings::default() };
    let hosted = Hosted::start(service, settings);
    let block = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "method": "eth_getBlockByNumber", "params": [id, true] });
    let blocks = Value::from((1..40).map(block).collect::<Vec<_>>()).to_string();
    let mut stream = hosted.connect();
    stream.write_all([request(ASKED), request(&blocks)].concat().as_bytes()).unwrap();
    // The first is answered, so the second is worked on. What is not read when a socket is closed
    // makes its end a reset.
    assert!(stream.peek(&mut [0; 1]).unwrap() > 0);
    let answer = |stream: &mut TcpStream| {
        stream.write_all(request(ASKED).as_bytes()).ok()?;
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).ok()?;
        Some(begin)
    };
    assert_eq!(answer(&mut hosted.connect()), Some(*b"HTTP/1.1 503"));
    drop(stream);
    wait_until(|| answer(&mut hosted.connect()) == Some(*b"HTTP/1.1 200"));
}

/// A connection that has asked once and stays.
fn kept(served: &Served) -> TcpStream {
    let mut stream = TcpStream::connect(served.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    ask(&mut stream);
    stream
}

fn check_turned_away(served: &Served, status: u16, reason: &str) {
    let answer = served.send(request(ASKED).as_bytes());
    assert_eq!(answer.status, status);
    assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
    assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
    let error = json!({ "code": -32000, "message": reason });
    assert_eq!(answer.json(), json!({ "jsonrpc": "2.0", "id": null, "error": error }));
}

/// Asks until there is room: the server hears of a connection's end a little later than we do.
fn check_served_soon(served: &Served) {
    let begun = Instant::now();
    let asked = request(ASKED).replace("host: test", "host: test\r\nconnection: close");
    while served.send(asked.as_bytes()).status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(20), "never any room");
    }
}

#[test]
fn a_connection_too_many_is_told_to_come_again() {
    let served = stores::serve("gap", &["--connections-max", "2"]);
    let held = [kept(&served), kept(&served)];
    check_turned_away(&served, 503, "too many connections");
    drop(held);
    check_served_soon(&served);
}

/// Each that was told had a descriptor for a second, however many there were.
#[test]
fn of_very_many_connections_too_many_few_are_told_and_the_others_closed() {
    let served = stores::serve("gap", &["--connections-max", "1"]);
    let mut held = kept(&served);
    let connect = |_| {
        let stream = TcpStream::connect(served.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    };
    let mut others: Vec<TcpStream> = (0..200).map(connect).collect();
    let is_told = |stream: &mut TcpStream| stream.read(&mut [0; 1]).is_ok_and(|count| count > 0);
    let told = others.iter_mut().map(is_told).filter(|is_told| *is_told).count();
    assert!((1..200).contains(&told), "{told} of 200 were told");
    ask(&mut held);
}

#[test]
fn a_client_with_too_many_connections_is_told_so_and_others_are_served() {
    let served = stores::serve("gap", &["--connections-per-client-max", "2"]);
    let held = [kept(&served), kept(&served)];
    check_turned_away(&served, 429, "too many connections from this address");
    // Another address of this machine, where it has one.
    if let Some(mut other) = connect_from([127, 0, 0, 2], served.address()) {
        ask(&mut other);
    }
    drop(held);
    check_served_soon(&served);
}

fn connect_from(ip: [u8; 4], address: &str) -> Option<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((ip, 0))).ok()?;
        socket.connect(address.parse().unwrap()).await.ok()?.into_std().ok()
    })?;
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    Some(stream)
}

#[test]
fn http_2_is_spoken_on_the_same_port() {
    let settings = HttpSettings {
        header_timeout: Duration::from_millis(100),
        idle_timeout: Duration::from_secs(1),
        ..HttpSettings::default()
    };
    let hosted = hosted(settings);
    let mut stream = hosted.connect();
    // GET, http, a path and a host in HPACK's plainest form; then the end of head and stream.
    let head = [b"\x82\x86\x04\x08/healthz".as_slice(), b"\x01\x04test"].concat();
    let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &frame(4, 0, 0, &[])].concat();
    for (asked, id) in [([begin, frame(1, 5, 1, &head)].concat(), 1), (frame(1, 5, 3, &head), 3)] {
        stream.write_all(&asked).unwrap();
        let mut found = Vec::new();
        let is_answered = |found: &[u8]| {
            let answer = [&[0, 0, 3, 0, 1, 0, 0, 0, id], b"ok\n".as_slice()].concat();
            found.windows(answer.len()).any(|window| window == answer)
        };
        while !is_answered(&found) {
            let mut part = [0; 1024];
            let count = stream.read(&mut part).unwrap();
            assert!(count > 0, "closed after {found:?}");
            found.extend_from_slice(&part[..count]);
        }
        // Our side says that it has read the server's settings, which is no head of anything.
        stream.write_all(&frame(4, 1, 0, &[])).unwrap();
        assert!(is_kept_for(&mut stream, Duration::from_millis(300)) || id == 3);
    }
    // Idle connections of this kind end too.
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
}
