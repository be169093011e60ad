//! What tests of the executable share: how it is run, served and asked, and nodes that it asks.

pub(crate) mod data;
pub(crate) mod encrypted;
pub(crate) mod hosted;
pub(crate) mod http2;
#[path = "../../../../e2e/hostile/src/http2_frames.rs"]
pub(crate) mod http2_frames;
pub(crate) mod live;
pub(crate) mod long;
#[path = "../../../ingest/tests/harness/mirror.rs"]
pub(crate) mod mirror;
pub(crate) mod node_socket;
#[path = "../../../../e2e/hostile/src/raw_requests.rs"]
pub(crate) mod raw_requests;
pub(crate) mod run;
pub(crate) mod served;
#[path = "../../../ingest/tests/harness/shared_data.rs"]
pub(crate) mod shared_data;
pub(crate) mod socket;
pub(crate) mod stores;
pub(crate) mod upstream;
pub(crate) mod wait;
pub(crate) mod web_server;
