//! Buffers that a thread keeps for its next requests.
//!
//! Most requests and most answers are short and gone at once, and most connections of a busy server
//! wait: ten thousand of them have the same room in turn. An allocator takes longer for buffers of
//! this size than for small ones, and gives memory back to the system only to ask for it again.

use std::cell::RefCell;

/// Bytes of a buffer.
pub(crate) const BYTES: usize = 4096;
/// Buffers that a thread keeps.
const COUNT_MAX: usize = 256;

thread_local! {
    static SPARES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer with room for [`BYTES`].
pub(crate) fn take() -> Vec<u8> {
    SPARES.with_borrow_mut(Vec::pop).unwrap_or_else(|| Vec::with_capacity(BYTES))
}

/// Keeps a buffer for others, unless it has grown or there are enough.
pub(crate) fn give(mut buffer: Vec<u8>) {
    SPARES.with_borrow_mut(|spares| {
        if buffer.capacity() == BYTES && spares.len() < COUNT_MAX {
            buffer.clear();
            spares.push(buffer);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_empty_unless_it_has_grown() {
        let mut buffer = take();
        assert!(buffer.is_empty() && buffer.capacity() == BYTES);
        buffer.push(7);
        let place = buffer.as_ptr();
        give(buffer);
        let again = take();
        assert!(again.is_empty() && again.as_ptr() == place);
        for other in [Vec::new(), Vec::with_capacity(2 * BYTES)] {
            give(other);
            assert_eq!(SPARES.with_borrow(Vec::len), 0);
        }
        (0..=COUNT_MAX).for_each(|_| give(Vec::with_capacity(BYTES)));
        assert_eq!(SPARES.with_borrow(Vec::len), COUNT_MAX);
    }
}
