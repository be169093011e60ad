//! The list of a mirror: `checksums_sha256.txt`, or `urls.txt` where there is no such list.
//!
//! Index pages are never read: every server writes them otherwise. `checksums.txt` has no names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use alloy_primitives::{B256, hex};
use archive::{ARCHIVE_BLOCKS_MAX, ArchiveName, ChecksumList, ChecksumListError};
use chain::BlockRange;
use reqwest::Url;
use store::disk::is_file_name;
use store::layout::overlap;
use thiserror::Error;

use super::mirror_url::{MirrorUrl, SUMS_NAME, URLS_NAME};

/// Bytes of an archive's name. The name of its part is longer, and systems allow 255.
const NAME_BYTES_MAX: usize = 200;
/// Names of one mirror that begin with the same block. An honest one has a few, by format and content;
/// each name costs a request.
const NAMES_MAX: usize = 32;
/// Hosts that are named in a message.
const HOSTS_SHOWN_MAX: usize = 3;

/// Why a text is no list of archives.
#[derive(Debug, Error)]
pub enum ListFault {
    /// A page for people.
    #[error("{0} is a web page, not a list")]
    WebPage(&'static str),
    /// No text at all.
    #[error("{0} is not text")]
    NotText(&'static str),
    /// Checksums and nothing else.
    #[error("{0} has checksums without file names")]
    Nameless(&'static str),
    /// A line that is none of such a list.
    #[error(transparent)]
    Line(#[from] ChecksumListError),
    /// Two checksums for one file.
    #[error("{list} has two checksums for {name}")]
    Twice {
        /// The list.
        list: &'static str,
        /// The file.
        name: String,
    },
    /// Nothing that could be downloaded.
    #[error("{list} names no archive (NETWORK-ERA-HASH.era1, .ere or .erae)")]
    NoArchive {
        /// The list.
        list: &'static str,
    },
    /// Only files of other hosts.
    #[error("{list} names only files of other hosts: {hosts}; give their address instead")]
    Foreign {
        /// The list.
        list: &'static str,
        /// The hosts.
        hosts: String,
    },
}

/// One archive of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedFile {
    pub(super) archive: ArchiveName,
    pub(super) target: Url,
    pub(super) sha256: Option<B256>,
}

/// What one mirror lists.
#[derive(Clone, Debug, Default)]
pub(super) struct MirrorList {
    /// Archives by their names.
    pub(super) files: BTreeMap<String, ListedFile>,
    /// How many of them begin with a block.
    counts: BTreeMap<u64, usize>,
    /// Lines that were passed over because as many names as are taken begin with the same block.
    pub(super) surplus_count: u64,
}

impl MirrorList {
    /// Adds a file, unless it is there or one too many. Whether another checksum is there for it.
    fn add(&mut self, name: &str, listed: ListedFile) -> bool {
        if let Some(there) = self.files.get(name) {
            return there.sha256 != listed.sha256;
        }
        let first = named_range(&listed.archive).map_or(0, |range| range.first());
        let count = self.counts.entry(first).or_default();
        if *count >= NAMES_MAX {
            self.surplus_count = self.surplus_count.saturating_add(1);
        } else {
            *count = count.saturating_add(1);
            self.files.insert(name.to_owned(), listed);
        }
        false
    }
}

/// Reads `checksums_sha256.txt`.
pub(super) fn parse_sums(mirror: &MirrorUrl, bytes: &[u8]) -> Result<MirrorList, ListFault> {
    let text = check_text(SUMS_NAME, bytes)?;
    let list = ChecksumList::parse_named(SUMS_NAME.to_owned(), text).map_err(|error| {
        if is_nameless(text) { ListFault::Nameless(SUMS_NAME) } else { error.into() }
    })?;
    let mut files = MirrorList::default();
    for (name, sum) in list.names() {
        let Some(archive) = archive_of(name) else { continue };
        let listed = ListedFile { archive, target: mirror.file(name), sha256: Some(sum) };
        if files.add(name, listed) {
            return Err(ListFault::Twice { list: SUMS_NAME, name: name.to_owned() });
        }
    }
    if files.files.is_empty() { Err(ListFault::NoArchive { list: SUMS_NAME }) } else { Ok(files) }
}

/// Reads `urls.txt`.
pub(super) fn parse_urls(mirror: &MirrorUrl, bytes: &[u8]) -> Result<MirrorList, ListFault> {
    let text = check_text(URLS_NAME, bytes)?;
    let mut files = MirrorList::default();
    let mut foreign = BTreeSet::new();
    let lines = text.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let name = line.rsplit('/').next().unwrap_or_default();
        let Some(archive) = archive_of(name) else { continue };
        match mirror.resolve(line) {
            // What follows a `?` or a `#` is no path, though it may look like one.
            Ok(Some(target)) if target.path().rsplit('/').next() == Some(name) => {
                // The first address of a file counts.
                files.add(name, ListedFile { archive, target, sha256: None });
            }
            Ok(_) => {}
            Err(host) => drop(foreign.insert(host)),
        }
    }
    match (files.files.is_empty(), foreign.is_empty()) {
        (false, _) => Ok(files),
        (true, true) => Err(ListFault::NoArchive { list: URLS_NAME }),
        (true, false) => {
            let hosts: Vec<String> = foreign.into_iter().take(HOSTS_SHOWN_MAX).collect();
            Err(ListFault::Foreign { list: URLS_NAME, hosts: hosts.join(", ") })
        }
    }
}

/// The list of a mirror whose address is one archive's.
pub(super) fn of_archive(mirror: &MirrorUrl, name: &str) -> Result<MirrorList, ListFault> {
    let archive = archive_of(name).ok_or(ListFault::NoArchive { list: "its address" })?;
    let listed = ListedFile { archive, target: mirror.file(name), sha256: None };
    let mut files = MirrorList::default();
    files.add(name, listed);
    Ok(files)
}

/// The blocks that a name speaks of: those of a part, or a whole era's. A part outside its era is none.
pub(super) fn named_range(archive: &ArchiveName) -> Option<BlockRange> {
    let first = archive.era.checked_mul(ARCHIVE_BLOCKS_MAX)?;
    let era = BlockRange::from_count(first, ARCHIVE_BLOCKS_MAX)?;
    match archive.part {
        Some(part) if overlap(part, era) == Some(part) => Some(part),
        Some(_) => None,
        None => Some(era),
    }
}

/// What a name says, if it is an archive's, says its blocks, and is safe as a name of a local file.
fn archive_of(name: &str) -> Option<ArchiveName> {
    let is_safe = is_file_name(name) && name.len() <= NAME_BYTES_MAX;
    let archive = ArchiveName::parse(Path::new(name)).filter(|_| is_safe)?;
    let says_blocks = !archive.has_own_era_size && named_range(&archive).is_some();
    Some(archive).filter(|_| says_blocks)
}

fn check_text<'a>(list: &'static str, bytes: &'a [u8]) -> Result<&'a str, ListFault> {
    let text = std::str::from_utf8(bytes).map_err(|_| ListFault::NotText(list))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('<') {
        return Err(ListFault::WebPage(list));
    }
    Ok(text)
}

/// Whether a list has the form of `checksums.txt`.
fn is_nameless(text: &str) -> bool {
    let is_sum = |line: &str| {
        hex::decode_to_array::<_, 32>(line.trim().strip_prefix("0x").unwrap_or(line.trim())).is_ok()
    };
    text.lines().next().is_some_and(is_sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "9c3f42e0000000000000000000000000000000000000000000000000000000eb";

    fn mirror() -> MirrorUrl {
        "http://a.example/era1".parse().unwrap()
    }

    fn names(list: &MirrorList) -> Vec<&str> {
        list.files.keys().map(String::as_str).collect()
    }

    #[test]
    fn a_list_of_checksums_names_archives_and_other_files_are_passed_over() {
        let text = format!(
            "{SUM}  mainnet-00001-a5364e9a.era1\n{SUM}  genesis.json\n{SUM} *./mainnet-00000-5ec1ffb8.era1\n\
             {SUM}  ../mainnet-00002-5ec1ffb8.era1\n{SUM}  dev-00003-00100-deadbeef.ere\n\
             {SUM}  mainnet-99999999999999999999-5ec1ffb8.era1\n{SUM}  .mainnet-00004-5ec1ffb8.era1\n"
        );
        let list = parse_sums(&mirror(), text.as_bytes()).unwrap();
        assert_eq!(names(&list), ["mainnet-00000-5ec1ffb8.era1", "mainnet-00001-a5364e9a.era1"]);
        let listed = &list.files["mainnet-00001-a5364e9a.era1"];
        assert_eq!(listed.sha256.map(hex::encode).as_deref(), Some(SUM));
        assert_eq!(listed.target.as_str(), "http://a.example/era1/mainnet-00001-a5364e9a.era1");
    }

    #[test]
    fn a_list_of_addresses_names_the_archives_of_its_own_host() {
        let text = "# all\nhttp://a.example/era1/mainnet-00000-5ec1ffb8.era1\n\nmainnet-00001-a5364e9a.era1\r\n\
                    /files/mainnet-00002-00000000.era1\nhttp://b.example/mainnet-00003-00000000.era1\nindex.html\n\
                    http://a.example/x?/mainnet-00004-00000000.era1\nhttp://a.example/x#/mainnet-00005-00000000.era1\n";
        let list = parse_urls(&mirror(), text.as_bytes()).unwrap();
        let paths: Vec<&str> = list.files.values().map(|listed| listed.target.path()).collect();
        assert_eq!(
            paths,
            [
                "/era1/mainnet-00000-5ec1ffb8.era1",
                "/era1/mainnet-00001-a5364e9a.era1",
                "/files/mainnet-00002-00000000.era1"
            ]
        );
        assert!(list.files.values().all(|listed| listed.sha256.is_none()));
    }

    #[test]
    fn names_that_begin_with_the_same_block_are_bounded_and_the_rest_is_counted() {
        let line = |it: usize| format!("{SUM}  x-00000-{it:08x}.ere\n");
        let many: String = (0..NAMES_MAX + 7).map(line).collect();
        let sums = format!("{many}{SUM}  x-00001-00000000.ere\n");
        let list = parse_sums(&mirror(), sums.as_bytes()).unwrap();
        assert_eq!((list.files.len(), list.surplus_count), (NAMES_MAX + 1, 7));
        let list = parse_urls(&mirror(), sums.replace(SUM, "").as_bytes()).unwrap();
        assert_eq!((list.files.len(), list.surplus_count), (NAMES_MAX + 1, 7));
    }

    #[test]
    fn the_address_of_one_archive_must_be_one_that_can_be_taken() {
        let list = of_archive(&mirror(), "mainnet-00000-5ec1ffb8.era1").unwrap();
        assert_eq!(names(&list), ["mainnet-00000-5ec1ffb8.era1"]);
        let long = format!("{}-00000-5ec1ffb8.era1", "x".repeat(NAME_BYTES_MAX));
        for name in ["film.era1", "dev-00003-00100-deadbeef.ere", &long] {
            let refused = of_archive(&mirror(), name).unwrap_err().to_string();
            assert!(refused.contains("its address names no archive"), "{name}: {refused}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused_with_the_reason() {
        let other = SUM.replace('9', "8");
        for (text, said) in [
            ("<!DOCTYPE html><html>".to_owned(), "is a web page"),
            (format!("0x{SUM}\n0x{SUM}\n"), "checksums without file names"),
            ("nonsense\n".to_owned(), "line 1"),
            (format!("{SUM}  genesis.json\n"), "names no archive"),
            (String::new(), "names no archive"),
            (
                format!("{SUM}  a-00000-5ec1ffb8.ere\n{other}  a-00000-5ec1ffb8.ere\n"),
                "two checksums for a-00000-5ec1ffb8.ere",
            ),
        ] {
            let refused = parse_sums(&mirror(), text.as_bytes()).unwrap_err().to_string();
            assert!(refused.contains(said), "{refused}");
        }
        let refused = parse_sums(&mirror(), b"\xff\xfe").unwrap_err().to_string();
        assert!(refused.contains("is not text"), "{refused}");
        let foreign = "https://b.example/mainnet-00000-5ec1ffb8.era1\n";
        let refused = parse_urls(&mirror(), foreign.as_bytes()).unwrap_err().to_string();
        assert!(refused.contains("other hosts: b.example"), "{refused}");
    }
}
