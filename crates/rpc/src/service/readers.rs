//! Readers of the store: kept by the thread that used them, and charged to whoever they read for.
//!
//! Knows: how many are kept, and that what one has read is charged to one caller only.
//! Never knows: what is read.

use std::cell::RefCell;

use store::{Reader, StoreError};

use crate::admission::Caller;
use crate::answer::CallFailure;

/// Readers that a thread keeps: more are under way only while a disk is slow.
const READERS_MAX: usize = 64;
/// Bytes of a reader that is kept: one that read a page of very long payloads gives them back.
const READER_BYTES_MAX: usize = 256 * 1024;

thread_local! {
    /// Those that no call of this thread is using: nobody else asks for them.
    static READERS: RefCell<Vec<Reader>> = const { RefCell::new(Vec::new()) };
}

/// A reader in use for a call. What it has read is charged to whoever asked, also if nobody waits for the
/// answer any more.
#[derive(Debug)]
pub(super) struct LentReader<'a> {
    caller: Option<&'a Caller>,
    reader: Option<Reader>,
}

impl<'a> LentReader<'a> {
    pub(super) fn new(caller: Option<&'a Caller>) -> Self {
        Self { caller, reader: None }
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
        if let (Some(caller), Some(reader)) = (self.caller, &mut self.reader) {
            caller.charge(reader.take_counts().pages);
        }
    }
}

impl Drop for LentReader<'_> {
    fn drop(&mut self) {
        self.charge();
    }
}

pub(super) fn give_reader(mut reader: Reader) {
    // Whoever takes it next has read nothing yet.
    reader.take_counts();
    READERS.with_borrow_mut(|readers| {
        if readers.len() < READERS_MAX && reader.room_bytes() <= READER_BYTES_MAX {
            readers.push(reader);
        }
    });
}

pub(super) fn take_reader() -> Result<Reader, CallFailure> {
    match READERS.with_borrow_mut(Vec::pop) {
        Some(reader) => Ok(reader),
        None => Reader::new().map_err(|error| CallFailure::Store(StoreError::Reader(error))),
    }
}
