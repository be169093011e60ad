//! Where threads run and packets come in.
//!
//! Knows: how the system is asked for either.
//! Never knows: what follows from it.

use tokio::net::TcpStream;

/// A core that no machine has, for what is on none that we know of.
pub(super) const NOWHERE: usize = usize::MAX;

/// The core that this thread runs on at the moment.
#[cfg(target_os = "linux")]
pub(super) fn here() -> usize {
    rustix::thread::sched_getcpu()
}

/// The core that took the last packet of a connection in. The client's own, if it is on this machine.
#[cfg(target_os = "linux")]
pub(super) fn of_packets(stream: &TcpStream) -> Option<usize> {
    let core = rustix::net::sockopt::socket_incoming_cpu(stream).ok()?;
    usize::try_from(core).ok()
}

/// Other systems do not tell.
#[cfg(not(target_os = "linux"))]
pub(super) fn here() -> usize {
    NOWHERE
}

/// Other systems do not tell.
#[cfg(not(target_os = "linux"))]
pub(super) fn of_packets(_stream: &TcpStream) -> Option<usize> {
    None
}
