//! A WebSocket client: what it sends is what stands here, and what comes back is not hidden.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::handshake::HandshakeError;
use tokio_tungstenite::tungstenite::http::Request;
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket, client};

use crate::harness::hosted::Hosted;

/// A connection, and what came on it before it was asked for.
pub(crate) struct Socket {
    socket: WebSocket<TcpStream>,
    kept: VecDeque<Value>,
}

impl Socket {
    pub(crate) fn open(hosted: &Hosted) -> Self {
        let (socket, _) = client("ws://test/any/path", hosted.connect()).unwrap();
        Self { socket, kept: VecDeque::new() }
    }

    /// One to a server that is another process.
    pub(crate) fn at(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (socket, _) = client("ws://test/", stream).unwrap();
        Self { socket, kept: VecDeque::new() }
    }

    /// One that is asked for by this request; or the status with which it is refused, and its body.
    pub(crate) fn handshake(request: Request<()>, stream: TcpStream) -> Result<Self, (u16, Value)> {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        match client(request, stream) {
            Ok((socket, _)) => Ok(Self { socket, kept: VecDeque::new() }),
            Err(HandshakeError::Failure(Error::Http(answer))) => {
                let body = answer.body().clone().unwrap_or_default();
                Err((answer.status().as_u16(), serde_json::from_slice(&body).unwrap_or_default()))
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    /// The status of a handshake that is refused, and its body.
    pub(crate) fn refused(hosted: &Hosted, headers: &[(&str, &str)]) -> (u16, Value) {
        use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
        use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
        let mut request = "ws://test/".into_client_request().unwrap();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            request.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
        }
        match Self::handshake(request, hosted.connect()) {
            Err(refused) => refused,
            Ok(_) => panic!("the handshake was not refused"),
        }
    }

    pub(crate) fn send(&mut self, message: Message) {
        self.socket.send(message).unwrap();
    }

    /// The same to a server that may have closed.
    pub(crate) fn try_send(&mut self, message: Message) -> Result<(), Error> {
        self.socket.send(message)
    }

    pub(crate) fn send_text(&mut self, text: &str) {
        self.send(Message::text(text));
    }

    /// Whatever comes next.
    pub(crate) fn message(&mut self) -> Result<Message, Error> {
        self.socket.read()
    }

    /// The next text as JSON, whatever else comes before it.
    pub(crate) fn next(&mut self) -> Value {
        loop {
            match self.message().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other @ (Message::Binary(_) | Message::Close(_) | Message::Frame(_)) => {
                    panic!("{other:?}")
                }
            }
        }
    }

    /// The code and reason with which the server closes, whatever it sends before.
    pub(crate) fn closed(&mut self) -> (u16, String) {
        loop {
            if let Message::Close(frame) = self.message().unwrap() {
                let frame = frame.unwrap();
                return (frame.code.into(), frame.reason.to_string());
            }
        }
    }

    /// The whole answer to a call; what comes before it is kept.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        self.send_text(&body.to_string());
        loop {
            let message = self.next();
            if message["id"] == method {
                return message;
            }
            self.kept.push_back(message);
        }
    }

    /// Subscribes to new heads; the id.
    pub(crate) fn subscribe(&mut self) -> String {
        let answer = self.call("eth_subscribe", &json!(["newHeads"]));
        answer["result"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Subscribes to logs; the id.
    pub(crate) fn subscribe_to_logs(&mut self, filter: &Value) -> String {
        let answer = self.call("eth_subscribe", &json!(["logs", filter]));
        answer["result"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// The next message that nobody has waited for yet.
    pub(crate) fn kept_or_next(&mut self) -> Value {
        self.kept.pop_front().unwrap_or_else(|| self.next())
    }

    /// Nothing came that was not asked for.
    pub(crate) fn assert_silent(&self) {
        assert!(self.kept.is_empty(), "{:?}", self.kept);
    }

    /// The next new head, or log, of a subscription.
    pub(crate) fn head(&mut self, id: &str) -> Value {
        let message = self.kept_or_next();
        assert_eq!(message["method"], "eth_subscription", "{message}");
        assert_eq!(message["params"]["subscription"], id, "{message}");
        message["params"]["result"].clone()
    }
}
