//! Standard output, which its reader may leave at any time.

use std::io::{self, Write};

/// Prints lines. A reader that has left is no failure: whatever was to be done goes on, and what
/// was found out stays as it is.
pub(crate) fn print_lines(lines: &[String]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let printed = lines.iter().try_for_each(|line| writeln!(out, "{line}"));
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}
