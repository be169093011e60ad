//! Data folders that tests ask: the sample chain of `quipu demo`, and parts of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use chain::ChainSpec;
use rpc::http::HttpSettings;

use crate::harness::data::write_part;
use crate::harness::hosted::{Hosted, service_of};
use crate::harness::run::{archive, quipu, text};
use crate::harness::served::Served;

/// Every store that a test may name.
pub(crate) const NAMES: [&str; 5] = ["sample", "gap", "late", "no-receipts", "empty"];

/// Made once for all tests of a run; the next run makes it again.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = own_folder("stores");
    let archives = folder.join("archives");
    quipu(&["sample", "--to", text(&archives)]).ends_with(0);
    folder
});

/// One for all folders: two runs with several would wait for each other for ever. It is held until the
/// process ends.
static LOCK: LazyLock<File> = LazyLock::new(|| {
    let lock = File::create(lock_path()).unwrap();
    lock.lock().unwrap();
    lock
});

fn lock_path() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("lock")
}

/// Where a folder of this name may be made for the tests of this process. Another run of the same tests
/// waits until this one has ended, and makes the folder again.
pub(crate) fn own_folder(name: &str) -> PathBuf {
    LazyLock::force(&LOCK);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    folder
}

/// Stores are made one at a time.
static MADE: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());

/// The data folder of a store, made when it is first asked for.
pub(crate) fn data_folder(name: &str) -> PathBuf {
    let mut made: MutexGuard<'_, _> = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(name.to_owned()).or_insert_with(|| make(name)).clone()
}

/// A server of a store. One that holds nothing is served by no command, but for a node to follow.
pub(crate) fn serve(name: &str, args: &[&str]) -> Served {
    if name == "empty" {
        let service = service_of(&data_folder(name), ChainSpec::bare("unknown", None, None));
        return Served::hosted(Hosted::start(service, HttpSettings::default()));
    }
    Served::start(&data_folder(name), args)
}

fn make(name: &str) -> PathBuf {
    let data = FOLDER.join(name);
    let whole = archive(&FOLDER.join("archives"));
    let part = |blocks, has_receipts| {
        let folder = FOLDER.join(format!("{name}-archives"));
        write_part(&whole, blocks, has_receipts, &folder)
    };
    match name {
        "sample" => import(&data, &whole, &[]),
        "gap" => {
            import(&data, &part(0..=39, true), &[]);
            import(&data, &part(60..=99, true), &["--unanchored"]);
        }
        "late" => import(&data, &part(60..=99, true), &["--unanchored"]),
        "no-receipts" => import(&data, &part(0..=99, false), &["--without-receipts"]),
        "empty" => fs::create_dir_all(&data).unwrap(),
        _ => panic!("no store {name}; there are {}", NAMES.join(", ")),
    }
    data
}

fn import(data: &Path, archive: &Path, args: &[&str]) {
    let genesis = FOLDER.join("archives/genesis.json");
    let import = ["import", "--data-dir", text(data), "--genesis", text(&genesis), text(archive)];
    quipu(&[&import[..], args].concat()).ends_with(0);
}

/// One run held the first folder and waited for the second, another the other way round.
#[test]
fn whoever_has_one_folder_keeps_other_runs_from_all() {
    let folder = own_folder("locked");
    assert!(!folder.with_extension("lock").exists());
    let other_run = File::open(lock_path()).unwrap().try_lock();
    assert!(matches!(other_run, Err(fs::TryLockError::WouldBlock)), "{other_run:?}");
}
