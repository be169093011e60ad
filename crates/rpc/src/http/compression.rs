//! Compressed bodies, both ways.
//!
//! Knows: gzip, zstd and brotli, what a client prefers, and that little can become much.
//! Never knows: what is in a body.

mod splice;

use std::io::{Read, Write as _};
use std::sync::Arc;

use flate2::read::GzDecoder;
use hyper::body::Bytes;
use hyper::header::{CONTENT_ENCODING, HeaderValue};

use super::response::{HttpAnswer, HttpBody};
use crate::budget::{Budget, ByteLease, LeasedFor};
use crate::cache::{AnswerCache, CacheEntry, CacheForm};
use crate::reply::{CachedResult, Reply};

/// Shorter answers are not worth compressing.
const COMPRESS_BYTES_MIN: usize = 1024;
/// A fast level: a server's time is dearer than the last percent of bytes.
const BROTLI_LEVEL: u32 = 1;
const BROTLI_WINDOW_BITS: u32 = 20;
/// Bytes that are decompressed at a time.
const DECODE_BYTES: usize = 64 * 1024;
/// Larger ones are compressed on a thread that may wait.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// A way to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Zstd,
    Brotli,
    Gzip,
}

impl Coding {
    /// The best first.
    const ALL: [Self; 3] = [Self::Zstd, Self::Brotli, Self::Gzip];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }
}

/// Why a body is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodeRefusal {
    TooLarge,
    Unknown,
    Broken,
    OutOfBudget,
}

/// How a request's body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyCoding {
    Gzip,
    Zstd,
}

impl BodyCoding {
    /// The encoding that a request names; `None` for a body as it is.
    pub(super) fn of(named: Option<&HeaderValue>) -> Result<Option<Self>, DecodeRefusal> {
        let Some(named) = named else { return Ok(None) };
        let name = named.to_str().map_err(|_| DecodeRefusal::Unknown)?.trim().to_ascii_lowercase();
        match name.as_str() {
            "" | "identity" => Ok(None),
            "gzip" => Ok(Some(Self::Gzip)),
            "zstd" => Ok(Some(Self::Zstd)),
            _ => Err(DecodeRefusal::Unknown),
        }
    }
}

/// Undoes the encoding of a request's body, up to `bytes_max`.
pub(super) fn decompress(
    body: &[u8],
    coding: BodyCoding,
    bytes_max: usize,
    budget: &Arc<Budget>,
) -> Result<(Vec<u8>, ByteLease), DecodeRefusal> {
    match coding {
        BodyCoding::Gzip => read_all(GzDecoder::new(body), bytes_max, budget),
        BodyCoding::Zstd => {
            let decoder =
                zstd::stream::read::Decoder::new(body).map_err(|_| DecodeRefusal::Broken)?;
            read_all(decoder, bytes_max, budget)
        }
    }
}

/// Reads to the end. Every buffer is counted before it is filled: little can become much.
fn read_all(
    mut reader: impl Read,
    bytes_max: usize,
    budget: &Arc<Budget>,
) -> Result<(Vec<u8>, ByteLease), DecodeRefusal> {
    let (mut out, mut lease) = (Vec::new(), ByteLease::default());
    loop {
        let limit = u64::try_from(DECODE_BYTES).unwrap_or(u64::MAX);
        let length = out.len();
        if length == out.capacity() {
            let capacity = length.saturating_mul(2).max(DECODE_BYTES);
            let counted = lease.resize(budget, capacity, LeasedFor::Body);
            counted.map_err(|_| DecodeRefusal::OutOfBudget)?;
            out.reserve_exact(capacity.saturating_sub(length));
        }
        let room = u64::try_from(out.capacity().saturating_sub(length)).unwrap_or(limit);
        let part = reader.by_ref().take(room.min(limit)).read_to_end(&mut out);
        if part.map_err(|_| DecodeRefusal::Broken)? == 0 {
            return Ok((out, lease));
        }
        if out.len() > bytes_max {
            return Err(DecodeRefusal::TooLarge);
        }
    }
}

/// Compresses an answer, if the client takes one of our encodings and it is worth it.
pub(super) async fn compress(
    budget: &Arc<Budget>,
    answer: HttpAnswer,
    accepted: Option<&HeaderValue>,
) -> HttpAnswer {
    let Some(coding) = accepted.and_then(|value| value.to_str().ok()).and_then(choose) else {
        return answer;
    };
    let (mut head, mut body) = answer.into_parts();
    if let Some((bytes, lease)) = pack_long(budget, &body.bytes, coding).await {
        head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        body = HttpBody { bytes: bytes.into(), lease };
    }
    HttpAnswer::from_parts(head, body)
}

/// The same for an answer that is not yet in one piece; tells whether it was compressed. What is made
/// of a result that is kept is kept too.
pub(super) async fn pack_reply(
    budget: &Arc<Budget>,
    cache: &AnswerCache,
    reply: Reply,
    coding: Coding,
) -> (Reply, Option<Coding>) {
    if reply.len() < COMPRESS_BYTES_MIN || reply.is_overloaded() {
        return (reply, None);
    }
    if let Some(joined) = join_kept(cache, &reply, coding).await
        && let Ok(joined) = joined.admit(budget)
    {
        return (joined, Some(coding));
    }
    let (plain, lease) = reply.into_bytes();
    let plain = Bytes::from(plain);
    match pack_long(budget, &plain, coding).await {
        Some((packed, lease)) => (Reply::leased(packed, lease), Some(coding)),
        None => (Reply::leased(plain.into(), lease), None),
    }
}

/// The body of a reply whose result is kept, with the result as it was packed once for all.
async fn join_kept(cache: &AnswerCache, reply: &Reply, coding: Coding) -> Option<Reply> {
    let form = match coding {
        Coding::Gzip => CacheForm::Gzip,
        Coding::Zstd => CacheForm::Zstd,
        // Its blocks are not cut at bytes.
        Coding::Brotli => return None,
    };
    let CachedResult { key, kept } = reply.source()?;
    let key = key.in_form(form);
    let [begin, plain, end] = reply.parts();
    if begin.len() > splice::BEGIN_BYTES_MAX {
        return None;
    }
    let found = cache.find(key).filter(|packed| packed.block_hash == kept.block_hash);
    let packed = if let Some(found) = found {
        found.result
    } else {
        let plain = kept.result.clone();
        let packed = off_thread(plain.len(), move || splice::pack_part(form, &plain)).await?;
        cache.keep(key, CacheEntry { result: packed.clone(), ..*kept });
        packed
    };
    splice::join(form, begin, &packed, plain.len(), end)
}

/// Compresses a body that is worth it, if there is room for another one.
async fn pack_long(
    budget: &Arc<Budget>,
    body: &Bytes,
    coding: Coding,
) -> Option<(Vec<u8>, ByteLease)> {
    if body.len() < COMPRESS_BYTES_MIN {
        return None;
    }
    let plain = body.clone();
    let packed = off_thread(body.len(), move || pack(coding, &plain)).await?;
    let lease = ByteLease::of(budget, packed.capacity(), LeasedFor::Answer).ok()?;
    Some((packed, lease))
}

/// Does work on so many bytes on a thread that may wait, unless it is little.
async fn off_thread<T: Send + 'static>(
    length: usize,
    work: impl FnOnce() -> Option<T> + Send + 'static,
) -> Option<T> {
    if length <= INLINE_BYTES_MAX {
        return work();
    }
    tokio::task::spawn_blocking(work).await.ok().flatten()
}

fn pack(coding: Coding, body: &[u8]) -> Option<Vec<u8>> {
    match coding {
        Coding::Zstd => splice::pack_zstd(body),
        Coding::Gzip => splice::pack_gzip(body),
        Coding::Brotli => {
            let mut out = Vec::with_capacity(body.len() / 2);
            let mut encoder =
                brotli::CompressorWriter::new(&mut out, 4096, BROTLI_LEVEL, BROTLI_WINDOW_BITS);
            encoder.write_all(body).ok()?;
            drop(encoder);
            Some(out)
        }
    }
}

/// The encoding that a client likes best, ours in order where it likes several as much.
pub(super) fn choose(accepted: &str) -> Option<Coding> {
    let weight = |name: &str| {
        let mut weights = accepted.split(',').filter_map(|item| {
            let mut parts = item.split(';');
            let found = parts.next()?.trim();
            let is_meant = found.eq_ignore_ascii_case(name) || found == "*";
            let given = parts.find_map(|part| part.trim().strip_prefix("q="));
            let quality = given.map_or(Some(1.0), |text| text.trim().parse::<f32>().ok())?;
            is_meant.then_some((found == "*", quality))
        });
        // A name counts before the star, whatever their order.
        let found: Vec<(bool, f32)> = weights.by_ref().collect();
        let named = found.iter().find(|(is_star, _)| !is_star).or_else(|| found.first());
        named.map_or(0.0, |(_, quality)| *quality)
    };
    let mut best: Option<(Coding, f32)> = None;
    for coding in Coding::ALL {
        let quality = weight(coding.name());
        if quality > best.map_or(0.0, |(_, quality)| quality) {
            best = Some((coding, quality));
        }
    }
    best.map(|(coding, _)| coding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_chooses_and_ties_are_ours() {
        for (accepted, expected) in [
            ("gzip", Some(Coding::Gzip)),
            ("gzip, deflate, br", Some(Coding::Brotli)),
            ("gzip, br, zstd", Some(Coding::Zstd)),
            ("gzip;q=1.0, zstd;q=0.5", Some(Coding::Gzip)),
            ("zstd;q=0, gzip", Some(Coding::Gzip)),
            ("*", Some(Coding::Zstd)),
            ("*;q=0.1, zstd;q=0, br;q=0", Some(Coding::Gzip)),
            ("identity", None),
            ("deflate", None),
            ("", None),
            ("gzip;q=x", None),
        ] {
            assert_eq!(choose(accepted), expected, "{accepted}");
        }
    }

    #[test]
    fn bodies_come_back_and_bombs_do_not() {
        let body = vec![b'a'; 100_000];
        for (coding, packed) in [(BodyCoding::Gzip, Coding::Gzip), (BodyCoding::Zstd, Coding::Zstd)]
        {
            let packed = pack(packed, &body).unwrap();
            assert!(packed.len() < 1000);
            let budget = Budget::new(400_000);
            let back = |max| decompress(&packed, coding, max, &budget).map(|(bytes, _)| bytes);
            assert_eq!(back(100_000), Ok(body.clone()));
            assert_eq!(back(99_999), Err(DecodeRefusal::TooLarge));
            let broken = decompress(b"not compressed at all", coding, 100, &budget);
            assert_eq!(broken.unwrap_err(), DecodeRefusal::Broken);
            // What it becomes counts, not what came; and it counts for as long as it is there.
            let (bytes, lease) = decompress(&packed, coding, 100_000, &budget).unwrap();
            assert_eq!(budget.bytes(), bytes.capacity());
            assert_eq!(back(100_000), Err(DecodeRefusal::OutOfBudget));
            drop(lease);
            assert_eq!(budget.bytes(), 0);
        }
        let named = |name| BodyCoding::of(Some(&HeaderValue::from_static(name)));
        assert_eq!(named("compress"), Err(DecodeRefusal::Unknown));
        assert_eq!((named("identity"), BodyCoding::of(None)), (Ok(None), Ok(None)));
        assert_eq!(named("GZIP"), Ok(Some(BodyCoding::Gzip)));
    }
}
