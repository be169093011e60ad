//! Readers of the store: kept by the thread that used them; what they read is counted, and charged to
//! whoever they read for.

use std::cell::RefCell;

use store::{Reader, StoreError};

use crate::admission::Caller;
use crate::answer::CallFailure;
use crate::traffic::Traffic;

/// Readers that a thread keeps: more are under way only while a disk is slow.
const READERS_MAX: usize = 64;
/// Bytes of a reader that is kept: one that read a page of very long payloads gives them back.
const READER_BYTES_MAX: usize = 256 * 1024;

thread_local! {
    /// Those that no call of this thread is using: nobody else asks for them.
    static READERS: RefCell<Vec<Reader>> = const { RefCell::new(Vec::new()) };
}

/// A reader in use for a call. What it has read is counted and charged to whoever asked, also if nobody
/// waits for the answer any more.
#[derive(Debug)]
pub(super) struct LentReader<'a> {
    caller: Option<&'a Caller>,
    traffic: &'a Traffic,
    reader: Option<Reader>,
}

impl<'a> LentReader<'a> {
    pub(super) fn new(caller: Option<&'a Caller>, traffic: &'a Traffic) -> Self {
        Self { caller, traffic, reader: None }
    }

    pub(super) fn take(&mut self) -> Result<&mut Reader, CallFailure> {
        Ok(self.reader.insert(take_reader()?))
    }

    pub(super) fn give_back(mut self) {
        self.charge();
        if let Some(reader) = self.reader.take() {
            give_reader(reader);
        }
    }

    fn charge(&mut self) {
        let Some(reader) = &mut self.reader else { return };
        let counts = reader.take_counts();
        self.traffic.count_reads(counts);
        if let Some(caller) = self.caller {
            caller.charge(counts.pages.saturating_add(counts.lookups));
        }
    }
}

impl Drop for LentReader<'_> {
    fn drop(&mut self) {
        self.charge();
    }
}

fn give_reader(reader: Reader) {
    READERS.with_borrow_mut(|readers| {
        if readers.len() < READERS_MAX && reader.room_bytes() <= READER_BYTES_MAX {
            readers.push(reader);
        }
    });
}

fn take_reader() -> Result<Reader, CallFailure> {
    match READERS.with_borrow_mut(Vec::pop) {
        Some(reader) => Ok(reader),
        None => Reader::new().map_err(|error| CallFailure::Store(StoreError::Reader(error))),
    }
}
