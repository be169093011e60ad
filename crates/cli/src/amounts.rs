//! Bytes and times as people write them.
//!
//! Knows: units, and that a number alone is bytes or seconds.
//! Never knows: what they are amounts of.

use std::time::Duration;

/// Bytes: a number, perhaps with a unit such as `64MiB` or `25MB`.
pub(super) fn parse_bytes(text: &str) -> Result<usize, String> {
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
pub(super) fn parse_some_bytes(text: &str) -> Result<usize, String> {
    match parse_bytes(text)? {
        0 => Err("at least 1 is needed".to_owned()),
        bytes => Ok(bytes),
    }
}

/// A time: seconds, perhaps with a fraction, or with a unit such as `500ms`, `30s`, `2m` or `1h`.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
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
pub(super) fn parse_some_time(text: &str) -> Result<Duration, String> {
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
    use super::*;

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
