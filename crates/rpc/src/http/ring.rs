//! Many sends by one entry into the kernel, where it has `io_uring` and lets us use it.
//!
//! Knows: how sends that never wait are handed over and taken back, all within one call.
//! Never knows: what is sent, or what becomes of what could not be.
//!
//! One entry is not about its own cost. A client on the same machine is woken by the first of our
//! sends and takes the core away from the next one; not within one entry, unless the kernel is
//! preemptible. See "Short answers
//! leave together" in ARCHITECTURE.md for what that measured.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Bytes for a socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    pub(super) socket: BorrowedFd<'a>,
    pub(super) bytes: &'a [u8],
}

/// What came of a message: how many bytes went, or why none did. `None` if it was not tried.
pub(super) type Sent = Option<io::Result<usize>>;

/// A way into the kernel for many sends. It belongs to the thread that opened it.
#[cfg(target_os = "linux")]
pub(super) struct Ring(io_uring::IoUring);

#[cfg(target_os = "linux")]
impl Ring {
    /// Opens one for so many messages at a time, where the system has one for us.
    pub(super) fn open(messages_max: u32) -> io::Result<Self> {
        let mut builder = io_uring::IoUring::builder();
        // One message that fails must not hold up the rest, and only this thread ever sends.
        builder.setup_submit_all().setup_coop_taskrun().setup_single_issuer();
        builder.build(messages_max).map(Self)
    }

    /// Sends every message, as much of it as its socket takes at once. `sent` tells of each, in
    /// their order. An error says that no more can be sent this way.
    pub(super) fn send<'a>(
        &mut self,
        messages: impl Iterator<Item = Message<'a>>,
        sent: &mut Vec<Sent>,
    ) -> io::Result<()> {
        sent.clear();
        let mut pushed = 0_usize;
        for (place, message) in messages.enumerate() {
            sent.push(None);
            if self.push(place, message) {
                pushed = pushed.saturating_add(1);
            }
        }
        // All end within the entry, since none may wait: waiting for them only makes sure of it.
        let entered = loop {
            match self.0.submit_and_wait(pushed) {
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                entered => break entered,
            }
        };
        let mut told = 0_usize;
        for completion in self.0.completion() {
            told = told.saturating_add(1);
            let place = usize::try_from(completion.user_data()).ok();
            if let Some(outcome) = place.and_then(|place| sent.get_mut(place)) {
                let result = completion.result();
                let failed = |_| io::Error::from_raw_os_error(result.saturating_neg());
                *outcome = Some(usize::try_from(result).map_err(failed));
            }
        }
        entered?;
        // What the kernel had no room to take would be sent at the next entry, from bytes that are
        // others' by then: the ring goes, and that with it.
        if told < pushed {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(())
    }

    /// Whether there was room for the message.
    fn push(&mut self, place: usize, message: Message<'_>) -> bool {
        let (Ok(length), Ok(place)) = (u32::try_from(message.bytes.len()), u64::try_from(place))
        else {
            return false;
        };
        let socket = io_uring::types::Fd(message.socket.as_raw_fd());
        let send = io_uring::opcode::Send::new(socket, message.bytes.as_ptr(), length)
            .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
            .build()
            .user_data(place);
        #[expect(
            unsafe_code,
            reason = "`send` borrows socket and bytes until the entry ends, and with it every message: \
                      a send that may not wait is never left to the kernel, and one that was not \
                      taken goes with the ring"
        )]
        let pushed = unsafe { self.0.submission().push(&send) };
        pushed.is_ok()
    }
}

#[cfg(target_os = "linux")]
impl std::fmt::Debug for Ring {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Ring").finish_non_exhaustive()
    }
}

/// Other systems have none.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(super) enum Ring {}

#[cfg(not(target_os = "linux"))]
impl Ring {
    pub(super) fn open(_messages_max: u32) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn send<'a>(
        &mut self,
        _messages: impl Iterator<Item = Message<'a>>,
        _sent: &mut Vec<Sent>,
    ) -> io::Result<()> {
        match *self {}
    }
}
