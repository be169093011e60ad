//! Sealed files in an object store: how they travel there and back, and how they are read in place.
//!
//! Knows: the objects of a bucket, the order that makes a half-done upload harmless, ranged reads.
//! Never knows: JSON, HTTP serving, who supplies blocks, what a segment or a run contains.
