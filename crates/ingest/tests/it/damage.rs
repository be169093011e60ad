//! Damaged archives: an error that names the place, or the very same content; never another.

use std::ops::ControlFlow;

use archive::{Archive, ArchiveError, ArchiveFault, Format};
use chain::Candidate;
use ingest::prove::ProofReport;
use pool::map_in_order;
use sample::{Payload, SampleSettings};

use crate::harness::made::{blocks, prove, read_all, threads, write};

/// Set by the long run: then every bit of every byte is flipped, not one of each.
const EVERY_BIT: &str = "QUIPU_FLIP_EVERY_BIT";

struct Sound {
    settings: SampleSettings,
    bytes: Vec<u8>,
    content: Vec<Candidate>,
    report: ProofReport,
}

/// A small archive: blocks `first..end` of a sample chain.
fn sound(format: Format, first: usize, end: usize) -> Sound {
    let settings = SampleSettings {
        seed: 9,
        block_count: u64::try_from(end).unwrap(),
        txs_per_block: 2,
        payload: Payload::Small,
        ..SampleSettings::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let paths = write(folder.path(), format, &blocks(&settings)[first..end]);
    let bytes = std::fs::read(&paths[0]).unwrap();
    let (content, report) = take(&settings, bytes.clone()).unwrap();
    Sound { settings, bytes, content, report }
}

/// Reads and proves an archive in memory.
fn take(
    settings: &SampleSettings,
    bytes: Vec<u8>,
) -> Result<(Vec<Candidate>, ProofReport), ArchiveError> {
    let archive = Archive::from_source("damaged".to_owned(), bytes)?;
    let report = prove(&archive, settings, 1)?;
    Ok((read_all(&archive)?, report))
}

fn check_every_flip(sound: &Sound) {
    let bits: &[u32] =
        if std::env::var_os(EVERY_BIT).is_some() { &[0, 1, 2, 3, 4, 5, 6, 7] } else { &[0] };
    let flips = (0..sound.bytes.len()).flat_map(|at| bits.iter().map(move |bit| (at, *bit)));
    let mut refused = 0_usize;
    let mut unchanged = 0_usize;
    let ended: ControlFlow<()> = map_in_order(
        threads(2),
        flips,
        |(at, bit)| {
            let mut bytes = sound.bytes.clone();
            // Another bit at every byte, so that the short run also meets all of them.
            let bit = (bit + u32::try_from(at % 8).unwrap()) % 8;
            bytes[at] ^= 1 << bit;
            (at, bit, take(&sound.settings, bytes))
        },
        |(at, bit, taken)| {
            match taken {
                Err(error) => {
                    let shown = error.to_string();
                    assert!(shown.starts_with("damaged: ") && shown.contains("byte "), "{shown}");
                    refused += 1;
                }
                Ok((content, report)) => {
                    assert!(content == sound.content, "byte {at} bit {bit}: other content");
                    assert_eq!(report, sound.report, "byte {at} bit {bit}");
                    unchanged += 1;
                }
            }
            ControlFlow::Continue(())
        },
    );
    assert!(ended.is_continue());
    println!("{refused} flips refused, {unchanged} without effect");
    // Without effect are, for example, snappy copies that then come from another run of zeros.
    assert!(refused > 10 * unchanged, "{unchanged} of {} unnoticed", refused + unchanged);
}

#[test]
fn every_flipped_byte_of_an_era1_is_noticed_or_harmless() {
    check_every_flip(&sound(Format::Era1, 3, 9));
}

#[test]
fn every_flipped_byte_of_an_ere_across_the_merge_is_noticed_or_harmless() {
    check_every_flip(&sound(Format::Ere, 62, 66));
}

#[test]
fn every_flipped_byte_of_an_ere_with_blobs_is_noticed_or_harmless() {
    check_every_flip(&sound(Format::Ere, 97, 101));
}

#[test]
fn every_flipped_byte_of_an_ere_across_amsterdam_is_noticed_or_harmless() {
    check_every_flip(&sound(Format::Ere, 134, 138));
}

#[test]
fn an_archive_cut_short_anywhere_is_refused() {
    for sound in [sound(Format::Era1, 3, 6), sound(Format::Ere, 62, 66)] {
        for length in 0..sound.bytes.len() {
            let error = take(&sound.settings, sound.bytes[..length].to_vec()).unwrap_err();
            assert!(error.to_string().contains("byte "), "{error}");
        }
    }
}

#[test]
fn bytes_after_the_index_are_refused() {
    let Sound { settings, mut bytes, .. } = sound(Format::Ere, 62, 64);
    let length = bytes.len();
    bytes.extend_from_slice(&[0; 8]);
    let error = take(&settings, bytes).unwrap_err();
    assert!(matches!(*error.fault, ArchiveFault::AfterIndex), "{error}");
    assert_eq!(error.offset, u64::try_from(length).unwrap());
}

#[test]
fn a_truncated_file_says_where_and_what_was_expected() {
    let Sound { settings, bytes, .. } = sound(Format::Ere, 62, 64);
    let error = take(&settings, bytes[..bytes.len() - 1].to_vec()).unwrap_err();
    let index_bytes = 24 + 8 * 2 * 4;
    let index_offset = bytes.len() - index_bytes - 8;
    assert_eq!(
        error.to_string(),
        format!(
            "damaged: byte {index_offset}: truncated: dynamic block index of {index_bytes} bytes, \
             {} left in the file",
            index_bytes - 1
        )
    );
}

#[test]
fn bytes_of_another_kind_are_refused_at_once() {
    let settings = SampleSettings::default();
    for bytes in [b"".to_vec(), b"PK\x03\x04 and so on".to_vec(), vec![0; 4096]] {
        let error = take(&settings, bytes).unwrap_err();
        assert!(error.to_string().contains("not an e2store file"), "{error}");
    }
}

#[test]
fn a_block_of_another_chain_is_refused_by_its_link() {
    let one = sound(Format::Ere, 62, 66);
    let mut other = one.settings.clone();
    other.seed += 1;
    let mut mixed = one.content.clone();
    mixed[2] = blocks(&other)[64].clone();
    let folder = tempfile::tempdir().unwrap();
    let paths = write(folder.path(), Format::Ere, &mixed);
    let archive = Archive::open(&paths[0]).unwrap();
    let error = prove(&archive, &one.settings, 2).unwrap_err();
    assert_eq!(error.block, Some(64));
    assert!(error.to_string().contains("block 64, byte "), "{error}");
    assert!(error.to_string().contains("parent hash is 0x"), "{error}");
}

#[test]
fn a_false_total_difficulty_is_refused_by_block() {
    let one = sound(Format::Ere, 30, 34);
    let mut blocks = one.content.clone();
    let sum = blocks[2].total_difficulty.as_mut().unwrap();
    *sum += alloy_primitives::U256::from(1);
    let folder = tempfile::tempdir().unwrap();
    let paths = write(folder.path(), Format::Ere, &blocks);
    let archive = Archive::open(&paths[0]).unwrap();
    let error = prove(&archive, &one.settings, 1).unwrap_err();
    assert_eq!(error.block, Some(32));
    assert!(matches!(*error.fault, ArchiveFault::TotalDifficulty { .. }), "{error}");
}
