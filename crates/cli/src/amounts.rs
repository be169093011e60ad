//! Numbers, hashes, bytes and times as people write them.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use alloy_primitives::B256;

/// A whole number.
pub(crate) fn parse_number<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    parse_digits(text, "write a whole number, such as 16")
}

/// A whole number that is not 0.
pub(crate) fn parse_some<N: TryFrom<NonZeroU64>>(text: &str) -> Result<N, String> {
    let wanted = "write a whole number from 1 on, such as 16";
    let number: u64 = parse_digits(text, wanted)?;
    let number = NonZeroU64::new(number).ok_or_else(|| format!("0 is too small: {wanted}"))?;
    N::try_from(number).map_err(|_| too_large(wanted))
}

/// More threads than this are a slip of the hand, and the system would refuse some of them.
const THREADS_MAX: usize = 1024;

/// So many threads, at least one.
pub(crate) fn parse_threads(text: &str) -> Result<NonZeroUsize, String> {
    let count: NonZeroUsize = parse_some(text)?;
    if count.get() > THREADS_MAX {
        return Err(format!("write a number of threads from 1 to {THREADS_MAX}"));
    }
    Ok(count)
}

fn parse_digits<N: TryFrom<u64>>(text: &str, wanted: &str) -> Result<N, String> {
    // Rust's own parser would let a plus sign through, and its messages name no example.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wanted.to_owned());
    }
    let number = text.parse::<u64>().ok().and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| too_large(wanted))
}

fn too_large(wanted: &str) -> String {
    format!("too large: {wanted}")
}

/// The hash of a block.
pub(crate) fn parse_hash(text: &str) -> Result<B256, String> {
    text.parse().map_err(|_| {
        let digits = text.strip_prefix("0x").unwrap_or(text).chars().count();
        format!("write 0x and 64 hexadecimal digits; here are {digits} letters and digits")
    })
}

/// Bytes: a number, perhaps with a unit such as `64MiB` or `25MB`.
pub(crate) fn parse_bytes(text: &str) -> Result<usize, String> {
    let wrong = || "write bytes, such as 67108864, 64MiB or 64MB".to_owned();
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let factor: usize = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number: usize = number.parse().map_err(|_| wrong())?;
    number.checked_mul(factor).ok_or_else(|| "more bytes than there can be".to_owned())
}

/// Bytes of which there must be some.
pub(crate) fn parse_some_bytes(text: &str) -> Result<usize, String> {
    match parse_bytes(text)? {
        0 => Err("at least 1 is needed".to_owned()),
        bytes => Ok(bytes),
    }
}

/// A time: seconds, perhaps with a fraction, or with a unit such as `500ms`, `30s`, `2m` or `1h`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || "write seconds, such as 30 or 1.5, or 500ms, 2m, 1h".to_owned();
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 || (number.contains('.') && fraction.is_empty()) {
        return Err(wrong());
    }
    let scale = 10_u64.pow(u32::try_from(fraction.len()).unwrap_or_default());
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let parts: u64 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| wrong())? };
    let parts = u128::from(whole) * u128::from(scale) + u128::from(parts);
    let nanoseconds = parts * u128::from(milliseconds) * 1_000_000 / u128::from(scale);
    let nanoseconds = u64::try_from(nanoseconds).map_err(|_| "longer than can be".to_owned())?;
    Ok(Duration::from_nanos(nanoseconds))
}

/// A time that is not none.
pub(crate) fn parse_some_time(text: &str) -> Result<Duration, String> {
    match parse_time(text)? {
        Duration::ZERO => Err("longer than 0 is needed".to_owned()),
        time => Ok(time),
    }
}

/// The digits, and what follows them.
fn split(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = text.split_at_checked(end.unwrap_or(text.len()))?;
    (!number.is_empty()).then_some((number, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU32, NonZeroUsize};

    use super::*;

    #[test]
    fn numbers_are_digits_alone() {
        assert_eq!(parse_number::<u64>("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse_number::<u64>("0"), Ok(0));
        assert_eq!(parse_some("7"), Ok(NonZeroUsize::MIN.saturating_add(6)));
        let wanted = "write a whole number, such as 16";
        for text in ["", "+1", "-1", "1.5", "1,000", "1_000", "0x10", "ten", " 1"] {
            assert_eq!(parse_number::<u64>(text), Err(wanted.to_owned()), "{text}");
            assert!(parse_some::<NonZeroU64>(text).is_err(), "{text}");
        }
        let too_large = Err(format!("too large: {wanted}"));
        assert_eq!(parse_number::<u64>("18446744073709551616"), too_large);
        assert_eq!(parse_number::<u32>("4294967296").map(u64::from), too_large);
        let wanted = "write a whole number from 1 on, such as 16";
        assert_eq!(parse_some::<NonZeroU32>("0"), Err(format!("0 is too small: {wanted}")));
        assert_eq!(parse_some::<NonZeroU32>("4294967296"), Err(format!("too large: {wanted}")));
    }

    #[test]
    fn threads_are_few() {
        assert_eq!(parse_threads("1024").map(NonZeroUsize::get), Ok(1024));
        let wanted = "write a number of threads from 1 to 1024";
        assert_eq!(parse_threads("1025"), Err(wanted.to_owned()));
        assert!(parse_threads("0").is_err());
    }

    #[test]
    fn a_hash_has_64_digits() {
        let digits = "5".repeat(64);
        assert_eq!(parse_hash(&format!("0x{digits}")), Ok(B256::repeat_byte(0x55)));
        assert_eq!(parse_hash(&digits), Ok(B256::repeat_byte(0x55)));
        let said = parse_hash("0x1234").unwrap_err();
        assert_eq!(said, "write 0x and 64 hexadecimal digits; here are 4 letters and digits");
        assert!(parse_hash(&digits.replace('5', "g")).is_err());
    }

    #[test]
    fn bytes_may_have_a_unit() {
        for (text, bytes) in [
            ("0", 0),
            ("67108864", 64 << 20),
            ("64MiB", 64 << 20),
            ("64 MiB", 64 << 20),
            ("25MB", 25_000_000),
            ("2GiB", 2 << 30),
            ("7kB", 7000),
            ("9B", 9),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in
            ["", "MiB", "-1", "1.5MiB", "5 apples", "99999999999999999999", "9999999999999GiB"]
        {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        assert!(parse_some_bytes("0").is_err());
    }

    #[test]
    fn times_are_seconds_unless_they_have_a_unit() {
        for (text, milliseconds) in [
            ("30", 30_000),
            ("1.5", 1500),
            ("0.001", 1),
            ("500ms", 500),
            ("30s", 30_000),
            ("2m", 120_000),
            ("1.5h", 5_400_000),
            ("0", 0),
        ] {
            assert_eq!(parse_time(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "s", "1.", ".5", "1.2.3", "-1", "1d", "1e3", "99999999999999999999"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert!(parse_some_time("0ms").is_err());
    }
}
