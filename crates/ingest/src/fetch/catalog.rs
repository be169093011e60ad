//! The union of the mirrors' lists: files of one name are the same file, each with the checksums of its
//! mirrors.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use alloy_primitives::B256;
use archive::{ArchiveName, Format};
use chain::BlockRange;
use chain::trust::Anchors;
use reqwest::Url;

use super::list::{ListFault, MirrorList, named_range, parse_sums, parse_urls};
use super::mirror_url::{MirrorUrl, redacted};
use crate::import::order_files;

/// An archive that mirrors have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorFile {
    /// Its file name.
    pub name: String,
    /// Its name, parsed.
    pub archive: ArchiveName,
    /// The mirrors that have it, in the given order.
    pub sources: Vec<MirrorSource>,
}

/// A mirror that has a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorSource {
    /// The mirror's position.
    pub(super) mirror: usize,
    pub(super) target: Url,
    /// The checksum that this mirror lists.
    pub(super) sha256: Option<B256>,
}

impl MirrorFile {
    /// The blocks that its name speaks of: those of a part, or a whole era's.
    #[must_use]
    pub fn named_range(&self) -> Option<BlockRange> {
        named_range(&self.archive)
    }
}

impl MirrorSource {
    /// Where the file is, without credentials.
    #[must_use]
    pub fn address(&self) -> String {
        redacted(&self.target)
    }
}

/// The files of one mirror's list, `checksums_sha256.txt` or `urls.txt`.
pub fn parse_list(
    mirror: &MirrorUrl,
    has_sums: bool,
    bytes: &[u8],
) -> Result<Vec<MirrorFile>, ListFault> {
    let parse = if has_sums { parse_sums } else { parse_urls };
    Ok(join_lists(vec![(0, parse(mirror, bytes)?)]))
}

/// Joins the lists of all mirrors, each with its mirror's position.
pub(super) fn join_lists(lists: Vec<(usize, MirrorList)>) -> Vec<MirrorFile> {
    let mut files: BTreeMap<String, MirrorFile> = BTreeMap::new();
    for (mirror, list) in lists {
        for (name, listed) in list.files {
            let source = MirrorSource { mirror, target: listed.target, sha256: listed.sha256 };
            let archive = listed.archive;
            let new = || MirrorFile { name: name.clone(), archive, sources: Vec::new() };
            files.entry(name.clone()).or_insert_with(new).sources.push(source);
        }
    }
    files.into_values().collect()
}

impl MirrorFile {
    /// Orders files so that trust reaches each of them, as those of an import are. Of several files that
    /// begin with the same block, those come last whose names contradict a known root, and the one that
    /// most mirrors have comes first, of as many the one of the mirror that was named first: when it
    /// is taken, the others are held.
    #[must_use]
    pub fn order(files: Vec<Self>, coverage: &[BlockRange], anchors: &Anchors) -> Vec<Self> {
        let names = files.iter().map(|file| PathBuf::from(&file.name)).collect();
        let mut by_name: BTreeMap<PathBuf, Self> =
            files.into_iter().map(|file| (PathBuf::from(&file.name), file)).collect();
        let ordered = order_files(names, coverage, anchors);
        let mut ordered: Vec<Self> =
            ordered.iter().filter_map(|path| by_name.remove(path)).collect();
        for alternatives in ordered.chunk_by_mut(Self::begins_with) {
            alternatives.sort_by_key(|file| {
                let preferred = file.sources.iter().map(|source| source.mirror).min();
                (file.contradicts(anchors), Reverse(file.sources.len()), preferred)
            });
        }
        ordered
    }

    /// Whether a file that is held stands for another one that cannot be had: it is of the same era and
    /// has at least the same kind of content. The chain may end in that era, so it need not be whole.
    pub(super) fn stands_for(&self, other: &Self) -> bool {
        let (own, wanted) = (&self.archive, &other.archive);
        // Proof of work may end in an era1 file, and the chain go on.
        let is_of_format = own.format == wanted.format || wanted.format == Format::Era1;
        let has_receipts = !own.is_without_receipts || wanted.is_without_receipts;
        let are_whole = own.part.is_none() && wanted.part.is_none();
        own.network == wanted.network
            && own.era == wanted.era
            && is_of_format
            && has_receipts
            && are_whole
    }

    /// Whether two files begin with the same block, so that one of them may be enough.
    pub(super) fn begins_with(&self, other: &Self) -> bool {
        let first = |file: &Self| file.named_range().map(|range| range.first());
        first(self) == first(other)
    }

    /// Whether the name of an era1 file bears another root than the known one of its epoch.
    fn contradicts(&self, anchors: &Anchors) -> bool {
        let is_whole = self.archive.format == Format::Era1 && self.archive.part.is_none();
        let known = anchors.expected_epoch_root(self.archive.era).filter(|_| is_whole);
        known.is_some_and(|root| !root.starts_with(&self.archive.short_hash))
    }
}

#[cfg(test)]
mod tests {
    use chain::ChainSpec;
    use chain::accumulator::EpochRoots;

    use super::*;

    fn lists(mirrors: &[&[&str]]) -> Vec<(usize, MirrorList)> {
        let url = "http://a.example/".parse().unwrap();
        let parse = |names: &[&str]| parse_urls(&url, names.join("\n").as_bytes()).unwrap();
        mirrors.iter().map(|names| parse(names)).enumerate().collect()
    }

    #[test]
    fn a_file_has_all_mirrors_that_list_it_and_the_most_listed_of_an_era_comes_first() {
        let (one, other) = ("x-00001-aaaaaaaa.ere", "x-00001-bbbbbbbb.ere");
        let first = "x-00000-00000000.ere";
        let files = join_lists(lists(&[&[one, first], &[other, first], &[other]]));
        let ordered = MirrorFile::order(files, &[], &Anchors::none());
        let told: Vec<(&str, Vec<usize>)> = ordered
            .iter()
            .map(|file| (file.name.as_str(), file.sources.iter().map(|it| it.mirror).collect()))
            .collect();
        assert_eq!(told, [(first, vec![0, 1]), (other, vec![1, 2]), (one, vec![0])]);
    }

    #[test]
    fn of_two_names_for_an_era_the_one_of_the_mirror_named_first_comes_first() {
        let (one, other) = ("x-00001-aaaaaaaa.ere", "x-00001-bbbbbbbb.ere");
        for names in [[one, other], [other, one]] {
            let files = join_lists(lists(&[&names[..1], &names[1..]]));
            let ordered = MirrorFile::order(files, &[], &Anchors::none());
            assert_eq!(ordered[0].name, names[0]);
        }
    }

    #[test]
    fn a_file_stands_for_another_of_its_era_with_no_more_content() {
        let held = |held: &str, wanted: &str| {
            let files = join_lists(lists(&[&[held], &[wanted]]));
            let find = |name: &str| files.iter().find(|file| file.name == name).unwrap();
            find(held).stands_for(find(wanted))
        };
        assert!(held("x-00001-aaaaaaaa.ere", "x-00001-bbbbbbbb.ere"));
        assert!(held("x-00001-aaaaaaaa.ere", "x-00001-bbbbbbbb.era1"));
        assert!(!held("x-00001-aaaaaaaa.era1", "x-00001-bbbbbbbb.ere"));
        assert!(!held("x-00001-aaaaaaaa.ere", "y-00001-bbbbbbbb.ere"));
        assert!(!held("x-00001-aaaaaaaa.ere", "x-00002-bbbbbbbb.ere"));
        assert!(!held("x-00000-aaaaaaaa-part-0-9.ere", "x-00000-bbbbbbbb-part-0-99.ere"));
        assert!(!held("x-00001-aaaaaaaa-noreceipts.ere", "x-00001-bbbbbbbb.ere"));
    }

    #[test]
    fn names_that_contradict_a_known_root_come_last() {
        let names = ["mainnet-00000-00000000.era1", "mainnet-00000-5ec1ffb8.era1"];
        let files = || join_lists(lists(&[&names, &names[..1]]));
        let spec = ChainSpec::known("mainnet").unwrap();
        let anchors = Anchors::of(&spec).with_epoch_roots(EpochRoots::mainnet());
        let ordered = |anchors| {
            let ordered = MirrorFile::order(files(), &[], anchors).into_iter();
            ordered.map(|file| file.name).collect::<Vec<_>>()
        };
        assert_eq!(ordered(&anchors), [names[1], names[0]]);
        assert_eq!(ordered(&Anchors::none()), names);
    }
}
