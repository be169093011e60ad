//! Two servers, the same questions: what to ask, and where the answers differ.

mod difference;
mod question;
mod tally;

pub use difference::{AnswerKind, Difference, NotAnAnswer, differences};
pub use question::{ComparedCall, questions_of_absent, questions_of_block, spread};
pub use tally::{CompareTally, DifferenceGroup, MethodCount};
