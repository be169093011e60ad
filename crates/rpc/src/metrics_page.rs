//! The page of metrics, as `/metrics`.

use std::fmt;

use crate::budget::BudgetCounts;
use crate::cache::CacheSize;
use crate::call_counts::MethodCounts;
use crate::http_counts::HttpCounts;
use crate::stat_page::MakingPage;
use crate::traffic::TrafficCounts;

/// What a server has counted at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerCounts {
    /// What clients have asked since the start.
    pub traffic: TrafficCounts,
    /// Calls by method.
    pub methods: Vec<MethodCounts>,
    /// Connections, and refusals of the transport.
    pub http: HttpCounts,
    /// Bytes of bodies and answers in memory.
    pub budget: BudgetCounts,
    /// What the response cache holds.
    pub cache: CacheSize,
    /// Subscriptions of all connections.
    pub subscriptions: u64,
    /// Filters that clients poll.
    pub filters: u64,
    /// Whether what is configured can be answered.
    pub is_ready: bool,
}

/// Tells what a server has counted until now.
pub type CountServer<'a> = &'a (dyn Fn() -> ServerCounts + Send + Sync);

/// Who makes the page.
pub trait MetricsPage: fmt::Debug + Send + Sync {
    /// The page in the text format of Prometheus; it may be one that was made a short while ago. What
    /// takes long is done elsewhere.
    fn make<'a>(&'a self, count: CountServer<'a>) -> MakingPage<'a>;
}
