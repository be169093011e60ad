//! The body of a response, bounded by a limit and by the memory available while it arrives.

use std::io::{Cursor, Read as _};

use flate2::read::GzDecoder;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use super::error::{AskError, innermost};

/// What gzip is undone by at a time.
const PART_BYTES: usize = 8 * 1024;

/// Whether an answer may take this many bytes of memory. Called before each growth, with the total.
pub type HasRoom<'a> = &'a mut (dyn FnMut(usize) -> bool + Send);

/// What came of an answer.
struct AnswerBytes<'a> {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// As many are expected: the last growth need not go beyond them.
    expected: usize,
    /// Held beside it: what it is made of.
    source_bytes: usize,
    has_room: HasRoom<'a>,
}

impl AnswerBytes<'_> {
    fn push(&mut self, part: &[u8]) -> Result<(), AskError> {
        let length = self.bytes.len().saturating_add(part.len());
        if length > self.bytes_max {
            return Err(AskError::TooLarge { bytes_max: self.bytes_max });
        }
        if length > self.bytes.capacity() {
            let doubled = self.bytes.capacity().saturating_mul(2);
            let capacity = doubled.min(self.expected).max(length);
            if !(self.has_room)(capacity.saturating_add(self.source_bytes)) {
                return Err(AskError::NoRoom);
            }
            self.bytes.reserve_exact(capacity.saturating_sub(self.bytes.len()));
        }
        self.bytes.extend_from_slice(part);
        Ok(())
    }
}

/// Takes a body in.
pub(super) async fn read_body(
    mut body: Incoming,
    bytes_max: usize,
    has_room: HasRoom<'_>,
) -> Result<Vec<u8>, AskError> {
    let announced = body.size_hint().upper().and_then(|it| usize::try_from(it).ok());
    let expected = announced.unwrap_or(bytes_max);
    let mut taken =
        AnswerBytes { bytes: Vec::new(), bytes_max, expected, source_bytes: 0, has_room };
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| AskError::Broken(innermost(&error)))?;
        if let Ok(part) = frame.into_data() {
            taken.push(&part)?;
        }
    }
    Ok(taken.bytes)
}

/// The same body, as it was before gzip.
pub(super) fn inflate(
    packed: Vec<u8>,
    bytes_max: usize,
    has_room: HasRoom<'_>,
) -> Result<Vec<u8>, AskError> {
    let source_bytes = packed.capacity();
    let mut plain =
        AnswerBytes { bytes: Vec::new(), bytes_max, expected: bytes_max, source_bytes, has_room };
    let (mut decoder, mut part) = (GzDecoder::new(Cursor::new(packed)), [0; PART_BYTES]);
    loop {
        let read = decoder.read(&mut part);
        let count = read.map_err(|error| AskError::Malformed(format!("gzip: {error}")))?;
        match part.get(..count).filter(|part| !part.is_empty()) {
            Some(part) => plain.push(part)?,
            None => return Ok(plain.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// Seen: bytes were in memory before the limit was checked.
    #[test]
    fn room_is_asked_for_before_an_answer_grows_and_for_all_that_is_held() {
        let source: Vec<u8> = (0..1_000_000_u32).map(|it| it.to_le_bytes()[0]).collect();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&source).unwrap();
        let mut packed = encoder.finish().unwrap();
        packed.shrink_to_fit();
        let mut asked = Vec::new();
        let packed_bytes = packed.capacity();
        let mut all = |bytes| {
            asked.push(bytes);
            true
        };
        assert_eq!(inflate(packed.clone(), source.len(), &mut all).unwrap(), source);
        assert_eq!(asked.first(), Some(&(PART_BYTES + packed_bytes)), "{asked:?}");
        assert_eq!(asked.last(), Some(&(source.len() + packed_bytes)), "{asked:?}");
        assert!(asked.windows(2).all(|two| two[0] < two[1] && two[1] <= 2 * two[0]), "{asked:?}");
        let mut half = |bytes| bytes <= source.len() / 2;
        assert_eq!(inflate(packed.clone(), source.len(), &mut half), Err(AskError::NoRoom));
        let bytes_max = source.len() - 1;
        assert_eq!(
            inflate(packed.clone(), bytes_max, &mut |_| true),
            Err(AskError::TooLarge { bytes_max })
        );
    }
}
