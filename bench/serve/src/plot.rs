//! Plots as SVG: bars of shares, and lines over a logarithmic axis.
//!
//! Knows: how numbers become places on a page.
//! Never knows: what they count.
//!
//! Written by hand, because a few rectangles, lines and words need no library. Colours hold on light and
//! on dark pages.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const LABEL_WIDTH: f64 = 270.0;
const ROW_HEIGHT: f64 = 24.0;
const MARGIN: f64 = 46.0;
const PLOT_HEIGHT: f64 = 260.0;
const INK: &str = "#666";
const COLOURS: [&str; 4] = ["#2a7ab9", "#d9822b", "#5a9e4b", "#a0529c"];

/// One bar: a share, with marks for what must be and what is aimed at.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What it is.
    pub label: String,
    /// How much.
    pub value: f64,
    /// Marks on it.
    pub marks: Vec<f64>,
}

/// One line: points from left to right.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What it is.
    pub label: String,
    /// Across and up.
    pub points: Vec<(f64, f64)>,
}

/// Bars below one another, all on one scale that begins at nothing.
#[must_use]
pub fn bars(title: &str, bars: &[Bar]) -> String {
    let values = bars.iter().flat_map(|bar| bar.marks.iter().chain([&bar.value]));
    let most = values.copied().filter(|value| value.is_finite()).fold(1.0, f64::max);
    let scale = (WIDTH - LABEL_WIDTH - 60.0) / most;
    let mut body = String::new();
    let mut top = 40.0;
    for bar in bars {
        let middle = top + ROW_HEIGHT / 2.0;
        let length = if bar.value.is_finite() { bar.value.max(0.0) * scale } else { 0.0 };
        text(&mut body, LABEL_WIDTH - 8.0, middle + 4.0, "end", &bar.label);
        let _ = writeln!(
            body,
            "<rect x=\"{LABEL_WIDTH}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
            top + 4.0,
            ROW_HEIGHT - 8.0,
            COLOURS[0]
        );
        let shown = format!("{:.2}", bar.value);
        let furthest = bar.marks.iter().copied().fold(bar.value, f64::max);
        text(&mut body, LABEL_WIDTH + furthest * scale + 6.0, middle + 4.0, "start", &shown);
        for mark in &bar.marks {
            let x = LABEL_WIDTH + mark * scale;
            line(&mut body, (x, top + 1.0), (x, top + ROW_HEIGHT - 1.0), COLOURS[1], 2.0);
        }
        top += ROW_HEIGHT;
    }
    page(title, top + 12.0, &body)
}

/// Lines over one logarithmic axis across; upwards the axis is linear and begins at nothing.
#[must_use]
pub fn lines(title: &str, across: &str, up: &str, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let least = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let most = points().map(|point| point.0).fold(0.0, f64::max);
    let highest = points().map(|point| point.1).fold(0.0, f64::max);
    let (left, bottom) = (MARGIN + 30.0, 40.0 + PLOT_HEIGHT);
    let span = (most.max(1e-9) / least.max(1e-9)).ln().max(1e-9);
    let place = |(across, up): (f64, f64)| {
        let x = left + (across / least.max(1e-9)).ln() / span * (WIDTH - left - MARGIN);
        (x, bottom - up / highest.max(1e-9) * (PLOT_HEIGHT - 20.0))
    };
    let mut body = String::new();
    line(&mut body, (left, bottom), (WIDTH - MARGIN, bottom), INK, 1.0);
    line(&mut body, (left, 50.0), (left, bottom), INK, 1.0);
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let y = place((least, share * highest)).1;
        text(&mut body, left - 6.0, y + 4.0, "end", &short(share * highest));
    }
    let mut ticks: Vec<f64> = points().map(|point| point.0).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    for tick in ticks {
        text(&mut body, place((tick, 0.0)).0, bottom + 16.0, "middle", &short(tick));
    }
    text(&mut body, WIDTH / 2.0, bottom + 36.0, "middle", across);
    text(&mut body, left, 44.0, "start", up);
    for (one, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let places: Vec<String> = one
            .points
            .iter()
            .map(|point| place(*point))
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = writeln!(
            body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            places.join(" ")
        );
        if let Some(last) = one.points.last() {
            let (x, y) = place(*last);
            text(&mut body, x - 4.0, y - 8.0, "end", &one.label);
        }
    }
    page(title, bottom + 48.0, &body)
}

fn page(title: &str, height: f64, body: &str) -> String {
    let mut head = String::new();
    let _ = writeln!(
        head,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">"
    );
    let _ = writeln!(
        head,
        "<text x=\"8\" y=\"20\" font-size=\"14\" fill=\"{INK}\">{}</text>",
        escape(title)
    );
    format!("{head}{body}</svg>\n")
}

fn text(body: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = escape(words);
    let _ = writeln!(
        body,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{INK}\">{words}</text>"
    );
}

fn line(body: &mut String, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
    let _ = writeln!(
        body,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>",
        from.0, from.1, to.0, to.1
    );
}

/// `100k` rather than `100000`.
fn short(value: f64) -> String {
    if value >= 1e6 {
        format!("{:.0}M", value / 1e6)
    } else if value >= 1e4 {
        format!("{:.0}k", value / 1e3)
    } else if value >= 10.0 || value == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

fn escape(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_share_one_scale_and_have_their_marks() {
        let bar = |value, marks: &[f64]| Bar {
            label: "hot <block> & more".into(),
            value,
            marks: marks.to_vec(),
        };
        let svg = bars("shares", &[bar(0.5, &[]), bar(2.0, &[1.0])]);
        // 390 places for the longest, which is 2.
        assert!(svg.contains("width=\"97.5\"") && svg.contains("width=\"390.0\""), "{svg}");
        assert!(svg.contains("x1=\"465.0\""), "{svg}");
        assert!(svg.contains("hot &lt;block&gt; &amp; more"));
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn lines_rise_with_their_numbers() {
        let line = Line { label: "Quipu".into(), points: vec![(1.0, 0.0), (100.0, 50.0)] };
        let svg = lines("connections", "connections", "requests/s", &[line]);
        assert!(svg.contains("points=\"76.0,300.0 674.0,60.0\""), "{svg}");
    }

    #[test]
    fn a_value_that_is_no_number_is_no_bar() {
        let bar = Bar { label: "none".into(), value: f64::NAN, marks: Vec::new() };
        assert!(bars("shares", &[bar]).contains("width=\"0.0\""));
    }

    #[test]
    fn numbers_are_short() {
        let found = [0.0, 0.5, 10.0, 12_345.0, 3e6].map(short);
        assert_eq!(found, ["0", "0.5", "10", "12k", "3M"]);
    }
}
