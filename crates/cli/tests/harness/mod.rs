//! What tests of the executable share: how it is run, served and asked, and nodes that it asks.

pub(crate) mod data;
pub(crate) mod encrypted;
pub(crate) mod hosted;
pub(crate) mod http2;
#[path = "../../../../e2e/hostile/src/http2_frames.rs"]
pub(crate) mod http2_frames;
pub(crate) mod live;
pub(crate) mod long;
pub(crate) mod node_socket;
#[path = "../../../../e2e/hostile/src/raw_requests.rs"]
pub(crate) mod raw_requests;
pub(crate) mod run;
pub(crate) mod served;
pub(crate) mod socket;
pub(crate) mod stores;
pub(crate) mod upstream;
pub(crate) mod wait;
pub(crate) mod web_server;
