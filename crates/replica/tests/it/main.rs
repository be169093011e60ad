//! What a bucket promises, over stores that work and stores that fail.

mod conformance;
mod faulty_store;
mod history;
mod model;
mod publish;
mod upkeep;
mod web_server;
