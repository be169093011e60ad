//! Who may ask, over both paths of HTTP/1.1 and over sockets, on a clock that stands still.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use chain::ChainSpec;
use serde_json::{Value, json};
use store::disk::Folder;
use store::read::Inline;
use store::{Limits, Store};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::{Instant, advance};

use super::{FirstReader, HttpSettings, Server};
use crate::admission::{Admission, AdmissionSettings, ApiKey, KeyHash, Rates};
use crate::{Service, ServiceSettings};

const BOTH: [FirstReader; 2] = [FirstReader::FastPath, FirstReader::Hyper];
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;

fn per_second(calls: u32) -> Rates {
    Rates { calls: NonZeroU32::new(calls), weight: None }
}

fn key(name: &str) -> ApiKey {
    let (hash, rates) = (KeyHash::of(name), Rates::default());
    ApiKey { name: name.to_owned(), hash, methods: None, rates }
}

/// A server without blocks.
struct Guarded {
    server: Arc<Server>,
    _folder: TempDir,
}

impl Guarded {
    fn new(settings: AdmissionSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(Folder::create(folder.path()).unwrap());
        let store = Store::open(disk, Arc::new(Inline), Limits::default()).unwrap();
        let spec = ChainSpec::bare("private", Some(1337), None);
        let service = Service::new(Arc::new(store), spec, ServiceSettings::default());
        let server = Arc::new(Server::new(Arc::new(service), HttpSettings::default()));
        server.set_admission(Admission::new(settings)).unwrap();
        Self { server, _folder: folder }
    }

    /// One that lets any address ask one call a second.
    fn one_call() -> Self {
        Self::new(AdmissionSettings { per_address: per_second(1), ..AdmissionSettings::default() })
    }

    fn connect(&self, first: FirstReader) -> Client {
        let (client, stream) = duplex(1 << 20);
        let server = Arc::clone(&self.server);
        tokio::spawn(async move { server.serve_in_memory(stream, first).await });
        Client(client)
    }

    /// The status of a call on a connection of its own.
    async fn status(&self, first: FirstReader, fields: &[u8]) -> u16 {
        self.connect(first).post(fields).await.0
    }

    async fn socket(&self, fields: &str) -> Client {
        let mut client = self.connect(FirstReader::FastPath);
        let upgrade = format!(
            "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n{fields}\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        let (status, head, _) = client.send(upgrade.as_bytes()).await;
        assert_eq!(status, 101, "{head}");
        client
    }
}

/// The other end of a connection.
struct Client(DuplexStream);

impl Client {
    /// The answer to a call with these fields.
    async fn post(&mut self, fields: &[u8]) -> (u16, String, Value) {
        let head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
        let rest = format!("content-length: {}\r\n\r\n{CALL}", CALL.len());
        self.send(&[head, fields, rest.as_bytes()].concat()).await
    }

    /// Status, head and body of what comes back.
    async fn send(&mut self, raw: &[u8]) -> (u16, String, Value) {
        self.0.write_all(raw).await.unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let byte = self.0.read_u8().await;
            head.push(char::from(byte.unwrap_or_else(|_| panic!("closed after {head:?}"))));
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.split("content-length: ").nth(1).and_then(|it| it.split("\r\n").next());
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        self.0.read_exact(&mut body).await.unwrap();
        let text = || Value::from(String::from_utf8_lossy(&body).into_owned());
        (status, head, serde_json::from_slice(&body).unwrap_or_else(|_| text()))
    }

    /// Sends a message over a socket. It is short, and its mask is zero.
    async fn say(&mut self, message: &str) {
        let length = u8::try_from(message.len()).unwrap();
        assert!(length < 126, "{message}");
        let frame = [&[0x81, 0x80 | length, 0, 0, 0, 0], message.as_bytes()].concat();
        self.0.write_all(&frame).await.unwrap();
    }

    /// The first byte of the next frame that is no ping, and what is in it.
    async fn hear(&mut self) -> (u8, Vec<u8>) {
        loop {
            let kind = self.0.read_u8().await.unwrap();
            let mut length = usize::from(self.0.read_u8().await.unwrap());
            if length == 126 {
                length = self.0.read_u16().await.unwrap().into();
            }
            let mut payload = vec![0; length];
            self.0.read_exact(&mut payload).await.unwrap();
            if kind != 0x89 {
                return (kind, payload);
            }
        }
    }

    /// The next message.
    async fn message(&mut self) -> Value {
        let (kind, payload) = self.hear().await;
        assert_eq!(kind, 0x81, "{}", String::from_utf8_lossy(&payload));
        serde_json::from_slice(&payload).unwrap()
    }
}

fn bearer(secret: &str) -> String {
    format!("authorization: Bearer {secret}\r\n")
}

/// The first message was let in as a new caller, whose address had used up its rate: the socket was closed.
#[tokio::test(start_paused = true)]
async fn a_rate_refuses_calls_over_a_socket_and_never_closes_it() {
    let settings = || AdmissionSettings {
        keys: vec![key("a")],
        per_address: per_second(1),
        ..AdmissionSettings::default()
    };
    let guarded = Guarded::new(settings());
    // The handshake is the only call of this second.
    let mut socket = guarded.socket(&bearer("a")).await;
    for _ in 0..3 {
        socket.say(CALL).await;
        assert_eq!(socket.message().await["error"]["code"], -32005);
    }
    // Other rules look it up once more, and do not close it either.
    guarded.server.set_admission(Admission::new(settings())).unwrap();
    socket.say(CALL).await;
    assert_eq!(socket.message().await["error"]["code"], -32005);
    advance(Duration::from_secs(2)).await;
    socket.say(CALL).await;
    assert_eq!(socket.message().await["result"], "0x539");
}

/// A batch of a thousand calls was answered at a rate of five, which it paid for later.
#[tokio::test(start_paused = true)]
async fn a_batch_of_more_calls_than_a_second_allows_is_not_answered() {
    let batch = |calls: usize| format!("[{}]", vec![CALL; calls].join(","));
    let post = |body: String| {
        let head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
        format!("{head}content-length: {}\r\n\r\n{body}", body.len())
    };
    let per_second = NonZeroU32::new(5);
    for rates in [
        Rates { calls: per_second, weight: None },
        Rates { calls: None, weight: per_second },
        Rates { calls: per_second, weight: NonZeroU32::new(1000) },
    ] {
        for first in BOTH {
            let guarded =
                Guarded::new(AdmissionSettings { per_address: rates, ..Default::default() });
            let mut client = guarded.connect(first);
            let (status, _, answers) = client.send(post(batch(6)).as_bytes()).await;
            assert_eq!((status, answers.as_array().unwrap().len()), (200, 6), "{rates:?}");
            for answer in answers.as_array().unwrap() {
                assert_eq!(answer["error"]["code"], -32600, "{rates:?} {first:?}");
            }
            // It counts as the longest that is answered.
            assert_eq!(client.post(b"").await.0, 429, "{rates:?} {first:?}");
            advance(Duration::from_secs(3)).await;
            let (status, _, answers) = client.send(post(batch(5)).as_bytes()).await;
            assert_eq!((status, &answers[4]["result"]), (200, &json!("0x539")), "{rates:?}");
            assert_eq!(client.post(b"").await.0, 429, "{rates:?} {first:?}");
        }
    }
}

/// A notification was answered with an error and no id.
#[tokio::test(start_paused = true)]
async fn a_notification_beyond_a_rate_is_answered_over_http_only() {
    let guarded = Guarded::one_call();
    let mut socket = guarded.socket("").await;
    let notification = CALL.replace(r#""id":1,"#, "");
    for message in [&notification, &format!("[{notification}]"), CALL] {
        socket.say(message).await;
    }
    let answer = socket.message().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32005)));
    // A request over HTTP is always answered, and with a code that says so.
    let raw = format!(
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n\
         {notification}",
        notification.len()
    );
    for first in BOTH {
        let (status, _, answer) = guarded.connect(first).send(raw.as_bytes()).await;
        assert_eq!((status, &answer["id"]), (429, &Value::Null), "{first:?} {answer}");
    }
}

/// Requests that fail before anybody looks for calls in them were free.
#[tokio::test(start_paused = true)]
async fn a_post_that_fails_before_its_calls_are_known_is_a_call() {
    let head = |fields: &str| format!("POST / HTTP/1.1\r\nhost: a\r\n{fields}\r\n\r\n");
    let json = "content-type: application/json\r\n";
    for (name, raw, expected) in [
        ("a type", head("content-type: text/html\r\ncontent-length: 0"), 415),
        ("a length", head(&format!("{json}expect: 100-continue\r\ncontent-length: 99999999")), 413),
        ("a coding", head(&format!("{json}content-encoding: x\r\ncontent-length: 0")), 415),
        ("no gzip", head(&format!("{json}content-encoding: gzip\r\ncontent-length: 1")) + "x", 400),
        // The rest never comes.
        ("a part", head(&format!("{json}content-length: 100")) + "[", 408),
    ] {
        for first in BOTH {
            let guarded = Guarded::one_call();
            let mut client = guarded.connect(first);
            assert_eq!(client.send(raw.as_bytes()).await.0, expected, "{name} {first:?}");
            // Nobody waited for a second but for what never came; that is counted when it is given up.
            assert_eq!(guarded.status(first, b"").await, 429, "{name} {first:?}");
            // Nor does a failure hide that there were too many.
            if expected != 408 {
                let again = guarded.connect(first).send(raw.as_bytes()).await;
                assert_eq!(again.0, 429, "{name} {first:?}");
            }
        }
    }
    for first in BOTH {
        let guarded = Guarded::one_call();
        let mut cut = guarded.connect(first);
        let raw = head(&format!("{json}content-length: 100")) + "[";
        cut.0.write_all(raw.as_bytes()).await.unwrap();
        cut.0.shutdown().await.unwrap();
        // Until the server has closed as well.
        cut.0.read_to_end(&mut Vec::new()).await.unwrap();
        assert_eq!(guarded.status(first, b"").await, 429, "cut off, {first:?}");
    }
}

/// A long body was read to its end before whoever sent it was refused.
#[tokio::test(start_paused = true)]
async fn a_long_body_of_one_who_asked_too_much_is_not_read() {
    for first in BOTH {
        let guarded = Guarded::one_call();
        assert_eq!(guarded.status(first, b"").await, 200);
        for (name, fields) in
            [("long", "content-length: 100000"), ("unknown", "transfer-encoding: chunked")]
        {
            let begun = Instant::now();
            let raw = format!(
                "POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n{fields}\r\n\r\n"
            );
            let (status, head, _) = guarded.connect(first).send(raw.as_bytes()).await;
            assert_eq!(status, 429, "{name}, {first:?}: {head}");
            assert!(head.contains("retry-after: 2\r\n") && begun.elapsed().is_zero(), "{head}");
        }
        // A short one is, and its call refused by its id.
        let (status, _, answer) = guarded.connect(first).post(b"").await;
        assert_eq!((status, &answer["id"]), (429, &json!(1)), "{first:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_in_front_of_what_a_proxy_added_hide_no_address() {
    let per_address = per_second(1);
    let proxies = vec!["127.0.0.1".parse().unwrap()];
    for first in BOTH {
        let settings =
            AdmissionSettings { per_address, proxies: proxies.clone(), ..Default::default() };
        let guarded = Guarded::new(settings);
        let from =
            |address: &str| [b"x-forwarded-for: \xff, ", address.as_bytes(), b"\r\n"].concat();
        for (address, expected) in [("192.0.2.1", 200), ("192.0.2.1", 429), ("192.0.2.2", 200)] {
            assert_eq!(guarded.status(first, &from(address)).await, expected, "{first:?}");
        }
        // The proxy itself has asked nothing.
        assert_eq!(guarded.status(first, b"").await, 200, "{first:?}");
    }
}

/// Everybody was told which blocks are held and which node does not answer.
#[tokio::test(start_paused = true)]
async fn why_a_server_is_not_ready_is_told_to_those_who_are_let_in() {
    let ask = async |guarded: &Guarded, fields: &str| {
        let raw = format!("GET /readyz HTTP/1.1\r\nhost: a\r\n{fields}\r\n");
        let (status, _, answer) = guarded.connect(FirstReader::Hyper).send(raw.as_bytes()).await;
        assert_eq!(status, 503, "{answer}");
        answer
    };
    let reasons = json!(["no block is held yet"]);
    let keys = vec![key("a")];
    let guarded =
        Guarded::new(AdmissionSettings { keys, per_address: per_second(1), ..Default::default() });
    for _ in 0..10 {
        // Whoever watches the process asks as often as it likes.
        assert_eq!(ask(&guarded, "").await, "not ready\n");
    }
    assert_eq!(ask(&guarded, &bearer("a")).await["reasons"], reasons);
    // A wrong key is an attempt as any other.
    assert_eq!(ask(&guarded, &bearer("b")).await, "not ready\n");
    assert_eq!(guarded.status(FirstReader::FastPath, bearer("a").as_bytes()).await, 429);
    assert_eq!(ask(&Guarded::one_call(), "").await["reasons"], reasons);
}
