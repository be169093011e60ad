//! RocksDB: sorted tables, one database for rows and one for hashes, fully compacted.
//!
//! No filters: every hash that is asked for is there, and they would only take bytes.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use bench_store::clock::process_cpu;
use rocksdb::{
    BlockBasedOptions, BottommostLevelCompaction, Cache, CompactOptions, DB, DBCompressionType,
    Options, WaitForCompactOptions, WriteBatch, WriteOptions,
};
use zstd::bulk::Decompressor;

use crate::contents::{Contents, ZSTD_LEVEL};
use crate::rival::{Cost, Loaded, Rival, file_bytes, inflate, short, timed};

/// Enough for everything: reads are to be warm.
const CACHE_BYTES: usize = 2 << 30;
/// Its own default. A cache keeps inflated blocks, and no cache holds a chain's history inflated;
/// what is not in it comes from the system's memory of files, as all of ours does.
const INFLATED_CACHE_BYTES: usize = 32 << 20;
const BATCH_ROWS: usize = 10_000;
/// Blocks of 4 KiB, its default, leave zstd little to find; of 64 KiB, each read inflates too much.
const INFLATED_BLOCK_BYTES: usize = 16 << 10;
/// zstd's own default window and strategy.
const ZSTD_WINDOW_BITS: i32 = -14;
const ZSTD_STRATEGY: i32 = 0;
/// Dictionaries are of its own training.
const ZSTD_DICTIONARY_BYTES: i32 = 112 << 10;
const ZSTD_TRAINING_BYTES: i32 = 100 * ZSTD_DICTIONARY_BYTES;

/// Who compresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// We do, row by row.
    Rows,
    /// RocksDB does, block by block.
    Blocks,
}

struct Rocks {
    index: DB,
    rows: DB,
    /// For rows that are compressed one by one.
    inflater: Option<Decompressor<'static>>,
}

/// Loads the contents in order and compacts them.
pub(crate) fn load(contents: &Contents, folder: &Path, compression: Compression) -> Result<Loaded> {
    let (index_path, rows_path) = (folder.join("index"), folder.join("rows"));
    let of_index = options(compression, CACHE_BYTES);
    let of_rows = match compression {
        Compression::Rows => options(compression, CACHE_BYTES),
        Compression::Blocks => options(compression, INFLATED_CACHE_BYTES),
    };
    let index_spent = timed(process_cpu, || {
        let mut index = Loading::begin(&index_path, &of_index)?;
        for (hash, ordinal) in contents.sorted_hashes() {
            index.put(&hash, &ordinal.to_be_bytes())?;
        }
        index.finish()
    })?;
    let rows_spent = timed(process_cpu, || {
        let mut rows = Loading::begin(&rows_path, &of_rows)?;
        let mut deflater = contents.compressor()?;
        for (ordinal, row) in (0_u64..).zip(contents.rows()) {
            match compression {
                Compression::Rows => rows.put(&ordinal.to_be_bytes(), &deflater.compress(row)?)?,
                Compression::Blocks => rows.put(&ordinal.to_be_bytes(), row)?,
            }
        }
        rows.finish()
    })?;
    let index = Cost { bytes: table_bytes(&index_path)?, spent: index_spent };
    let row_bytes = table_bytes(&rows_path)?;
    let (title, row_bytes, inflater) = match compression {
        Compression::Rows => {
            let row_bytes = row_bytes.saturating_add(contents.dictionary_bytes());
            ("RocksDB", row_bytes, Some(contents.decompressor()?))
        }
        Compression::Blocks => ("RocksDB, its own zstd", row_bytes, None),
    };
    let rows = Cost { bytes: row_bytes, spent: rows_spent };
    let store = Rocks {
        index: DB::open_for_read_only(&of_index, &index_path, false)?,
        rows: DB::open_for_read_only(&of_rows, &rows_path, false)?,
        inflater,
    };
    Ok(Loaded { title, index, rows, store: Box::new(store) })
}

/// Bytes of an index by the first eight bytes of each hash. Which of two equal ones is kept is no
/// matter: only bytes are asked for.
pub(crate) fn short_index_bytes(
    contents: &Contents,
    folder: &Path,
    compression: Compression,
) -> Result<u64> {
    let path = folder.join("short");
    let mut index = Loading::begin(&path, &options(compression, CACHE_BYTES))?;
    for (hash, ordinal) in contents.sorted_hashes() {
        index.put(&short(&hash).to_be_bytes(), &ordinal.to_be_bytes())?;
    }
    index.finish()?;
    table_bytes(&path)
}

impl Rival for Rocks {
    fn find(&self, hash: &[u8; 32]) -> Result<Option<u64>> {
        let Some(found) = self.index.get_pinned(hash)? else { return Ok(None) };
        Ok(Some(u64::from_be_bytes(found.as_ref().try_into()?)))
    }

    fn read(&mut self, ordinal: u64, row: &mut Vec<u8>) -> Result<()> {
        let found = self.rows.get_pinned(ordinal.to_be_bytes())?;
        let bytes = found.with_context(|| format!("RocksDB has no row {ordinal}"))?;
        if let Some(inflater) = &mut self.inflater {
            return inflate(inflater, &bytes, row);
        }
        row.clear();
        row.extend_from_slice(&bytes);
        Ok(())
    }
}

/// A database that is being filled in order.
struct Loading {
    db: DB,
    batch: WriteBatch,
}

impl Loading {
    fn begin(path: &Path, options: &Options) -> Result<Self> {
        Ok(Self { db: DB::open(options, path)?, batch: WriteBatch::default() })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.put(key, value);
        if self.batch.len() >= BATCH_ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let mut how = WriteOptions::default();
        how.disable_wal(true);
        Ok(self.db.write_opt(std::mem::take(&mut self.batch), &how)?)
    }

    fn finish(mut self) -> Result<()> {
        self.write()?;
        self.db.flush()?;
        let mut how = CompactOptions::default();
        how.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
        self.db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &how);
        Ok(self.db.wait_for_compact(&WaitForCompactOptions::default())?)
    }
}

/// Bytes of the sorted tables of a database. Its logs and settings would weigh in small ones only.
fn table_bytes(folder: &Path) -> Result<u64> {
    let mut sum = 0_u64;
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sst") {
            sum = sum.saturating_add(file_bytes(&path)?);
        }
    }
    Ok(sum)
}

fn options(compression: Compression, cache_bytes: usize) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(cache_bytes));
    let mut options = Options::default();
    options.create_if_missing(true);
    match compression {
        Compression::Rows => options.set_compression_type(DBCompressionType::None),
        Compression::Blocks => {
            table.set_block_size(INFLATED_BLOCK_BYTES);
            options.set_compression_type(DBCompressionType::Zstd);
            options.set_compression_options(
                ZSTD_WINDOW_BITS,
                ZSTD_LEVEL,
                ZSTD_STRATEGY,
                ZSTD_DICTIONARY_BYTES,
            );
            options.set_zstd_max_train_bytes(ZSTD_TRAINING_BYTES);
        }
    }
    options.set_block_based_table_factory(&table);
    options
}
