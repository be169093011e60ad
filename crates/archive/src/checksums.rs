//! Checksum lists beside archives, in both styles that are published: `checksums_sha256.txt`
//! (`hex  name` lines) and `checksums.txt` (one `0x` hash a line, no name: line k belongs to era k).
//!
//! A list comes from the same place as the files, so it detects damage, not forgery. Every block is
//! verified whatever it says.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use alloy_primitives::{B256, hex};
use sha2::{Digest, Sha256};

use super::error::ChecksumListError;
use super::name::ArchiveName;
use super::shown;

pub(super) const NAMED_LIST: &str = "checksums_sha256.txt";
pub(super) const NUMBERED_LIST: &str = "checksums.txt";

/// A list of every era that there will be for a century is shorter.
const LIST_BYTES_MAX: u64 = 16 << 20;
/// Read at a time when a file is hashed.
const CHUNK_BYTES: usize = 1 << 20;

/// The checksums that one file lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChecksumList {
    file: String,
    lines: Lines,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Lines {
    Named(Vec<(String, B256)>),
    Numbered(Vec<B256>),
}

impl ChecksumList {
    /// The lists in a folder; a numbered one only where it can be told whose lines they are, that
    /// is where all archives are of one network and one format.
    pub fn read_in(folder: &Path) -> Result<Vec<Self>, ChecksumListError> {
        let mut lists = Vec::new();
        if let Some((file, text)) = read_if_there(&folder.join(NAMED_LIST))? {
            lists.push(Self::parse_named(file, &text)?);
        }
        if let Some((file, text)) = read_if_there(&folder.join(NUMBERED_LIST))?
            && is_uniform(folder)
        {
            lists.push(Self::parse_numbered(file, &text)?);
        }
        Ok(lists)
    }

    /// Reads `hex  name` lines.
    pub fn parse_named(file: String, text: &str) -> Result<Self, ChecksumListError> {
        let mut named = Vec::new();
        let lines = text.lines().enumerate();
        let said = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        for (position, line) in said {
            let parsed = line.split_once([' ', '\t']).and_then(|(hash, name)| {
                let name = name.trim_start_matches([' ', '\t', '*']).trim_end();
                let name = name.strip_prefix("./").unwrap_or(name);
                Some((name.to_owned(), parse_hash(hash)?)).filter(|(name, _)| !name.is_empty())
            });
            let expected = "64 hex digits, two blanks and a file name";
            named.push(parsed.ok_or_else(|| bad_line(&file, position, line, expected))?);
        }
        Ok(Self { file, lines: Lines::Named(named) })
    }

    /// Reads lines of one hash each.
    pub fn parse_numbered(file: String, text: &str) -> Result<Self, ChecksumListError> {
        let mut numbered = Vec::new();
        // Every line counts: one that was passed over would give the later ones to other eras.
        for (position, line) in text.lines().enumerate() {
            let hash = parse_hash(line.trim_end());
            let expected = "0x and 64 hex digits";
            numbered.push(hash.ok_or_else(|| bad_line(&file, position, line, expected))?);
        }
        Ok(Self { file, lines: Lines::Numbered(numbered) })
    }

    /// The list's own file name, for messages.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The names that a named list speaks of.
    pub fn names(&self) -> impl Iterator<Item = (&str, B256)> {
        let named = match &self.lines {
            Lines::Named(named) => named.as_slice(),
            Lines::Numbered(_) => &[],
        };
        named.iter().map(|(name, hash)| (name.as_str(), *hash))
    }

    /// What the list says about an archive, if it speaks of it.
    #[must_use]
    pub fn find(&self, archive: &Path) -> Option<B256> {
        match &self.lines {
            Lines::Named(named) => {
                let wanted = archive.file_name()?.to_str()?;
                named.iter().find(|(name, _)| name == wanted).map(|(_, hash)| *hash)
            }
            Lines::Numbered(numbered) => {
                let era = usize::try_from(ArchiveName::parse(archive)?.era).ok()?;
                numbered.get(era).copied()
            }
        }
    }
}

/// The SHA-256 of a file.
pub fn hash_file(path: &Path) -> io::Result<B256> {
    let mut file = fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = file.read(&mut chunk)?;
        let Some(filled) = chunk.get(..count).filter(|filled| !filled.is_empty()) else {
            return Ok(B256::from_slice(&hasher.finalize()));
        };
        hasher.update(filled);
    }
}

/// A list's name for messages and its text, if it is there.
pub(super) fn read_if_there(path: &Path) -> Result<Option<(String, String)>, ChecksumListError> {
    let read = || -> io::Result<String> {
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() || metadata.len() > LIST_BYTES_MAX {
            return Err(io::Error::other("not a file, or too large for a checksum list"));
        }
        fs::read_to_string(path)
    };
    match read() {
        Ok(text) => Ok(Some((shown(path), text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ChecksumListError::Io { file: shown(path), error }),
    }
}

/// Whether the archives in a folder are of one network and one format, one for each era: only
/// then is it clear whose a numbered line is.
pub(super) fn is_uniform(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let mut eras = BTreeSet::new();
    let mut kinds = entries
        .filter_map(|entry| ArchiveName::parse(&entry.ok()?.path()))
        .map(|name| (eras.insert(name.era), name.network, name.format.extension()));
    let Some((_, network, extension)) = kinds.next() else { return false };
    kinds.all(|kind| kind == (true, network.clone(), extension))
}

fn parse_hash(text: &str) -> Option<B256> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    hex::decode_to_array::<_, 32>(digits).ok().map(B256::from)
}

fn bad_line(file: &str, position: usize, line: &str, expected: &'static str) -> ChecksumListError {
    // A list that is not one may hold anything: show enough to recognise it.
    let found = line.chars().take(80).collect();
    ChecksumListError::Line {
        file: file.to_owned(),
        line: position.saturating_add(1),
        found,
        expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "9c3f42e0000000000000000000000000000000000000000000000000000000eb";

    #[test]
    fn both_styles_name_their_archives() {
        let named = format!("{HASH}  mainnet-00001-a5364e9a.era1\n");
        let list = ChecksumList::parse_named("list".into(), &named).unwrap();
        assert!(list.find(Path::new("/x/mainnet-00001-a5364e9a.era1")).is_some());
        assert!(list.find(Path::new("/x/mainnet-00000-5ec1ffb8.era1")).is_none());

        // Written with or without a last newline.
        for end in ["", "\n"] {
            let numbered = format!("0x{}\n0x{HASH}{end}", "0".repeat(64));
            let list = ChecksumList::parse_numbered("list".into(), &numbered).unwrap();
            let hash = list.find(Path::new("/x/mainnet-00001-a5364e9a.era1")).unwrap();
            assert_eq!(hex::encode(hash), HASH);
            assert!(list.find(Path::new("/x/mainnet-00002-00000000.era1")).is_none());
        }
    }

    #[test]
    fn a_numbered_list_has_no_lines_to_pass_over_and_a_named_one_has() {
        let numbered = format!("0x{HASH}\n\n0x{HASH}\n");
        let error = ChecksumList::parse_numbered("list".into(), &numbered).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        let named = format!("# by name\n\n{HASH}  ./mainnet-00001-a5364e9a.era1\n");
        let list = ChecksumList::parse_named("list".into(), &named).unwrap();
        assert!(list.find(Path::new("/x/mainnet-00001-a5364e9a.era1")).is_some());
    }

    #[test]
    fn a_line_in_neither_style_is_refused_by_number() {
        let text = format!("0x{HASH}\nnonsense\n");
        let error = ChecksumList::parse_numbered("list".into(), &text).unwrap_err();
        assert_eq!(error.to_string(), r#"list: line 2: "nonsense", expected 0x and 64 hex digits"#);
        let error = ChecksumList::parse_named("list".into(), HASH).unwrap_err();
        assert!(error.to_string().contains("line 1"), "{error}");
    }
}
