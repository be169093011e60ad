//! `quipu health`: what a container's health check is told of a server.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::harness::data::Data;
use crate::harness::long::Long;
use crate::harness::run::{command, quipu, ran};
use crate::harness::served::Served;

#[test]
fn a_server_that_is_well_is_told_with_0_wherever_the_settings_say_that_it_listens() {
    let data = Data::imported();
    let served = Served::start(&data.path(), &["--host", "rpc.example"]);
    let address = served.address();
    let asked = quipu(&["health", "--listen", address, "--host", "rpc.example"]).ends_with(0);
    assert_eq!(asked.out, "ok\n");
    let mut by_variables = command(&["health", "--ready"]);
    by_variables.env("QUIPU_LISTEN", address.replace("127.0.0.1", "0.0.0.0"));
    ran(by_variables.env("QUIPU_HOST", "rpc.example")).ends_with(0);
    // The server answers those alone who name it.
    let refused = quipu(&["health", "--listen", address]).ends_with(1);
    assert!(refused.err.contains(&format!("http://{address}/healthz: 403: ")), "{}", refused.err);
}

#[test]
fn a_server_that_runs_and_is_not_ready_is_told_apart() {
    let long = Long::new();
    let name = &long.segments()[1];
    fs::remove_file(long.path().join(name)).unwrap();
    let served = Served::start(&long.path(), &[]);
    quipu(&["health", "--listen", served.address()]).ends_with(0);
    let asked = quipu(&["health", "--ready", "--listen", served.address()]).ends_with(1);
    let begin = format!("error: http://{}/readyz: 503: ", served.address());
    assert!(asked.err.starts_with(&begin) && asked.err.contains(name), "{}", asked.err);
}

#[test]
fn nobody_there_and_another_protocol_are_told_with_1() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Whoever closes with bytes unread resets the connection.
        let mut request = [0; 1024];
        assert!(stream.read(&mut request).unwrap() > 0);
        // An alert, as a server over TLS sends it.
        stream.write_all(&[21, 3, 3, 0, 2, 2, 50]).unwrap();
    });
    let asked = quipu(&["health", "--listen", &address]);
    assert!(asked.err.contains("--listen"), "{}", asked.err);
    asked.ends_with(1);
    answering.join().unwrap();
    // By now nobody listens there.
    let asked = quipu(&["health", "--listen", &address]).ends_with(1);
    assert!(asked.err.contains(&format!("http://{address}/healthz: ")), "{}", asked.err);
}
