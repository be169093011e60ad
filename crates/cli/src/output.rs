//! Standard output, which its reader may leave at any time, how much is said beside it, and numbers as
//! people read them.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

/// How much is said beside results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Errors and warnings.
    Quiet,
    /// And progress and notes.
    #[default]
    Usual,
    /// And what is otherwise said only if asked for.
    Verbose,
}

/// Set once, from the command line: what is said is the same everywhere in the process.
static VERBOSITY: OnceLock<Verbosity> = OnceLock::new();

/// Decides how much is said from here on.
pub(crate) fn set_verbosity(verbosity: Verbosity) {
    let _ = VERBOSITY.set(verbosity);
}

pub(crate) fn verbosity() -> Verbosity {
    VERBOSITY.get().copied().unwrap_or_default()
}

/// Says something that no result depends on, unless it is to be quiet.
pub(crate) fn note(text: &str) {
    if verbosity() > Verbosity::Quiet {
        eprintln!("note: {text}");
    }
}

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

/// A number and its noun, which gets an s unless there is one.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The same with its digits in groups of three.
pub(crate) fn counted_grouped(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// How many a second, in brackets behind a time; nothing where that would be none.
pub(crate) fn rate(count: u64, noun: &str, elapsed: Duration) -> String {
    let rate = u128::from(count) * 1000 / elapsed.as_millis().max(1);
    if rate == 0 { String::new() } else { format!(" ({rate} {noun}s/s)") }
}

/// A number with its digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len().saturating_mul(2));
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `part / whole` with `digits` digits after the point, rounded half up; `-` of nothing.
pub(crate) fn ratio(part: u64, whole: u64, digits: u32) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let scale = 10_u128.pow(digits);
    let whole = u128::from(whole);
    let scaled = (u128::from(part) * scale * 2 + whole) / (whole * 2);
    let places = usize::try_from(digits).unwrap_or_default();
    format!("{}.{:0places$}", scaled / scale, scaled % scale)
}

/// Seconds as people read them.
pub(crate) fn clock(seconds: u64) -> String {
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours @ 1..=47, minutes) => format!("{hours} h {minutes} min"),
        (hours, _) => format!("{} days", hours / 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three_digits() {
        let shown = [0, 7, 999, 1000, 12_345, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
    }

    #[test]
    fn ratios_are_rounded_and_nothing_has_none() {
        assert_eq!(ratio(1, 3, 1), "0.3");
        assert_eq!(ratio(2, 3, 1), "0.7");
        assert_eq!(ratio(199, 100, 1), "2.0");
        assert_eq!(ratio(100 * 5, 8, 2), "62.50");
        assert_eq!(ratio(5, 0, 1), "-");
        assert_eq!(ratio(u64::MAX, 1, 1), "18446744073709551615.0");
    }

    #[test]
    fn a_rate_of_none_is_left_out() {
        assert_eq!(rate(0, "block", Duration::from_secs(1)), "");
        assert_eq!(rate(1, "block", Duration::from_secs(10)), "");
        assert_eq!(rate(30, "block", Duration::from_secs(10)), " (3 blocks/s)");
        assert_eq!(rate(7, "block", Duration::ZERO), " (7000 blocks/s)");
    }

    #[test]
    fn one_thing_has_no_plural() {
        assert_eq!(counted_grouped(1, "block"), "1 block");
        assert_eq!(counted_grouped(1234, "block"), "1,234 blocks");
        assert_eq!([0, 1, 2].map(|count| counted(count, "file")), ["0 files", "1 file", "2 files"]);
    }

    #[test]
    fn times_are_told_in_the_unit_that_suits_them() {
        let shown = [0, 59, 60, 3599, 3600, 172_799, 172_800].map(clock);
        assert_eq!(shown, ["0 s", "59 s", "1 min", "59 min", "1 h 0 min", "47 h 59 min", "2 days"]);
    }
}
