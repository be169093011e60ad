//! What clients of `quipu serve` may take: the flags of every limit that the server has.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use anyhow::anyhow;
use rpc::http::HttpSettings;
use rpc::{FilterLimits, LogLimits, ServiceSettings};
use store::Limits;

use crate::Failure;
use crate::amounts::{parse_bytes, parse_some, parse_some_bytes, parse_some_time, parse_threads};

/// Bodies that are under way get half of the budget, and the largest takes twice its length while it
/// grows: a budget for bodies of 5 MiB has at least 16 MiB.
const BUDGET_PER_BODY: (usize, usize) = (16, 5);

/// What clients may take.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Bytes of results that are cached because they are asked for again and again; 0 caches none
    #[arg(long, value_name = "BYTES", default_value = "32MiB", value_parser = parse_bytes)]
    pub(crate) cache_bytes: usize,
    /// Bytes of request bodies and answers in memory at a time, over all connections; beyond it
    /// requests get 503 with Retry-After. One answer of any size is always admitted. At least 3.2
    /// times --body-bytes-max
    #[arg(long, value_name = "BYTES", default_value = "256MiB", value_parser = parse_some_bytes)]
    bytes_under_way_max: usize,
    /// Bytes of a request's body, decompressed, or of a WebSocket message
    #[arg(long, value_name = "BYTES", default_value = "5MiB", value_parser = parse_some_bytes)]
    body_bytes_max: usize,
    /// Calls in a batch
    #[arg(long, value_name = "N", default_value = "1000", value_parser = parse_some::<NonZeroUsize>)]
    batch_items_max: NonZeroUsize,
    /// Bytes of answers in a batch, after which the rest is refused
    #[arg(long, value_name = "BYTES", default_value = "25MB", value_parser = parse_some_bytes)]
    batch_bytes_max: usize,
    /// Logs in an answer to `eth_getLogs`, unless it is of one block; beyond it, the range that fits is told
    #[arg(long, value_name = "N", default_value = "50000", value_parser = parse_some::<NonZeroUsize>)]
    logs_max: NonZeroUsize,
    /// Bytes of such an answer
    #[arg(long, value_name = "BYTES", default_value = "10MB", value_parser = parse_some_bytes)]
    logs_bytes_max: usize,
    /// Bytes of stored blocks that are read for such an answer
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = parse_some_bytes)]
    logs_read_bytes_max: usize,
    /// Blocks without a log index that are read for such an answer
    #[arg(long, value_name = "N", default_value = "10000", value_parser = parse_some::<NonZeroU64>)]
    logs_unindexed_blocks_max: NonZeroU64,
    /// Filters that clients poll for new logs and blocks, of all clients together
    #[arg(long, value_name = "N", default_value = "1000", value_parser = parse_some::<NonZeroUsize>)]
    filters_max: NonZeroUsize,
    /// For a filter to be polled again; one that is not is dropped
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_some_time)]
    filter_timeout: Duration,
    /// Connections at a time; further ones get 503 with Retry-After
    #[arg(long, value_name = "N", default_value = "10000", value_parser = parse_some::<NonZeroUsize>)]
    connections_max: NonZeroUsize,
    /// Connections of one address at a time; further ones get 429 with Retry-After [default: no limit]
    #[arg(long, value_name = "N", value_parser = parse_some::<NonZeroUsize>)]
    connections_per_client_max: Option<NonZeroUsize>,
    /// Requests under way on one HTTP/2 connection at a time
    #[arg(long, value_name = "N", default_value = "32", value_parser = parse_some::<NonZeroU32>)]
    streams_max: NonZeroU32,
    /// Messages of one WebSocket that are answered at a time; further ones are read later
    #[arg(long, value_name = "N", default_value = "32", value_parser = parse_some::<NonZeroUsize>)]
    socket_requests_max: NonZeroUsize,
    /// Subscriptions of one WebSocket
    #[arg(long, value_name = "N", default_value = "32", value_parser = parse_some::<NonZeroUsize>)]
    subscriptions_max: NonZeroUsize,
    /// For a request's head to arrive, from its first byte; a number is seconds, as for every timeout
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_some_time)]
    header_timeout: Duration,
    /// For a request's body to arrive
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_some_time)]
    body_timeout: Duration,
    /// For an answer to be found, from when the request has come whole; calls that take longer are
    /// refused
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = parse_some_time)]
    answer_timeout: Duration,
    /// For a client to take --write-bytes-min of an answer, or the rest of it
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_some_time)]
    write_timeout: Duration,
    /// Bytes of an answer that must be taken within --write-timeout
    #[arg(long, value_name = "BYTES", default_value = "256KiB", value_parser = parse_some_bytes)]
    write_bytes_min: usize,
    /// For the first request of a connection, and for the next one on a connection that is kept
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_some_time)]
    idle_timeout: Duration,
    /// Between two pings to a silent WebSocket, which is closed after --idle-timeout without an answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_some_time)]
    ping_interval: Duration,
    /// For requests under way when the server is told to stop
    #[arg(long, value_name = "TIME", default_value = "1500ms", value_parser = parse_some_time)]
    stop_timeout: Duration,
    /// Threads that serve connections [default: one for each core]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    serve_threads: Option<NonZeroUsize>,
    /// Threads that wait for disks
    #[arg(long, value_name = "N", default_value = "16", value_parser = parse_threads)]
    pub(crate) read_threads: NonZeroUsize,
    /// Cold reads that wait for one of them
    #[arg(long, value_name = "N", default_value = "1024", value_parser = parse_some::<NonZeroUsize>)]
    pub(crate) reads_max: NonZeroUsize,
    /// Segments that are open at once, as far as the limit of file descriptors allows
    #[arg(long, value_name = "N", default_value = "512", value_parser = parse_some::<NonZeroUsize>)]
    open_segments_max: NonZeroUsize,
    /// Memory for directories and tables of segments that were read lately
    #[arg(long, value_name = "BYTES", default_value = "256MiB", value_parser = parse_bytes)]
    tail_bytes_max: usize,
    /// Memory for lookup runs that fit it as a whole
    #[arg(long, value_name = "BYTES", default_value = "32MiB", value_parser = parse_bytes)]
    run_bytes_max: usize,
    /// Calls on their way to the node of --pass-through at a time; further ones wait
    #[arg(long, value_name = "N", default_value = "64", value_parser = parse_some::<NonZeroUsize>)]
    pub(crate) pass_through_requests_max: NonZeroUsize,
    /// Subscriptions of all clients at the node of --pass-through
    #[arg(long, value_name = "N", default_value = "256", value_parser = parse_some::<NonZeroUsize>)]
    pub(crate) pass_through_subscriptions_max: NonZeroUsize,
}

impl LimitArgs {
    /// Refuses limits that contradict each other.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let (budget, body) = BUDGET_PER_BODY;
        let least = self.body_bytes_max.saturating_mul(budget) / body;
        if self.bytes_under_way_max >= least {
            return Ok(());
        }
        Err(Failure::Usage(anyhow!(
            "--bytes-under-way-max {} is too little for bodies of {} bytes: at least {least} are \
             needed, or a smaller --body-bytes-max",
            self.bytes_under_way_max,
            self.body_bytes_max
        )))
    }

    /// The limits of the HTTP server; what no flag says is as `others` has it.
    pub(crate) fn http(&self, others: HttpSettings) -> HttpSettings {
        HttpSettings {
            body_bytes_max: self.body_bytes_max,
            bytes_under_way_max: self.bytes_under_way_max,
            threads: self.serve_threads,
            connections_max: self.connections_max.get(),
            connections_per_client_max: self.connections_per_client_max.map(NonZeroUsize::get),
            header_timeout: self.header_timeout,
            idle_timeout: self.idle_timeout,
            body_timeout: self.body_timeout,
            answer_timeout: self.answer_timeout,
            write_timeout: self.write_timeout,
            write_bytes_min: self.write_bytes_min,
            streams_max: self.streams_max.get(),
            ping_interval: self.ping_interval,
            socket_requests_max: self.socket_requests_max.get(),
            subscriptions_max: self.subscriptions_max.get(),
            stop_timeout: self.stop_timeout,
            ..others
        }
    }

    /// The limits of calls; what no flag says is as `others` has it.
    pub(crate) fn service(&self, others: ServiceSettings) -> ServiceSettings {
        ServiceSettings {
            batch_items_max: self.batch_items_max.get(),
            batch_bytes_max: self.batch_bytes_max,
            cache_bytes_max: self.cache_bytes,
            log_limits: LogLimits {
                count_max: self.logs_max.get(),
                bytes_max: self.logs_bytes_max,
                unindexed_blocks_max: self.logs_unindexed_blocks_max.get(),
                read_bytes_max: u64::try_from(self.logs_read_bytes_max).unwrap_or(u64::MAX),
            },
            filter_limits: FilterLimits {
                count_max: self.filters_max.get(),
                idle_timeout: self.filter_timeout,
            },
            ..others
        }
    }

    /// The limits of the store.
    pub(crate) fn store(&self) -> Limits {
        let bytes = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        Limits {
            tail_bytes_max: bytes(self.tail_bytes_max),
            open_segments_max: self.open_segments_max.get(),
            run_bytes_max: bytes(self.run_bytes_max),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        limits: LimitArgs,
    }

    fn parse(args: &[&str]) -> LimitArgs {
        Only::parse_from([&["quipu"], args].concat()).limits
    }

    #[test]
    fn without_flags_the_limits_are_those_of_the_server() {
        let limits = parse(&[]);
        limits.check().unwrap();
        assert_eq!(limits.http(HttpSettings::default()), HttpSettings::default());
        assert_eq!(limits.service(ServiceSettings::default()), ServiceSettings::default());
        assert_eq!(limits.store(), Limits::default());
    }

    #[test]
    fn a_budget_that_the_largest_body_does_not_fit_is_refused() {
        parse(&["--bytes-under-way-max", "16MiB"]).check().unwrap();
        let said = parse(&["--bytes-under-way-max", "16777215"]).check().unwrap_err();
        let Failure::Usage(said) = said else { panic!("{said:?}") };
        assert!(said.to_string().contains("at least 16777216 are needed"), "{said}");
        parse(&["--bytes-under-way-max", "4MiB", "--body-bytes-max", "1MiB"]).check().unwrap();
    }
}
