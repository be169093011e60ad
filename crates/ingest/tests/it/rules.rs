//! Archives of a described chain: every header must follow from the one before it, wherever the file
//! is cut into pieces of work.

use alloy_consensus::Header;
use alloy_primitives::B64;
use archive::{Archive, ArchiveError, Format};
use chain::ChainSpec;
use sample::{CHAIN_ID, NETWORK_NAME, Payload, SampleSettings};

use crate::harness::folder::{DataFolder, settings as import_settings};
use crate::harness::made::{blocks, prove, proven_blocks, relinked, spec, write};

fn settings(block_count: u64) -> SampleSettings {
    SampleSettings {
        seed: 11,
        block_count,
        txs_per_block: 1,
        payload: Payload::Small,
        ..SampleSettings::default()
    }
}

/// What is said of the chain with this header of block `number`. Who does not know its forks takes
/// it for true.
fn refused(block_count: u64, number: usize, change: impl FnOnce(&mut Header)) -> ArchiveError {
    let settings = settings(block_count);
    let folder = tempfile::tempdir().unwrap();
    let blocks = relinked(blocks(&settings), number, change);
    let path = write(folder.path(), Format::Ere, &blocks).remove(0);
    let archive = Archive::open(&path).unwrap();
    let bare = ChainSpec::bare(NETWORK_NAME, Some(CHAIN_ID), spec(&settings).genesis_hash());
    assert_eq!(proven_blocks(&archive, &bare).len(), blocks.len());
    let data = DataFolder::new(&spec(&settings));
    let imported = data.import(&path, import_settings()).unwrap_err().to_string();
    let error = prove(&archive, &settings, 2).unwrap_err();
    assert!(imported.ends_with(&error.fault.to_string()), "{imported}\n{error}");
    error
}

#[test]
fn a_timestamp_that_is_not_above_the_parents_is_refused_in_every_place_of_an_archive() {
    for number in (65..72).chain(137..142) {
        let error = refused(148, number, |header| header.timestamp -= 12);
        let shown = error.to_string();
        assert_eq!(error.block, Some(number as u64), "{shown}");
        assert!(shown.contains("it must be above"), "{shown}");
    }
}

#[test]
fn every_rule_of_a_header_is_held_against_an_archive() {
    let check = |number, part: &str, change: fn(&mut Header)| {
        let error = refused(144, number, change);
        let shown = error.to_string();
        assert_eq!(error.block, Some(number as u64), "{shown}");
        assert!(shown.contains(part), "{shown}\nshould say: {part}");
    };
    check(40, "gas limit is 31000000", |it| it.gas_limit = 31_000_000);
    check(52, "gas limit is 30000000", |it| it.gas_limit = 30_000_000);
    check(52, "base fee is 7, the parent's gas gives 1000000000", |it| {
        it.base_fee_per_gas = Some(7);
    });
    check(70, "nonce is 0x", |it| it.nonce = B64::repeat_byte(1));
    check(90, "blob gas used is 13107200", |it| it.blob_gas_used = Some(100 * 131_072));
    check(100, "excess blob gas is 131073, the parent's blobs", |it| {
        it.excess_blob_gas = Some(131_073);
    });
    check(100, "header has 20 fields, Prague has 21", |it| it.requests_hash = None);
    check(138, "does not know; then upgrade", |it| it.excess_blob_gas = Some(131_073));
    check(138, "header has 22 fields, Amsterdam has 23", |it| it.slot_number = None);
    check(139, "gas used is", |it| it.gas_limit = it.gas_used - 1);
}
