//! A server under test: the real executable on a free port, and a client that hides nothing.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::hosted::Hosted;
use crate::harness::run::{command, text};

/// A running `quipu serve` or `quipu demo`; killed when it is dropped.
pub(crate) struct Served {
    process: Process,
    pub(crate) address: String,
}

/// What serves.
enum Process {
    Child(Child),
    /// This process, for what no command serves.
    Own(#[expect(dead_code, reason = "dropping it stops the server")] Hosted),
}

/// What a server writes, line by line.
type LogLines = Box<dyn Iterator<Item = std::io::Result<String>> + Send>;

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Served {
    pub(crate) fn start(data: &Path, args: &[&str]) -> Self {
        let (served, lines) = Self::start_saying(data, args, "off");
        // Whatever it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        served
    }

    /// The same with its logs, line by line until it ends.
    pub(crate) fn start_logged(data: &Path, args: &[&str]) -> (Self, Receiver<String>) {
        Self::start_logged_at(data, args, "info")
    }

    /// The same with logs of another level.
    pub(crate) fn start_logged_at(
        data: &Path,
        args: &[&str],
        level: &str,
    ) -> (Self, Receiver<String>) {
        let (served, lines) = Self::start_saying(data, args, level);
        let (sender, receiver) = sync_channel(10_000);
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|it| sender.send(it)));
        (served, receiver)
    }

    /// The same without a data folder, of what is published.
    pub(crate) fn start_reader(source: &str, cache: &Path, args: &[&str]) -> Self {
        let reader = ["--source", source, "--cache-dir", text(cache)];
        let (served, lines) = Self::start_by(&[&reader[..], args].concat(), "off");
        std::thread::spawn(move || lines.for_each(drop));
        served
    }

    fn start_saying(data: &Path, args: &[&str], level: &str) -> (Self, LogLines) {
        Self::start_by(&[&["--data-dir", text(data)], args].concat(), level)
    }

    fn start_by(args: &[&str], level: &str) -> (Self, LogLines) {
        let mut command = command(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
        command.env("RUST_LOG", level).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let address = loop {
            let Some(line) = lines.next() else { panic!("not listening: {said:#?}") };
            let line = line.unwrap();
            let address = line.strip_prefix("listening on http");
            if let Some((_, address)) = address.and_then(|rest| rest.split_once("://")) {
                break address.to_owned();
            }
            said.push(line);
        };
        let lines = said.into_iter().map(Ok).chain(lines);
        (Self { process: Process::Child(child), address }, Box::new(lines))
    }

    /// A server that was started otherwise.
    pub(crate) fn over(child: Child, address: SocketAddr) -> Self {
        Self { process: Process::Child(child), address: address.to_string() }
    }

    /// A server inside this process.
    pub(crate) fn hosted(hosted: Hosted) -> Self {
        let address = hosted.address.to_string();
        Self { process: Process::Own(hosted), address }
    }

    fn child(&mut self) -> &mut Child {
        match &mut self.process {
            Process::Child(child) => child,
            Process::Own(_) => panic!("this server is no process of its own"),
        }
    }

    /// `quipu demo` on a free port with its temporary files in a folder, and what it said.
    pub(crate) fn demo(temporary: &Path, args: &[&str]) -> (Self, Vec<String>) {
        let mut command = command(&[&["demo", "--listen", "127.0.0.1:0"], args].concat());
        command.env("TMPDIR", temporary).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut said = Vec::new();
        let address = loop {
            let line = lines.next().unwrap_or_else(|| panic!("not listening: {said:?}"));
            if let Some(address) = line.strip_prefix("listening on http://") {
                break address.to_owned();
            }
            said.push(line);
        };
        std::thread::spawn(move || lines.for_each(drop));
        (Self { process: Process::Child(child), address }, said)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Sends a request as it stands, and reads the answer to its end.
    pub(crate) fn send(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: bytes[end + 4..].to_vec() }
    }

    /// Sends a body by POST.
    pub(crate) fn post_with(&self, headers: &str, body: &[u8]) -> Answer {
        let head = format!(
            "POST / HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n",
            body.len()
        );
        self.send(&[head.as_bytes(), body].concat())
    }

    pub(crate) fn post(&self, body: &str) -> Answer {
        self.post_with("content-type: application/json\r\n", body.as_bytes())
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        self.send(head.as_bytes())
    }

    /// Calls a method and gives the whole answer back.
    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = self.post(&body.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// The result of a call that must have one.
    pub(crate) fn result(&self, method: &str, params: &Value) -> Value {
        let answer = self.call(method, params);
        assert!(answer.get("error").is_none(), "{method} {params}: {answer}");
        answer["result"].clone()
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        match &self.process {
            Process::Child(child) => child.id(),
            Process::Own(_) => std::process::id(),
        }
    }

    /// Waits until it ends by itself; its exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.child().wait().unwrap().code()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        match &self.process {
            Process::Child(child) => signal(child, name),
            Process::Own(_) => panic!("this server is no process of its own"),
        }
    }

    /// Asks the server to stop; its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal("TERM");
        self.child().wait().unwrap().code()
    }
}

/// Sends a signal to a process of ours.
pub(crate) fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-s", name, &pid]).status().unwrap();
    assert!(sent.success());
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Process::Child(child) = &mut self.process {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }
}
