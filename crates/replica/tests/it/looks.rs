//! What a reader believes of a bucket that was damaged, emptied, or lies about lengths.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use replica::{
    Bucket, BucketSettings, Published, RangeCache, RangeCacheSettings, RangeReadSettings,
    RemoteFiles, read_published, retract,
};
use store::FileSource as _;
use tokio::runtime::Handle;

use crate::faulty_store::FaultyStore;
use crate::history::{MAIN, MadeFolder, sha, whole};
use crate::publish::{bucket, paths, put};

/// What it withdraws would be served by whoever went on without it.
#[tokio::test]
async fn a_retraction_that_cannot_be_read_stops_a_look() {
    let store = FaultyStore::new(1);
    let bucket = bucket(&store);
    let folder = MadeFolder::of(MAIN, &[whole(0, 600)]);
    put(&bucket, &folder).await.unwrap();
    let dropped: BTreeSet<String> = [folder.segment_of(600)].into();
    retract(&bucket, &dropped).await.unwrap().unwrap();
    let known = read_published(&bucket, &Published::default()).await.unwrap();
    let retraction = paths(&store).await.into_iter().find(|it| it.contains("/retractions/"));
    let retraction = retraction.unwrap();
    store.overwrite(&retraction, b"quipu retraction 1\n".to_vec()).await;
    let refused = read_published(&bucket, &Published::default()).await.unwrap_err().to_string();
    assert!(refused.contains(&retraction), "{refused}");
    // Who has read it goes by it on.
    let seen = read_published(&bucket, &known).await.unwrap();
    assert_eq!(seen.retracted, dropped);
}

/// Seen: a share that was not mounted any more was shown as a chain without a block.
#[tokio::test]
async fn a_bucket_that_lists_nothing_any_more_is_a_failure() {
    let store = FaultyStore::new(1);
    let bucket = bucket(&store);
    put(&bucket, &MadeFolder::of(MAIN, &[whole(0, 600)])).await.unwrap();
    let known = read_published(&bucket, &Published::default()).await.unwrap();
    for path in paths(&store).await {
        store.lose(&path).await;
    }
    let refused = read_published(&bucket, &known).await.unwrap_err().to_string();
    assert!(refused.contains("1 manifests were listed before, and none is"), "{refused}");
    // To whoever sees it for the first time it is empty.
    let seen = read_published(&bucket, &Published::default()).await.unwrap();
    assert!(seen.manifests.is_empty());
}

/// Puts a manifest alone, as if nobody had removed those that it supersedes.
async fn add_manifest(store: &FaultyStore, folder: &MadeFolder) {
    let text = folder.manifest.to_published().encode();
    let name = alloy_primitives::hex::encode(sha(&text));
    store.overwrite(&format!("net/manifests/{name}"), text).await;
}

/// Whoever can write there, or a publisher that went wrong, does not fill the memory of readers.
#[tokio::test]
async fn more_than_is_read_of_one_bucket_is_refused_by_its_bound() {
    let store = FaultyStore::new(1);
    let usual = BucketSettings { listed_max: 3, ..BucketSettings::default() };
    let of =
        |settings| Bucket::of_store(Arc::new(store.clone()), "net".into(), "s3://it", settings);
    let (bucket, upkeep) = (of(usual), of(BucketSettings::for_upkeep()));
    let folder = |last| MadeFolder::of(MAIN, &[whole(0, last)]);
    let segments = |last| BTreeSet::from([folder(last).segment_of(last)]);
    for last in [100, 200, 300] {
        add_manifest(&store, &folder(last)).await;
        retract(&upkeep, &segments(last)).await.unwrap();
    }
    let known = read_published(&bucket, &Published::default()).await.unwrap();
    assert_eq!((known.manifests.len(), known.retracted.len()), (3, 3));

    // By the listing and by the index, for whoever knows most of it and for whoever knows nothing.
    let check = async |said: &str| {
        for known in [&Published::default(), &known] {
            for bucket in [bucket.clone(), bucket.clone().as_web_server()] {
                let refused = read_published(&bucket, known).await.unwrap_err();
                assert!(!refused.is_of_object() && !refused.may_pass());
                let refused = refused.to_string();
                assert!(refused.contains(said) && refused.contains("quipu prune"), "{refused}");
            }
        }
    };
    retract(&upkeep, &segments(400)).await.unwrap();
    check("s3://it: more than 3 retractions").await;
    add_manifest(&store, &folder(400)).await;
    retract(&upkeep, &segments(500)).await.unwrap();
    check("s3://it: more than 3 manifests").await;
    // A listing is not even read to its end.
    for number in 0..9 {
        store.overwrite(&format!("net/manifests/stranger-{number}"), Vec::new()).await;
    }
    let refused = read_published(&bucket, &known).await.unwrap_err().to_string();
    assert!(refused.contains("net/manifests: more than 6 objects"), "{refused}");

    let all = read_published(&upkeep, &Published::default()).await.unwrap();
    assert_eq!((all.manifests.len(), all.retracted.len()), (4, 5));
    let bytes = all.manifests.iter().map(|it| it.bytes).sum::<u64>();
    let tight = of(BucketSettings { listed_bytes_max: bytes, ..BucketSettings::default() });
    let refused = read_published(&tight, &Published::default()).await.unwrap_err().to_string();
    assert!(refused.contains(&format!("more than {bytes} bytes of manifests")), "{refused}");
}

/// Seen: an answer of 10^15 bytes was taken into memory until the process was killed.
#[tokio::test(flavor = "multi_thread")]
async fn no_more_of_an_answer_is_taken_than_was_asked_for() {
    const FILE: &str = "blocks-0000000000-0000000255-0011223344556677.segment";
    const SENT_MAX: u64 = 256 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serving = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let _ = client.read(&mut head).unwrap();
        let answer = "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 0-99999/100000\r\n\
                      content-length: 1000000000000000\r\netag: \"1\"\r\n\
                      last-modified: Wed, 18 Nov 2026 00:00:00 GMT\r\n\r\n";
        client.write_all(answer.as_bytes()).unwrap();
        let mut sent = 0;
        let body = vec![0; 65_536];
        while sent < SENT_MAX && client.write_all(&body).is_ok() {
            sent += 65_536;
        }
        sent
    });
    let bucket = Bucket::open(&url, BucketSettings::default()).unwrap();
    let cache = Arc::new(RangeCache::open(&RangeCacheSettings::default()));
    let settings = RangeReadSettings { retries: 0, ..RangeReadSettings::default() };
    let files = RemoteFiles::new(bucket, cache, Handle::current(), settings);
    let file = files.open(FILE, 100_000).unwrap();
    let refused = file.read(100..200).await.unwrap_err().to_string();
    assert!(refused.contains("more than the 100000 bytes"), "{refused}");
    let sent = serving.join().unwrap();
    assert!(sent < SENT_MAX, "{sent} bytes were taken");
}
