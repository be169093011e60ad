//! A bucket in a folder: what else may lie there, and what killed publishers leave.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use replica::{
    Bucket, BucketFault, BucketSettings, Pruning, Published, RangeCache, RangeCacheSettings,
    RangeReadSettings, RemoteFiles, check, prune, read_published, retract,
};
use store::FileSource as _;
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::history::{MAIN, MadeFolder, whole};
use crate::publish::{listed, names, put};

const DAY: Duration = Duration::from_hours(24);

/// A bucket in a folder that goes with it.
struct FolderBucket {
    folder: TempDir,
    bucket: Bucket,
}

impl FolderBucket {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}/net", folder.path().display());
        let settings = BucketSettings { is_synced: false, ..BucketSettings::default() };
        Self { bucket: Bucket::open(&url, settings).unwrap(), folder }
    }

    fn path(&self, object: &str) -> PathBuf {
        self.folder.path().join("net").join(object)
    }

    /// The only object of a folder that is named by a digest.
    fn named_by_digest(&self, folder: &str) -> String {
        let names = fs::read_dir(self.path(folder)).unwrap();
        let mut names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
        format!("{folder}/{}", names.find(|it| it.len() == 64).unwrap())
    }
}

/// Makes something that is no file.
type MakeIrregular = fn(&Path);

/// Each with what it makes.
fn irregular() -> [(&'static str, MakeIrregular); 3] {
    [
        ("a FIFO", |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
        ("a directory", |path| fs::create_dir(path).unwrap()),
        ("a socket", |path| {
            // The address of a socket has no room for a long path.
            let short = tempfile::tempdir().unwrap();
            drop(UnixListener::bind(short.path().join("s")).unwrap());
            fs::rename(short.path().join("s"), path).unwrap();
        }),
    ]
}

/// Seen: whoever opened a FIFO waited for its other end, and no timeout ends that.
#[tokio::test]
async fn what_is_no_file_is_refused_by_name() {
    for (kind, make) in irregular() {
        let made = FolderBucket::new();
        let folder = MadeFolder::of(MAIN, &[whole(0, 600)]);
        put(&made.bucket, &folder).await.unwrap();
        let dropped: BTreeSet<String> = [folder.segment_of(600)].into();
        retract(&made.bucket, &dropped).await.unwrap().unwrap();
        let known = read_published(&made.bucket, &Published::default()).await.unwrap();
        let replace = |object: &str| {
            fs::remove_file(made.path(object)).unwrap();
            make(&made.path(object));
        };
        let reason = format!("get: this is {kind}, not a file");
        let is_told = |fault: &BucketFault, object: &str| {
            fault.object.ends_with(object) && fault.reason.starts_with(&reason)
        };

        let file = format!("files/{}", folder.segment_of(0));
        let bytes = fs::metadata(made.path(&file)).unwrap().len();
        replace(&file);
        let cache = Arc::new(RangeCache::open(&RangeCacheSettings::default()));
        let (reader, settings) = (made.bucket.clone(), RangeReadSettings::default());
        let files = RemoteFiles::new(reader, cache, Handle::current(), settings);
        let file_name = file.strip_prefix("files/").unwrap();
        let refused = files.open(file_name, bytes).unwrap().read(0..10).await.unwrap_err();
        assert!(refused.is_of_content(), "{refused}");
        let refused = refused.to_string();
        assert!(refused.contains(&file) && refused.contains(kind), "{refused}");
        let faults = check(&made.bucket, &(), &|| false).await.unwrap().faults;
        assert!(faults.len() == 1 && is_told(&faults[0], &file), "{faults:?}");
        // A directory cannot be written over, and a publisher does not guess what the others are for.
        let refused = put(&made.bucket, &folder).await.unwrap_err().to_string();
        assert!(refused.contains(&file) && refused.contains(kind), "{refused}");

        let manifest = made.named_by_digest("manifests");
        replace(&manifest);
        let seen = read_published(&made.bucket, &Published::default()).await.unwrap();
        assert!(seen.manifests.is_empty());
        assert!(is_told(&seen.faults[0], &manifest), "{:?}", seen.faults);

        // What it withdraws must not be served because it cannot be read.
        let retraction = made.named_by_digest("retractions");
        replace(&retraction);
        let refused = read_published(&made.bucket, &Published::default()).await.unwrap_err();
        assert!(refused.to_string().contains(&format!("{retraction}: {reason}")), "{refused}");
        let seen = read_published(&made.bucket, &known).await.unwrap();
        assert_eq!(seen.retracted, dropped, "who has read it goes by it on");

        replace("manifests/index");
        let server = made.bucket.clone().as_web_server();
        let refused = read_published(&server, &Published::default()).await.unwrap_err();
        assert!(refused.to_string().contains(&format!("manifests/index: {reason}")), "{refused}");
    }
}

#[tokio::test]
async fn what_killed_publishers_left_goes_after_the_grace_period() {
    let made = FolderBucket::new();
    let folder = MadeFolder::of(MAIN, &[whole(0, 600)]);
    put(&made.bucket, &folder).await.unwrap();
    let begun = UNIX_EPOCH + DAY * 20_000;
    let left = |object: &str, bytes: &[u8], written: SystemTime| {
        let path = made.path(object);
        fs::write(&path, bytes).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
        path
    };
    let name = folder.segment_of(0);
    let old = [
        left(&format!("files/{name}#1"), b"half of it", begun),
        left("manifests/index#12", b"quipu", begun),
    ];
    let young = left(&format!("files/{name}#2"), b"another half", begun + DAY / 2);
    // Neither of these is a name that a publisher writes to.
    let strangers = ["files/a#b", "files/#1", "stranger#1"].map(|it| left(it, b"?", begun));
    let linked = made.path("files/linked#1");
    std::os::unix::fs::symlink(&young, &linked).unwrap();

    let prune_at = |now| prune(&made.bucket, DAY, now);
    let pruned = prune_at(begun + DAY - Duration::from_secs(1)).await.unwrap();
    assert_eq!((pruned.staged, pruned.staged_bytes), (0, 0));
    let pruned = prune_at(begun + DAY).await.unwrap();
    assert_eq!((pruned.staged, pruned.staged_bytes), (2, 15));
    assert!(old.iter().all(|it| !it.exists()) && young.exists());
    let pruned = prune_at(begun + DAY * 2).await.unwrap();
    assert_eq!((pruned.staged, pruned.staged_bytes), (1, 12));
    assert!(!young.exists() && strangers.iter().all(|it| it.exists()) && linked.is_symlink());
    assert_eq!(prune_at(begun + DAY * 3).await.unwrap().staged, Pruning::default().staged);
    assert_eq!(listed(&made.bucket).await, names(&folder));
}
