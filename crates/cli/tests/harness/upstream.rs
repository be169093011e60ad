//! A node to pass calls to, over real sockets: it answers what it was asked, or fails as it is told.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Barrier, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// Requests that `made_together` waits for.
pub(crate) const TOGETHER: usize = 8;

/// Bytes of the result of `made_in_halves`: far more than the buffers of two sockets hold.
pub(crate) const HALVES_BYTES: usize = 24_000_000;

/// Who the node says it is.
#[derive(Clone, Debug)]
pub(crate) struct SaidIdentity {
    pub(crate) chain_id: u64,
    /// Block 0 as JSON; null if it does not have it any more.
    pub(crate) genesis: Value,
}

impl Default for SaidIdentity {
    /// The sample chain's, without old history.
    fn default() -> Self {
        Self { chain_id: 20_260_101, genesis: Value::Null }
    }
}

/// A node; its threads end with the test.
pub(crate) struct Upstream {
    pub(crate) url: String,
    identity: Arc<Mutex<SaidIdentity>>,
    asked: Arc<Mutex<Vec<String>>>,
    left: Receiver<()>,
    gate: Arc<Mutex<()>>,
    half_sent: Receiver<()>,
}

/// Answers that are sent in two parts.
#[derive(Clone)]
struct Halves {
    /// The second part is sent once this can be taken.
    gate: Arc<Mutex<()>>,
    /// Told when the first has been sent.
    sent: SyncSender<()>,
}

impl Upstream {
    pub(crate) fn start() -> Self {
        Self::with_identity(SaidIdentity::default())
    }

    pub(crate) fn with_identity(identity: SaidIdentity) -> Self {
        let identity = Arc::new(Mutex::new(identity));
        let said = Arc::clone(&identity);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/key", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let together = Arc::new(Barrier::new(TOGETHER));
        let kept = Arc::clone(&asked);
        let (leaves, left) = sync_channel(8);
        let (sent, half_sent) = sync_channel(8);
        let gate = Arc::<Mutex<()>>::default();
        let halves = Halves { gate: Arc::clone(&gate), sent };
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (asked, together) = (Arc::clone(&kept), Arc::clone(&together));
                let (leaves, said) = (leaves.clone(), Arc::clone(&said));
                let halves = halves.clone();
                thread::spawn(move || {
                    serve(stream.unwrap(), &said, &asked, &together, &leaves, &halves);
                });
            }
        });
        Self { url, identity, asked, left, gate, half_sent }
    }

    /// Holds the end of `made_in_halves` back until this is dropped.
    pub(crate) fn hold_back(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap()
    }

    /// Waits until all but the end of `made_in_halves` has been sent.
    pub(crate) fn wait_until_half_sent(&self) {
        self.half_sent.recv_timeout(Duration::from_secs(20)).unwrap();
    }

    /// Another node takes the place of this one, behind the same name.
    pub(crate) fn become_another(&self, identity: SaidIdentity) {
        *self.identity.lock().unwrap() = identity;
    }

    /// Waits until a client has seen that the connection of `made_last` is closed.
    pub(crate) fn wait_until_left(&self) {
        self.left.recv_timeout(Duration::from_secs(20)).unwrap();
    }

    /// The methods that were asked, in the order in which they came, but for those that ask which
    /// chain it is.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(
    stream: TcpStream,
    said: &Mutex<SaidIdentity>,
    asked: &Mutex<Vec<String>>,
    together: &Barrier,
    leaves: &SyncSender<()>,
    halves: &Halves,
) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader) {
        if let Some(body) = said_in(&said.lock().unwrap(), &request) {
            let body = body.to_string();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            let stream = reader.get_mut();
            if stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).is_err() {
                return;
            }
            continue;
        }
        let method = request["method"].as_str().unwrap().to_owned();
        asked.lock().unwrap().push(method.clone());
        let echo = json!({ "jsonrpc": "2.0", "id": request["id"], "result": request["params"] });
        let (status, body) = match method.as_str() {
            "made_cut" => return,
            "made_busy" => ("429 Too Many Requests", "slow down".to_owned()),
            "made_garbage" => ("200 OK", "<html>".to_owned()),
            "made_long" => ("200 OK", format!(r#"{{"result":"{}"}}"#, "0".repeat(25_000_000))),
            "made_in_halves" => {
                ("200 OK", format!(r#"{{"result":"{}"}}"#, "0".repeat(HALVES_BYTES)))
            }
            "made_middling" => ("200 OK", format!(r#"{{"result":"{}"}}"#, "0".repeat(100_000))),
            "made_refuse" => {
                ("200 OK", r#"{"error":{"code":3,"message":"reverted","data":"0x"}}"#.to_owned())
            }
            "made_together" => {
                together.wait();
                ("200 OK", echo.to_string())
            }
            _ => ("200 OK", echo.to_string()),
        };
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
        let stream = reader.get_mut();
        let answer = [head.as_bytes(), body.as_bytes()].concat();
        let held_back = if method == "made_in_halves" { 1000 } else { 0 };
        let (begin, end) = answer.split_at(answer.len() - held_back);
        if stream.write_all(begin).is_err() {
            return;
        }
        if !end.is_empty() {
            halves.sent.send(()).unwrap();
            drop(halves.gate.lock().unwrap());
            if stream.write_all(end).is_err() {
                return;
            }
        }
        // The connection is closed under a client that keeps it, and that sees it.
        if method == "made_last" {
            stream.shutdown(Shutdown::Write).unwrap();
            // Before it does, it may ask who is there, in vain.
            while let Some(request) = read_request(&mut reader) {
                let is_who = said_in(&said.lock().unwrap(), &request).is_some();
                assert!(is_who, "nothing more is asked: {request}");
            }
            return leaves.send(()).unwrap();
        }
    }
}

/// The body of the answer to who it is, if that is all that a request or a batch asks.
fn said_in(identity: &SaidIdentity, request: &Value) -> Option<Value> {
    if let Some(batch) = request.as_array() {
        return batch
            .iter()
            .map(|call| said_in(identity, call))
            .collect::<Option<Vec<_>>>()
            .map(Value::from);
    }
    let result = said_by(identity, request)?;
    Some(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))
}

/// The answer to who it is, if that is asked.
pub(crate) fn said_by(identity: &SaidIdentity, request: &Value) -> Option<Value> {
    if request["method"] == "eth_chainId" {
        return Some(json!(format!("{:#x}", identity.chain_id)));
    }
    let is_genesis = request["method"] == "eth_getBlockByNumber" && request["params"][0] == "0x0";
    is_genesis.then(|| identity.genesis.clone())
}

/// The body of the next request; `None` if the client has left.
pub(crate) fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut bytes = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(length) = line.strip_prefix("content-length: ") {
            bytes = length.parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; bytes];
    reader.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).unwrap())
}
