//! gzip and zstd: whole bodies, and bodies of parts, one of which was compressed before.
//!
//! The answers to one call differ by its id, which comes first. What is before and after the result is
//! short and goes into blocks that are not compressed; the blocks of the result are the same in every
//! answer. Each body is one gzip member or one zstd frame, which every client reads.

use std::cell::RefCell;

use flate2::{Compress, Compression, FlushCompress, Status};
use hyper::body::Bytes;
use zstd::bulk::Compressor;
use zstd::zstd_safe::{CParameter, FrameFormat};

use crate::cache::CacheForm;
use crate::reply::Reply;

/// Fast levels: a server's time is dearer than the last percent of bytes.
const GZIP_LEVEL: u32 = 1;
const ZSTD_LEVEL: i32 = 1;

/// What comes before a result at the most: the smallest block that every zstd frame allows.
pub(super) const BEGIN_BYTES_MAX: usize = 1024;

/// Magic number, deflate, no flags, no time, no word on the level, no word on the system.
const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Nothing but a window follows: no length, no checksum, no dictionary.
const ZSTD_PLAIN_HEAD: u8 = 0;
/// Of a zstd block: a bit that says whether it is the last, two for its kind, and its length.
const ZSTD_BLOCK_HEAD_BYTES: usize = 3;
/// The checksum of what a gzip part holds comes before its blocks.
const CRC_BYTES: usize = 4;

/// Compresses a part, to be joined with others later. It is kept: room for the worst case is given
/// back. `None` for bytes that are kept as they are, and
/// if the library fails.
pub(super) fn pack_part(form: CacheForm, plain: &[u8]) -> Option<Bytes> {
    match form {
        CacheForm::Plain => None,
        CacheForm::Gzip => pack_gzip_part(plain),
        CacheForm::Zstd => pack_zstd_part(plain),
    }
}

/// The body of something short, a part that was packed, and something short.
pub(super) fn join(
    form: CacheForm,
    begin: &[u8],
    packed: &Bytes,
    plain_bytes: usize,
    end: &[u8],
) -> Option<Reply> {
    if begin.len() > BEGIN_BYTES_MAX || end.len() > BEGIN_BYTES_MAX {
        return None;
    }
    match form {
        CacheForm::Plain => None,
        CacheForm::Gzip => join_gzip(begin, packed, plain_bytes, end),
        CacheForm::Zstd => join_zstd(begin, packed, end),
    }
}

/// A whole gzip body.
pub(super) fn pack_gzip(plain: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(plain.len() / 2);
    out.extend_from_slice(&GZIP_HEAD);
    deflate(plain, &mut out, FlushCompress::Finish)?;
    put_gzip_end(&mut out, crc32fast::hash(plain), plain.len());
    Some(out)
}

/// A whole zstd body.
pub(super) fn pack_zstd(plain: &[u8]) -> Option<Vec<u8>> {
    ZSTD.with_borrow_mut(|zstd| {
        if zstd.is_none() {
            *zstd = Compressor::new(ZSTD_LEVEL).ok();
        }
        zstd.as_mut()?.compress(plain).ok()
    })
}

thread_local! {
    static DEFLATE: RefCell<Compress> =
        RefCell::new(Compress::new(Compression::new(GZIP_LEVEL), false));
    static ZSTD: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
}

/// Appends deflate blocks: to a last one, or to a whole byte without the mark of the last block.
fn deflate(plain: &[u8], out: &mut Vec<u8>, flush: FlushCompress) -> Option<()> {
    DEFLATE.with_borrow_mut(|deflate| {
        deflate.reset();
        loop {
            let taken = usize::try_from(deflate.total_in()).ok()?;
            out.reserve(4096);
            let rest = plain.get(taken..).unwrap_or_default();
            let status = deflate.compress_vec(rest, out, flush).ok()?;
            let is_all = usize::try_from(deflate.total_in()).ok()? == plain.len();
            // What is flushed is all there when there is room left over.
            let is_flushed = is_all && (out.len() < out.capacity() || status == Status::BufError);
            let is_ended = status == Status::StreamEnd;
            if is_ended || (is_flushed && flush != FlushCompress::Finish) {
                return Some(());
            }
        }
    })
}

fn put_gzip_end(out: &mut Vec<u8>, crc: u32, plain_bytes: usize) {
    out.extend_from_slice(&crc.to_le_bytes());
    // The length, as far as four bytes tell it.
    let [a, b, c, d, ..] = plain_bytes.to_le_bytes();
    out.extend_from_slice(&[a, b, c, d]);
}

/// Its checksum, then its blocks.
fn pack_gzip_part(plain: &[u8]) -> Option<Bytes> {
    let mut out = crc32fast::hash(plain).to_le_bytes().to_vec();
    out.reserve(plain.len() / 2);
    deflate(plain, &mut out, FlushCompress::Sync)?;
    out.shrink_to_fit();
    Some(out.into())
}

fn join_gzip(begin: &[u8], packed: &Bytes, plain_bytes: usize, end: &[u8]) -> Option<Reply> {
    let own_crc = u32::from_le_bytes(*packed.first_chunk::<CRC_BYTES>()?);
    let mut crc = crc32fast::Hasher::new();
    crc.update(begin);
    let length = u64::try_from(plain_bytes).ok()?;
    crc.combine(&crc32fast::Hasher::new_with_initial_len(own_crc, length));
    crc.update(end);
    let sum = begin.len().checked_add(plain_bytes)?.checked_add(end.len())?;
    let mut head = GZIP_HEAD.to_vec();
    put_stored(&mut head, begin, false)?;
    let mut tail = Vec::new();
    put_stored(&mut tail, end, true)?;
    put_gzip_end(&mut tail, crc.finalize(), sum);
    Some(Reply::joined(head, packed.slice(CRC_BYTES..), tail))
}

/// Appends a deflate block that is not compressed.
fn put_stored(out: &mut Vec<u8>, bytes: &[u8], is_last: bool) -> Option<()> {
    let length = u16::try_from(bytes.len()).ok()?;
    out.push(u8::from(is_last));
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(bytes);
    Some(())
}

/// The window, then the blocks, none of them marked as the last.
fn pack_zstd_part(plain: &[u8]) -> Option<Bytes> {
    let mut compressor = Compressor::new(ZSTD_LEVEL).ok()?;
    for parameter in [
        CParameter::Format(FrameFormat::Magicless),
        CParameter::ContentSizeFlag(false),
        CParameter::ChecksumFlag(false),
        CParameter::DictIdFlag(false),
    ] {
        compressor.set_parameter(parameter).ok()?;
    }
    let mut frame = compressor.compress(plain).ok()?;
    if frame.first() != Some(&ZSTD_PLAIN_HEAD) {
        return None;
    }
    let mut at = 2;
    loop {
        let head = frame.get_mut(at..)?.first_chunk_mut::<ZSTD_BLOCK_HEAD_BYTES>()?;
        let [low, middle, high] = *head;
        let bits = u32::from_le_bytes([low, middle, high, 0]);
        let [first, ..] = head;
        *first &= !1;
        // A run of one byte has a length, but only that byte follows.
        let is_run = bits >> 1 & 3 == 1;
        let length = if is_run { 1 } else { usize::try_from(bits >> 3).ok()? };
        at = at.checked_add(ZSTD_BLOCK_HEAD_BYTES)?.checked_add(length)?;
        if bits & 1 == 1 {
            frame.shrink_to_fit();
            return (at == frame.len()).then(|| Bytes::from(frame).slice(1..));
        }
    }
}

fn join_zstd(begin: &[u8], packed: &Bytes, end: &[u8]) -> Option<Reply> {
    let mut head = ZSTD_MAGIC.to_vec();
    head.extend_from_slice(&[ZSTD_PLAIN_HEAD, *packed.first()?]);
    put_raw(&mut head, begin, false)?;
    let mut tail = Vec::new();
    put_raw(&mut tail, end, true)?;
    Some(Reply::joined(head, packed.slice(1..), tail))
}

/// Appends a zstd block that is not compressed.
fn put_raw(out: &mut Vec<u8>, bytes: &[u8], is_last: bool) -> Option<()> {
    let bits = u32::try_from(bytes.len()).ok()?.checked_mul(8)? | u32::from(is_last);
    let [low, middle, high, _] = bits.to_le_bytes();
    out.extend_from_slice(&[low, middle, high]);
    out.extend_from_slice(bytes);
    Some(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn unpacked(form: CacheForm, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match form {
            CacheForm::Plain => out.extend_from_slice(body),
            // It reads one member and refuses what follows it.
            CacheForm::Gzip => {
                flate2::read::GzDecoder::new(body).read_to_end(&mut out).map(drop).unwrap();
            }
            CacheForm::Zstd => out = zstd::stream::decode_all(body).unwrap(),
        }
        out
    }

    /// Digits that repeat about as much as an answer's, and runs.
    fn plain(length: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 24
        };
        let mut out = Vec::new();
        while out.len() < length {
            out.extend_from_slice(format!("\"hash\":\"0x{:x}{:x}\",", next(), next()).as_bytes());
            if next() < 8 {
                out.resize(out.len() + 500, b'0');
            }
        }
        out.truncate(length);
        out
    }

    #[test]
    fn whole_bodies_come_back_one_after_the_other() {
        for length in [0, 1, 1500, 400_000, 900, 3_000_000] {
            let plain = plain(length);
            assert_eq!(unpacked(CacheForm::Gzip, &pack_gzip(&plain).unwrap()), plain);
            assert_eq!(unpacked(CacheForm::Zstd, &pack_zstd(&plain).unwrap()), plain);
            // What cannot be made smaller takes room that was not there.
            let mut state = 1_u64;
            let noise = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_be_bytes()[0]
            });
            let noise: Vec<u8> = noise.take(length).collect();
            assert_eq!(unpacked(CacheForm::Gzip, &pack_gzip(&noise).unwrap()), noise);
        }
    }

    #[test]
    fn a_body_of_parts_is_what_the_parts_are_together() {
        for form in [CacheForm::Gzip, CacheForm::Zstd] {
            for length in [0, 1, 1023, 70_000, 500_000, 3_000_000] {
                let plain = plain(length);
                let packed = pack_part(form, &plain).unwrap();
                assert!(packed.len() < length / 2 + 100, "{form:?} {length}: {}", packed.len());
                for begin in ["", "{\"id\":1,\"result\":", &"i".repeat(BEGIN_BYTES_MAX)] {
                    let reply = join(form, begin.as_bytes(), &packed, length, b"}").unwrap();
                    let expected = [begin.as_bytes(), &plain, b"}"].concat();
                    let (body, _) = reply.into_bytes();
                    assert_eq!(unpacked(form, &body), expected, "{form:?} {length}");
                }
            }
            let long = vec![b'i'; BEGIN_BYTES_MAX + 1];
            let packed = pack_part(form, b"1").unwrap();
            assert!(join(form, &long, &packed, 1, b"}").is_none());
        }
        let runs = vec![b'0'; 1_000_000];
        for form in [CacheForm::Gzip, CacheForm::Zstd] {
            let packed = pack_part(form, &runs).unwrap();
            let (body, _) = join(form, b"", &packed, runs.len(), b"").unwrap().into_bytes();
            assert_eq!(unpacked(form, &body), runs);
        }
    }
}
