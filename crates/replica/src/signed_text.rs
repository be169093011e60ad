//! Small texts of a bucket: a title, one fact a line, and a checksum in the last line.

use std::collections::BTreeSet;

/// The longest such text that is read: some hundred thousand names.
pub(crate) const TEXT_BYTES_MAX: u64 = 16 << 20;

/// The text of these lines; the same lines give the same bytes.
pub(crate) fn encode_lines(title: &str, lines: &BTreeSet<String>) -> Vec<u8> {
    let mut text = format!("{title}\n");
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    let checksum = crc32fast::hash(text.as_bytes());
    format!("{text}checksum {checksum:08x}\n").into_bytes()
}

/// The lines of a text with this title, or what is wrong with it.
pub(crate) fn decode_lines(title: &str, bytes: &[u8]) -> Result<BTreeSet<String>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let mut lines = text.lines();
    let found = lines.next().unwrap_or_default();
    if found != title {
        let found: String = found.chars().take(40).collect();
        return Err(format!("its first line is {found:?}, expected {title:?}"));
    }
    let lines: BTreeSet<String> =
        lines.filter(|line| !line.starts_with("checksum ")).map(str::to_owned).collect();
    if encode_lines(title, &lines) != bytes {
        return Err("its lines are not in order, or their checksum is another one".to_owned());
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_was_cut_or_changed_is_refused() {
        let lines: BTreeSet<String> = ["a 1", "b 2"].map(str::to_owned).into();
        let text = encode_lines("title 1", &lines);
        assert_eq!(text, b"title 1\na 1\nb 2\nchecksum 62f5dffc\n");
        assert_eq!(decode_lines("title 1", &text).unwrap(), lines);
        assert!(decode_lines("title 2", &text).unwrap_err().contains("title 1"));
        for end in 0..text.len() {
            decode_lines("title 1", &text[..end]).unwrap_err();
        }
        for place in 0..text.len() {
            let mut changed = text.clone();
            changed[place] ^= 1;
            decode_lines("title 1", &changed).unwrap_err();
        }
    }
}
