//! What a supervisor such as systemd hands over and is told: the socket that it listens on for us, and
//! when serving begins and stops.

use std::net::TcpListener;

use anyhow::{Context as _, bail};
use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;
use sd_notify::NotifyState;
use tracing::warn;

/// The socket that was handed over, if one was. Nobody who connects while we start or stop is refused:
/// it is not ours to close.
pub(super) fn inherited_listener() -> anyhow::Result<Option<TcpListener>> {
    let mut handed_over = ListenFd::from_env();
    match handed_over.len() {
        0 => Ok(None),
        1 => {
            let taken = handed_over.take_tcp_listener(0);
            let taken = taken.context("LISTEN_FDS: no TCP socket was handed over")?;
            // With Accept=yes it would be a connection.
            if let Some(socket) = &taken
                && !socket_acceptconn(socket)?
            {
                bail!("LISTEN_FDS: nobody listens on the socket that was handed over");
            }
            Ok(taken)
        }
        count => bail!("LISTEN_FDS: {count} sockets were handed over, and one is served"),
    }
}

/// Requests are answered from now on.
pub(super) fn tell_ready() {
    tell(&[NotifyState::Ready]);
}

/// Settings are read again; [`tell_ready`] follows.
pub(super) fn tell_reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(cause) => warn!(%cause, "NOTIFY_SOCKET: the supervisor was not told"),
    }
}

/// Requests under way are finished.
pub(super) fn tell_stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Where nobody wants to know, nothing is said.
fn tell(state: &[NotifyState<'_>]) {
    if let Err(cause) = sd_notify::notify(state) {
        warn!(%cause, "NOTIFY_SOCKET: the supervisor was not told");
    }
}
