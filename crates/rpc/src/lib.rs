//! JSON-RPC: requests in, answers out, written straight from stored bytes.
//!
//! Knows: the envelope, batches, the method table, parameters, JSON, refusals and their codes.
//! Never knows: archives, upstream protocols, how segments are laid out.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use chain::ChainSpec;
//! use rpc::{Service, ServiceSettings};
//! use store::disk::Folder;
//! use store::read::{Inline, block_on};
//! use store::{Limits, Store};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let disk = Arc::new(Folder::create(folder.path()).unwrap());
//! let store = Arc::new(Store::open(disk, Arc::new(Inline), Limits::default()).unwrap());
//! let spec = ChainSpec::bare("private", Some(1337), None);
//! let service = Service::new(store, spec, ServiceSettings::default());
//! let body = br#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
//! let answer = block_on(service.respond(body, Duration::from_secs(8)));
//! assert_eq!(answer.unwrap(), br#"{"jsonrpc":"2.0","id":1,"result":"0x539"}"#);
//! ```

mod absence;
mod address_group;
mod admission;
mod answer;
mod answered_range;
mod budget;
mod cache;
mod call_counts;
pub mod compare;
mod envelope;
mod epoch_trees;
mod explorer;
mod filters;
mod heads;
mod health;
pub mod http;
mod http_counts;
mod in_time;
mod json;
mod kept_filter;
mod log_changes;
mod log_filter;
mod log_limits;
mod method_pattern;
mod methods;
mod metrics_page;
mod openrpc;
mod params;
mod pass_through;
mod raw;
mod refusal;
mod reply;
mod request_log;
mod scan;
mod service;
mod shared_logs;
mod spare;
mod stat_page;
mod subscription;
mod suggested_tip;
mod traffic;
mod work_slice;

pub use absence::UnknownHash;
pub use admission::{
    Admission, AdmissionError, AdmissionSettings, ApiKey, KeyHash, KeyHashError, KeyRequirement,
    ProxyNetwork, ProxyNetworkError, Rates,
};
pub use budget::{Budget, BudgetCounts};
pub use cache::CacheSize;
pub use call_counts::{CallOutcome, CallTimes, MethodCounts};
pub use filters::FilterLimits;
pub use health::{CatchingUp, Health};
pub use http_counts::HttpCounts;
pub use log_limits::LogLimits;
pub use method_pattern::{MethodPattern, MethodPatternError};
pub use metrics_page::{CountServer, MetricsPage, ServerCounts};
pub use pass_through::{
    AnswerRoom, NextMessage, NodeSubscription, PassThrough, PassThroughError, PassThroughMethod,
    PassThroughMethodError, Passing, Subscribing,
};
pub use refusal::{ExceededLogLimit, ExceededRate, Refusal};
pub use reply::refusal_body;
pub use service::{Service, ServiceSettings};
pub use stat_page::{LiveCounts, MakingPage, PageError, StatPage, StatScope};
pub use traffic::TrafficCounts;
