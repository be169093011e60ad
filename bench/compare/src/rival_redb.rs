//! redb: a B+tree in one file, one for rows and one for hashes.

use std::path::Path;

use anyhow::{Context as _, Result};
use bench_store::clock::process_cpu;
use redb::{Database, DatabaseError, ReadOnlyTable, ReadableDatabase as _, TableDefinition};
use zstd::bulk::Decompressor;

use crate::contents::Contents;
use crate::rival::{Cost, Loaded, Rival, file_bytes, inflate, short, timed};

const INDEX: TableDefinition<'_, &[u8; 32], u64> = TableDefinition::new("index");
const SHORT_INDEX: TableDefinition<'_, u64, u64> = TableDefinition::new("index");
const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");
/// Enough for everything: reads are to be warm.
const CACHE_BYTES: usize = 2 << 30;

struct Redb {
    index: ReadOnlyTable<&'static [u8; 32], u64>,
    rows: ReadOnlyTable<u64, &'static [u8]>,
    inflater: Decompressor<'static>,
    // Dropped after the tables that read from them.
    _databases: [Database; 2],
}

/// Loads the contents in order, and gives back what the files do not need.
pub(crate) fn load(contents: &Contents, folder: &Path) -> Result<Loaded> {
    let (index_path, rows_path) = (folder.join("index.redb"), folder.join("rows.redb"));
    let index_spent = timed(process_cpu, || load_index(contents, &index_path))?;
    let rows_spent = timed(process_cpu, || load_rows(contents, &rows_path))?;
    let index = Cost { bytes: file_bytes(&index_path)?, spent: index_spent };
    let row_bytes = file_bytes(&rows_path)?.saturating_add(contents.dictionary_bytes());
    let rows = Cost { bytes: row_bytes, spent: rows_spent };

    let databases = [open(&index_path)?, open(&rows_path)?];
    let [of_index, of_rows] = &databases;
    let store = Redb {
        index: of_index.begin_read()?.open_table(INDEX)?,
        rows: of_rows.begin_read()?.open_table(ROWS)?,
        inflater: contents.decompressor()?,
        _databases: databases,
    };
    Ok(Loaded { title: "redb", index, rows, store: Box::new(store) })
}

/// Bytes of an index by the first eight bytes of each hash. Which of two equal ones is kept is no
/// matter: only bytes are asked for.
pub(crate) fn short_index_bytes(contents: &Contents, folder: &Path) -> Result<u64> {
    let path = folder.join("short.redb");
    let mut database = open(&path)?;
    let writing = database.begin_write()?;
    {
        let mut table = writing.open_table(SHORT_INDEX)?;
        for (hash, ordinal) in contents.sorted_hashes() {
            table.insert(short(&hash), ordinal)?;
        }
    }
    writing.commit()?;
    database.compact()?;
    drop(database);
    file_bytes(&path)
}

fn load_index(contents: &Contents, path: &Path) -> Result<()> {
    let mut database = open(path)?;
    let writing = database.begin_write()?;
    {
        let mut table = writing.open_table(INDEX)?;
        for (hash, ordinal) in contents.sorted_hashes() {
            table.insert(&hash, ordinal)?;
        }
    }
    writing.commit()?;
    database.compact()?;
    Ok(())
}

fn load_rows(contents: &Contents, path: &Path) -> Result<()> {
    let mut deflater = contents.compressor()?;
    let mut database = open(path)?;
    let writing = database.begin_write()?;
    {
        let mut table = writing.open_table(ROWS)?;
        for (ordinal, row) in (0..).zip(contents.rows()) {
            table.insert(ordinal, deflater.compress(row)?.as_slice())?;
        }
    }
    writing.commit()?;
    database.compact()?;
    Ok(())
}

fn open(path: &Path) -> Result<Database, DatabaseError> {
    Database::builder().set_cache_size(CACHE_BYTES).create(path)
}

impl Rival for Redb {
    fn find(&self, hash: &[u8; 32]) -> Result<Option<u64>> {
        Ok(self.index.get(hash)?.map(|ordinal| ordinal.value()))
    }

    fn read(&mut self, ordinal: u64, row: &mut Vec<u8>) -> Result<()> {
        let bytes = self.rows.get(ordinal)?;
        let bytes = bytes.with_context(|| format!("redb has no row {ordinal}"))?;
        inflate(&mut self.inflater, bytes.value(), row)
    }
}
