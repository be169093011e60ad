//! The bytes of the head's log: its beginning, and its records. docs/format-head.md draws them.

use alloy_primitives::{B256, Bytes};
use chain::{Block, BlockNumber, Body, Candidate, decode_receipts, encode_receipts};
use thiserror::Error;

use super::HeadError;
use super::tree::Base;
use crate::block_id::BlockId;
use crate::finality::Finality;

/// The version that this build writes.
pub(super) const VERSION: u32 = 2;
/// An older version, whose tips say nothing of finality. It is read, and the next change writes a log
/// of today's version in its place.
const VERSION_WITHOUT_FINALITY: u32 = 1;
/// The beginning of a log.
pub(super) const START_BYTES: usize = 8 + 4 + 8 + 8 + 8 + 32 + CHECKSUM_BYTES;
/// What precedes a record's payload.
pub(super) const RECORD_HEAD_BYTES: usize = CHECKSUM_BYTES + 4 + 4 + 8;
/// A whole tip record.
pub(super) const TIP_BYTES: usize = RECORD_HEAD_BYTES + TIP_PAYLOAD_BYTES;
/// The longest record. Mainnet's blocks are bounded to a few tens of megabytes by their gas.
pub(super) const RECORD_BYTES_MAX: usize = 256 << 20;

const TIP_KIND: [u8; 4] = *b"TIP.";
const BLOCK_KIND: [u8; 4] = *b"BLCK";
const MAGIC: [u8; 8] = *b"QUIPUHED";
const CHECKSUM_BYTES: usize = 4;
const HASH_BYTES: usize = 32;
/// Hash, then flag, number and hash of the safe and of the final block.
const TIP_PAYLOAD_BYTES: usize = HASH_BYTES + 2 * (1 + 8 + HASH_BYTES);
/// The hash alone, in logs without finality.
const TIP_PAYLOAD_BYTES_SHORT: usize = HASH_BYTES;
/// Hash, flag and three lengths.
const BLOCK_FIXED_BYTES: usize = HASH_BYTES + 1 + 3 * 4;

const _: () = assert!(START_BYTES == 72, "docs/format-head.md draws 72 bytes");
const _: () = assert!(RECORD_HEAD_BYTES == 20, "docs/format-head.md draws 20 bytes");
const _: () = assert!(TIP_BYTES == 134, "docs/format-head.md draws 134 bytes");
const _: () = assert!(BLOCK_FIXED_BYTES == 45, "docs/format-head.md draws 45 bytes");

/// The beginning of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogStart {
    pub(super) generation: u64,
    /// How many batches were durable before the log got its name.
    pub(super) whole_batches: u64,
    pub(super) base: Base,
}

/// Why bytes are not what they should be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CutFault {
    /// The file ends too early.
    #[error("{had} bytes left, {needed} expected")]
    Short {
        /// How many bytes there are.
        had: u64,
        /// How many there should be.
        needed: u64,
    },
    /// The bytes are not those that were written.
    #[error("checksum is {found:08x}, {expected:08x} is written beside it")]
    Checksum {
        /// The checksum of the bytes.
        found: u32,
        /// The checksum that was written.
        expected: u32,
    },
    /// A field that no writer leaves like this.
    #[error("{field} is {found}, expected {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// What it says.
        found: u64,
        /// What it should say.
        expected: u64,
    },
    /// Not the beginning of a log.
    #[error("begins with {}, expected {}", found.escape_ascii(), MAGIC.escape_ascii())]
    Magic {
        /// What is there.
        found: [u8; 8],
    },
    /// Neither a block nor a tip.
    #[error("a record of kind {}", found.escape_ascii())]
    Kind {
        /// What is there.
        found: [u8; 4],
    },
    /// A block whose parts do not decode.
    #[error("a block that does not decode: {reason}")]
    Block {
        /// What the decoder met.
        reason: String,
    },
    /// The tip is a block that the log does not hold.
    #[error("the tip is {hash}, which is not in the log")]
    Tip {
        /// The tip.
        hash: B256,
    },
    /// Blocks without the record that makes them count.
    #[error("the last batch has no tip")]
    Unfinished,
}

/// What was found at the beginning of a file.
pub(super) enum FoundStart {
    Ours(LogStart),
    /// Whole, but of another version.
    Version(u32),
}

impl LogStart {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(START_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.whole_batches.to_le_bytes());
        out.extend_from_slice(&self.base.next.get().to_le_bytes());
        out.extend_from_slice(self.base.parent_hash.as_slice());
        out.extend_from_slice(&crc32fast::hash(&out).to_le_bytes());
        out
    }

    /// Reads the beginning of the log of this generation.
    pub(super) fn decode(bytes: &[u8], generation: u64) -> Result<FoundStart, CutFault> {
        let mut input = bytes;
        let found: [u8; 8] = take(&mut input)?;
        if found != MAGIC {
            return Err(CutFault::Magic { found });
        }
        let version = u32::from_le_bytes(take(&mut input)?);
        let found_generation = u64::from_le_bytes(take(&mut input)?);
        let whole_batches = u64::from_le_bytes(take(&mut input)?);
        let next = u64::from_le_bytes(take(&mut input)?);
        let parent_hash = B256::from(take::<HASH_BYTES>(&mut input)?);
        let expected = u32::from_le_bytes(take(&mut input)?);
        let found = crc32fast::hash(bytes.get(..START_BYTES - CHECKSUM_BYTES).unwrap_or_default());
        if found != expected {
            return Err(CutFault::Checksum { found, expected });
        }
        if ![VERSION_WITHOUT_FINALITY, VERSION].contains(&version) {
            return Ok(FoundStart::Version(version));
        }
        if found_generation != generation {
            let (found, expected) = (found_generation, generation);
            return Err(CutFault::Field { field: "generation", found, expected });
        }
        let base = Base { next: BlockNumber(next), parent_hash };
        Ok(FoundStart::Ours(Self { generation, whole_batches, base }))
    }
}

/// What precedes a record's payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordHead {
    checksum: u32,
    /// How long the payload is.
    pub(super) payload_bytes: usize,
    pub(super) batch: u64,
    kind: [u8; 4],
}

impl RecordHead {
    /// How long the record is if it is a tip.
    pub(super) fn tip_bytes(&self) -> Option<usize> {
        let is_tip = self.kind == TIP_KIND
            && [TIP_PAYLOAD_BYTES, TIP_PAYLOAD_BYTES_SHORT].contains(&self.payload_bytes);
        is_tip.then(|| RECORD_HEAD_BYTES.saturating_add(self.payload_bytes))
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Result<Self, CutFault> {
        let checksum = u32::from_le_bytes(take(&mut bytes)?);
        let length = u32::from_le_bytes(take(&mut bytes)?);
        let kind = take(&mut bytes)?;
        let batch = u64::from_le_bytes(take(&mut bytes)?);
        let payload_bytes = usize::try_from(length).unwrap_or(usize::MAX);
        Ok(Self { checksum, payload_bytes, batch, kind })
    }
}

/// One record, taken apart.
#[derive(Debug)]
pub(super) enum Record {
    /// A block and the hash that it was written under.
    Block(B256, Box<Candidate>),
    Tip(Tip),
}

/// The end of a batch: what the head is from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tip {
    /// The newest canonical block.
    pub(super) hash: B256,
    pub(super) finality: Finality,
}

impl Record {
    /// Reads a whole record, whose head was read before.
    pub(super) fn decode(head: RecordHead, bytes: &Bytes) -> Result<Self, CutFault> {
        let found = crc32fast::hash(bytes.get(CHECKSUM_BYTES..).unwrap_or_default());
        if found != head.checksum {
            return Err(CutFault::Checksum { found, expected: head.checksum });
        }
        let payload = bytes.slice(RECORD_HEAD_BYTES.min(bytes.len())..);
        match head.kind {
            TIP_KIND => decode_tip(&payload).map(Self::Tip),
            BLOCK_KIND => {
                let (hash, candidate) = decode_block(&payload)?;
                Ok(Self::Block(hash, Box::new(candidate)))
            }
            found => Err(CutFault::Kind { found }),
        }
    }
}

/// Writes the record of the batch's tip.
pub(super) fn encode_tip(batch: u64, tip: Tip, out: &mut Vec<u8>) {
    let mut payload = Vec::with_capacity(TIP_PAYLOAD_BYTES);
    payload.extend_from_slice(tip.hash.as_slice());
    for block in [tip.finality.safe, tip.finality.finalized] {
        let BlockId { number, hash } =
            block.unwrap_or(BlockId { number: BlockNumber(0), hash: B256::ZERO });
        payload.push(u8::from(block.is_some()));
        payload.extend_from_slice(&number.get().to_le_bytes());
        payload.extend_from_slice(hash.as_slice());
    }
    out.extend_from_slice(&record(batch, TIP_KIND, &payload));
}

/// Writes the record of a block.
pub(super) fn encode_block(batch: u64, block: &Block, out: &mut Vec<u8>) -> Result<(), HeadError> {
    let candidate = block.to_candidate();
    let body = candidate.body.encode();
    let receipts = candidate.receipts.as_deref().map(encode_receipts);
    let parts = [&candidate.header[..], &body, receipts.as_deref().unwrap_or_default()];
    let bytes = parts
        .iter()
        .fold(RECORD_HEAD_BYTES + BLOCK_FIXED_BYTES, |sum, part| sum.saturating_add(part.len()));
    if bytes > RECORD_BYTES_MAX {
        let bytes_max = RECORD_BYTES_MAX;
        return Err(HeadError::BlockTooLarge { hash: block.hash, bytes, bytes_max });
    }
    let mut payload = Vec::with_capacity(bytes);
    payload.extend_from_slice(block.hash.as_slice());
    payload.push(u8::from(receipts.is_some()));
    for part in parts {
        payload.extend_from_slice(&length(part.len()).to_le_bytes());
    }
    for part in parts {
        payload.extend_from_slice(part);
    }
    out.extend_from_slice(&record(batch, BLOCK_KIND, &payload));
    Ok(())
}

fn record(batch: u64, kind: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; CHECKSUM_BYTES];
    out.extend_from_slice(&length(payload.len()).to_le_bytes());
    out.extend_from_slice(&kind);
    out.extend_from_slice(&batch.to_le_bytes());
    out.extend_from_slice(payload);
    let checksum = crc32fast::hash(out.get(CHECKSUM_BYTES..).unwrap_or_default());
    out.splice(..CHECKSUM_BYTES, checksum.to_le_bytes());
    out
}

/// Lengths are bounded by [`RECORD_BYTES_MAX`].
fn length(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn decode_tip(payload: &[u8]) -> Result<Tip, CutFault> {
    let mut input = payload;
    let hash = B256::from(take::<HASH_BYTES>(&mut input)?);
    if payload.len() == TIP_PAYLOAD_BYTES_SHORT {
        return Ok(Tip { hash, finality: Finality::default() });
    }
    let mut take_block = || {
        let [flag] = take(&mut input)?;
        let number = u64::from_le_bytes(take(&mut input)?);
        let hash = B256::from(take::<HASH_BYTES>(&mut input)?);
        match flag {
            0 if (number, hash) == (0, B256::ZERO) => Ok(None),
            1 => Ok(Some(BlockId { number: BlockNumber(number), hash })),
            found => {
                let found = u64::from(found);
                Err(CutFault::Field { field: "flag of a final block", found, expected: 1 })
            }
        }
    };
    let finality = Finality { safe: take_block()?, finalized: take_block()? };
    all_taken(input)?;
    Ok(Tip { hash, finality })
}

fn decode_block(payload: &Bytes) -> Result<(B256, Candidate), CutFault> {
    let mut input = &payload[..];
    let hash = B256::from(take::<HASH_BYTES>(&mut input)?);
    let [has_receipts] = take(&mut input)?;
    let mut part_bytes = [0; 3];
    for bytes in &mut part_bytes {
        *bytes = usize::try_from(u32::from_le_bytes(take(&mut input)?)).unwrap_or(usize::MAX);
    }
    let mut take_part = |count: usize| {
        let needed = u64::try_from(count).unwrap_or(u64::MAX);
        let short = CutFault::Short { had: count_of(input), needed };
        let (part, rest) = input.split_at_checked(count).ok_or(short)?;
        input = rest;
        Ok::<&[u8], CutFault>(part)
    };
    let [header_bytes, body_bytes, receipts_bytes] = part_bytes;
    let (header, body, receipts) =
        (take_part(header_bytes)?, take_part(body_bytes)?, take_part(receipts_bytes)?);
    all_taken(input)?;
    let refused = |reason: String| CutFault::Block { reason };
    // Copies: the block must not keep the encoded receipts in memory, which lie in the same record.
    let (header, body) = (Bytes::copy_from_slice(header), Bytes::copy_from_slice(body));
    let body = Body::decode(&body).map_err(|error| refused(error.to_string()))?;
    let receipts = match has_receipts {
        0 if receipts.is_empty() => None,
        1 => Some(decode_receipts(receipts).map_err(|error| refused(error.to_string()))?),
        found => {
            let found = u64::from(found);
            return Err(CutFault::Field { field: "receipts flag", found, expected: 1 });
        }
    };
    Ok((hash, Candidate { header, body, receipts, total_difficulty: None }))
}

fn take<const COUNT: usize>(input: &mut &[u8]) -> Result<[u8; COUNT], CutFault> {
    let had = count_of(input);
    let needed = u64::try_from(COUNT).unwrap_or(u64::MAX);
    let (taken, rest) = input.split_first_chunk().ok_or(CutFault::Short { had, needed })?;
    *input = rest;
    Ok(*taken)
}

fn all_taken(rest: &[u8]) -> Result<(), CutFault> {
    match count_of(rest) {
        0 => Ok(()),
        found => Err(CutFault::Field { field: "count of bytes left over", found, expected: 0 }),
    }
}

fn count_of(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
