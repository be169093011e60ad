//! Files from mirrors, whatever these do: handed over whole and in order, and no others.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use archive::hash_file;
use chain::BlockRange;
use chain::trust::Anchors;
use ingest::fetch::{
    DownloadError, DownloadFolder, Downloader, FetchFailure, FetchLimits, FetchWatch, FileTaker,
    MirrorFile, Mirrors, TakeVerdict, fetch_files,
};
use store::layout::overlap;
use tempfile::TempDir;
use testing::mirror::{Manner, Mirror, Wish};
use tokio::runtime::Runtime;
use tokio::sync::watch;

const FIRST: &str = "x-00000-00000000.ere";
const SECOND: &str = "x-00001-11111111.ere";
const THIRD: &str = "x-00002-22222222.ere";
const SUMS: &str = "checksums_sha256.txt";
const DEMOTED: &str = "other mirrors come first from now on";
const BYTES: usize = 300_000;
/// How long anything may take on a busy machine.
const DEADLINE: Duration = Duration::from_mins(1);

/// A folder of three files that stand for archives, with their list.
fn files() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (number, name) in [FIRST, SECOND, THIRD].into_iter().enumerate() {
        let bytes: Vec<u8> = (0..BYTES).map(|at| ((at / 7) ^ (at * number)) as u8).collect();
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    write_sums(folder.path(), &[FIRST, SECOND, THIRD]);
    folder
}

fn write_sums(folder: &Path, names: &[&str]) {
    let line = |name: &&str| {
        let sum = hash_file(&folder.join(name)).unwrap().to_string();
        format!("{}  {name}\n", sum.trim_start_matches("0x"))
    };
    fs::write(folder.join(SUMS), names.iter().map(line).collect::<String>()).unwrap();
}

/// Limits under which a test need not wait long for what takes long.
fn limits() -> FetchLimits {
    FetchLimits {
        file_bytes_max: 10 << 20,
        pause: Duration::from_millis(2),
        ..FetchLimits::default()
    }
}

/// What was said, and how many bytes came.
#[derive(Default)]
struct Heard {
    events: Mutex<Vec<String>>,
    bytes: Mutex<u64>,
    bytes_came: Condvar,
}

impl Heard {
    /// Waits until so many bytes came.
    fn wait_bytes(&self, count: u64) {
        let is_less = |bytes: &mut u64| *bytes < count;
        let waited =
            self.bytes_came.wait_timeout_while(self.bytes.lock().unwrap(), DEADLINE, is_less);
        let (bytes, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "{bytes} of {count} bytes came");
    }
}

impl FetchWatch for Heard {
    fn received(&self, bytes: u64) {
        *self.bytes.lock().unwrap() += bytes;
        self.bytes_came.notify_all();
    }

    fn warn(&self, text: String) {
        self.events.lock().unwrap().push(text);
    }
}

/// Takes files by reading them; refuses those that are told.
#[derive(Default)]
struct Reader {
    taken: Vec<(String, Vec<u8>)>,
    held: BTreeSet<String>,
    /// Blocks of files that were taken.
    ranges: Vec<BlockRange>,
    passed: Vec<String>,
    /// Bytes that are refused.
    refused: Vec<Vec<u8>>,
    /// Whether files have fewer blocks than their names say, as the last one of a chain.
    is_chain_end: bool,
    /// Raised when the first file is passed over.
    stop_when_passed: Option<watch::Sender<bool>>,
    /// Files in the folder when one was taken, at the most.
    there_max: usize,
}

impl FileTaker for Reader {
    type Error = String;

    fn is_held(&mut self, file: &MirrorFile) -> Result<bool, String> {
        let named = file.named_range();
        let is_inside = |held: &BlockRange| named.is_some_and(|it| overlap(it, *held) == Some(it));
        Ok(self.held.contains(&file.name) || self.ranges.iter().any(is_inside))
    }

    fn pass_over(&mut self, file: &MirrorFile) {
        self.passed.push(file.name.clone());
        if let Some(stop) = &self.stop_when_passed {
            stop.send_replace(true);
        }
    }

    fn take(&mut self, file: &MirrorFile, path: &Path) -> Result<TakeVerdict, String> {
        let there = fs::read_dir(path.parent().unwrap()).unwrap().count();
        self.there_max = self.there_max.max(there);
        let bytes = fs::read(path).unwrap();
        if self.refused.contains(&bytes) {
            return Ok(TakeVerdict::Refused("it is false".to_owned()));
        }
        self.taken.push((file.name.clone(), bytes));
        if self.is_chain_end {
            self.held.insert(file.name.clone());
        } else {
            self.ranges.extend(file.named_range());
        }
        Ok(TakeVerdict::Taken)
    }
}

/// What is needed to fetch, and what was said.
struct Fetching {
    work: TempDir,
    limits: FetchLimits,
    heard: Arc<Heard>,
    reader: Reader,
    stop: watch::Sender<bool>,
    is_kept: bool,
}

impl Fetching {
    fn new() -> Self {
        Self {
            work: tempfile::tempdir().unwrap(),
            limits: limits(),
            heard: Arc::default(),
            reader: Reader::default(),
            stop: watch::channel(false).0,
            is_kept: false,
        }
    }

    fn folder(&self) -> PathBuf {
        self.work.path().join("fetch")
    }

    fn run(&mut self, mirrors: &[&Mirror]) -> Result<(), FetchFailure<String>> {
        let urls: Vec<&str> = mirrors.iter().map(|mirror| mirror.url.as_str()).collect();
        self.run_urls(&urls)
    }

    fn run_urls(&mut self, urls: &[&str]) -> Result<(), FetchFailure<String>> {
        let runtime = Runtime::new().unwrap();
        let urls = urls.iter().map(|url| url.parse().unwrap()).collect();
        let watch = Arc::<Heard>::clone(&self.heard);
        let mirrors = Arc::new(Mirrors::new(urls, self.limits, watch).unwrap());
        let files = runtime.block_on(mirrors.list()).unwrap_or_else(|refused| {
            panic!("no list: {refused:?}");
        });
        let files = MirrorFile::order(files, &[], &Anchors::none());
        let folder = self.folder();
        let folder = if self.is_kept {
            DownloadFolder::kept(folder)
        } else {
            DownloadFolder::temporary(folder)
        };
        let downloader =
            Downloader { mirrors, folder: folder.unwrap(), stop: self.stop.subscribe() };
        fetch_files(&Arc::new(downloader), runtime.handle(), &files, &mut self.reader)
    }

    fn events(&self) -> Vec<String> {
        self.heard.events.lock().unwrap().clone()
    }

    /// All three files were taken in order as the folder has them, and nothing is left.
    #[track_caller]
    fn took_all(&self, folder: &Path) {
        let names: Vec<&str> = self.reader.taken.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [FIRST, SECOND, THIRD], "{:?}", self.events());
        for (name, bytes) in &self.reader.taken {
            assert!(*bytes == fs::read(folder.join(name)).unwrap(), "{name}");
        }
        assert!(self.is_kept || !self.folder().exists(), "the work folder is gone");
        assert!(self.reader.there_max <= 3 || self.is_kept, "{}", self.reader.there_max);
    }
}

/// One mirror that behaves so for the second file, and well otherwise.
fn check_alone(manner: impl Fn(&Wish) -> Manner + Send + Sync + 'static) -> (Fetching, Mirror) {
    let folder = files();
    let mirror =
        Mirror::of(
            folder.path(),
            move |wish| {
                if wish.path == SECOND { manner(wish) } else { Manner::Well }
            },
        );
    let mut fetching = Fetching::new();
    let outcome = fetching.run(&[&mirror]);
    assert!(outcome.is_ok(), "{outcome:?} {:?}", fetching.events());
    fetching.took_all(folder.path());
    (fetching, mirror)
}

/// The wishes for the second file, by where they begin.
fn begins(mirror: &Mirror) -> Vec<Option<usize>> {
    let wishes = mirror.wishes().into_iter().filter(|wish| wish.path == SECOND);
    wishes.map(|wish| wish.from).collect()
}

#[test]
fn files_are_taken_in_order_and_each_is_asked_for_once() {
    let (fetching, mirror) = check_alone(|_| Manner::Well);
    assert_eq!(mirror.wishes().len(), 4, "{:?}", mirror.wishes());
    assert_eq!(fetching.events(), [""; 0]);
    assert_eq!(*fetching.heard.bytes.lock().unwrap(), 3 * BYTES as u64);
}

#[test]
fn a_download_that_is_cut_goes_on_where_it_ended() {
    let (fetching, mirror) = check_alone(|wish| match wish.nth {
        0 => Manner::Cut(100_000),
        1 => Manner::Cut(150_000),
        _ => Manner::Well,
    });
    assert_eq!(begins(&mirror), [None, Some(100_000), Some(250_000)]);
    assert!(fetching.events()[0].contains(SECOND), "{:?}", fetching.events());
}

#[test]
fn servers_that_ignore_ranges_send_it_all_again() {
    let (_, mirror) = check_alone(|wish| match wish.nth {
        0 => Manner::Cut(100_000),
        1 => Manner::NoRanges,
        _ => panic!("asked again"),
    });
    assert_eq!(begins(&mirror), [None, Some(100_000)]);
}

#[test]
fn another_part_than_was_asked_for_is_not_taken_and_the_whole_is_asked_for() {
    let (_, mirror) = check_alone(|wish| match wish.nth {
        0 => Manner::Cut(100_000),
        1 => Manner::OtherPart,
        _ => Manner::Well,
    });
    assert_eq!(begins(&mirror), [None, Some(100_000), None]);
}

#[test]
fn a_body_without_a_length_is_whole_if_its_checksum_says_so() {
    check_alone(|_| Manner::NoLength);
    check_alone(|_| Manner::Chunked);
    // A cut looks like an end there: what is missing is asked for.
    let (_, mirror) = check_alone(|wish| match wish.nth {
        0 => Manner::NoLengthCut(100_000),
        _ => Manner::NoLength,
    });
    assert_eq!(begins(&mirror), [None, Some(100_000)]);
}

#[test]
fn a_mirror_that_has_nothing_from_there_on_sends_it_all() {
    let (_, mirror) = check_alone(|wish| match wish.nth {
        0 => Manner::Cut(100_000),
        1 => Manner::Status(416, ""),
        _ => Manner::Well,
    });
    assert_eq!(begins(&mirror), [None, Some(100_000), None]);
}

#[test]
fn a_mirror_that_is_overloaded_is_asked_again_when_it_says() {
    let begun = Instant::now();
    let (_, mirror) = check_alone(|wish| match wish.nth {
        0 => Manner::Status(503, "retry-after: 1\r\n"),
        1 => Manner::Status(429, ""),
        2 => Manner::Status(500, ""),
        _ => Manner::Well,
    });
    assert_eq!(begins(&mirror).len(), 4);
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

/// Mirrors that behave so for the second file end the run.
fn check_failed(manner: impl Fn(&Wish) -> Manner + Copy + Send + Sync + 'static) {
    let folder = files();
    let manner = move |wish: &Wish| if wish.path == SECOND { manner(wish) } else { Manner::Well };
    let (first, second) = (Mirror::of(folder.path(), manner), Mirror::of(folder.path(), manner));
    let mut fetching = Fetching::new();
    fetching.limits.window = Duration::from_millis(50);
    let failure = fetching.run(&[&first, &second]).unwrap_err();
    let FetchFailure::Download(DownloadError::NoMirror { file, said }) = failure else {
        panic!("{failure:?}")
    };
    assert_eq!((file.as_str(), said.len()), (SECOND, 2), "{said:?}");
    [first, second].iter().for_each(Mirror::let_go_on);
}

#[test]
fn mirrors_that_give_nothing_new_end_the_run() {
    check_failed(|_| Manner::Slow(1));
    check_failed(|_| Manner::Held(10));
    // The same bytes again are no progress.
    check_failed(|wish| match wish.from {
        Some(_) => Manner::Status(416, ""),
        None => Manner::Cut(100_000),
    });
}

#[test]
fn redirects_are_followed() {
    let folder = files();
    let target = Mirror::good(folder.path());
    let location: &'static str =
        Box::leak(format!("location: {}{SECOND}\r\n", target.url).into_boxed_str());
    check_alone(move |_| Manner::Status(302, location));
    assert_eq!(begins(&target), [None]);
}

/// Two mirrors of the same files, of which the first behaves so for the second file.
fn check_two(
    manner: impl Fn(&Wish, &[u8]) -> Manner + Send + Sync + 'static,
) -> (Fetching, Mirror, Mirror) {
    let folder = files();
    let bytes = fs::read(folder.path().join(SECOND)).unwrap();
    let first = Mirror::of(folder.path(), move |wish| {
        if wish.path == SECOND { manner(wish, &bytes) } else { Manner::Well }
    });
    let second = Mirror::good(folder.path());
    let mut fetching = Fetching::new();
    let outcome = fetching.run(&[&first, &second]);
    assert!(outcome.is_ok(), "{outcome:?} {:?}", fetching.events());
    fetching.took_all(folder.path());
    (fetching, first, second)
}

#[test]
fn another_mirror_goes_on_where_one_was_cut() {
    let (_, first, second) = check_two(|_, _| Manner::Cut(100_000));
    assert_eq!((begins(&first), begins(&second)), (vec![None], vec![Some(100_000)]));
}

#[test]
fn another_mirror_is_asked_for_what_one_lacks() {
    let (fetching, first, second) = check_two(|_, _| Manner::Status(404, ""));
    assert_eq!((begins(&first), begins(&second)), (vec![None], vec![None]));
    let events = fetching.events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].ends_with("not there (HTTP 404)"), "it is not demoted: {events:?}");
}

#[test]
fn a_mirror_that_sends_other_bytes_than_it_lists_comes_last_from_then_on() {
    let (fetching, first, second) = check_two(|_, bytes| {
        let mut bytes = bytes.to_vec();
        bytes[7] ^= 1;
        Manner::Instead(bytes)
    });
    assert_eq!(fetching.events().len(), 1, "{:?}", fetching.events());
    assert!(fetching.events()[0].contains(DEMOTED), "{:?}", fetching.events());
    assert_eq!((begins(&first), begins(&second)), (vec![None], vec![None]));
}

#[test]
fn a_slow_mirror_is_left_in_the_middle_of_a_file() {
    let folder = files();
    // 15 seconds for the file at the least.
    let slow = Mirror::of(folder.path(), |wish| match wish.path.as_str() {
        SECOND => Manner::Slow(200),
        _ => Manner::Well,
    });
    let good = Mirror::good(folder.path());
    let mut fetching = Fetching::new();
    fetching.limits.window = Duration::from_millis(400);
    fetching.run(&[&slow, &good]).unwrap();
    fetching.took_all(folder.path());
    assert_eq!(begins(&slow).len(), 1);
    let from = begins(&good)[0].unwrap();
    assert!(from < BYTES / 2, "{from}");
    let events = fetching.events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].contains("slow: ") && events[0].contains(DEMOTED), "{events:?}");
}

#[test]
fn a_body_without_an_end_ends_at_the_limit() {
    let (fetching, _, second) = check_two(|_, _| Manner::Endless);
    assert!(fetching.events()[0].contains("more than 10485760 bytes"), "{:?}", fetching.events());
    assert_eq!(begins(&second), [None]);
}

#[test]
fn parts_of_mirrors_that_do_not_fit_together_are_downloaded_anew_and_nobody_is_blamed() {
    let folder = files();
    let cut = Mirror::of(folder.path(), |wish| match wish.path.as_str() {
        SECOND => Manner::Cut(100_000),
        _ => Manner::Well,
    });
    let mut fetching = Fetching::new();
    // What an earlier run left is false.
    fs::create_dir(fetching.folder()).unwrap();
    let sum = hash_file(&folder.path().join(SECOND)).unwrap().to_string();
    let part = fetching.folder().join(format!("{SECOND}.{}.part", &sum[2..18]));
    fs::write(&part, vec![9; 50_000]).unwrap();
    let whole = Mirror::good(folder.path());
    assert!(fetching.run(&[&cut, &whole]).is_ok(), "{:?}", fetching.events());
    fetching.took_all(folder.path());
    assert_eq!(begins(&cut).first(), Some(&Some(50_000)));
    let events = fetching.events();
    assert!(events.iter().any(|it| it.contains("downloaded again")), "{events:?}");
    assert!(!events.iter().any(|it| it.contains(DEMOTED)), "{events:?}");
}

#[test]
fn what_is_refused_is_had_from_a_mirror_that_lists_other_bytes() {
    let (lying, honest) = (files(), files());
    let false_bytes = vec![1; 5000];
    fs::write(lying.path().join(FIRST), &false_bytes).unwrap();
    write_sums(lying.path(), &[FIRST, SECOND, THIRD]);
    let lying = [Mirror::good(lying.path()), Mirror::good(lying.path())];
    let second = Mirror::good(honest.path());
    let mut fetching = Fetching::new();
    fetching.reader.refused = vec![false_bytes];
    assert!(fetching.run(&[&lying[0], &lying[1], &second]).is_ok(), "{:?}", fetching.events());
    fetching.took_all(honest.path());
    assert_eq!((lying[0].count(FIRST), lying[1].count(FIRST)), (1, 0), "the same bytes");
    let events = fetching.events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].contains(DEMOTED) && events[0].contains("it is false"), "{events:?}");
}

#[test]
fn what_no_mirror_has_ends_it_and_what_was_taken_stays_taken() {
    let folder = files();
    let mirror = Mirror::of(folder.path(), |wish| match wish.path.as_str() {
        SECOND if wish.nth == 0 => Manner::Cut(100_000),
        SECOND => Manner::Status(404, ""),
        _ => Manner::Well,
    });
    let mut fetching = Fetching::new();
    let failure = fetching.run(&[&mirror]).unwrap_err();
    let FetchFailure::Download(DownloadError::NoMirror { file, said }) = failure else {
        panic!("{failure:?}")
    };
    assert_eq!(file, SECOND);
    assert_eq!(said, [format!("{}: not there (HTTP 404)", mirror.url)]);
    assert_eq!(fetching.reader.taken.len(), 1);
    let good = Mirror::good(folder.path());
    fetching.run(&[&good]).unwrap();
    assert_eq!(begins(&good), [Some(100_000)], "what came of it is not lost");
}

#[test]
fn a_stop_ends_a_download_that_waits_and_the_next_run_goes_on() {
    let folder = files();
    let mirror = Arc::new(Mirror::of(folder.path(), |wish| match wish.path.as_str() {
        SECOND => Manner::Held(100_000),
        _ => Manner::Well,
    }));
    let mut fetching = Fetching::new();
    let (stop, heard) = (fetching.stop.clone(), Arc::clone(&fetching.heard));
    let stopping = std::thread::spawn(move || {
        // As much as comes of the three files.
        heard.wait_bytes(2 * BYTES as u64 + 100_000);
        stop.send_replace(true);
    });
    let failure = fetching.run(&[&mirror]).unwrap_err();
    assert!(matches!(failure, FetchFailure::Stopped), "{failure:?}");
    stopping.join().unwrap();
    mirror.let_go_on();
    fetching.stop = watch::channel(false).0;
    let good = Mirror::good(folder.path());
    fetching.run(&[&good]).unwrap();
    fetching.took_all(folder.path());
    assert_eq!(begins(&good), [Some(100_000)]);
    assert_eq!(fetching.reader.passed, [FIRST], "it was held");
}

/// Waits with the first file until the second and third are asked for.
struct Waiting {
    mirror: Mirror,
    others_asked: Receiver<()>,
    reader: Reader,
}

impl FileTaker for Waiting {
    type Error = String;

    fn is_held(&mut self, file: &MirrorFile) -> Result<bool, String> {
        self.reader.is_held(file)
    }

    fn pass_over(&mut self, file: &MirrorFile) {
        self.reader.pass_over(file);
    }

    fn take(&mut self, file: &MirrorFile, path: &Path) -> Result<TakeVerdict, String> {
        if file.name == FIRST {
            for _ in [SECOND, THIRD] {
                let asked = self.others_asked.recv_timeout(DEADLINE);
                assert!(asked.is_ok(), "{asked:?} {:?}", self.mirror.wishes());
            }
        }
        self.reader.take(file, path)
    }
}

#[test]
fn the_next_two_files_download_while_one_is_taken() {
    let folder = files();
    let (asked, others_asked) = sync_channel(2);
    let mirror = Mirror::of(folder.path(), move |wish| {
        if [SECOND, THIRD].contains(&wish.path.as_str()) {
            asked.send(()).unwrap();
        }
        Manner::Well
    });
    let fetching = Fetching::new();
    let runtime = Runtime::new().unwrap();
    let urls = vec![mirror.url.parse().unwrap()];
    let watch = Arc::<Heard>::clone(&fetching.heard);
    let mirrors = Arc::new(Mirrors::new(urls, limits(), watch).unwrap());
    let files = runtime.block_on(mirrors.list()).unwrap();
    let stop = fetching.stop.subscribe();
    let downloads = DownloadFolder::temporary(fetching.folder()).unwrap();
    let downloader = Downloader { mirrors, folder: downloads, stop };
    let mut waiting = Waiting { mirror, others_asked, reader: Reader::default() };
    fetch_files(&Arc::new(downloader), runtime.handle(), &files, &mut waiting).unwrap();
    assert_eq!(waiting.reader.taken.len(), 3);
}

#[test]
fn kept_files_stay_are_not_downloaded_again_and_are_never_replaced() {
    let folder = files();
    let mirror = Mirror::good(folder.path());
    let mut fetching = Fetching::new();
    fetching.is_kept = true;
    fs::create_dir(fetching.folder()).unwrap();
    fs::copy(folder.path().join(FIRST), fetching.folder().join(FIRST)).unwrap();
    fetching.run(&[&mirror]).unwrap();
    fetching.took_all(folder.path());
    assert_eq!(mirror.count(FIRST), 0);
    for name in [FIRST, SECOND, THIRD] {
        let kept = fs::read(fetching.folder().join(name)).unwrap();
        assert!(kept == fs::read(folder.path().join(name)).unwrap(), "{name}");
    }
    fs::write(fetching.folder().join(SECOND), "mine").unwrap();
    fetching.reader = Reader::default();
    let failure = fetching.run(&[&mirror]).unwrap_err();
    let is_occupied = matches!(failure, FetchFailure::Download(DownloadError::Occupied { .. }));
    assert!(is_occupied, "{failure:?}");
    assert_eq!(fs::read(fetching.folder().join(SECOND)).unwrap(), b"mine");
}

#[test]
fn a_mirror_without_a_list_that_can_be_read_is_left_out_and_told() {
    let folder = files();
    let good = Mirror::good(folder.path());
    let page = Mirror::of(folder.path(), |_| Manner::Instead(b"<html>Index of /</html>".to_vec()));
    let none = Mirror::of(folder.path(), |_| Manner::Status(404, ""));
    let endless = Mirror::of(folder.path(), |_| Manner::Endless);
    let mut fetching = Fetching::new();
    fetching.limits.timeout = Duration::from_secs(10);
    let silent = Mirror::of(folder.path(), |wish| match wish.path.as_str() {
        SUMS => Manner::Held(10),
        _ => Manner::Well,
    });
    fetching.run(&[&page, &none, &endless, &silent, &good]).unwrap();
    silent.let_go_on();
    fetching.took_all(folder.path());
    let events = fetching.events().join("\n");
    for said in [
        "web page",
        "neither checksums_sha256.txt nor urls.txt",
        "is larger than 16777216 bytes",
        "no list within 10 s",
    ] {
        assert!(events.contains(said), "{said}: {events}");
    }
}

#[test]
fn addresses_without_checksums_do_and_so_does_the_address_of_one_file() {
    let folder = files();
    fs::remove_file(folder.path().join(SUMS)).unwrap();
    fs::write(folder.path().join("urls.txt"), [FIRST, SECOND, THIRD].join("\n")).unwrap();
    let mirror = Mirror::of(folder.path(), |wish| match (wish.path.as_str(), wish.nth) {
        (SECOND, 0) => Manner::Cut(100_000),
        _ => Manner::Well,
    });
    let mut fetching = Fetching::new();
    fetching.run(&[&mirror]).unwrap();
    fetching.took_all(folder.path());
    assert_eq!(begins(&mirror), [None, Some(100_000)]);
    let mut fetching = Fetching::new();
    fetching.run_urls(&[&format!("{}{SECOND}", mirror.url)]).unwrap();
    assert_eq!(fetching.reader.taken.len(), 1);
    assert_eq!(fetching.reader.taken[0].0, SECOND);
}

#[test]
fn a_file_that_is_whole_when_a_run_is_killed_is_not_downloaded_again() {
    let folder = files();
    let mirror = Mirror::good(folder.path());
    let mut fetching = Fetching::new();
    fs::create_dir(fetching.folder()).unwrap();
    fs::copy(folder.path().join(FIRST), fetching.folder().join(FIRST)).unwrap();
    // One that has other bytes than any mirror lists is not ours to trust.
    fs::write(fetching.folder().join(SECOND), "false").unwrap();
    fs::write(fetching.folder().join("y-00009-00000000.ere.unlisted.part"), "old").unwrap();
    fetching.run(&[&mirror]).unwrap();
    fetching.took_all(folder.path());
    assert_eq!((mirror.count(FIRST), mirror.count(SECOND)), (0, 1));
}

/// A folder with these files, which hold their own names, and their list.
fn named_files(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        fs::write(folder.path().join(name), name).unwrap();
    }
    write_sums(folder.path(), names);
    folder
}

#[test]
fn many_false_names_of_an_era_do_not_keep_the_file_of_another_mirror_waiting() {
    let false_names: Vec<String> = (0..50).map(|it| format!("x-00000-000000{it:02}.ere")).collect();
    let false_names: Vec<&str> = false_names.iter().map(String::as_str).collect();
    let lying = named_files(&false_names);
    let honest = named_files(&["x-00000-ffffffff.ere"]);
    // False, or not there at all.
    for is_there in [true, false] {
        let lying = Mirror::of(lying.path(), move |wish| match wish.path.as_str() {
            SUMS => Manner::Well,
            _ if is_there => Manner::Well,
            _ => Manner::Status(404, ""),
        });
        let good = Mirror::good(honest.path());
        let mut fetching = Fetching::new();
        fetching.reader.refused = false_names.iter().map(|it| it.as_bytes().to_vec()).collect();
        fetching.run(&[&lying, &good]).unwrap();
        assert_eq!((lying.count(".ere"), good.count(".ere")), (1, 1), "{:?}", lying.wishes());
        assert_eq!(fetching.reader.passed.len(), 31, "no more are taken from a list");
        let events = fetching.events().join("\n");
        assert!(events.contains("too many names for the same blocks: 18 are ignored"), "{events}");
    }
}

#[test]
fn a_stop_is_heard_while_files_are_passed_over() {
    let folder = files();
    let mirror = Mirror::good(folder.path());
    let mut fetching = Fetching::new();
    fetching.reader.held = [FIRST, SECOND, THIRD].map(str::to_owned).into();
    fetching.reader.stop_when_passed = Some(fetching.stop.clone());
    let failure = fetching.run(&[&mirror]).unwrap_err();
    assert!(matches!(failure, FetchFailure::Stopped), "{failure:?}");
    assert_eq!(fetching.reader.passed, [FIRST]);
}

#[test]
fn a_false_name_of_the_era_in_which_the_chain_ends_is_no_failure() {
    let lying = named_files(&["x-00000-00000000.ere"]);
    let honest = named_files(&["x-00000-ffffffff.ere"]);
    let lying = Mirror::of(lying.path(), |wish| match wish.path.as_str() {
        SUMS => Manner::Well,
        _ => Manner::Status(404, ""),
    });
    let good = Mirror::good(honest.path());
    let mut fetching = Fetching::new();
    fetching.reader.is_chain_end = true;
    // The second run holds the true file.
    for run in 1..=2 {
        let outcome = fetching.run(&[&lying, &good]);
        assert!(outcome.is_ok(), "{run}: {outcome:?}");
        assert_eq!((fetching.reader.taken.len(), good.count(".ere")), (1, 1));
    }
    // Without it there is nothing to take its place.
    let failure = Fetching::new().run(&[&lying]).unwrap_err();
    let is_told = matches!(failure, FetchFailure::Download(DownloadError::NoMirror { .. }));
    assert!(is_told, "{failure:?}");
}

#[test]
fn a_name_that_comes_slowly_is_left_for_another_name_of_the_same_blocks() {
    let (slow, honest) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(slow.path().join("x-00000-00000000.ere"), vec![7; 8 << 20]).unwrap();
    write_sums(slow.path(), &["x-00000-00000000.ere"]);
    fs::write(honest.path().join("x-00000-ffffffff.ere"), vec![8; BYTES]).unwrap();
    write_sums(honest.path(), &["x-00000-ffffffff.ere"]);
    // More than an hour for the file, or a byte and then nothing.
    for manner in [Manner::Slow(20), Manner::Held(1)] {
        let slow = Mirror::of(slow.path(), move |wish| match wish.path.as_str() {
            SUMS => Manner::Well,
            _ => manner.clone(),
        });
        let good = Mirror::good(honest.path());
        let mut fetching = Fetching::new();
        fetching.limits.window = Duration::from_millis(400);
        let outcome = fetching.run(&[&slow, &good]);
        assert!(outcome.is_ok(), "{outcome:?} {:?}", fetching.events());
        let names: Vec<&str> = fetching.reader.taken.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, ["x-00000-ffffffff.ere"], "{:?}", fetching.events());
        assert_eq!((slow.count(".ere"), good.count(".ere")), (1, 1), "{:?}", slow.wishes());
        assert!(!fetching.folder().exists(), "what came of the other one is gone");
        slow.let_go_on();
    }
}

#[test]
fn names_that_are_all_slow_come_to_an_end() {
    let names = ["x-00000-00000000.ere", "x-00000-ffffffff.ere"];
    let folders = names.map(|name| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), vec![7; 20_000]).unwrap();
        write_sums(folder.path(), &[name]);
        folder
    });
    let mirrors = [&folders[0], &folders[1]].map(|folder| {
        Mirror::of(folder.path(), |wish| match wish.path.as_str() {
            SUMS => Manner::Well,
            // Too few for the first window, enough not to stall.
            _ => Manner::Slow(200),
        })
    });
    let mut fetching = Fetching::new();
    fetching.limits.window = Duration::from_millis(400);
    let outcome = fetching.run(&[&mirrors[0], &mirrors[1]]);
    assert!(outcome.is_ok(), "{outcome:?} {:?}", fetching.events());
    assert_eq!(fetching.reader.taken.len(), 1, "{:?}", fetching.events());
    assert_eq!(mirrors[0].count(".ere"), 2, "{:?}", mirrors[0].wishes());
}

#[test]
fn an_end_that_nothing_tells_is_doubted_before_a_mirror_is_demoted() {
    let folder = files();
    fs::remove_file(folder.path().join(SUMS)).unwrap();
    fs::write(folder.path().join("urls.txt"), [FIRST, SECOND, THIRD].join("\n")).unwrap();
    let mirror = Mirror::of(folder.path(), |wish| match (wish.path.as_str(), wish.nth) {
        (SECOND, 0) => Manner::NoLengthCut(100_000),
        (SECOND, _) => Manner::NoLength,
        _ => Manner::Well,
    });
    let mut fetching = Fetching::new();
    let whole = fs::read(folder.path().join(SECOND)).unwrap();
    fetching.reader.refused = vec![whole[..100_000].to_vec()];
    let outcome = fetching.run(&[&mirror]);
    assert!(outcome.is_ok(), "{outcome:?} {:?}", fetching.events());
    fetching.took_all(folder.path());
    let events = fetching.events().join("\n");
    assert!(events.contains("downloaded again") && !events.contains(DEMOTED), "{events}");
}

#[test]
fn every_file_of_an_era_that_could_not_be_had_counts_unless_its_blocks_are_held() {
    let names = [
        "x-00000-00000000-part-0-9.ere",
        "x-00000-11111111-part-0-99.ere",
        "x-00000-22222222-part-0-9.ere",
    ];
    let folder = named_files(&names);
    let mirror = Mirror::of(folder.path(), move |wish| {
        if names[..2].contains(&wish.path.as_str()) {
            Manner::Status(404, "")
        } else {
            Manner::Well
        }
    });
    let mut fetching = Fetching::new();
    let failure = fetching.run(&[&mirror]).unwrap_err();
    let FetchFailure::Download(DownloadError::NoMirror { file, .. }) = failure else {
        panic!("{failure:?}")
    };
    assert_eq!(file, names[1]);
    assert_eq!(fetching.reader.taken.len(), 1);
}
