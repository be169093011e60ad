//! The segment file: pages, then one tail with everything that a reader needs before a page.
//!
//! ```text
//! transaction page, its payload pages, ... | header pages | other pages | tail | footer
//! ```

pub(crate) mod block;
pub(crate) mod encode;
pub(crate) mod footer;
mod parts;
pub(crate) mod read;
mod row_pages;
pub(crate) mod shape;
mod tail;
pub(crate) mod write;
pub(crate) mod write_fault;

use tail::{BlockEntry, PageEntry, PageKind, SegmentTail};
