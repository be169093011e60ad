//! Blocks as lines of JSON: consensus bytes in hex, one object a block.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use alloy_primitives::{Bloom, hex};
use archive::unfinished::{Unfinished, remove_abandoned};
use chain::{BlockRange, Receipt};
use store::StoredBlock;

use super::ExportError;

/// The file of these blocks. As many digits as segments have, so that names sort like numbers.
pub(super) fn file_name(network: &str, range: BlockRange) -> String {
    format!("{network}-{:010}-{:010}.ndjson", range.first(), range.last())
}

/// One block as one line: number, hash, and consensus bytes in hex. Transactions and receipts are in
/// their EIP-2718 form, ommers and withdrawals are RLP lists.
pub(super) fn line(block: StoredBlock, has_receipts: bool) -> String {
    let transactions: Vec<_> = block.rows.iter().map(|row| quoted(row.encoded)).collect();
    let senders: Vec<_> = block.rows.iter().map(|row| quoted(row.sender.as_slice())).collect();
    let encoded = |(receipt, bloom): (Receipt, Bloom)| {
        let mut encoded = Vec::new();
        receipt.encode_2718(&bloom, &mut encoded);
        quoted(&encoded)
    };
    let receipts: Vec<_> =
        block.receipts().into_iter().zip(block.rows.blooms()).map(encoded).collect();
    let StoredBlock { header, extras, .. } = block;
    let list = |items: &[String]| format!("[{}]", items.join(","));
    let receipts = if has_receipts { list(&receipts) } else { "null".to_owned() };
    let withdrawals = extras.withdrawals.map_or_else(|| "null".to_owned(), |rlp| quoted(&rlp));
    let (number, hash) = (header.number, header.hash);
    let parts = [
        ("header", quoted(&header.rlp)),
        ("transactions", list(&transactions)),
        ("senders", list(&senders)),
        ("ommers", quoted(&extras.ommers)),
        ("withdrawals", withdrawals),
        ("receipts", receipts),
    ];
    let parts = parts.map(|(key, value)| format!(",\"{key}\":{value}")).concat();
    format!("{{\"number\":{number},\"hash\":\"{hash}\"{parts}}}\n")
}

fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", hex::encode_prefixed(bytes))
}

/// A file under way; it is removed unless it is finished.
#[derive(Debug)]
pub(super) struct LinesFile {
    path: PathBuf,
    unfinished: Unfinished,
    file: BufWriter<File>,
    bytes: u64,
}

impl LinesFile {
    /// A file that will be at `path`, which is in `folder`.
    pub(super) fn create(folder: &Path, path: PathBuf) -> Result<Self, ExportError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error| ExportError::Io { path, error }
        };
        fs::create_dir_all(folder).map_err(at(folder))?;
        remove_abandoned(folder).map_err(at(folder))?;
        let (unfinished, file) = Unfinished::create(folder).map_err(at(folder))?;
        let file = BufWriter::with_capacity(1 << 18, file);
        Ok(Self { path, unfinished, file, bytes: 0 })
    }

    pub(super) fn push(&mut self, line: &str) -> Result<(), ExportError> {
        self.bytes = self.bytes.saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX));
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|error| ExportError::Io { path: self.path.clone(), error })
    }

    /// Makes the file durable under its name; where it is, and how long.
    pub(super) fn finish(mut self) -> Result<(PathBuf, u64), ExportError> {
        let finished = (|| {
            self.file.flush()?;
            self.file.get_ref().sync_all()?; //          1. the contents are durable
            self.unfinished.keep_as(&self.path)?; //     2. the name appears
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all() // 3. the name is durable
        })();
        let path = self.path.clone();
        match finished {
            Ok(()) => Ok((path, self.bytes)),
            Err(error) => Err(ExportError::Io { path, error }),
        }
    }
}
