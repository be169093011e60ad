//! File descriptors: how many this process may have, and who gets them.

use std::num::NonZeroUsize;
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use store::Limits;
use tracing::{debug, warn};

/// For everything but segments and clients: standard streams, the lock, head log, lookup runs, upstream
/// nodes, what is being written, clients that are told that there is no room, whoever scrapes metrics.
const RESERVED: usize = 160;
/// For the event queue of each thread that serves.
const RESERVED_PER_CORE: usize = 4;
/// What a limit that knows no bound counts as.
const UNLIMITED: usize = 1 << 20;

/// How many descriptors there are, and who gets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DescriptorShares {
    pub(crate) limit: usize,
    /// Segments that are open at once.
    pub(crate) segments: usize,
    /// Connections of clients.
    pub(crate) connections: usize,
}

/// Raises the soft limit to the hard one; the limit that counts then.
pub(crate) fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    let is_raised = current != maximum && setrlimit(Resource::Nofile, raised).is_ok();
    let limit = if is_raised { maximum } else { current };
    limit.map_or(UNLIMITED, |limit| usize::try_from(limit).unwrap_or(UNLIMITED)).min(UNLIMITED)
}

/// What a store may take of these limits, by the one of this process.
pub(crate) fn store_limits(wanted: Limits) -> Limits {
    let segments = share(raise_limit(), reserved(), wanted.open_segments_max, 0).segments;
    Limits { open_segments_max: segments, ..wanted }
}

/// Shares the descriptors of this process between segments and clients.
pub(crate) fn share_with_clients(
    segments_wanted: usize,
    connections_wanted: usize,
) -> DescriptorShares {
    share(raise_limit(), reserved(), segments_wanted, connections_wanted)
}

/// Says who has how many, and warns if connections are fewer than was wanted.
pub(crate) fn log_shares(shares: &DescriptorShares, connections_wanted: usize) {
    let &DescriptorShares { limit, segments, connections } = shares;
    if connections < connections_wanted {
        warn!(
            limit,
            segments,
            connections,
            connections_wanted,
            "fewer connections than wanted: the \
            limit of file descriptors is low, raise it with ulimit -n or LimitNOFILE"
        );
    } else {
        debug!(limit, segments, connections, "file descriptors");
    }
}

fn reserved() -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    RESERVED_PER_CORE.saturating_mul(cores).saturating_add(RESERVED)
}

fn share(
    limit: usize,
    reserved: usize,
    segments_wanted: usize,
    connections_wanted: usize,
) -> DescriptorShares {
    let left = limit.saturating_sub(reserved.min(limit / 2));
    let segments = segments_wanted.min(left / 2).max(1);
    let connections = connections_wanted.min(left.saturating_sub(segments)).max(1);
    DescriptorShares { limit, segments, connections }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_their_descriptors_whatever_clients_want() {
        for (limit, segments, connections) in [
            (1 << 20, 512, 10_000),
            (4096, 512, 3424),
            (1024, 432, 432),
            (128, 32, 32),
            (64, 16, 16),
            (2, 1, 1),
        ] {
            let shares = share(limit, RESERVED, 512, 10_000);
            assert_eq!(shares, DescriptorShares { limit, segments, connections });
            assert!(limit < 64 || segments + connections + RESERVED.min(limit / 2) <= limit);
        }
    }
}
