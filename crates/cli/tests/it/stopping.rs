//! The end of a server: what was asked before it is answered, and clients are told that it stops.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use rpc::ServiceSettings;
use rpc::http::HttpSettings;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::harness::hosted::{Hosted, service};
use crate::harness::http2::{DATA, GOAWAY, Http2};
use crate::harness::socket::Socket;
use crate::harness::stores::{self, data_folder};
use crate::limits::request;

const ASKED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;
const RESULT: &str = "\"result\":\"0x63\"";

fn hosted() -> Hosted {
    hosted_with(HttpSettings::default())
}

fn hosted_with(settings: HttpSettings) -> Hosted {
    Hosted::start(service(&data_folder("gap"), ServiceSettings::default()), settings)
}

/// A connection that has asked once, one way or the other.
fn kept(hosted: &Hosted, is_hyper: bool) -> TcpStream {
    let mut stream = hosted.connect();
    let first = if is_hyper {
        "GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n".to_owned()
    } else {
        request(ASKED)
    };
    stream.write_all(first.as_bytes()).unwrap();
    let mut found = Vec::new();
    while !(found.ends_with(b"}") || found.ends_with(b"ok\n")) {
        let mut part = [0; 1024];
        let count = stream.read(&mut part).unwrap();
        found.extend_from_slice(&part[..count]);
    }
    stream
}

#[test]
fn what_was_asked_before_the_stop_is_answered() {
    // Connections that are idle, that have just asked, that ask for more at once, and new ones.
    let mut hosted = hosted();
    for is_hyper in [false, true] {
        drop(kept(&hosted, is_hyper));
    }
    let mut streams: Vec<(TcpStream, usize)> = Vec::new();
    for is_hyper in [false, true] {
        for count in [1, 3] {
            streams.extend((0..8).map(|_| (kept(&hosted, is_hyper), count)));
        }
    }
    streams.extend((0..8).map(|_| (hosted.connect(), 1)));
    let mut idle = kept(&hosted, false);
    for (stream, count) in &mut streams {
        stream.write_all(request(ASKED).repeat(*count).as_bytes()).unwrap();
    }
    hosted.stop();
    for (stream, count) in &mut streams {
        let mut found = String::new();
        stream.read_to_string(&mut found).unwrap();
        assert_eq!(found.matches(RESULT).count(), *count, "{found}");
    }
    // Whoever asks for nothing is left without a word.
    let mut found = String::new();
    idle.read_to_string(&mut found).unwrap();
    assert_eq!(found, "");
}

#[test]
fn a_request_that_comes_while_the_server_stops_is_answered_for_the_last_time() {
    for is_hyper in [false, true] {
        let mut hosted = hosted();
        let mut asking = kept(&hosted, is_hyper);
        // These are told of the stop, and end before anybody is kept from answering.
        let mut socket = Socket::open(&hosted);
        let mut idle = kept(&hosted, true);
        let half = request(ASKED);
        let (begin, end) = half.split_at(half.len() - 5);
        asking.write_all(begin.as_bytes()).unwrap();
        hosted.stop();
        assert_eq!(socket.closed(), (1001, "the server stops".to_owned()));
        assert_eq!(idle.read(&mut [0; 1]).unwrap(), 0);
        asking.write_all(end.as_bytes()).unwrap();
        let mut found = String::new();
        asking.read_to_string(&mut found).unwrap();
        assert!(found.contains(RESULT), "{found}");
        // Hyper is told on a thread of its own, and may have begun its answer by then.
        assert!(is_hyper || found.to_lowercase().contains("connection: close"), "{found}");
    }
}

#[test]
fn messages_that_came_before_the_stop_are_answered_over_websocket_and_http_2() {
    let mut hosted = hosted();
    let mut socket = Socket::open(&hosted);
    assert_eq!(socket.call("eth_blockNumber", &json!([]))["result"], "0x63");
    let mut http2 = Http2::open(&hosted, &[]);
    http2.get(1, "/healthz", "test");
    http2.next_of(DATA, 1);
    (0..50).for_each(|_| socket.send_text(ASKED));
    http2.get(3, "/healthz", "test");
    hosted.stop();
    for _ in 0..50 {
        assert_eq!(socket.next()["result"], "0x63");
    }
    assert_eq!(socket.closed(), (1001, "the server stops".to_owned()));
    assert_eq!(http2.next_of(DATA, 3).payload, b"ok\n");
    http2.next_of(GOAWAY, 0);
}

/// Seen: requests of 256 bytes fill what is read at once, and the last of those was taken for the last of
/// all; those behind it were read and dropped.
#[test]
fn requests_that_the_system_still_holds_at_the_stop_are_answered() {
    // The length has one digit more with it.
    let padding = " ".repeat(255 - request(ASKED).len());
    let padded = request(&[ASKED, &padding].concat());
    assert_eq!(padded.len(), 256, "{padded}");
    let mut hosted = hosted_with(HttpSettings {
        stop_timeout: Duration::from_mins(1),
        ..HttpSettings::default()
    });
    let mut streams: Vec<TcpStream> = (0..4).map(|_| kept(&hosted, false)).collect();
    for stream in &mut streams {
        stream.write_all(padded.repeat(600).as_bytes()).unwrap();
    }
    hosted.stop();
    for stream in &mut streams {
        let mut found = String::new();
        stream.read_to_string(&mut found).unwrap();
        assert_eq!(found.matches(RESULT).count(), 600);
    }
}

/// Seen: what waited for its turn longer than reading goes on was not read.
#[test]
fn messages_that_wait_for_room_at_the_stop_are_answered() {
    let mut hosted = hosted_with(HttpSettings {
        socket_requests_max: 1,
        stop_timeout: Duration::from_mins(1),
        ..HttpSettings::default()
    });
    let mut socket = Socket::open(&hosted);
    assert_eq!(socket.call("eth_blockNumber", &json!([]))["result"], "0x63");
    let block =
        r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",true]}"#;
    let batch = format!("[{}]", vec![block; 200].join(","));
    // Some half a second of work, where 200 ms are left for what is on its way.
    let count = 100;
    (0..count).for_each(|_| socket.send_text(&batch));
    hosted.stop();
    for place in 0..count {
        assert_eq!(socket.next()[199]["result"]["number"], "0x63", "message {place}");
    }
    assert_eq!(socket.closed(), (1001, "the server stops".to_owned()));
}

/// Seen: whoever asked on and on was cut off in the middle of an answer when the time was over.
#[test]
fn a_client_that_asks_on_and_on_is_told_to_leave() {
    let mut hosted = hosted_with(HttpSettings {
        // Half of it for reading, and as much until it would be cut off: machines are busy.
        stop_timeout: Duration::from_secs(10),
        ..HttpSettings::default()
    });
    let mut socket = Socket::open(&hosted);
    assert_eq!(socket.call("eth_blockNumber", &json!([]))["result"], "0x63");
    hosted.stop();
    let mut answers = 0;
    let close = loop {
        // It may have closed by now; what it said before can still be read.
        let _ = socket.try_send(Message::text(ASKED));
        match socket.message() {
            Ok(Message::Text(_)) => answers += 1,
            Ok(Message::Close(frame)) => break frame.unwrap(),
            other => panic!("after {answers} answers: {other:?}"),
        }
    };
    let said = (u16::from(close.code), close.reason.as_str());
    assert_eq!(said, (1001, "the server stops"), "after {answers} answers");
}

#[test]
fn a_hangup_ends_nothing() {
    let served = stores::serve("gap", &[]);
    served.signal("HUP");
    served.signal("HUP");
    // It is heard before what is asked after it, or a little later: either way the server lives.
    for _ in 0..10 {
        assert_eq!(served.result("eth_blockNumber", &json!([])), "0x63");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(served.stop(), Some(0));
}
