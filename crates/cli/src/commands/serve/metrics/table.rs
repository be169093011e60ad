//! The table of metrics: every name, its kind, its labels and its help text.

/// What kind of values a metric has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricKind {
    /// It grows, and begins at zero with the process.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts by size, with their sum.
    Histogram,
}

/// A row of the table.
#[derive(Debug)]
pub(super) struct MetricRow {
    pub(super) name: &'static str,
    pub(super) kind: MetricKind,
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
}

macro_rules! metrics {
    ($($metric:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        /// A metric.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Metric {
            $($metric,)*
        }

        /// Every metric, in the order in which they are shown.
        pub(super) const METRICS: &[(Metric, MetricRow)] = &[$((Metric::$metric, MetricRow {
            name: $name,
            kind: MetricKind::$kind,
            labels: &[$($label),*],
            help: $help,
        }),)*];
    };
}
metrics! {
    // What clients ask.
    RpcCalls = Counter "quipu_rpc_calls_total" ["method", "outcome"]
        "Calls by method and by how they ended.";
    RpcCallDuration = Histogram "quipu_rpc_call_duration_seconds" ["method"]
        "Time to make an answer, by method: from the request's last byte, or in a batch from the end of the \
         call before; of a call that a node answers from when it was passed on. Sending is not in it.";
    RpcRequests = Counter "quipu_rpc_requests_total" ["transport"]
        "Bodies over HTTP and messages over WebSocket; a batch is one.";
    RpcRequestBytes = Counter "quipu_rpc_request_bytes_total" []
        "Bytes of requests, decompressed.";
    RpcResponseBytes = Counter "quipu_rpc_response_bytes_total" []
        "Bytes of answers and of notifications, before compression.";
    Subscriptions = Gauge "quipu_rpc_subscriptions" []
        "Subscriptions of all WebSocket connections.";
    Filters = Gauge "quipu_rpc_filters" []
        "Filters that clients poll.";
    CacheHits = Counter "quipu_rpc_cache_hits_total" []
        "Results that the response cache had.";
    CacheMisses = Counter "quipu_rpc_cache_misses_total" []
        "Results of a kind that is cached, and that had to be made.";
    CacheEntries = Gauge "quipu_rpc_cache_entries" []
        "Results in the response cache, each in one encoding.";
    CacheBytes = Gauge "quipu_rpc_cache_size_bytes" []
        "Bytes of the response cache.";

    // Connections and limits.
    Connections = Gauge "quipu_http_connections" ["protocol"]
        "Open connections by protocol.";
    ConnectionsAccepted = Counter "quipu_http_connections_accepted_total" []
        "Connections that were accepted.";
    ConnectionsRefused = Counter "quipu_http_connections_refused_total" ["reason"]
        "Connections that were not served, by reason.";
    HttpRefusals = Counter "quipu_http_refusals_total" ["code"]
        "Answers with an HTTP status of 400 or above, by status code; /readyz is not counted.";
    BudgetBytes = Gauge "quipu_http_bytes_under_way" []
        "Bytes of request bodies and answers in memory.";
    BudgetBytesPeak = Gauge "quipu_http_bytes_under_way_peak" []
        "The most bytes of request bodies and answers that were in memory.";
    BudgetBytesMax = Gauge "quipu_http_bytes_under_way_max" []
        "Bytes of request bodies and answers that may be in memory.";
    BudgetRefusals = Counter "quipu_http_budget_refusals_total" []
        "Requests and messages that were refused because there was no room for them or their answers.";
    WorkPauses = Counter "quipu_http_work_pauses_total" []
        "Interruptions of long work that let other clients in.";

    // Reads.
    StoreLookups = Counter "quipu_store_lookups_total" []
        "Times that a lookup run was asked, for a hash or for an address or topic of logs.";
    StorePages = Counter "quipu_store_pages_read_total" []
        "Pages of segments that were read, checked and decompressed for answers.";
    StoreDiskReads = Counter "quipu_store_disk_reads_total" []
        "Reads that had to wait for the disk.";
    StoreDiskQueue = Gauge "quipu_store_disk_reads_queued" []
        "Reads that wait for a thread that reads the disk.";

    // The chain.
    Ready = Gauge "quipu_ready" []
        "1 if /readyz answers 200, else 0.";
    TipBlock = Gauge "quipu_chain_tip_block" []
        "Number of the newest block held.";
    TipTimestamp = Gauge "quipu_chain_tip_timestamp_seconds" []
        "Timestamp of the newest block held.";
    SafeBlock = Gauge "quipu_chain_safe_block" []
        "Number of the newest block that is safe.";
    FinalizedBlock = Gauge "quipu_chain_finalized_block" []
        "Number of the newest block that is final.";

    // What is held.
    StoreBlocks = Gauge "quipu_store_blocks" ["status"]
        "Blocks held, by trust status.";
    StoreGapBlocks = Gauge "quipu_store_gap_blocks" []
        "Blocks missing between those that are held.";
    StoreLostBlocks = Gauge "quipu_store_lost_blocks" []
        "Blocks that were held once and cannot be served any more.";
    StoreWithoutReceipts = Gauge "quipu_store_blocks_without_receipts" []
        "Blocks held without their receipts.";
    StoreWithoutLogIndex = Gauge "quipu_store_blocks_without_log_index" []
        "Blocks held without a log index.";
    StoreHeadBlocks = Gauge "quipu_store_head_blocks" []
        "Blocks that are not sealed yet.";
    StoreTransactions = Gauge "quipu_store_transactions" []
        "Transactions held.";
    StoreLogs = Gauge "quipu_store_logs" []
        "Logs held.";
    StoreBytes = Gauge "quipu_store_size_bytes" ["part"]
        "Bytes of the data folder, by part.";
    StoreFreeBytes = Gauge "quipu_store_disk_free_bytes" []
        "Bytes free for this user on the file system of the data folder.";
    StoreSegments = Gauge "quipu_store_segments" []
        "Segments of the data folder.";
    StoreRuns = Gauge "quipu_store_lookup_runs" []
        "Lookup runs of the data folder, those of the log index included.";
    StorePendingMerges = Gauge "quipu_store_pending_merges" []
        "Complete slots whose segments are not merged yet.";
    StoreFaultyFiles = Gauge "quipu_store_faulty_files" []
        "Listed files that cannot be read, or not all of them.";

    // Following.
    FollowUpstreamTip = Gauge "quipu_follow_upstream_tip_block" []
        "Number of the newest block that the upstream told of.";
    FollowLag = Gauge "quipu_follow_lag_blocks" []
        "Blocks that the upstream told of and that are not held.";
    FollowHeard = Gauge "quipu_follow_heard_timestamp_seconds" []
        "When the upstream last told its tip.";
    FollowFailing = Gauge "quipu_follow_failing" []
        "1 if the upstream cannot be followed and trying again has not helped, else 0.";
    FollowConflict = Gauge "quipu_follow_conflict" []
        "1 if the upstream contradicts a block that is final here, else 0.";
    FollowReorgs = Histogram "quipu_follow_reorg_depth_blocks" []
        "Reorgs by the number of blocks that they took away.";
    FollowSeals = Counter "quipu_follow_seals_total" []
        "Times that final blocks were sealed into a segment.";
    FollowSealedBlocks = Counter "quipu_follow_sealed_blocks_total" []
        "Blocks that were sealed.";
    FollowMerges = Counter "quipu_follow_merges_total" []
        "Slots whose segments were merged.";
    FollowMergedBlocks = Counter "quipu_follow_merged_blocks_total" []
        "Blocks of the segments that were merged.";
    FollowMergeFailures = Counter "quipu_follow_merge_failures_total" []
        "Merges that failed and are tried again.";
    UpstreamHealth = Gauge "quipu_upstream_health" ["upstream", "state"]
        "1 for the state of an upstream node, 0 for the others.";
    UpstreamFailures = Counter "quipu_upstream_failures_total" ["upstream"]
        "Failed requests to an upstream node.";
    UpstreamInvalidResponses = Counter "quipu_upstream_invalid_responses_total" ["upstream"]
        "Responses of an upstream node that failed verification.";

    // The bucket that is read.
    SourceRequests = Counter "quipu_source_requests_total" []
        "Requests for ranges of published files, hedges and repetitions included.";
    SourceBytesFetched = Counter "quipu_source_fetched_bytes_total" []
        "Bytes that came from the source.";
    SourceBytesAsked = Counter "quipu_source_asked_bytes_total" []
        "Bytes of published files that reads needed and no cache had.";
    SourceReads = Counter "quipu_source_reads_total" ["from"]
        "Reads of published files, by where the bytes were: in memory, on disk, or in the bucket.";
    SourceHedges = Counter "quipu_source_hedges_total" []
        "Second requests beside a slow first one.";
    SourceRetries = Counter "quipu_source_retries_total" []
        "Requests that were repeated after a failure.";
    SourceFailures = Counter "quipu_source_failures_total" []
        "Reads that failed in spite of repetitions.";
    SourceCacheBytes = Gauge "quipu_source_cache_size_bytes" ["place"]
        "Bytes of published files that are cached, in memory and on disk.";
    SourceManifests = Gauge "quipu_source_manifests" []
        "Manifests that are published and believed.";
    SourceListed = Gauge "quipu_source_listing_age_seconds" []
        "Time since the source was last listed.";

    // The process.
    BuildInfo = Gauge "quipu_build_info" ["version", "commit"]
        "Always 1; version and commit of this build.";
    ReloadSuccessful = Gauge "quipu_config_last_reload_successful" []
        "1 if the last reload of settings put them in force, or if there was none, else 0.";
    ReloadSuccess = Gauge "quipu_config_last_reload_success_timestamp_seconds" []
        "When settings were last put in force, at the start or by a reload.";
    ProcessStart = Gauge "process_start_time_seconds" []
        "When the process began to serve.";
    ProcessCpu = Counter "process_cpu_seconds_total" []
        "Processor time of the process, in user and in system mode.";
    ProcessResident = Gauge "process_resident_memory_bytes" []
        "Memory of the process that is resident.";
    ProcessVirtual = Gauge "process_virtual_memory_bytes" []
        "Address space of the process.";
    ProcessDescriptors = Gauge "process_open_fds" []
        "Open file descriptors.";
    ProcessDescriptorsMax = Gauge "process_max_fds" []
        "File descriptors that may be open.";
}

impl Metric {
    /// Its place in the table.
    #[expect(clippy::as_conversions, reason = "rows and names are expanded from one list")]
    pub(super) fn index(self) -> usize {
        self as usize
    }
}
