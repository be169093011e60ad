//! What a connection has read and not yet answered.
//!
//! A request that is answered is passed over, not removed: bytes move only when more is read behind
//! a request that has not come whole, and then once. So a connection's work is linear in its bytes.

use std::sync::Arc;

use hyper::body::Bytes;

use crate::budget::{Budget, ByteLease, LeasedFor, OutOfBudget};
use crate::spare;

/// Bytes that one read takes at the most.
pub(super) const READ_BYTES_MAX: usize = 64 * 1024;

/// Bytes in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct ReadBuffer {
    bytes: Vec<u8>,
    /// The first that is not answered.
    begin: usize,
    lease: ByteLease,
}

impl ReadBuffer {
    /// What is not answered yet.
    pub(super) fn unread(&self) -> &[u8] {
        self.bytes.get(self.begin..).unwrap_or_default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.len() == self.begin
    }

    /// Makes room behind what is there for a request of so many bytes in all; tells how many may be
    /// read. Room is taken as bytes come: what a client only announces takes none.
    pub(super) fn make_room(
        &mut self,
        budget: &Arc<Budget>,
        request_bytes: usize,
    ) -> Result<usize, OutOfBudget> {
        if self.bytes.capacity() == 0 {
            self.bytes = spare::take();
        }
        if self.begin > 0 {
            self.bytes.drain(..self.begin);
            self.begin = 0;
        }
        let length = self.bytes.len();
        if length == self.bytes.capacity() {
            let doubled = length.saturating_mul(2);
            let capacity = doubled.min(request_bytes).max(length.saturating_add(spare::BYTES));
            self.lease.resize(budget, capacity, LeasedFor::Body)?;
            self.bytes.reserve_exact(capacity.saturating_sub(length));
        }
        Ok(self.bytes.capacity().saturating_sub(length).min(READ_BYTES_MAX))
    }

    /// Where to read to, behind what is there.
    pub(super) fn end_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Passes over bytes that are answered; room that nothing is in is given back.
    pub(super) fn pass(&mut self, count: usize) {
        self.begin = self.begin.saturating_add(count).min(self.bytes.len());
        self.give_back_if_empty();
    }

    pub(super) fn give_back_if_empty(&mut self) {
        if self.is_empty() {
            spare::give(std::mem::take(&mut self.bytes));
            self.begin = 0;
            self.lease = ByteLease::default();
        }
    }

    /// Takes a long request out, with the room that it has.
    pub(super) fn split_off(&mut self, count: usize) -> (Bytes, ByteLease) {
        let mut taken = std::mem::take(self);
        let end = taken.begin.saturating_add(count).min(taken.bytes.len());
        // At most what one read takes has come behind it.
        if let Some(rest) = taken.bytes.get(end..).filter(|rest| !rest.is_empty()) {
            self.bytes = spare::take();
            self.bytes.extend_from_slice(rest);
        }
        taken.bytes.truncate(end);
        (Bytes::from(taken.bytes).slice(taken.begin..), taken.lease)
    }

    /// What is not answered, for another to answer.
    pub(super) fn into_unread(self) -> Bytes {
        Bytes::from(self.bytes).slice(self.begin..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(buffer: &mut ReadBuffer, budget: &Arc<Budget>, request_bytes: usize, source: &[u8]) {
        let count = buffer.make_room(budget, request_bytes).unwrap().min(source.len());
        buffer.end_mut().extend_from_slice(&source[..count]);
    }

    #[test]
    fn requests_come_out_as_they_went_in_and_are_not_moved_for_each_other() {
        let budget = Budget::unbounded();
        let mut buffer = ReadBuffer::default();
        let source: Vec<u8> = (0..4000_u32).map(|byte| byte.to_le_bytes()[0]).collect();
        read(&mut buffer, &budget, 100, &source);
        let place = buffer.bytes.as_ptr();
        for (index, expected) in source.chunks(100).enumerate() {
            assert_eq!(&buffer.unread()[..100], expected);
            // Where it was read to: passing over others moves nothing.
            assert_eq!(buffer.unread().as_ptr(), place.wrapping_add(index * 100));
            buffer.pass(100);
        }
        assert!(buffer.is_empty() && buffer.bytes.capacity() == 0);
    }

    #[test]
    fn no_more_is_read_ahead_than_one_read_takes() {
        let budget = Budget::new(64 << 20);
        let (mut buffer, request_bytes) = (ReadBuffer::default(), 4 << 20);
        let source = vec![7; 1 << 20];
        while buffer.unread().len() < request_bytes {
            let before = buffer.unread().len();
            read(&mut buffer, &budget, request_bytes, &source);
            assert!(buffer.unread().len() - before <= READ_BYTES_MAX);
            // Room follows what has come; what is announced takes none.
            assert!(buffer.bytes.capacity() <= (2 * before).max(2 * spare::BYTES));
            let counted =
                if buffer.bytes.capacity() > spare::BYTES { buffer.bytes.capacity() } else { 0 };
            assert_eq!(budget.bytes(), counted);
        }
        assert!(buffer.unread().len() <= request_bytes + READ_BYTES_MAX);
        let (taken, lease) = buffer.split_off(request_bytes - 10);
        assert_eq!((taken.len(), buffer.unread().len()), (request_bytes - 10, 10));
        assert!(budget.bytes() >= request_bytes);
        drop((taken, lease));
        assert_eq!(budget.bytes(), 0);
    }

    #[test]
    fn a_body_that_there_is_no_room_for_is_told_before_it_is_read() {
        let budget = Budget::new(64 * 1024);
        let mut buffer = ReadBuffer::default();
        let source = vec![7; 1 << 20];
        while let Ok(count) = buffer.make_room(&budget, 1 << 20) {
            buffer.end_mut().extend_from_slice(&source[..count]);
        }
        assert_eq!(buffer.bytes.capacity(), 32 * 1024);
    }
}
