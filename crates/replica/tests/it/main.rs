//! What a bucket promises, over stores that work and stores that fail.

mod faulty_store;
mod history;
mod model;
mod publish;
mod upkeep;
