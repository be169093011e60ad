//! `quipu health`: what a container's health check is told of a server.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use rpc::http::TlsFiles;

use crate::harness::data::Data;
use crate::harness::encrypted::Authority;
use crate::harness::long::Long;
use crate::harness::run::{command, quipu, ran, text};
use crate::harness::served::Served;

#[test]
fn a_server_that_is_well_is_told_with_0_wherever_the_settings_say_that_it_listens() {
    let data = Data::imported();
    let served = Served::start(&data.path(), &["--allowed-host", "rpc.example"]);
    let address = served.address();
    // Whatever name it answers to.
    let asked = quipu(&["health", "--listen", address]).ends_with(0);
    assert_eq!(asked.out, "ok\n");
    let mut by_variables = command(&["health", "--ready"]);
    by_variables.env("QUIPU_LISTEN", address.replace("127.0.0.1", "0.0.0.0"));
    ran(&mut by_variables).ends_with(0);
}

#[test]
fn a_server_that_speaks_tls_is_asked_where_it_has_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let TlsFiles { certificate, key, .. } =
        Authority::new().identity("localhost").write(folder.path());
    let data = Data::imported();
    let args = ["--tls-cert", text(&certificate), "--tls-key", text(&key)];
    let more = ["--metrics-listen", "127.0.0.1:0"];
    let (served, log) = Served::start_logged(&data.path(), &[&args[..], &more].concat());
    let asked = quipu(&["health", "--listen", served.address()]).ends_with(1);
    assert!(asked.err.contains("400: ") && asked.err.contains("metrics_listen"), "{}", asked.err);
    let metrics = log.iter().find_map(|line| {
        Some(line.strip_prefix("metrics on http://")?.strip_suffix("/metrics")?.to_owned())
    });
    let (taken, metrics) = (served.address(), metrics.unwrap());
    quipu(&["health", "--listen", taken, "--metrics-listen", &metrics]).ends_with(0);
    // An address that is typed is the one that is meant.
    let by_variable = |args: &[&str]| ran(command(args).env("QUIPU_METRICS_LISTEN", &metrics));
    by_variable(&["health"]).ends_with(0);
    by_variable(&["health", "--listen", taken]).ends_with(1);
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
    assert!(asked.err.contains("this is no answer over HTTP"), "{}", asked.err);
    asked.ends_with(1);
    answering.join().unwrap();
    // By now nobody listens there.
    let asked = quipu(&["health", "--listen", &address]).ends_with(1);
    assert!(asked.err.contains(&format!("http://{address}/healthz: ")), "{}", asked.err);
}
