//! Hostile clients against the real server, beside a well-behaved one.
//!
//! Knows: the bytes of HTTP/1.1, HTTP/2 and WebSocket that no decent client sends, what the
//! well-behaved client must get meanwhile, and what the system tells of the server's memory.
//! Never knows: how the server defends itself.
//!
//! Everything stays on loopback, is bounded in count and time, and the server ends with the run.

mod abuse;
mod attack;
mod ceiling;
mod good_client;
mod http1;
mod http2_frames;
mod largest;
mod pace;
mod raw_requests;
mod request;
mod resident;
pub mod run;
mod table;
mod websocket_frames;
