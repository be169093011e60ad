//! Encrypted connections: every protocol, certificates that change, and clients that bring their own.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use rpc::ServiceSettings;
use rpc::http::{HttpSettings, Server, Tls, TlsFiles};
use rustls::ClientConfig;
use serde_json::Value;
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::{Message, client};

use crate::harness::encrypted::{Authority, Encrypted, encrypted};
use crate::harness::hosted::{Hosted, service};
use crate::harness::http2_frames::{self as frames, DATA, read_frame};
use crate::harness::run::{quipu, text};
use crate::harness::served::Served;
use crate::harness::stores::data_folder;
use crate::harness::wait::wait_for;
use crate::limits::request;
use crate::raw_requests::{answer_alike, read_answer};

const ASKED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;
const RESULT: &str = "\"result\":\"0x63\"";

/// A server with a certificate in a folder of its own.
struct Shop {
    authority: Authority,
    folder: TempDir,
    tls: Arc<Tls>,
    hosted: Hosted,
}

impl Shop {
    fn open(settings: HttpSettings) -> Self {
        Self::open_with(settings, |_, files| files)
    }

    fn open_with(
        settings: HttpSettings,
        change: impl FnOnce(&Authority, TlsFiles) -> TlsFiles,
    ) -> Self {
        let (authority, folder) = (Authority::new(), TempDir::new().unwrap());
        let files = change(&authority, authority.identity("localhost").write(folder.path()));
        let tls = Arc::new(Tls::load(files).unwrap());
        let service = service(&data_folder("gap"), ServiceSettings::default());
        let server = Server::new(Arc::new(service), settings).with_tls(Arc::clone(&tls));
        Self { authority, folder, tls, hosted: Hosted::start_server(server) }
    }

    fn connect(&self, client: &Arc<ClientConfig>) -> Encrypted {
        encrypted(self.hosted.connect(), client)
    }
}

/// Asks on a connection that is kept; the answer.
fn ask(stream: &mut (impl Read + Write)) -> String {
    stream.write_all(request(ASKED).as_bytes()).unwrap();
    let mut found = Vec::new();
    while !found.ends_with(b"}") {
        let mut part = [0; 1024];
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "closed after {:?}", String::from_utf8_lossy(&found));
        found.extend_from_slice(&part[..count]);
    }
    String::from_utf8(found).unwrap()
}

#[test]
fn raw_requests_are_answered_as_without_encryption() {
    let shop = Shop::open(HttpSettings::default());
    let client = shop.authority.client(&["http/1.1"], None);
    answer_alike(|| shop.connect(&client));
}

#[test]
fn long_answers_and_requests_that_come_together_arrive_whole() {
    let shop = Shop::open(HttpSettings::default());
    let client = shop.authority.client(&["http/1.1"], None);
    let item = r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x40",true]}"#;
    let batch = format!("[{}]", vec![item; 300].join(","));
    let asked = request(&batch).repeat(3);
    let service = service(&data_folder("gap"), ServiceSettings::default());
    let plain = Hosted::start(service, HttpSettings::default());
    let mut found = Vec::new();
    for stream in [&mut plain.connect() as &mut dyn ReadWrite, &mut shop.connect(&client)] {
        stream.write_all(asked.as_bytes()).unwrap();
        found.push((0..3).map(|_| read_body(stream)).collect::<Vec<_>>());
    }
    assert!(found[0][0].len() > 300_000, "{}", found[0][0].len());
    assert!(found[0] == found[1], "{:?}", found[1].iter().map(Vec::len).collect::<Vec<_>>());
}

trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

fn read_body(stream: &mut dyn ReadWrite) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    body
}

#[test]
fn http_2_is_chosen_in_the_handshake() {
    let shop = Shop::open(HttpSettings::default());
    let mut stream = shop.connect(&shop.authority.client(&["h2", "http/1.1"], None));
    stream.write_all(&frames::preface(&[])).unwrap();
    assert_eq!(stream.protocol(), Some(&b"h2"[..]));
    stream.write_all(&frames::post(1, ASKED.as_bytes())).unwrap();
    let answer = loop {
        let frame = read_frame(&mut stream).unwrap();
        if frame.kind == DATA {
            break String::from_utf8(frame.payload).unwrap();
        }
    };
    assert!(answer.contains(RESULT), "{answer}");
}

#[test]
fn websockets_are_encrypted_too() {
    let shop = Shop::open(HttpSettings::default());
    let stream = shop.connect(&shop.authority.client(&[], None));
    let (mut socket, _) = client("wss://localhost/", stream).unwrap();
    for _ in 0..3 {
        socket.send(Message::text(ASKED)).unwrap();
        let answer: Value =
            serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap();
        assert_eq!(answer["result"], "0x63");
    }
}

#[test]
fn whoever_does_not_encrypt_is_told_to() {
    let shop = Shop::open(HttpSettings::default());
    let mut plain = shop.hosted.connect();
    plain.write_all(request(ASKED).as_bytes()).unwrap();
    let mut found = String::new();
    plain.read_to_string(&mut found).unwrap();
    assert!(found.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{found}");
    assert!(found.contains("this port speaks TLS: ask by https or wss"), "{found}");
    assert!(!found.contains(RESULT), "{found}");
}

#[test]
fn a_client_needs_a_certificate_where_one_is_asked_for() {
    let shop = Shop::open_with(HttpSettings::default(), |authority, files| {
        let path = files.certificate.with_file_name("clients.pem");
        fs::write(&path, authority.pem()).unwrap();
        TlsFiles { client_ca: Some(path), ..files }
    });
    let own = shop.authority.identity("client");
    let known = shop.authority.client(&[], Some(&own));
    assert!(ask(&mut shop.connect(&known)).contains(RESULT));
    let stranger = Authority::new().identity("client");
    for refused in [None, Some(&stranger)] {
        let mut stream = shop.connect(&shop.authority.client(&[], refused));
        // In TLS 1.3 a client is done before its certificate is looked at.
        let _ = stream.write_all(request(ASKED).as_bytes());
        let error = stream.read(&mut [0; 1]).unwrap_err();
        assert!(error.to_string().contains("received fatal alert"), "{error}");
    }
}

#[test]
fn a_changed_certificate_is_for_new_connections_and_a_broken_one_for_none() {
    let shop = Shop::open(HttpSettings::default());
    let client = shop.authority.client(&[], None);
    let mut kept = shop.connect(&client);
    assert!(ask(&mut kept).contains(RESULT));
    let first = kept.certificate();
    assert!(!shop.tls.reload().unwrap());
    // The certificate is there before its key is.
    let renewed = shop.authority.identity("localhost");
    let certificate = shop.folder.path().join("cert.pem");
    fs::write(&certificate, &renewed.certificate).unwrap();
    let trouble = shop.tls.reload().unwrap_err().to_string();
    assert!(trouble.contains("key.pem: this is not the private key"), "{trouble}");
    let mut between = shop.connect(&client);
    assert!(ask(&mut between).contains(RESULT));
    assert_eq!(between.certificate(), first);
    renewed.write(shop.folder.path());
    assert!(shop.tls.reload().unwrap());
    let mut after = shop.connect(&client);
    assert!(ask(&mut after).contains(RESULT));
    assert_ne!(after.certificate(), first);
    assert!(ask(&mut kept).contains(RESULT));
    for (damage, expected) in [
        (Some(""), "cert.pem: no certificate in PEM: no items found"),
        (None, "cert.pem: cannot read it: No such file"),
    ] {
        match damage {
            Some(text) => fs::write(&certificate, text).unwrap(),
            None => fs::remove_file(&certificate).unwrap(),
        }
        let trouble = shop.tls.reload().unwrap_err().to_string();
        assert!(trouble.contains(expected), "{trouble}");
    }
    assert!(ask(&mut shop.connect(&client)).contains(RESULT));
}

#[test]
fn a_client_too_many_is_told_so_over_tls() {
    let shop = Shop::open(HttpSettings { connections_max: 1, ..HttpSettings::default() });
    let client = shop.authority.client(&[], None);
    let mut first = shop.connect(&client);
    assert!(ask(&mut first).contains(RESULT));
    // Also where it would rather speak HTTP/2.
    for protocols in [&[][..], &["h2", "http/1.1"]] {
        let mut second = shop.connect(&shop.authority.client(protocols, None));
        second.write_all(b"x").unwrap();
        assert_eq!(read_answer(&mut second), Some(503), "{protocols:?}");
    }
}

#[test]
fn a_handshake_that_does_not_come_ends_in_time_and_holds_up_no_stop() {
    let short =
        HttpSettings { header_timeout: Duration::from_millis(50), ..HttpSettings::default() };
    let shop = Shop::open(short);
    let mut silent = shop.hosted.connect();
    assert_eq!(silent.read(&mut [0; 1]).unwrap(), 0);
    let mut begun = shop.hosted.connect();
    begun.write_all(&[22, 3, 1]).unwrap();
    // What it sent may be unread: then the end comes as a reset. Running out of time is none.
    match begun.read(&mut [0; 1]) {
        Ok(0) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        found => panic!("the connection was not closed: {found:?}"),
    }
    let long = HttpSettings { stop_timeout: Duration::from_mins(5), ..HttpSettings::default() };
    let mut shop = Shop::open(long);
    let mut silent = shop.hosted.connect();
    let client = shop.authority.client(&[], None);
    let mut asking = shop.connect(&client);
    assert!(ask(&mut asking).contains(RESULT));
    asking.write_all(request(ASKED).as_bytes()).unwrap();
    shop.hosted.stop();
    let mut found = String::new();
    let _ = asking.read_to_string(&mut found);
    assert!(found.contains(RESULT), "{found}");
    assert_eq!(silent.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn a_client_that_takes_no_answer_is_given_up_with_all_that_it_holds() {
    let limits =
        HttpSettings { write_timeout: Duration::from_millis(200), ..HttpSettings::default() };
    let shop = Shop::open(limits);
    let mut stream = shop.connect(&shop.authority.client(&[], None));
    let item = r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x40",true]}"#;
    let batch = format!("[{}]", vec![item; 900].join(","));
    stream.write_all(request(&batch).repeat(40).as_bytes()).unwrap();
    wait_for(
        || (shop.hosted.budget.bytes() > 0).then_some(()),
        || "nothing was ever under way".to_owned(),
    );
    shop.hosted.settle(&stream);
}

#[test]
fn files_that_are_no_identity_are_told_before_anything_is_served() {
    let (authority, folder) = (Authority::new(), TempDir::new().unwrap());
    let own = authority.identity("localhost");
    let files = own.write(folder.path());
    let other = folder.path().join("other.pem");
    fs::write(&other, authority.identity("localhost").key).unwrap();
    let (cert, key) = (text(&files.certificate), text(&files.key));
    let data = data_folder("gap");
    for (cert, key, expected) in [
        (cert, text(&other), "other.pem: this is not the private key of the certificate in"),
        (key, key, "key.pem: no certificate in PEM"),
        (cert, cert, "cert.pem: no private key in PEM"),
        ("nowhere.pem", key, "nowhere.pem: cannot read it"),
    ] {
        let args = [
            "serve",
            "--data-dir",
            text(&data),
            "--listen",
            "0",
            "--tls-cert",
            cert,
            "--tls-key",
            key,
        ];
        let ran = quipu(&args).ends_with(1);
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
}

#[test]
fn a_certificate_without_a_key_is_refused_wherever_it_is_configured() {
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("quipu.toml");
    fs::write(&config, "[tls]\ntls_cert = \"cert.pem\"\n").unwrap();
    let data = data_folder("gap");
    let args = ["serve", "--config", text(&config), "--data-dir", text(&data), "--listen", "0"];
    let ran = quipu(&args).ends_with(2);
    assert!(ran.err.contains("--tls-key"), "{}", ran.err);
}

#[test]
fn the_executable_serves_by_https_and_reads_a_renewed_certificate() {
    let (authority, folder) = (Authority::new(), TempDir::new().unwrap());
    let files = authority.identity("localhost").write(folder.path());
    let args = ["--tls-cert", text(&files.certificate), "--tls-key", text(&files.key)];
    let (served, _lines) = Served::start_logged(&data_folder("gap"), &args);
    let client = authority.client(&[], None);
    let connect = || {
        let stream = std::net::TcpStream::connect(served.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut stream = encrypted(stream, &client);
        assert!(ask(&mut stream).contains(RESULT));
        stream.certificate()
    };
    let first = connect();
    authority.identity("localhost").write(folder.path());
    wait_for(|| (connect() != first).then_some(()), || "the old one is still shown".to_owned());
}
