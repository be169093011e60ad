//! A head's log of arbitrary records gives a chain of linked blocks, or less of it, and what it
//! gives is the same when it is written and read again.
//!
//! The checksums are set right before the log is read: behind them is what should not be believed.

#![no_main]

use std::sync::Arc;

use chain::ChainSpec;
use chain::trust::Anchors;
use libfuzzer_sys::fuzz_target;
use store::disk::Disk as _;
use store::head::{Head, HeadError, HeadLimits, Recovery};
use testing::disk::faulty::FaultyDisk;

const START_BYTES: usize = 72;
const RECORD_HEAD_BYTES: usize = 20;

fuzz_target!(|data: &[u8]| {
    let disk = FaultyDisk::new(1);
    if disk.write("head-1.log", &mended(data)).is_err() {
        return;
    }
    let Ok((mut head, _)) = open(&disk) else { return };
    let view = head.view();
    for (below, above) in view.blocks().iter().zip(view.blocks().iter().skip(1)) {
        assert_eq!(below.hash(), above.parent_hash());
        assert_eq!(below.number().saturating_add(1), above.number());
    }
    head.extend(Vec::new()).expect("a head that was read can be written");
    let (again, recovery) = open(&disk).expect("a head that was written can be read");
    let hashes =
        |head: &Head| -> Vec<_> { head.view().blocks().iter().map(|block| block.hash()).collect() };
    assert_eq!((again.base(), hashes(&again)), (head.base(), hashes(&head)));
    assert_eq!(again.finality(), head.finality());
    assert!(recovery.is_clean(), "{recovery:?}");
});

fn open(disk: &FaultyDisk) -> Result<(Head, Recovery), HeadError> {
    let spec = ChainSpec::bare("fuzz", None, None);
    Head::open(Arc::new(disk.clone()), &spec, &Anchors::none(), HeadLimits::default())
}

/// The same log with the beginning of one, and with checksums that hold.
fn mended(data: &[u8]) -> Vec<u8> {
    let mut log = data.to_vec();
    log.resize(log.len().max(START_BYTES), 0);
    log[..8].copy_from_slice(b"QUIPUHED");
    log[8..12].copy_from_slice(&2_u32.to_le_bytes());
    log[12..20].copy_from_slice(&1_u64.to_le_bytes());
    let checksum = crc32fast::hash(&log[..68]).to_le_bytes();
    log[68..START_BYTES].copy_from_slice(&checksum);
    let mut at = START_BYTES;
    while let Some(bytes) = log.get(at + 4..at + 8) {
        let payload = bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let end = at + RECORD_HEAD_BYTES + payload;
        let Some(record) = log.get(at + 4..end) else { break };
        let checksum = crc32fast::hash(record).to_le_bytes();
        log[at..at + 4].copy_from_slice(&checksum);
        at = end;
    }
    log
}
