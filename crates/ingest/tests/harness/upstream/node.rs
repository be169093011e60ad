//! A node that answers truly from a sample chain, but for the faults that it is given.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use alloy_primitives::B256;
use futures_util::{SinkExt as _, StreamExt as _};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use node::UpstreamUrl;
use sample::CHAIN_ID;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;

use super::chains::Chain;
use super::faults::Fault;
use super::told::Told;

/// Longer than anything takes that ends at all.
const DEADLINE: Duration = Duration::from_mins(1);

/// Decides what is wrong with the answer to a message, given the numbers of the blocks that it is
/// about.
pub(crate) type Script = Box<dyn FnMut(&Asked) -> Option<Fault> + Send>;

/// What a message asks.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) methods: Vec<String>,
    /// The message.
    text: String,
}

impl Asked {
    /// Whether a method, a tag or whatever else is named in it.
    pub(crate) fn is_about(&self, what: &str) -> bool {
        self.text.contains(what)
    }
}

pub(crate) struct Node {
    http: SocketAddr,
    websocket: SocketAddr,
    state: Arc<Mutex<State>>,
    /// Wakes those that wait for it to be asked.
    asked: Arc<Condvar>,
    tips: watch::Sender<B256>,
}

struct State {
    asked: Arc<Condvar>,
    chain: Chain,
    known: BTreeMap<B256, Arc<Told>>,
    safe: Option<u64>,
    finalized: Option<u64>,
    /// Names that another backend of the same address answers.
    named: BTreeMap<&'static str, Arc<Told>>,
    script: Script,
    takes_batches: bool,
    has_block_receipts: bool,
    has_raw_headers: bool,
    chain_id: u64,
    /// From this connection over HTTP on, a node of chain 5 is at the other end.
    foreign_from: u64,
    message_count: u64,
    /// Notifications that were sent.
    news_count: u64,
    /// Answers that something is wrong with.
    spoiled_count: u64,
    /// Letters that are added to every block with its transactions.
    padding: String,
    /// Questions over HTTP that are not answered yet, and the most of them at a time.
    under_way: u64,
    most_under_way: u64,
    /// Looks at the follower before every answer.
    observer: Box<dyn FnMut(u64) + Send>,
    methods: BTreeMap<String, u64>,
}

impl Node {
    /// A node with a chain, all of it final.
    pub(crate) fn start(runtime: &Handle, chain: Chain) -> Self {
        let last = chain.last().unwrap().number();
        let (tips, _) = watch::channel(chain.last().unwrap().hash());
        let asked = Arc::<Condvar>::default();
        let state = State {
            asked: Arc::clone(&asked),
            known: chain.iter().map(|told| (told.hash(), Arc::clone(told))).collect(),
            chain,
            safe: Some(last),
            finalized: Some(last),
            named: BTreeMap::new(),
            script: Box::new(|_| None),
            takes_batches: true,
            has_block_receipts: true,
            has_raw_headers: false,
            chain_id: CHAIN_ID,
            foreign_from: u64::MAX,
            message_count: 0,
            news_count: 0,
            spoiled_count: 0,
            padding: String::new(),
            under_way: 0,
            most_under_way: 0,
            observer: Box::new(|_| ()),
            methods: BTreeMap::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let _inside = runtime.enter();
        let bind = || {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            let address = listener.local_addr().unwrap();
            (address, TcpListener::from_std(listener).unwrap())
        };
        let ((http, http_listener), (websocket, websocket_listener)) = (bind(), bind());
        runtime.spawn(serve_http(http_listener, Arc::clone(&state)));
        runtime.spawn(serve_websocket(websocket_listener, Arc::clone(&state), tips.clone()));
        Self { http, websocket, state, asked, tips }
    }

    pub(crate) fn url(&self) -> UpstreamUrl {
        format!("http://{}", self.http).parse().unwrap()
    }

    pub(crate) fn websocket_url(&self) -> UpstreamUrl {
        format!("ws://{}", self.websocket).parse().unwrap()
    }

    /// From now on, whatever the script says is wrong.
    pub(crate) fn spoil(&self, script: impl FnMut(&Asked) -> Option<Fault> + Send + 'static) {
        self.lock().script = Box::new(script);
    }

    /// Nothing is wrong any more.
    pub(crate) fn mend(&self) {
        self.spoil(|_| None);
    }

    /// Follows another chain from now on.
    pub(crate) fn switch(&self, chain: Chain, finalized: u64) {
        let tip = chain.last().unwrap().hash();
        let mut state = self.lock();
        state.known.extend(chain.iter().map(|told| (told.hash(), Arc::clone(told))));
        (state.safe, state.finalized) = (Some(finalized), Some(finalized));
        state.chain = chain;
        drop(state);
        self.tips.send_replace(tip);
    }

    pub(crate) fn set_finality(&self, finalized: Option<u64>) {
        let mut state = self.lock();
        (state.safe, state.finalized) = (finalized, finalized);
    }

    /// What is safe and what is final are answered by another backend than all else.
    pub(crate) fn split_finality(&self, finalized: Option<&Arc<Told>>) {
        let blocks = finalized.into_iter();
        let named = blocks.flat_map(|it| ["safe", "finalized"].map(|name| (name, Arc::clone(it))));
        self.lock().named = named.collect();
    }

    pub(crate) fn refuse_batches(&self) {
        self.lock().takes_batches = false;
    }

    pub(crate) fn lack_block_receipts(&self) {
        self.lock().has_block_receipts = false;
    }

    /// Takes batches and offers `eth_getBlockReceipts` from now on.
    pub(crate) fn be_upgraded(&self) {
        let mut state = self.lock();
        (state.takes_batches, state.has_block_receipts) = (true, true);
    }

    /// Offers `debug_getRawHeader` from now on.
    pub(crate) fn offer_raw_headers(&self) {
        self.lock().has_raw_headers = true;
    }

    /// Makes every block with its transactions so many bytes longer, in a member that means nothing.
    pub(crate) fn pad_blocks(&self, bytes: usize) {
        self.lock().padding = "0".repeat(bytes);
    }

    /// Before every answer, `observer` is told how many bytes it has.
    pub(crate) fn observe(&self, observer: impl FnMut(u64) + Send + 'static) {
        self.lock().observer = Box::new(observer);
    }

    pub(crate) fn set_chain_id(&self, chain_id: u64) {
        self.lock().chain_id = chain_id;
    }

    /// All connections over HTTP but the first lead to a node of another chain.
    pub(crate) fn be_foreign_beside_the_first_connection(&self) {
        self.lock().foreign_from = 1;
    }

    pub(crate) fn message_count(&self) -> u64 {
        self.lock().message_count
    }

    /// The most questions over HTTP that waited for their answers at a time, since this was last asked.
    pub(crate) fn most_under_way(&self) -> u64 {
        let mut state = self.lock();
        let under_way = state.under_way;
        std::mem::replace(&mut state.most_under_way, under_way)
    }

    /// How often a method was called.
    pub(crate) fn count(&self, method: &str) -> u64 {
        self.lock().methods.get(method).copied().unwrap_or(0)
    }

    /// Waits until a method was called so often.
    pub(crate) fn wait_count(&self, method: &str, count: u64) {
        let is_less = |state: &mut State| state.methods.get(method).copied().unwrap_or(0) < count;
        self.wait_while(&format!("{method} {count} times"), is_less);
    }

    /// How many notifications were sent.
    pub(crate) fn news_count(&self) -> u64 {
        self.lock().news_count
    }

    /// Waits until so many notifications were sent.
    pub(crate) fn wait_news(&self, count: u64) {
        self.wait_while(&format!("{count} notifications"), |state| state.news_count < count);
    }

    /// Waits until so many answers were spoiled.
    pub(crate) fn wait_spoiled(&self, count: u64) {
        self.wait_while(&format!("{count} spoiled"), |state| state.spoiled_count < count);
    }

    fn wait_while(&self, what: &str, is_less: impl FnMut(&mut State) -> bool) {
        let waited = self.asked.wait_timeout_while(self.lock(), DEADLINE, is_less).unwrap();
        assert!(!waited.1.timed_out(), "{what}: not in {:?}", waited.0.methods);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl State {
    /// The answer to a message, and what is to go wrong with sending it.
    fn respond(&mut self, body: &[u8]) -> (Option<Fault>, Value) {
        self.message_count += 1;
        let message: Value = serde_json::from_slice(body).unwrap();
        let calls: Vec<Value> =
            message.as_array().cloned().unwrap_or_else(|| vec![message.clone()]);
        let methods = calls.iter().map(|call| call["method"].as_str().unwrap().to_owned());
        let asked = Asked { methods: methods.collect(), text: message.to_string() };
        for method in &asked.methods {
            *self.methods.entry(method.clone()).or_default() += 1;
        }
        if message.is_array() && !self.takes_batches {
            let error = json!({"code": -32600, "message": "batches are not taken"});
            return (None, json!({"jsonrpc": "2.0", "id": null, "error": error}));
        }
        let fault = (self.script)(&asked);
        self.spoiled_count += u64::from(fault.is_some());
        self.asked.notify_all();
        let answers: Vec<Value> = calls.iter().map(|call| self.answer(call, fault)).collect();
        let is_batch = message.is_array();
        let answer = if is_batch { Value::from(answers) } else { answers[0].clone() };
        (fault, answer)
    }

    /// What is answered in place of the truth because of a fault of the whole call.
    fn refusal(call: &Value, fault: Fault) -> Option<Value> {
        let params = &call["params"];
        let is_of_receipts = call["method"] == "eth_getBlockReceipts";
        let is_full = params[1] == json!(true);
        let is_of_ommer = call["method"] == "eth_getUncleByBlockHashAndIndex";
        let told = if fault == Fault::Refused && (is_full || is_of_receipts) {
            Some((-32000, "not available"))
        } else if fault == Fault::NoOmmerMethod && is_of_ommer {
            Some((-32601, "the method does not exist"))
        } else {
            fault.refusal_of(&params[0])
        };
        if let Some((code, message)) = told {
            let error = json!({"code": code, "message": message});
            return Some(json!({"jsonrpc": "2.0", "id": call["id"], "error": error}));
        }
        let is_absent =
            fault == Fault::NoBlock && is_full || fault == Fault::NoReceipts && is_of_receipts;
        is_absent.then(|| json!({"jsonrpc": "2.0", "id": call["id"], "result": null}))
    }

    fn answer(&self, call: &Value, fault: Option<Fault>) -> Value {
        let params = &call["params"];
        if let Some(refusal) = fault.and_then(|fault| Self::refusal(call, fault)) {
            return refusal;
        }
        let result = match call["method"].as_str().unwrap() {
            "eth_chainId" => json!(format!("{:#x}", self.chain_id)),
            "eth_getBlockByNumber" | "eth_getBlockByHash" => {
                let is_full = params[1] == json!(true);
                let tip = &self.chain.last().unwrap().header;
                if let Some(header) = fault.and_then(|it| it.invent(&params[0], tip)) {
                    return json!({"jsonrpc": "2.0", "id": call["id"], "result": header});
                }
                let told = self.find(&params[0], fault.filter(|_| is_full));
                told.map_or(Value::Null, |told| {
                    let mut block = if is_full { told.block.clone() } else { told.header.clone() };
                    fault.filter(|_| is_full).inspect(|fault| fault.spoil_block(&mut block));
                    if fault == Some(Fault::NoHash) {
                        block["hash"] = Value::Null;
                    }
                    if params[0] == "latest" {
                        fault.inspect(|fault| fault.spoil_tip(&mut block));
                    }
                    if is_full && !self.padding.is_empty() {
                        block["padding"] = json!(self.padding);
                    }
                    block
                })
            }
            "eth_getBlockReceipts" if self.has_block_receipts => {
                let told = self.find(&params[0], fault);
                told.map_or(Value::Null, |told| {
                    let mut receipts = told.receipts.clone();
                    fault.inspect(|fault| fault.spoil_receipts(&mut receipts));
                    receipts.into()
                })
            }
            "eth_getTransactionReceipt" => {
                let mut all = self.chain.iter().flat_map(|told| &told.receipts);
                let found = all.find(|it| it["transactionHash"] == params[0]);
                found.cloned().unwrap_or(Value::Null)
            }
            "eth_getUncleByBlockHashAndIndex" => {
                let told = self.find(&params[0], None);
                let index = number_of(&params[1]).unwrap() as usize;
                told.and_then(|told| told.ommers.get(index).cloned()).unwrap_or(Value::Null)
            }
            "debug_getRawHeader" if self.has_raw_headers => self
                .find(&params[0], None)
                .map_or(Value::Null, |told| json!(told.verified.header_rlp)),
            "eth_subscribe" => json!("0x1"),
            method => {
                let error = json!({"code": -32601, "message": format!("no method {method}")});
                return json!({"jsonrpc": "2.0", "id": call["id"], "error": error});
            }
        };
        json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
    }

    fn find(&self, which: &Value, fault: Option<Fault>) -> Option<Arc<Told>> {
        let text = which.as_str().unwrap();
        if let Some(told) = self.named.get(text) {
            return Some(Arc::clone(told));
        }
        let number = match text {
            "latest" => self.chain.last().map(|told| told.number()),
            "safe" => self.safe,
            "finalized" => self.finalized,
            _ if text.len() == 66 => {
                let told = self.known.get(&text.parse::<B256>().unwrap())?;
                if fault != Some(Fault::OtherBlock) {
                    return Some(Arc::clone(told));
                }
                Some(told.number())
            }
            _ => number_of(which),
        };
        let other = u64::from(fault == Some(Fault::OtherBlock));
        let number = number.map(|number| if number < 2 { number + other } else { number - other });
        self.chain.get(number? as usize).cloned()
    }
}

pub(super) fn number_of(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

async fn serve_http(listener: TcpListener, state: Arc<Mutex<State>>) {
    for connection in 0_u64.. {
        let (stream, _) = listener.accept().await.unwrap();
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| respond(request, connection, Arc::clone(&state)));
            // Whatever ends the connection is the client's to notice.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn respond(
    request: Request<Incoming>,
    connection: u64,
    state: Arc<Mutex<State>>,
) -> Result<Response<Answer>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let (fault, answer) = {
        let mut state = state.lock().unwrap();
        state.under_way += 1;
        state.most_under_way = state.most_under_way.max(state.under_way);
        let chain_id = state.chain_id;
        if connection >= state.foreign_from {
            state.chain_id = 5;
        }
        let answered = state.respond(&body);
        state.chain_id = chain_id;
        answered
    };
    let text = answer.to_string();
    (state.lock().unwrap().observer)(text.len() as u64);
    let whole = |text: &str| Answer { text: Some(text.to_owned().into()), breaks: false };
    let response = match fault {
        Some(Fault::Status(status, retry_after)) => {
            let mut response = Response::builder().status(status);
            if let Some(seconds) = retry_after {
                response = response.header("retry-after", seconds);
            }
            response.body(whole("later")).unwrap()
        }
        // The slowness of the node is what is tested.
        Some(Fault::Stall(time)) => {
            tokio::time::sleep(time).await;
            Response::new(whole(&text))
        }
        Some(Fault::Disconnect) => {
            let half = text[..text.len() / 2].to_owned();
            Response::new(Answer { text: Some(half.into()), breaks: true })
        }
        Some(Fault::Truncated) => Response::new(whole(&text[..text.len() / 2])),
        Some(Fault::LastOfConnection) => {
            Response::builder().header("connection", "close").body(whole(&text)).unwrap()
        }
        _ => Response::new(whole(&text)),
    };
    state.lock().unwrap().under_way -= 1;
    Ok(response)
}

/// A body that may break off.
struct Answer {
    text: Option<Bytes>,
    breaks: bool,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        Poll::Ready(match self.text.take() {
            Some(text) => Some(Ok(Frame::data(text))),
            None if self.breaks => Some(Err(std::io::Error::other("as the script says"))),
            None => None,
        })
    }
}

async fn serve_websocket(
    listener: TcpListener,
    state: Arc<Mutex<State>>,
    tips: watch::Sender<B256>,
) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(talk(stream, Arc::clone(&state), tips.subscribe()));
    }
}

async fn talk(stream: TcpStream, state: Arc<Mutex<State>>, mut tips: watch::Receiver<B256>) {
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
    let mut is_subscribed = false;
    loop {
        let sent = tokio::select! {
            message = socket.next() => {
                let Some(Ok(Message::Text(text))) = message else { return };
                is_subscribed |= text.contains("eth_subscribe");
                let (fault, answer) = state.lock().unwrap().respond(text.as_bytes());
                match fault {
                    Some(Fault::Disconnect) => return,
                    Some(Fault::Stall(time)) => tokio::time::sleep(time).await,
                    _ => {}
                }
                let mut text = answer.to_string();
                if fault == Some(Fault::Truncated) {
                    text.truncate(text.len() / 2);
                }
                text
            }
            changed = tips.changed(), if is_subscribed => {
                if changed.is_err() {
                    return;
                }
                let header = {
                    let hash = *tips.borrow_and_update();
                    let mut state = state.lock().unwrap();
                    state.news_count += 1;
                    state.asked.notify_all();
                    state.known[&hash].header.clone()
                };
                let params = json!({"subscription": "0x1", "result": header});
                json!({"jsonrpc": "2.0", "method": "eth_subscription", "params": params}).to_string()
            }
        };
        if socket.send(Message::text(sent)).await.is_err() {
            return;
        }
    }
}
