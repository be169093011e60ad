//! A server under a supervisor: a socket that is handed over, a restart that refuses nobody, and what
//! the supervisor is told.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use tempfile::TempDir;

use crate::harness::run::{text, without_settings};
use crate::harness::served::signal;
use crate::harness::stores::data_folder;
use crate::harness::wait::wait_for;
use crate::limits::request;

const ASKED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;
const RESULT: &str = "\"result\":\"0x63\"";

/// What a supervisor does before it starts a server: the socket is descriptor 3, and its process is
/// named.
const HAND_OVER: &str = "exec 3<&0 </dev/null; export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$@\"";

/// A server that gets this socket; killed when it is dropped.
struct Supervised(Child);

impl Supervised {
    fn start(listener: &TcpListener, notified: Option<&str>) -> Self {
        let data = data_folder("gap");
        let mut command = Command::new("sh");
        command.args(["-c", HAND_OVER, "sh", env!("CARGO_BIN_EXE_quipu"), "serve"]);
        // The address that it would listen on by itself is not free.
        let taken = listener.local_addr().unwrap().to_string();
        command.args(["--data-dir", text(&data), "--listen", &taken]);
        without_settings(&mut command);
        command.env_remove("NOTIFY_SOCKET").envs(notified.map(|path| ("NOTIFY_SOCKET", path)));
        let socket = OwnedFd::from(listener.try_clone().unwrap());
        command.stdin(socket).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// Tells it to stop, and waits until it is gone.
    fn stop(&mut self) {
        signal(&self.0, "TERM");
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn listener() -> TcpListener {
    TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
}

/// Asks on a connection of its own.
fn ask(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_mins(1)))?;
    let asked = request(ASKED).replace("host: test", "host: test\r\nconnection: close");
    stream.write_all(asked.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_restart_refuses_nobody_where_the_socket_is_the_supervisors() {
    let listener = listener();
    let address = listener.local_addr().unwrap();
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut server = Supervised::start(&listener, None);
    thread::scope(|scope| {
        let asking = || {
            while !is_over.load(Ordering::Relaxed) {
                let answer = ask(address).unwrap();
                assert!(answer.contains(RESULT), "{answer:?}");
                answered.fetch_add(1, Ordering::Relaxed);
            }
        };
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(asking)).collect();
        for _ in 0..3 {
            let before = answered.load(Ordering::Relaxed);
            let told = || format!("{} answers, {before} before", answered.load(Ordering::Relaxed));
            let is_answered = || answered.load(Ordering::Relaxed) > before + 20;
            wait_for(
                || {
                    (is_answered() || clients.iter().any(ScopedJoinHandle::is_finished))
                        .then_some(())
                },
                told,
            );
            server.stop();
            server = Supervised::start(&listener, None);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(answered.load(Ordering::Relaxed) > 60);
}

#[test]
fn a_supervisor_is_told_when_serving_begins_and_ends() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("notified");
    let notified = UnixDatagram::bind(&path).unwrap();
    notified.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let next = || {
        let mut message = [0; 256];
        let count = notified.recv(&mut message).unwrap();
        String::from_utf8(message[..count].to_vec()).unwrap()
    };
    let listener = listener();
    let mut server = Supervised::start(&listener, Some(text(&path)));
    assert_eq!(next().trim(), "READY=1");
    assert!(ask(listener.local_addr().unwrap()).unwrap().contains(RESULT));
    signal(&server.0, "HUP");
    let told = next();
    let [first, second] = told.lines().collect::<Vec<_>>()[..] else { panic!("{told}") };
    assert!(first == "RELOADING=1" && second.starts_with("MONOTONIC_USEC="), "{told}");
    assert_eq!(next().trim(), "READY=1");
    server.stop();
    assert_eq!(next().trim(), "STOPPING=1");
}

#[test]
fn what_is_no_listening_socket_is_refused() {
    let data = data_folder("gap");
    let mut command = Command::new("sh");
    command.args(["-c", HAND_OVER, "sh", env!("CARGO_BIN_EXE_quipu"), "serve"]);
    command.args(["--data-dir", text(&data), "--listen", "0"]);
    without_settings(&mut command);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("LISTEN_FDS: no TCP socket was handed over"), "{said}");
}
