//! The questions, one module for each kind, and the order in which the table answers them.

pub mod cold_reads;
pub mod density;
pub mod import_speed;
pub mod logs;
pub mod memory;
pub mod segment_count;
pub mod warm_reads;
