//! A picture of the store that never changes: one request uses one from beginning to end.
//!
//! Reads await only bytes that are not in memory: a warm one is done when it is first polled.

mod far_reads;
mod hash_keys;
mod log_rows;
mod log_search;
mod lookup;
mod records;
mod sealed;
mod shown_files;
mod shown_head;
mod trust;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use alloy_primitives::B256;
use chain::trust::TrustStatus;
use chain::{BlockNumber, BlockRange, Candidate};
use segment::{BlockExtras, BlockPlace, RowParts, TxIndex, TxOrdinal};

use crate::block_id::BlockId;
use crate::disk::DiskError;
use crate::error::StoreError;
use crate::files::{Files, OpenSegment, RunFile, SegmentFile};
use crate::finality::Finality;
use crate::head::{HeadBlock, HeadView};
use crate::layout::{join_ranges, subtract};
use crate::manifest::{Manifest, Network};
use crate::missing_file::MissingFile;
use crate::published::AdmittedHistory;
use crate::read::fetch;
use crate::reader::Reader;

use records::extras_of_head;
use sealed::{Sealed, SealedPiece};
use shown_head::Departure;

pub use log_rows::LoggedRows;
pub use log_search::LogSearch;
pub use records::{BlockFacts, HashedBlock, StoredBlock, StoredHeader, StoredTransaction};
pub use shown_files::OpenTails;

/// What can be read, as it is at one moment.
#[derive(Debug)]
pub struct View {
    files: Arc<Files>,
    /// What the folder itself lists.
    manifest: Arc<Manifest>,
    /// What others have published.
    published: Arc<AdmittedHistory>,
    sealed: Arc<Sealed>,
    /// The part of the whole head that is of the sealed chain.
    head: Arc<HeadView>,
    whole_head: Arc<HeadView>,
    departure: Option<Departure>,
    /// All that can be read: it is asked for by every request that names a number.
    coverage: Vec<BlockRange>,
    /// Found out when it is first asked.
    coverage_receipts: OnceLock<Vec<BlockRange>>,
    /// What the writer was told, if it follows somebody.
    finality: Finality,
    /// Found out when it is first asked.
    finalized: OnceLock<Option<BlockNumber>>,
}

/// A block of a segment whose rows are still to be read.
struct FetchedBlock {
    header: StoredHeader,
    extras: BlockExtras,
    file: Arc<SegmentFile>,
    open: Arc<OpenSegment>,
    rows: BlockPlace,
}

impl View {
    pub(crate) fn new(
        files: Arc<Files>,
        manifest: Manifest,
        published: Arc<AdmittedHistory>,
        head: Arc<HeadView>,
        finality: Finality,
    ) -> Self {
        let manifest = Arc::new(manifest);
        let sealed = Arc::new(Sealed::of(&files, Arc::clone(&manifest), &published));
        let view = Self {
            files,
            manifest,
            published,
            sealed,
            head: Arc::default(),
            whole_head: Arc::default(),
            departure: None,
            coverage: Vec::new(),
            coverage_receipts: OnceLock::new(),
            finality,
            finalized: OnceLock::new(),
        };
        view.place_head(head)
    }

    /// The same with another manifest. Files that are not listed any more go when the last view
    /// that lists them does.
    pub(crate) fn with_manifest(&self, manifest: Manifest) -> Self {
        let (files, published) = (Arc::clone(&self.files), Arc::clone(&self.published));
        Self::new(files, manifest, published, Arc::clone(&self.whole_head), self.finality)
    }

    /// The same beside other published history.
    pub(crate) fn with_published(&self, published: Arc<AdmittedHistory>) -> Self {
        let (files, manifest) = (Arc::clone(&self.files), Manifest::clone(&self.manifest));
        Self::new(files, manifest, published, Arc::clone(&self.whole_head), self.finality)
    }

    /// What others have published.
    pub(crate) fn published(&self) -> &Arc<AdmittedHistory> {
        &self.published
    }

    /// The same with what is known now of files that cannot be read.
    pub(crate) fn relisted(&self) -> Self {
        self.with_manifest(Manifest::clone(&self.manifest))
    }

    /// Whether a file is a listed segment or lookup run, of the folder or published.
    #[must_use]
    pub fn lists(&self, file_name: &str) -> bool {
        self.sealed.lists(file_name)
    }

    /// Whether the folder itself lists a file.
    pub(crate) fn lists_itself(&self, file_name: &str) -> bool {
        self.manifest.lists_file(file_name)
    }

    /// The listed files that cannot be read, and published manifests that are not believed, by name.
    #[must_use]
    pub fn missing(&self) -> &[MissingFile] {
        self.sealed.missing()
    }

    /// Which chain it is, as far as the folder or what is published tells.
    #[must_use]
    pub fn network(&self) -> Network {
        let own = self.manifest.network().clone();
        let others = &self.published.network;
        Network {
            name: own.name.or_else(|| others.name.clone()),
            chain_id: own.chain_id.or(others.chain_id),
            genesis_hash: own.genesis_hash.or(others.genesis_hash),
        }
    }

    /// The same with another head, and what is final of it.
    pub(crate) fn with_head(&self, head: Arc<HeadView>, finality: Finality) -> Self {
        let view = Self {
            files: Arc::clone(&self.files),
            manifest: Arc::clone(&self.manifest),
            published: Arc::clone(&self.published),
            sealed: Arc::clone(&self.sealed),
            head: Arc::default(),
            whole_head: Arc::default(),
            departure: None,
            coverage: Vec::new(),
            coverage_receipts: OnceLock::new(),
            finality,
            finalized: OnceLock::new(),
        };
        view.place_head(head)
    }

    /// Marks the files that `next` does not list: they go with the last view that does. By name, since
    /// another entry may list the same file.
    pub(crate) fn supersede_unlisted(&self, next: &Self) {
        let segments = next.manifest.segments().iter().map(|entry| &entry.file_name);
        let runs = next.manifest.runs().iter().map(|entry| &entry.file_name);
        let listed: HashSet<&String> = segments.chain(runs).collect();
        for file in
            self.sealed.own_segments().iter().filter(|file| !listed.contains(&file.entry.file_name))
        {
            file.supersede();
        }
        for file in
            self.sealed.own_runs().iter().filter(|file| !listed.contains(&file.entry.file_name))
        {
            file.supersede();
        }
    }

    /// What is listed.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The newest blocks, as far as they are of the sealed chain.
    #[must_use]
    pub fn head(&self) -> &HeadView {
        &self.head
    }

    /// What the writer was told of finality.
    #[must_use]
    pub fn finality(&self) -> Finality {
        self.finality
    }

    /// The ranges of blocks that can be read, lowest first.
    #[must_use]
    pub fn coverage(&self) -> &[BlockRange] {
        &self.coverage
    }

    /// The ranges of blocks that were held once and cannot be read any more, lowest first.
    #[must_use]
    pub fn lost(&self) -> Vec<BlockRange> {
        if self.manifest.lost().is_empty() && self.missing().is_empty() {
            return Vec::new(); // as a rule
        }
        let missing = self.missing().iter().filter_map(|it| it.blocks);
        let lost = join_ranges(self.manifest.lost().iter().copied().chain(missing));
        subtract(&lost, &self.coverage)
    }

    /// The ranges of blocks whose receipts can be read too.
    #[must_use]
    pub fn coverage_receipts(&self) -> &[BlockRange] {
        self.coverage_receipts.get_or_init(|| self.sealed.receipts_with_head(&self.head))
    }

    /// The ranges of blocks whose logs are found without reading all of them: by the log index, and
    /// above the sealed blocks by blooms.
    #[must_use]
    pub fn coverage_logs(&self) -> Vec<BlockRange> {
        subtract(self.coverage_receipts(), self.sealed.unindexed())
    }

    /// The number of the highest block.
    #[must_use]
    pub fn tip(&self) -> Option<BlockNumber> {
        self.coverage().last().map(|range| BlockNumber(range.last()))
    }

    /// The number of the newest block that is not expected to change: what the writer was told, and
    /// whatever is final.
    #[must_use]
    pub fn safe(&self) -> Option<BlockNumber> {
        self.canonical(self.finality.safe).max(self.finalized())
    }

    /// The number of the newest block that is final: what the writer was told, never lower than what
    /// is sealed. In a store that follows nobody it is the last of the highest range, unless nothing
    /// says that this range is of the chain.
    #[must_use]
    pub fn finalized(&self) -> Option<BlockNumber> {
        *self.finalized.get_or_init(|| {
            let told = self.canonical(self.finality.finalized);
            if told.is_some() {
                // What others published is final on their word, not on that of whoever is followed.
                let sealed = self.manifest.segments().last();
                return told.max(sealed.map(|entry| BlockNumber(entry.range.last())));
            }
            let (range, status) = self.statuses_with(None).ok()?.into_iter().next_back()?;
            // Nobody says that a head's blocks are final because others have published blocks beside them.
            let first = self.head.blocks().first().filter(|_| self.sealed.is_union());
            let below = first.and_then(|block| block.number().parent());
            let last = below.map_or(range.last(), |below| below.get().min(range.last()));
            let is_of_chain = matches!(status, TrustStatus::Anchored(_) | TrustStatus::Linked(_));
            is_of_chain.then_some(BlockNumber(last))
        })
    }

    /// The file that holds a block; for messages.
    #[must_use]
    pub fn file_of(&self, number: BlockNumber) -> String {
        let entry = self.sealed.find_entry(number);
        entry.map_or_else(|| "head".to_owned(), |entry| entry.file_name.clone())
    }

    /// The head's block of this number, unless a segment has the receipts that the head's lacks.
    fn head_block(&self, number: BlockNumber) -> Option<&Arc<HeadBlock>> {
        let block = self.head.find_block(number)?;
        if block.block().receipts.is_some() {
            return Some(block);
        }
        self.unsealed_block(number)
    }

    /// The head's block of this number, unless a segment has it with its receipts.
    #[must_use]
    pub fn unsealed_block(&self, number: BlockNumber) -> Option<&Arc<HeadBlock>> {
        let block = self.head.find_block(number)?;
        let sealed = self.sealed.find_entry(number).filter(|entry| entry.has_receipts);
        sealed.is_none().then_some(block)
    }

    /// A block's header.
    pub async fn read_header(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
    ) -> Result<Option<StoredHeader>, StoreError> {
        if let Some(block) = self.head_block(number) {
            return Ok(Some(StoredHeader::of_head(block)));
        }
        let Some((file, open)) = self.open_at(reader, number).await? else { return Ok(None) };
        self.header_in(reader, &file, &open, number).await
    }

    /// The hash of a block.
    pub async fn read_hash(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
    ) -> Result<Option<B256>, StoreError> {
        if let Some(block) = self.head.find_block(number) {
            return Ok(Some(block.hash()));
        }
        self.read_sealed_hash(reader, number).await
    }

    /// The hash of a block of a segment, whatever the head holds.
    pub(crate) async fn read_sealed_hash(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
    ) -> Result<Option<B256>, StoreError> {
        // Known without a read where a segment ends.
        // Known also of one that cannot be read: it is sealed all the same.
        let own = || self.manifest.find_segment(number).map(|(_, entry)| entry);
        let entry = self.sealed.find_entry(number).or_else(own);
        if let Some(entry) = entry.filter(|entry| entry.range.last() == number.get()) {
            return Ok(Some(entry.last_hash));
        }
        let open = self.open_at(reader, number).await?;
        Ok(open.and_then(|(_, open)| open.segment.find_hash(number)))
    }

    /// A whole block; receipts where they are held and wanted.
    pub async fn read_block(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
        wanted: RowParts,
    ) -> Result<Option<StoredBlock>, StoreError> {
        if let Some(block) = self.head_block(number) {
            return Ok(Some(StoredBlock::of_head(block)));
        }
        let Some(block) = self.fetch_block(reader, number).await? else { return Ok(None) };
        let FetchedBlock { header, extras, file, open, rows } = block;
        let Reader { inflater, page, .. } = reader;
        let rows = open.segment.read_block(inflater, &rows, page, wanted);
        let rows = rows.map_err(|cause| file.corrupt(cause))?;
        Ok(Some(StoredBlock { header, extras, rows }))
    }

    /// A whole block with the hashes of its transactions.
    pub async fn read_hashes(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
    ) -> Result<Option<HashedBlock>, StoreError> {
        if let Some(block) = self.head_block(number) {
            return Ok(Some(HashedBlock::of_head(block)));
        }
        let Some(block) = self.fetch_block(reader, number).await? else { return Ok(None) };
        let FetchedBlock { header, extras, file, open, rows } = block;
        let Reader { inflater, page, .. } = reader;
        let hashes = open.segment.read_hashes(inflater, &rows, page);
        let hashes = hashes.map_err(|cause| file.corrupt(cause))?;
        Ok(Some(HashedBlock { header, extras, hashes }))
    }

    /// A block's ommers and withdrawals: nothing else of it is read.
    pub async fn read_extras(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
    ) -> Result<Option<BlockExtras>, StoreError> {
        if let Some(block) = self.head_block(number) {
            return Ok(Some(extras_of_head(block)));
        }
        let Some((file, open)) = self.open_at(reader, number).await? else { return Ok(None) };
        self.extras_in(reader, &file, &open, number).await
    }

    async fn extras_in(
        &self,
        reader: &mut Reader,
        file: &SegmentFile,
        open: &OpenSegment,
        number: BlockNumber,
    ) -> Result<Option<BlockExtras>, StoreError> {
        let Some(place) = open.segment.find_extras(number) else { return Ok(None) };
        self.fetch(reader, file, open, place.range.clone()).await?;
        let Reader { inflater, page, .. } = reader;
        let extras = open.segment.read_extras(inflater, &place, page, number);
        extras.map(Some).map_err(|cause| file.corrupt(cause))
    }

    /// A block of a segment, but for its rows, whose bytes are then the reader's page.
    async fn fetch_block(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
    ) -> Result<Option<FetchedBlock>, StoreError> {
        let Some((file, open)) = self.open_at(reader, number).await? else { return Ok(None) };
        self.fetch_ahead(&open, number).await;
        let Some(header) = self.header_in(reader, &file, &open, number).await? else {
            return Ok(None);
        };
        let Some(extras) = self.extras_in(reader, &file, &open, number).await? else {
            return Ok(None);
        };
        let Some(rows) = open.segment.find_block(number) else { return Ok(None) };
        self.fetch(reader, &file, &open, rows.range.clone()).await?;
        Ok(Some(FetchedBlock { header, extras, file, open, rows }))
    }

    /// A block as a source would give it, to be proven again or handed on.
    pub async fn read_candidate(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
    ) -> Result<Option<Candidate>, StoreError> {
        if let Some(block) = self.head_block(number) {
            return Ok(Some(block.block().to_candidate()));
        }
        let block = self.read_block(reader, number, RowParts::Receipt).await?;
        let Some(block) = block else { return Ok(None) };
        let has_receipts = self.sealed.find_entry(number).is_some_and(|entry| entry.has_receipts);
        Ok(Some(block.into_candidate(has_receipts)))
    }

    /// A transaction by its place: one read, if its page is not in memory.
    pub async fn read_transaction(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
        index: TxIndex,
        wanted: RowParts,
    ) -> Result<Option<StoredTransaction>, StoreError> {
        if let Some(block) = self.head_block(number) {
            return Ok(StoredTransaction::of_head(block, index));
        }
        let Some((file, open)) = self.open_at(reader, number).await? else { return Ok(None) };
        let ordinals = open.segment.find_ordinals(number).unwrap_or_default();
        let ordinal = ordinals.start.at(index).filter(|it| ordinals.contains(it));
        let Some(ordinal) = ordinal else { return Ok(None) };
        self.row_in(reader, &file, &open, ordinal, wanted).await
    }

    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    pub(crate) fn segment_file(&self, position: usize) -> Option<&Arc<SegmentFile>> {
        self.sealed.own_segments().get(position)
    }

    pub(crate) fn run_file(&self, position: usize) -> Option<&Arc<RunFile>> {
        self.sealed.own_runs().get(position)
    }

    async fn open_at(
        &self,
        reader: &mut Reader,
        number: BlockNumber,
    ) -> Result<Option<(Arc<SegmentFile>, Arc<OpenSegment>)>, StoreError> {
        let Some(piece) = self.sealed.find(number) else { return Ok(None) };
        let Some(file) = self.sealed.file(piece) else { return Ok(None) };
        let open = self.files.segment(reader, file).await?;
        check_seams(piece, file, &open)?;
        Ok(Some((Arc::clone(file), open)))
    }

    async fn header_in(
        &self,
        reader: &mut Reader,
        file: &SegmentFile,
        open: &OpenSegment,
        number: BlockNumber,
    ) -> Result<Option<StoredHeader>, StoreError> {
        let Some(place) = open.segment.find_header(number) else { return Ok(None) };
        self.fetch(reader, file, open, place.range.clone()).await?;
        let record = open
            .segment
            .read_header(&mut reader.inflater, &place, &reader.page, number)
            .map_err(|cause| file.corrupt(cause))?;
        let header = StoredHeader::of_record(number, record);
        // What finds a block by its hash goes by the directory: here it is proven.
        if let Some(expected) = open.segment.find_hash(number).filter(|hash| *hash != header.hash) {
            return Err(file.unread(StoreError::Differs {
                file: file.entry.file_name.clone(),
                what: format!("hash of block {number}"),
                found: header.hash.to_string(),
                expected: expected.to_string(),
            }));
        }
        Ok(Some(header))
    }

    async fn row_in(
        &self,
        reader: &mut Reader,
        file: &SegmentFile,
        open: &OpenSegment,
        ordinal: TxOrdinal,
        wanted: RowParts,
    ) -> Result<Option<StoredTransaction>, StoreError> {
        let corrupt = |cause| file.corrupt(cause);
        let Some(place) = open.segment.find_row(ordinal) else { return Ok(None) };
        let Reader { inflater, page, rows: room, payloads, counts, .. } = reader;
        counts.count_page();
        let unread = |error: DiskError| file.unread(error);
        fetch(&*open.bytes, place.page.range.clone(), page).await.map_err(unread)?;
        let rows =
            open.segment.open_rows(inflater, &place.page, page, room, wanted).map_err(corrupt)?;
        // Most rows have none of these, and the page is all that is read.
        let payload_range = open.segment.find_payloads(&place, &rows);
        payloads.clear();
        if !payload_range.is_empty() {
            counts.count_page();
            fetch(&*open.bytes, payload_range, payloads).await.map_err(unread)?;
        }
        let row = open.segment.read_row(inflater, &place, &rows, payloads).map_err(corrupt)?;
        let position = open.segment.position_of(&place, &rows);
        Ok(position.map(|position| StoredTransaction::of_row(position, row)))
    }

    async fn fetch(
        &self,
        reader: &mut Reader,
        file: &SegmentFile,
        open: &OpenSegment,
        range: Range<u64>,
    ) -> Result<(), StoreError> {
        if range.is_empty() {
            reader.page.clear();
            return Ok(());
        }
        reader.counts.count_page();
        fetch(&*open.bytes, range, &mut reader.page).await.map_err(|error| file.unread(error))
    }

    /// The number of a block if it is canonical here: in the head with this hash, or sealed.
    fn canonical(&self, told: Option<BlockId>) -> Option<BlockNumber> {
        let BlockId { number, hash } = told?;
        if let Some(block) = self.head.find_block(number) {
            return (block.hash() == hash).then_some(number);
        }
        // A segment that cannot be read is sealed all the same.
        let is_sealed = self.sealed.find(number).is_some();
        (is_sealed || self.manifest.find_segment(number).is_some()).then_some(number)
    }
}

/// Whether a file has the blocks that other files beside the shown piece of it name.
fn check_seams(
    piece: &SealedPiece,
    file: &SegmentFile,
    open: &OpenSegment,
) -> Result<(), StoreError> {
    for (number, expected) in Sealed::seams(piece) {
        let found = open.segment.find_hash(number);
        if found != Some(expected) {
            return Err(file.unread(StoreError::Differs {
                file: file.entry.file_name.clone(),
                what: format!("hash of block {number}, where another segment meets it"),
                found: found.unwrap_or_default().to_string(),
                expected: expected.to_string(),
            }));
        }
    }
    Ok(())
}
