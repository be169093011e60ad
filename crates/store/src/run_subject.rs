//! What a run is an index of.

use std::fmt;

use segment::lookup::Subject;

/// What a run is an index of, in the order in which a manifest lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunSubject {
    /// Transactions by their hashes.
    Transactions,
    /// Blocks by their hashes.
    Blocks,
    /// Logs by their addresses and topics.
    Logs,
}

impl RunSubject {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Transactions, Self::Blocks, Self::Logs];
}

impl From<Subject> for RunSubject {
    fn from(subject: Subject) -> Self {
        match subject {
            Subject::Transactions => Self::Transactions,
            Subject::Blocks => Self::Blocks,
        }
    }
}

impl fmt::Display for RunSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transactions => "transactions",
            Self::Blocks => "blocks",
            Self::Logs => "logs",
        })
    }
}
