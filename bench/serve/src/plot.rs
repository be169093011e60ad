//! Plots as SVG: bars of shares, and panels of lines over one axis.
//!
//! Written by hand, because a few rectangles, lines and words need no library. Colours hold on light and
//! on dark pages.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const LABEL_WIDTH: f64 = 270.0;
const ROW_HEIGHT: f64 = 24.0;
const MARGIN: f64 = 46.0;
const PLOT_HEIGHT: f64 = 180.0;
/// Where panels begin.
const LEFT: f64 = 64.0;
/// Between two numbers of the axis across.
const TICK_ROOM: f64 = 40.0;
const INK: &str = "#666";
const GRID: &str = "#8883";
/// As many points can be told apart; more are a line alone.
const DOTS_MAX: usize = 60;
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

/// Lines that share their axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What is counted upwards.
    pub up: String,
    /// The lines.
    pub lines: Vec<Line>,
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

/// How places on the axis across follow numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// Twice as much is as far wherever it is.
    Logarithmic,
    /// So much more is as far wherever it is.
    Linear,
}

/// Panels below one another over the same axis across; upwards each is linear and begins at nothing.
#[must_use]
pub fn panels(title: &str, across: &str, scaling: Scaling, panels: &[Panel]) -> String {
    let places = panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
    let mut ticks: Vec<f64> = places.map(|point| point.0).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let scale = Across::new(&ticks, scaling);
    let mut body = String::new();
    let mut top = 30.0;
    for panel in panels {
        one_panel(&mut body, top, panel, &scale);
        top += PLOT_HEIGHT + 66.0;
    }
    text(&mut body, (LEFT + WIDTH - MARGIN) / 2.0, top + 2.0, "middle", across);
    page(title, top + 14.0, &body)
}

/// The axis across.
struct Across {
    scaling: Scaling,
    /// The first place, as it is scaled.
    least: f64,
    span: f64,
    /// Where there is room for a number.
    ticks: Vec<f64>,
}

impl Across {
    fn new(places: &[f64], scaling: Scaling) -> Self {
        let least = scaling.scaled(places.first().copied().unwrap_or(1.0));
        let most = scaling.scaled(places.last().copied().unwrap_or(1.0));
        let span = (most - least).max(1e-9);
        let mut across = Self { scaling, least, span, ticks: Vec::new() };
        let mut ticks: Vec<f64> = Vec::new();
        for place in places {
            let is_near = |tick: &f64| across.place(*place) - across.place(*tick) < TICK_ROOM;
            match ticks.last_mut().filter(|tick| is_near(tick)) {
                None => ticks.push(*place),
                // Of two that would meet, the one that is sooner said.
                Some(tick) if short(*place).len() < short(*tick).len() => *tick = *place,
                Some(_) => {}
            }
        }
        across.ticks = ticks;
        across
    }

    fn place(&self, value: f64) -> f64 {
        LEFT + (self.scaling.scaled(value) - self.least) / self.span * (WIDTH - LEFT - MARGIN)
    }
}

impl Scaling {
    fn scaled(self, value: f64) -> f64 {
        match self {
            Self::Logarithmic => value.max(1e-9).ln(),
            Self::Linear => value,
        }
    }
}

fn one_panel(body: &mut String, top: f64, panel: &Panel, across: &Across) {
    let highest = panel.lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let highest = round_up(highest.fold(0.0, f64::max).max(1e-9));
    let (left, right) = (LEFT, WIDTH - MARGIN);
    let bottom = top + 30.0 + PLOT_HEIGHT;
    let height = |value: f64| bottom - value / highest * PLOT_HEIGHT;
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let y = height(share * highest);
        line(body, (left, y), (right, y), if share > 0.0 { GRID } else { INK }, 1.0);
        text(body, left - 6.0, y + 4.0, "end", &short(share * highest));
    }
    for tick in &across.ticks {
        text(body, across.place(*tick), bottom + 16.0, "middle", &short(*tick));
    }
    text(body, 8.0, top + 16.0, "start", &panel.up);
    legend(body, right, top + 16.0, &panel.lines);
    for (one, colour) in panel.lines.iter().zip(COLOURS) {
        draw(body, one, colour, |(x, y)| (across.place(x), height(y)));
    }
}

/// Which colour is which line; one line alone is what the panel counts.
fn legend(body: &mut String, right: f64, y: f64, lines: &[Line]) {
    if lines.len() < 2 {
        return;
    }
    let _ = write!(body, "<text x=\"{right:.1}\" y=\"{y:.1}\" text-anchor=\"end\" fill=\"{INK}\">");
    for (one, colour) in lines.iter().zip(COLOURS) {
        let label = escape(&one.label);
        let _ = write!(body, "<tspan dx=\"14\" fill=\"{colour}\">&#9632;</tspan> {label}");
    }
    body.push_str("</text>\n");
}

fn draw(body: &mut String, one: &Line, colour: &str, place: impl Fn((f64, f64)) -> (f64, f64)) {
    let places: Vec<(f64, f64)> = one.points.iter().map(|point| place(*point)).collect();
    let text: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        body,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        text.join(" ")
    );
    for (x, y) in places.into_iter().filter(|_| one.points.len() <= DOTS_MAX) {
        let _ = writeln!(body, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
    }
}

/// The next number that is one, two, three, four, five, six or eight with zeros.
fn round_up(value: f64) -> f64 {
    let power = 10.0_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= value).unwrap_or(10.0 * power)
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
    } else if value >= 100.0 || value.fract() == 0.0 {
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
        let panel = Panel { up: "requests/s".into(), lines: vec![line] };
        let both = [panel.clone(), panel];
        let svg = panels("connections", "connections", Scaling::Logarithmic, &both);
        assert!(svg.contains("points=\"64.0,240.0 674.0,60.0\""), "{svg}");
        assert!(svg.contains("points=\"64.0,486.0 674.0,306.0\""), "{svg}");
    }

    #[test]
    fn minutes_are_equally_far_apart_and_many_of_them_have_no_dots() {
        let drawn = |points: Vec<(f64, f64)>| {
            let lines = vec![Line { label: "Quipu".into(), points }];
            panels("memory", "minutes", Scaling::Linear, &[Panel { up: "MB".into(), lines }])
        };
        let three = drawn(vec![(0.0, 50.0), (5.0, 50.0), (10.0, 50.0)]);
        assert!(three.contains("points=\"64.0,60.0 369.0,60.0 674.0,60.0\""), "{three}");
        assert_eq!(three.matches("<circle").count(), 3);
        let many = drawn((0..61).map(|minute| (f64::from(minute), 1.0)).collect());
        assert_eq!(many.matches("<circle").count(), 0);
    }

    #[test]
    fn an_axis_ends_at_a_round_number_and_its_ticks_have_room() {
        let rounded = [0.97, 50.0, 5.23, 119_000.0].map(|value| format!("{}", round_up(value)));
        assert_eq!(rounded, ["1", "50", "6", "200000"]);
        let ticks = Across::new(&[1.01, 1.02, 99.0, 100.5, 101.0], Scaling::Logarithmic).ticks;
        assert_eq!(ticks.into_iter().map(short).collect::<Vec<_>>(), ["1.0", "99"]);
    }

    #[test]
    fn a_value_that_is_no_number_is_no_bar() {
        let bar = Bar { label: "none".into(), value: f64::NAN, marks: Vec::new() };
        assert!(bars("shares", &[bar]).contains("width=\"0.0\""));
    }

    #[test]
    fn numbers_are_short() {
        let found = [0.0, 0.5, 2.0, 22.5, 120.4, 12_345.0, 3e6].map(short);
        assert_eq!(found, ["0", "0.5", "2", "22.5", "120", "12k", "3M"]);
    }
}
