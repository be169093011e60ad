//! The time of day, as answers tell it.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

thread_local! {
    /// The second, and its line.
    static LINE: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
}

/// Appends the header field.
pub(super) fn put_date(head: &mut Vec<u8>) {
    #[expect(clippy::disallowed_methods, reason = "what an answer tells is the time of day")]
    let now = SystemTime::now();
    let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    LINE.with_borrow_mut(|(made, line)| {
        if *made != second || line.is_empty() {
            *made = second;
            line.clear();
            // Writing to a string does not fail.
            let _ = write!(line, "date: {}\r\n", httpdate::HttpDate::from(now));
        }
        head.extend_from_slice(line.as_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_a_header_field_of_now() {
        let mut head = Vec::new();
        put_date(&mut head);
        put_date(&mut head);
        let text = String::from_utf8(head).unwrap();
        let dates: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(dates.len(), 2);
        for date in dates {
            let told = httpdate::parse_http_date(date.strip_prefix("date: ").unwrap()).unwrap();
            #[expect(clippy::disallowed_methods, reason = "it is compared with the time of day")]
            let apart = SystemTime::now().duration_since(told).unwrap();
            assert!(apart.as_secs() <= 2, "{date}");
        }
    }
}
