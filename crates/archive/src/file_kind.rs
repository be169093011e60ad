//! The kind of a file by its first bytes, for error messages about files that are not archives.

use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use alloy_primitives::hex;

/// First bytes that tell the kind.
const BEGIN_BYTES: usize = 8;
/// How every e2store file begins: an empty version entry.
pub(crate) const E2STORE_BEGIN: [u8; BEGIN_BYTES] = [0x65, 0x32, 0, 0, 0, 0, 0, 0];

/// The first bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBegin(Vec<u8>);

impl FileBegin {
    /// Of what was read already.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(bytes.get(..BEGIN_BYTES).unwrap_or(bytes).to_vec())
    }

    /// Reads no more than the first bytes.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut begin = Vec::with_capacity(BEGIN_BYTES);
        let bytes_max = u64::try_from(BEGIN_BYTES).unwrap_or(u64::MAX);
        fs::File::open(path)?.take(bytes_max).read_to_end(&mut begin)?;
        Ok(Self(begin))
    }

    /// Whether the rest may be an archive.
    #[must_use]
    pub fn is_e2store(&self) -> bool {
        self.0 == E2STORE_BEGIN
    }

    /// Whether it is compressed with gzip, zstd, xz, bzip2 or zip.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        let magics: [&[u8]; 5] = [
            &[0x1f, 0x8b],
            &[0x28, 0xb5, 0x2f, 0xfd],
            &[0xfd, b'7', b'z', b'X', b'Z'],
            b"BZh",
            b"PK\x03",
        ];
        magics.iter().any(|magic| self.0.starts_with(magic))
    }
}

impl fmt::Display for FileBegin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begin = self.0.as_slice();
        let text = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin).trim_ascii_start();
        let is_letter = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace();
        f.write_str(match text.first() {
            _ if begin.is_empty() => "it is empty",
            _ if self.is_e2store() => "it looks like an archive",
            _ if self.is_compressed() => "it looks compressed",
            _ if begin == b"version " => "it looks like a pointer of Git LFS, not the file itself",
            Some(b'{' | b'[') => "it looks like JSON",
            Some(b'<') => "it looks like a web page",
            _ if text.iter().all(is_letter) => "it looks like text",
            _ => return write!(f, "it begins with {}", hex::encode_prefixed(begin)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_first_bytes() {
        for (bytes, expected) in [
            (&b""[..], "it is empty"),
            (b"e2\0\0\0\0\0\0e2", "it looks like an archive"),
            (b"\x1f\x8b\x08\0\0\0\0\0", "it looks compressed"),
            (b"version https://git-lfs", "it looks like a pointer of Git LFS, not the file itself"),
            (b"{}", "it looks like JSON"),
            (b"\xef\xbb\xbf\n[1]", "it looks like JSON"),
            (b" <!DOCTYPE html>", "it looks like a web page"),
            (b"9c3f42e0  x.era1", "it looks like text"),
            ("\u{e9}t\u{e9}".as_bytes(), "it looks like text"),
            (b"\x7fELF\x02\x01\x01\0", "it begins with 0x7f454c4602010100"),
            (b"\0", "it begins with 0x00"),
        ] {
            assert_eq!(FileBegin::of(bytes).to_string(), expected, "{bytes:?}");
        }
    }
}
