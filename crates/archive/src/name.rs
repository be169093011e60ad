//! Archive file names: `<network>-<era>-<hash>[-<profile>]*[-part-<first>-<last>].<ending>`, for both
//! formats.

use std::fmt;
use std::path::Path;

use alloy_primitives::{B256, hex};
use chain::BlockRange;

use super::ARCHIVE_BLOCKS_MAX;
use super::error::ArchiveFault;
use super::layout::Format;

/// What stands before the numbers of the first and the last block of a part.
const PART: &str = "part";

/// A parsed archive name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveName {
    /// The network's name.
    pub network: String,
    /// Which 8192 blocks, counted from genesis.
    pub era: u64,
    /// First bytes of the accumulator root (era1) or of the last block's hash (ere).
    pub short_hash: [u8; 4],
    /// The format that the ending says.
    pub format: Format,
    /// Whether the name says that receipts are left out.
    pub is_without_receipts: bool,
    /// Whether the name says that proofs are left out.
    pub is_without_proofs: bool,
    /// Whether blocks are grouped otherwise than by 8192, as some writers mark by one more
    /// number: then the era says nothing about block numbers.
    pub has_own_era_size: bool,
    /// The blocks, where the name says that they are a part of what its era has.
    pub part: Option<BlockRange>,
}

/// What a file was found to hold, as far as its name can say it.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    /// Its format.
    pub format: Format,
    /// Its blocks.
    pub range: BlockRange,
    /// Whether receipts are in it.
    pub has_receipts: bool,
    /// Whether proofs are in it.
    pub has_proofs: bool,
    /// The accumulator root (era1) or the last block's hash (ere).
    pub hash: B256,
}

impl ArchiveName {
    /// Whether a file with this name is taken for an archive when a folder is searched.
    #[must_use]
    pub fn is_archive(path: &Path) -> bool {
        format_of(path).is_some()
    }

    /// Reads a file name; `None` if it is not in the conventional form. Such a file promises
    /// nothing.
    #[must_use]
    pub fn parse(path: &Path) -> Option<Self> {
        let format = format_of(path)?;
        let stem = path.file_stem()?.to_str()?;
        // A network's own name may hold dashes, so the era is found from its shape: five or more
        // digits followed by eight hex digits.
        let parts: Vec<&str> = stem.split('-').collect();
        for position in 1..parts.len() {
            let (network, rest) = parts.split_at(position);
            let Some((era, rest)) = rest.split_first() else { continue };
            if era.len() < 5 || !era.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            let (own_size, rest) = match rest.split_first() {
                Some((count, after)) if is_era_count(count) && !after.is_empty() => (true, after),
                _ => (false, rest),
            };
            let Some((short_hash, profiles)) = rest.split_first() else { continue };
            let (Ok(short_hash), Ok(era)) = (hex::decode_to_array(short_hash), era.parse()) else {
                continue;
            };
            return Some(Self {
                network: network.join("-"),
                era,
                short_hash,
                format,
                is_without_receipts: profiles.contains(&"noreceipts"),
                is_without_proofs: profiles.contains(&"noproofs"),
                has_own_era_size: own_size,
                part: part_of(profiles),
            });
        }
        None
    }

    /// Holds the name's promises against what the file holds.
    pub fn check(&self, content: Content) -> Result<(), ArchiveFault> {
        let Content { format, range, has_receipts, has_proofs, hash } = content;
        let label =
            |what, expected: String, found: String| ArchiveFault::Label { what, found, expected };
        if format != self.format {
            let expected = self.format.extension().to_owned();
            return Err(label("format", expected, format.extension().to_owned()));
        }
        self.check_range(range)?;
        if hash.get(..4) != Some(&self.short_hash) {
            return Err(label("hash", hex::encode(self.short_hash), hash.to_string()));
        }
        if self.is_without_receipts == has_receipts {
            let word = |held| if held { "with" } else { "without" }.to_owned();
            return Err(label("receipts:", word(!self.is_without_receipts), word(has_receipts)));
        }
        // The other way round is tolerated: files were published unlabelled before proofs were.
        if self.is_without_proofs && has_proofs {
            return Err(label("proofs:", "without".to_owned(), "with".to_owned()));
        }
        Ok(())
    }
}

impl ArchiveName {
    /// Holds the name's promise of blocks against those that the file has.
    pub fn check_range(&self, range: BlockRange) -> Result<(), ArchiveFault> {
        let label =
            |what, expected: String, found: String| ArchiveFault::Label { what, found, expected };
        let era = range.first() / ARCHIVE_BLOCKS_MAX;
        if !self.has_own_era_size && era != self.era {
            let found = format!("{era} (block {})", range.first());
            return Err(label("era", self.era.to_string(), found));
        }
        match self.part.filter(|part| *part != range) {
            Some(part) => Err(label("blocks", part.to_string(), range.to_string())),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ArchiveName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:05}-{}", self.network, self.era, hex::encode(self.short_hash))?;
        if self.is_without_proofs {
            write!(f, "-noproofs")?;
        }
        if self.is_without_receipts {
            write!(f, "-noreceipts")?;
        }
        if let Some(part) = self.part {
            write!(f, "-{PART}-{}-{}", part.first(), part.last())?;
        }
        write!(f, ".{}", self.format.extension())
    }
}

/// The blocks that a name says it is a part of its era by.
fn part_of(profiles: &[&str]) -> Option<BlockRange> {
    let numbers = profiles.get(profiles.iter().position(|word| *word == PART)?..)?;
    let [_, first, last, ..] = numbers else { return None };
    BlockRange::from_ends(first.parse::<u64>().ok()?, last.parse::<u64>().ok()?)
}

fn format_of(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()? {
        "era1" => Some(Format::Era1),
        // ere's name before the specification was settled.
        "ere" | "erae" => Some(Format::Ere),
        _ => None,
    }
}

fn is_era_count(part: &str) -> bool {
    part.len() == 5 && part.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: Option<&str>) {
        let parsed = ArchiveName::parse(Path::new(name));
        let shown = parsed.map(|name| {
            let own_size = if name.has_own_era_size { " own size" } else { "" };
            format!("{} {} {name}{own_size}", name.network, name.era)
        });
        assert_eq!(shown.as_deref(), expected, "{name}");
    }

    #[test]
    fn conventional_names_are_read() {
        check("/x/mainnet-00000-5ec1ffb8.era1", Some("mainnet 0 mainnet-00000-5ec1ffb8.era1"));
        check(
            "hive-net-01896-56a9bb03-noproofs-noreceipts.ere",
            Some("hive-net 1896 hive-net-01896-56a9bb03-noproofs-noreceipts.ere"),
        );
        check("mainnet-02158-00112233.erae", Some("mainnet 2158 mainnet-02158-00112233.ere"));
        check(
            "dev-00003-00100-deadbeef-noproofs.ere",
            Some("dev 3 dev-00003-deadbeef-noproofs.ere own size"),
        );
        check(
            "mainnet-00000-00112233-noproofs-part-100-199.ere",
            Some("mainnet 0 mainnet-00000-00112233-noproofs-part-100-199.ere"),
        );
        check("dev-00000-00112233-part-9-1.ere", Some("dev 0 dev-00000-00112233.ere"));
    }

    #[test]
    fn a_hash_of_digits_is_not_taken_for_a_count() {
        check("dev-00003-00100200.ere", Some("dev 3 dev-00003-00100200.ere"));
    }

    #[test]
    fn other_names_promise_nothing() {
        for name in ["blocks.ere", "mainnet-1-5ec1ffb8.era1", "mainnet-00000.era1", "a.txt", ""] {
            check(name, None);
        }
    }
}
