//! Notes to oneself do not outlive the change that wrote them.

/// Spelled in halves, or this file would report itself.
const MARKERS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

pub(super) fn check(text: &str, report: &mut impl FnMut(usize, String)) {
    for (line, number) in text.lines().zip(1..) {
        for word in line.split(|letter: char| !letter.is_alphanumeric()) {
            if MARKERS.contains(&word) {
                report(number, format!("{word}: do it, or open an issue and delete the note"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_left_over_marker_is_found_as_a_whole_word() {
        let mut lines = Vec::new();
        let text = format!("a\n// {}(me): later\n{}X todo!", MARKERS[0], MARKERS[2]);
        check(&text, &mut |line, _| lines.push(line));
        assert_eq!(lines, [2]);
    }
}
