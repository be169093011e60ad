//! The manifest as a file: one line a fact, and a checksum in the last line.
//!
//! ```text
//! quipu manifest 1             2 if something of the log index is in it
//! network mainnet              or -
//! chain 1                      or -
//! genesis 0xd4e5...8fa3        or -
//! genesis-file SHA256          of genesis.json; the line is only there if the folder keeps one
//! head NUMBER HASH             or -; the line is only there if there is a head's log
//! anchor NUMBER HASH
//! epoch NUMBER LAST_BLOCK
//! difficulty NUMBER TOTAL_BEFORE
//! lost FIRST LAST              blocks that were held or that the head reached, and that no file has
//! lost-hash NUMBER HASH        of a lost block, if it is known
//! segment FIRST LAST FILE BYTES DIGEST receipts|noreceipts PARENT_HASH LAST_HASH TRANSACTIONS LOGS DIFFICULTY
//! log-index none               the line is only there if new blocks get no log index
//! run transactions|blocks|logs FIRST_SLOT SLOT_COUNT FILE BYTES DIGEST
//! checksum CRC32               of all bytes before this line
//! ```
//!
//! A manifest has exactly one text: whatever does not encode to the same bytes again is refused.

use std::fmt::{Display, Write as _};
use std::str::{FromStr, Split};

use chain::{BlockNumber, BlockRange};
use segment::index::{RunSpan, RunSubject};

use super::error::{TITLE, TextFault, VERSION, VERSION_UNPROVEN, VERSION_WITHOUT_LOGS};
use super::{HeadRecord, Manifest, Network, RunEntry, SegmentEntry};
use crate::block_id::BlockId;

const UNKNOWN: &str = "-";
const LOG_INDEX: &str = "log-index";
const NO_LOG_INDEX: &str = "none";

impl Manifest {
    /// The text of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self {
            network,
            genesis_file,
            head,
            anchors,
            epochs,
            difficulties,
            lost,
            lost_hashes,
            segments,
            runs,
            is_without_log_index,
        } = self;
        let mut text = format!("{TITLE}{}\n", self.version());
        put(&mut text, format_args!("network {}", known(network.name.as_deref())));
        put(&mut text, format_args!("chain {}", known(network.chain_id)));
        put(&mut text, format_args!("genesis {}", known(network.genesis_hash)));
        if let Some(digest) = genesis_file {
            put(&mut text, format_args!("genesis-file {digest}"));
        }
        if let Some(HeadRecord { block }) = head {
            let block = block.map(|BlockId { number, hash }| format!("{number} {hash}"));
            put(&mut text, format_args!("head {}", known(block)));
        }
        for (number, hash) in anchors {
            put(&mut text, format_args!("anchor {number} {hash}"));
        }
        for (number, last) in epochs {
            put(&mut text, format_args!("epoch {number} {last}"));
        }
        for (number, before) in difficulties {
            put(&mut text, format_args!("difficulty {number} {before}"));
        }
        for range in lost {
            put(&mut text, format_args!("lost {} {}", range.first(), range.last()));
        }
        for (number, hash) in lost_hashes {
            put(&mut text, format_args!("lost-hash {number} {hash}"));
        }
        for entry in segments {
            put_segment(&mut text, entry);
        }
        if *is_without_log_index {
            put(&mut text, format_args!("{LOG_INDEX} {NO_LOG_INDEX}"));
        }
        for run in runs {
            put_run(&mut text, run);
        }
        let checksum = crc32fast::hash(text.as_bytes());
        put(&mut text, format_args!("checksum {checksum:08x}"));
        text.into_bytes()
    }

    /// The oldest version that has all that it says: older builds read the others.
    fn version(&self) -> u32 {
        let has_log_runs = self.runs_of(RunSubject::Logs).next().is_some();
        if has_log_runs || self.is_without_log_index { VERSION } else { VERSION_WITHOUT_LOGS }
    }

    /// Reads the text of a file.
    pub fn decode(bytes: &[u8]) -> Result<Self, TextFault> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| TextFault::NotText { byte: error.valid_up_to() })?;
        check_title(text)?;
        let body = checked_body(text)?;
        let mut manifest = Self::new(Network::default());
        for (line, words) in (1..).zip(body.lines()).skip(1) {
            manifest.take_line(&mut Words { line, words: words.split(' ') })?;
        }
        let manifest = manifest.sorted()?;
        manifest.check_form(text)?;
        Ok(manifest)
    }

    /// Adds what one line says. Words too many, and lines that come twice or too early, are left to
    /// [`Self::check_form`].
    fn take_line(&mut self, words: &mut Words<'_>) -> Result<(), TextFault> {
        match words.next() {
            "network" => {
                let name = words.next();
                self.network.name = (name != UNKNOWN).then(|| name.to_owned());
            }
            "chain" => self.network.chain_id = words.parse_known("chain id")?,
            "genesis" => self.network.genesis_hash = words.parse_known("genesis hash")?,
            "genesis-file" => self.genesis_file = Some(words.parse("digest of genesis.json")?),
            "head" => {
                let number = words.parse_known("head")?.map(BlockNumber);
                let block = |number| -> Result<BlockId, TextFault> {
                    Ok(BlockId { number, hash: words.parse("head")? })
                };
                self.head = Some(HeadRecord { block: number.map(block).transpose()? });
            }
            "anchor" => {
                let number = words.parse("anchor")?;
                self.anchors.insert(number, words.parse("anchor")?);
            }
            "epoch" => {
                let number = words.parse("epoch")?;
                self.epochs.insert(number, words.parse("last block")?);
            }
            "difficulty" => {
                let number = words.parse("first block")?;
                self.difficulties.insert(number, words.parse("difficulty")?);
            }
            "lost" => self.lost.push(range_of(words)?),
            "lost-hash" => {
                let number = words.parse("lost block")?;
                self.lost_hashes.insert(number, words.parse("lost block")?);
            }
            "segment" => self.segments.push(segment_of(words)?),
            LOG_INDEX => {
                self.is_without_log_index = true;
                words.choose("log index", [NO_LOG_INDEX], |word| word)?;
            }
            "run" => self.runs.push(run_of(words)?),
            other => return Err(words.fault("no line of a manifest begins so", other)),
        }
        Ok(())
    }

    /// Whether `text` is this manifest's one text.
    fn check_form(&self, text: &str) -> Result<(), TextFault> {
        let encoded = self.encode();
        if encoded == text.as_bytes() {
            return Ok(());
        }
        let encoded = String::from_utf8_lossy(&encoded);
        let mut lines = encoded.split('\n');
        let mut found = text.split('\n');
        for line in 1.. {
            let pair = (found.next(), lines.next());
            if pair.0 != pair.1 || pair == (None, None) {
                let text = |part: Option<&str>| part.unwrap_or("its end").to_owned();
                return Err(TextFault::Form { line, found: text(pair.0), expected: text(pair.1) });
            }
        }
        Ok(())
    }
}

fn range_of(words: &mut Words<'_>) -> Result<BlockRange, TextFault> {
    let line = words.line;
    let (first, last) = (words.parse("first block")?, words.parse("last block")?);
    BlockRange::from_ends(first, last).ok_or(TextFault::Range { line, first, last })
}

fn segment_of(words: &mut Words<'_>) -> Result<SegmentEntry, TextFault> {
    Ok(SegmentEntry {
        range: range_of(words)?,
        file_name: words.next().to_owned(),
        bytes: words.parse("file length")?,
        digest: words.parse("digest")?,
        has_receipts: words.choose("receipts", [true, false], receipts_word)?,
        parent_hash: words.parse("parent hash")?,
        last_hash: words.parse("last hash")?,
        transaction_count: words.parse("transactions")?,
        log_count: words.parse("logs")?,
        difficulty: words.parse("difficulty")?,
    })
}

fn run_of(words: &mut Words<'_>) -> Result<RunEntry, TextFault> {
    let line = words.line;
    let subject = words.choose("subject", RunSubject::ALL, |subject| subject)?;
    let (first_slot, slot_count) = (words.parse("first slot")?, words.parse("slot count")?);
    Ok(RunEntry {
        subject,
        span: RunSpan::new(first_slot, slot_count)
            .map_err(|fault| TextFault::Span { line, fault })?,
        file_name: words.next().to_owned(),
        bytes: words.parse("file length")?,
        digest: words.parse("digest")?,
    })
}

fn put_segment(text: &mut String, entry: &SegmentEntry) {
    let SegmentEntry { range, file_name, bytes, digest, parent_hash, last_hash, .. } = entry;
    let (first, last) = (range.first(), range.last());
    let receipts = receipts_word(entry.has_receipts);
    let (transactions, logs) = (entry.transaction_count, entry.log_count);
    let difficulty = entry.difficulty;
    put(
        text,
        format_args!(
            "segment {first} {last} {file_name} {bytes} {digest} {receipts} {parent_hash} \
             {last_hash} {transactions} {logs} {difficulty}"
        ),
    );
}

fn put_run(text: &mut String, run: &RunEntry) {
    let RunEntry { subject, span, file_name, bytes, digest } = run;
    let (first_slot, slot_count) = (span.first_slot(), span.slot_count());
    put(text, format_args!("run {subject} {first_slot} {slot_count} {file_name} {bytes} {digest}"));
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

fn known(value: Option<impl Display>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |value| value.to_string())
}

fn receipts_word(has_receipts: bool) -> &'static str {
    if has_receipts { "receipts" } else { "noreceipts" }
}

fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

fn check_title(text: &str) -> Result<(), TextFault> {
    let title = text.split('\n').next().unwrap_or_default();
    let version = title.strip_prefix(TITLE).and_then(|version| version.parse().ok());
    match version {
        Some(VERSION | VERSION_WITHOUT_LOGS) => Ok(()),
        Some(VERSION_UNPROVEN) => Err(TextFault::Development),
        Some(found) => Err(TextFault::Version { found }),
        None => Err(TextFault::Title { found: excerpt(title) }),
    }
}

/// The lines before the last, if the last is their checksum.
fn checked_body(text: &str) -> Result<&str, TextFault> {
    let lines = text.strip_suffix('\n').unwrap_or(text);
    let last = lines.rsplit('\n').next().unwrap_or_default();
    let body = lines.strip_suffix(last).unwrap_or_default();
    let found = crc32fast::hash(body.as_bytes());
    if last != format!("checksum {found:08x}") {
        return Err(TextFault::Checksum { found, expected: excerpt(last) });
    }
    Ok(body)
}

/// The words of one line, from the front.
struct Words<'a> {
    line: usize,
    words: Split<'a, char>,
}

impl<'a> Words<'a> {
    /// The next word; empty at the line's end.
    fn next(&mut self) -> &'a str {
        self.words.next().unwrap_or_default()
    }

    fn fault(&self, what: &'static str, found: &str) -> TextFault {
        TextFault::Word { line: self.line, what, found: excerpt(found) }
    }

    fn parse<T: FromStr>(&mut self, what: &'static str) -> Result<T, TextFault> {
        let word = self.next();
        word.parse().map_err(|_| self.fault(what, word))
    }

    fn parse_known<T: FromStr>(&mut self, what: &'static str) -> Result<Option<T>, TextFault> {
        let word = self.next();
        if word == UNKNOWN {
            return Ok(None);
        }
        word.parse().map(Some).map_err(|_| self.fault(what, word))
    }

    /// The choice whose word this is.
    fn choose<T: Copy, W: Display, const N: usize>(
        &mut self,
        what: &'static str,
        choices: [T; N],
        word_of: impl Fn(T) -> W,
    ) -> Result<T, TextFault> {
        let word = self.next();
        let choice = choices.into_iter().find(|choice| word_of(*choice).to_string() == word);
        choice.ok_or_else(|| self.fault(what, word))
    }
}
