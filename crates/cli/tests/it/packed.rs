//! Answers that are kept and packed: whoever asks again, with another id, reads what was asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use rpc::ServiceSettings;
use rpc::http::HttpSettings;

use crate::harness::hosted::{Hosted, service};
use crate::harness::stores::data_folder;

/// Asks on a connection that is kept; gives the answer's encoding and its body.
fn ask(stream: &mut TcpStream, body: &str, accepted: &str) -> (Option<String>, Vec<u8>) {
    let head = format!(
        "POST / HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\naccept-encoding: {accepted}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let (mut length, mut encoding) = (0, None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(("content-encoding", value)) => encoding = Some(value.to_owned()),
            _ if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    let mut answer = vec![0; length];
    reader.read_exact(&mut answer).unwrap();
    (encoding, answer)
}

fn unpacked(encoding: Option<&str>, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match encoding {
        None => out.extend_from_slice(body),
        Some("gzip") => {
            let mut decoder = flate2::bufread::GzDecoder::new(body);
            decoder.read_to_end(&mut out).unwrap();
            assert!(decoder.into_inner().is_empty(), "one member, and nothing after it");
        }
        Some("zstd") => out = zstd::decode_all(body).unwrap(),
        Some("br") => {
            brotli::Decompressor::new(body, 4096).read_to_end(&mut out).map(drop).unwrap();
        }
        Some(other) => panic!("{other} was not asked for"),
    }
    out
}

#[test]
fn what_is_packed_once_for_all_is_read_by_everyone() {
    let hosted = Hosted::start(
        service(&data_folder("gap"), ServiceSettings::default()),
        HttpSettings::default(),
    );
    let mut stream = hosted.connect();
    let mut packed_bytes = 0;
    for number in [1, 2, 5, 99] {
        // From the third time on an answer is one that is kept; a long id cannot go the same way.
        for id in ["1", "2", "3", "\"four\"", &format!("\"{}\"", "5".repeat(2000)), "6"] {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_getBlockByNumber","params":["{number:#x}",true]}}"#
            );
            let (none, expected) = ask(&mut stream, &body, "identity");
            assert_eq!(none, None);
            for coding in ["gzip", "zstd", "br"] {
                let (encoding, answer) = ask(&mut stream, &body, coding);
                packed_bytes += answer.len();
                let found = unpacked(encoding.as_deref(), &answer);
                assert_eq!(
                    String::from_utf8(found).unwrap(),
                    String::from_utf8(expected.clone()).unwrap(),
                    "{coding} {number} {id}"
                );
                let is_long = expected.len() >= 1024;
                assert_eq!(encoding.as_deref(), is_long.then_some(coding), "{number} {id}");
                assert!(!is_long || answer.len() < expected.len(), "{coding} {number} {id}");
            }
        }
    }
    assert!(packed_bytes > 10_000, "blocks of some length were asked for");
}
