//! What several targets share: a service over blocks that are committed, and a clock that stands still.
//!
//! Knows: the sample chain that the committed data folder holds.
//! Never knows: what a target feeds to it.

use std::sync::Arc;

use chain::ChainSpec;
use rpc::{Service, ServiceSettings};
use sample::{NETWORK_NAME, Payload, SampleSettings, genesis};
use store::disk::Disk as _;
use store::read::Inline;
use store::{Limits, Store};
use testing::disk::faulty::FaultyDisk;
use tokio::runtime::{Builder, Runtime};

/// A data folder that is committed: some blocks of every fork.
const FOLDER: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/ingest/tests/fixtures/data-folder-v1");

/// The chain of the data folder.
pub fn sample_settings() -> SampleSettings {
    SampleSettings {
        seed: 7,
        block_count: 152,
        txs_per_block: 1,
        payload: Payload::Small,
        ..SampleSettings::default()
    }
}

/// Its forks.
pub fn sample_spec() -> ChainSpec {
    ChainSpec::from_genesis(NETWORK_NAME, &genesis(&sample_settings())).expect("our own genesis")
}

/// A service over the data folder, held in memory.
pub fn service(spec: ChainSpec, settings: ServiceSettings) -> Service {
    let disk = FaultyDisk::new(1);
    for entry in std::fs::read_dir(FOLDER).expect(FOLDER).map(|entry| entry.expect(FOLDER)) {
        let name = entry.file_name().into_string().expect("a name of ours");
        let bytes = std::fs::read(entry.path()).expect("a file of ours");
        disk.write(&name, &bytes).expect("a disk in memory");
    }
    let store = Store::open(Arc::new(disk), Arc::new(Inline), Limits::default());
    Service::new(Arc::new(store.expect("a data folder")), spec, settings)
}

/// A runtime whose clock moves only when nothing else can: whoever sleeps for a moment wakes when
/// everything that was set going has come to rest.
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
}
