//! What a view does without, though it is listed.

use chain::BlockRange;

/// A listed segment or lookup run whose file is not there, or cannot be opened as what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingFile {
    /// Its name.
    pub file_name: String,
    /// The blocks of a segment; `None` for a lookup run.
    pub blocks: Option<BlockRange>,
    /// What is wrong with it.
    pub reason: String,
}
