//! How much memory the server may take beside an abuse.

use crate::abuse::Spoken;

const KIB: u64 = 1024;
/// What the allocator may keep between what is used.
const ALLOCATOR_BYTES: u64 = 32 << 20;

/// What the ceiling depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ceiling {
    /// Memory before the abuse.
    pub(crate) before: u64,
    /// `--bytes-under-way-max`.
    pub(crate) bytes_under_way_max: u64,
    /// Bytes of the longest answer.
    pub(crate) answer_bytes_max: u64,
    /// Threads that serve.
    pub(crate) threads: u64,
    pub(crate) spoken: Spoken,
    /// Connections at a time.
    pub(crate) connections: u64,
}

impl Ceiling {
    /// Bytes that the server has at the most: the budget, one answer beyond it, one that each thread makes
    /// while it grows, and what every connection takes beside its bodies and answers.
    pub(crate) fn bytes(&self) -> u64 {
        let of_connection = match self.spoken {
            Spoken::Http1 | Spoken::WebSocket => 128 * KIB,
            Spoken::Http2 => 768 * KIB,
        };
        let being_made = self.threads.saturating_mul(2).saturating_mul(self.answer_bytes_max);
        let counted = self.bytes_under_way_max.saturating_add(self.answer_bytes_max);
        let connections = self.connections.saturating_mul(of_connection);
        [self.before, counted, being_made, connections, ALLOCATOR_BYTES]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_follows_the_budget() {
        let ceiling = Ceiling {
            before: 30 << 20,
            bytes_under_way_max: 64 << 20,
            answer_bytes_max: 8 << 20,
            threads: 2,
            spoken: Spoken::Http2,
            connections: 4,
        };
        assert_eq!(ceiling.bytes(), (30 + 64 + 8 + 32 + 3 + 32) << 20);
        let wider = Ceiling { bytes_under_way_max: 256 << 20, ..ceiling };
        assert_eq!(wider.bytes() - ceiling.bytes(), 192 << 20);
    }
}
