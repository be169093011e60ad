//! Compressed bodies, both ways.

mod splice;

use std::io::{Read, Write as _};
use std::sync::Arc;

use flate2::read::GzDecoder;
use hyper::header::{CONTENT_ENCODING, HeaderValue};
use tokio::task::JoinError;

use super::bulk_thread::{AbortOnDrop, BulkFailure, INLINE_BYTES_MAX};
use super::response::{HttpAnswer, HttpBody};
use crate::budget::{Budget, ByteLease, LeasedFor};
use crate::cache::{AnswerCache, CacheEntry, CacheForm};
use crate::reply::{CachedResult, Reply, ReplyStatus};

/// Shorter answers are not worth compressing.
const COMPRESS_BYTES_MIN: usize = 1024;
/// A fast level: a server's time is dearer than the last percent of bytes.
const BROTLI_LEVEL: u32 = 1;
const BROTLI_WINDOW_BITS: u32 = 20;
/// Bytes that are decompressed at a time.
const DECODE_BYTES: usize = 64 * 1024;

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

/// Compresses an answer that is not compressed yet, if the client takes one of our encodings and it is
/// worth it.
pub(super) async fn compress(
    budget: &Arc<Budget>,
    answer: HttpAnswer,
    accepted: Option<&HeaderValue>,
) -> HttpAnswer {
    if answer.headers().contains_key(CONTENT_ENCODING) {
        return answer;
    }
    let Some(coding) = accepted.and_then(|value| value.to_str().ok()).and_then(choose) else {
        return answer;
    };
    let (mut head, body) = answer.into_parts();
    let body = match pack_long(budget, body, coding).await {
        Ok((body, is_packed)) => {
            if is_packed {
                head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
            }
            body
        }
        Err(_) => HttpBody::from(Reply::from(BulkFailure::BrokenOff)),
    };
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
    if reply.len() < COMPRESS_BYTES_MIN || reply.status() != ReplyStatus::Answered {
        return (reply, None);
    }
    let packed = async {
        let (reply, joined) = join_kept(cache, reply, coding).await?;
        if let Some(joined) = joined.and_then(|joined| joined.admit(budget).ok()) {
            return Ok((joined, Some(coding)));
        }
        let (body, is_packed) = pack_long(budget, reply.into(), coding).await?;
        let HttpBody { bytes, lease } = body;
        Ok::<_, JoinError>((Reply::leased(bytes.into(), lease), is_packed.then_some(coding)))
    };
    packed.await.unwrap_or_else(|_| (BulkFailure::BrokenOff.into(), None))
}

/// A reply as it came, and the same with its result as it was packed once for all, if that is kept.
async fn join_kept(
    cache: &AnswerCache,
    reply: Reply,
    coding: Coding,
) -> Result<(Reply, Option<Reply>), JoinError> {
    let form = match coding {
        Coding::Gzip => CacheForm::Gzip,
        Coding::Zstd => CacheForm::Zstd,
        // Its blocks are not cut at bytes.
        Coding::Brotli => return Ok((reply, None)),
    };
    let Some(CachedResult { key, kept }) = reply.source() else { return Ok((reply, None)) };
    let key = key.in_form(form);
    let [begin, _, _] = reply.parts();
    if begin.len() > splice::BEGIN_BYTES_MAX {
        return Ok((reply, None));
    }
    let found = cache.find(key).filter(|packed| packed.block_hash == kept.block_hash);
    let (reply, packed) = if let Some(found) = found {
        (reply, Some(found.result))
    } else {
        let pack_result = move |reply: &Reply| {
            reply.source().and_then(|source| splice::pack_part(form, &source.kept.result))
        };
        let (reply, packed) = off_thread(reply.len(), reply, pack_result).await?;
        if let (Some(source), Some(packed)) = (reply.source(), &packed) {
            cache.keep(key, CacheEntry { result: packed.clone(), ..source.kept });
        }
        (reply, packed)
    };
    let [begin, plain, end] = reply.parts();
    let joined = packed.and_then(|packed| splice::join(form, begin, &packed, plain.len(), end));
    Ok((reply, joined))
}

/// Compresses a body that is worth it, if there is room for another one; tells whether it did.
async fn pack_long(
    budget: &Arc<Budget>,
    body: HttpBody,
    coding: Coding,
) -> Result<(HttpBody, bool), JoinError> {
    if body.bytes.len() < COMPRESS_BYTES_MIN {
        return Ok((body, false));
    }
    let pack_bytes = move |body: &HttpBody| pack(coding, &body.bytes);
    let (plain, packed) = off_thread(body.bytes.len(), body, pack_bytes).await?;
    let Some(packed) = packed else { return Ok((plain, false)) };
    Ok(match ByteLease::of(budget, packed.capacity(), LeasedFor::Answer) {
        Ok(lease) => (HttpBody { bytes: packed.into(), lease }, true),
        Err(_) => (plain, false),
    })
}

/// Does work on so many bytes on a thread that may wait, unless it is little. What is worked on goes
/// there with its lease and comes back: a client that leaves gives nothing back before the memory is
/// free, and what has not begun by then never does.
async fn off_thread<S: Send + 'static, T: Send + 'static>(
    length: usize,
    source: S,
    work: impl FnOnce(&S) -> T + Send + 'static,
) -> Result<(S, T), JoinError> {
    let work_on = move |source: S| {
        let made = work(&source);
        (source, made)
    };
    if length <= INLINE_BYTES_MAX {
        return Ok(work_on(source));
    }
    AbortOnDrop(tokio::task::spawn_blocking(move || work_on(source))).await
}

/// The room that a compressor took for the worst case is given back.
fn pack(coding: Coding, body: &[u8]) -> Option<Vec<u8>> {
    let mut packed = match coding {
        Coding::Zstd => splice::pack_zstd(body)?,
        Coding::Gzip => splice::pack_gzip(body)?,
        Coding::Brotli => {
            let mut out = Vec::with_capacity(body.len() / 2);
            let mut encoder =
                brotli::CompressorWriter::new(&mut out, 4096, BROTLI_LEVEL, BROTLI_WINDOW_BITS);
            encoder.write_all(body).ok()?;
            drop(encoder);
            out
        }
    };
    packed.shrink_to_fit();
    Some(packed)
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

    /// What its client had left was given back at once, while a thread still worked on it.
    #[tokio::test]
    async fn work_that_nobody_waits_for_any_more_counts_until_it_ends() {
        let budget = Budget::new(1 << 20);
        let lease = || ByteLease::of(&budget, 100_000, LeasedFor::Answer).unwrap();
        let (tell, is_begun) = tokio::sync::oneshot::channel();
        let (go_on, waiting) = std::sync::mpsc::sync_channel::<()>(1);
        let work = off_thread(INLINE_BYTES_MAX + 1, lease(), move |_| {
            tell.send(()).unwrap();
            waiting.recv().unwrap();
        });
        let work = tokio::spawn(work);
        is_begun.await.unwrap();
        work.abort();
        assert!(work.await.unwrap_err().is_cancelled());
        assert_eq!(budget.bytes(), 100_000);
        go_on.send(()).unwrap();
        while budget.bytes() > 0 {
            tokio::task::yield_now().await;
        }
        // What is little is done here, and all comes back.
        let (lease, made) = off_thread(INLINE_BYTES_MAX, lease(), |_| 7).await.unwrap();
        assert_eq!((made, budget.bytes()), (7, 100_000));
        drop(lease);
    }

    #[test]
    fn what_is_packed_takes_no_more_room_than_it_has_bytes() {
        let body = vec![b'a'; 100_000];
        for coding in Coding::ALL {
            let packed = pack(coding, &body).unwrap();
            assert!(packed.capacity() <= 2 * packed.len(), "{coding:?}: {}", packed.capacity());
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
