//! What came out, for people and for programs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use bench_store::figure::{Figure, FigureUnit, format_table, to_json};
use serde_json::{Value, json};

use crate::contest::{Contest, Driver, Measured};
use crate::page::{replace_between, wrap};
use crate::plot::{Bar, Line, Panel, Scaling, bars, panels};
use crate::questions::Question;

/// Between these lines of `benchmarks.md` a run writes.
const BEGIN: &str = "<!-- bench serve: begin -->";
const END: &str = "<!-- bench serve: end -->";

/// Of the wanted rate.
const RATE_SHARE_MIN: f64 = 0.95;

/// All that came out of a run.
#[derive(Debug, Default)]
pub struct BenchReport {
    /// What was promised.
    pub figures: Vec<Figure>,
    /// What is behind it.
    pub answered: Vec<Answered>,
    /// How it changes with what.
    pub scales: Vec<Scale>,
    /// Nodes that were asked too, with their versions.
    pub rivals: Vec<String>,
    /// Where and when.
    pub machine: String,
}

impl BenchReport {
    /// For people.
    #[must_use]
    pub fn format(&self) -> String {
        let mut text = format_table(&self.figures);
        let _ = writeln!(text, "\n{}\n{}", format_details(&self.answered), self.machine);
        self.scales.iter().for_each(|scale| text.push_str(&scale.format()));
        text
    }

    /// For programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "machine": self.machine,
            "figures": to_json(&self.figures),
            "questions": details_to_json(&self.answered),
            "scales": self.scales.iter().map(Scale::to_json).collect::<Vec<_>>(),
        })
    }

    /// Puts tables into the folder's `benchmarks.md`, and plots beside it.
    pub fn write(&self, docs: &Path) -> Result<()> {
        let path = docs.join("benchmarks.md");
        let name = path.display().to_string();
        let page = fs::read_to_string(&path).with_context(|| name.clone())?;
        let plots = self.plots();
        let mut section = format!(
            "{}.\n\n{}\n\n{}",
            self.machine,
            format_table(&self.figures).trim(),
            format_details(&self.answered)
        );
        for plot in &plots {
            let _ = write!(section, "\n![{}](plots/{})\n", plot.title, plot.name);
            section.push_str(&plot.table);
        }
        let page = replace_between(&page, [BEGIN, END], &wrap(&section))
            .with_context(|| format!("{name} has no {BEGIN} before {END}"))?;
        fs::write(&path, page).with_context(|| name.clone())?;
        let folder = docs.join("plots");
        fs::create_dir_all(&folder).context("the plots")?;
        for plot in plots {
            fs::write(folder.join(&plot.name), plot.svg).context(plot.name)?;
        }
        Ok(())
    }

    /// What must be and what is aimed at, where it was promised.
    fn marks_of(&self, answered: &Answered) -> Vec<f64> {
        let of = answered.contest.names.join(" / ");
        let figure = self.figures.iter().find(|it| it.name == answered.name && it.of == of);
        let goal = figure.and_then(|figure| figure.goal);
        goal.map_or_else(Vec::new, |goal| vec![goal.must, goal.target])
    }

    /// Those that there are numbers for.
    fn plots(&self) -> Vec<Plot> {
        let mut plots = Vec::new();
        let shares: Vec<Bar> =
            self.answered.iter().filter_map(|it| it.bar(self.marks_of(it))).collect();
        if !shares.is_empty() {
            let title = "Requests a second, as a share of nginx returning the same bytes (marks: must, target)";
            let (name, svg) = ("serving-shares.svg".to_owned(), bars(title, &shares));
            plots.push(Plot { name, title, svg, table: String::new() });
        }
        plots.extend(self.scales.iter().map(Scale::plot));
        plots
    }
}

/// How something changes, shown as a plot and as numbers.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Of the file, without its end.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// What it changes with.
    pub across: &'static str,
    /// What changes.
    pub panels: Vec<Panel>,
}

impl Scale {
    /// A table of the numbers, in Markdown.
    fn format(&self) -> String {
        let mut text = String::new();
        for panel in &self.panels {
            let mut columns: Vec<f64> = panel.lines.iter().flat_map(places).collect();
            columns.sort_by(f64::total_cmp);
            columns.dedup();
            let heads: Vec<String> = columns.iter().map(|at| format!("{at:.0}")).collect();
            let _ =
                writeln!(text, "\n| {}, by {} | {} |", panel.up, self.across, heads.join(" | "));
            let _ = writeln!(text, "|---|{}", "---|".repeat(columns.len()));
            for line in &panel.lines {
                let cell = |at: &f64| {
                    let point = line.points.iter().find(|point| point.0.total_cmp(at).is_eq());
                    point.map_or_else(String::new, |point| format_value(point.1))
                };
                let cells: Vec<String> = columns.iter().map(cell).collect();
                let _ = writeln!(text, "| {} | {} |", line.label, cells.join(" | "));
            }
        }
        text
    }

    fn plot(&self) -> Plot {
        let svg = panels(self.title, self.across, Scaling::Logarithmic, &self.panels);
        Plot { name: format!("{}.svg", self.name), title: self.title, svg, table: self.format() }
    }

    fn to_json(&self) -> Value {
        let line = |line: &Line| json!({"name": line.label, "points": line.points});
        let panel = |panel: &Panel| {
            let lines: Vec<Value> = panel.lines.iter().map(line).collect();
            json!({"of": panel.up, "lines": lines})
        };
        let panels: Vec<Value> = self.panels.iter().map(panel).collect();
        json!({"name": self.name, "by": self.across, "panels": panels})
    }
}

fn places(line: &Line) -> impl Iterator<Item = f64> {
    line.points.iter().map(|point| point.0)
}

/// Three digits of what is small, none behind the point of what is large.
fn format_value(value: f64) -> String {
    let digits = if value < 10.0 { 2 } else { 0 };
    format!("{value:.digits$}")
}

struct Plot {
    name: String,
    title: &'static str,
    svg: String,
    /// The numbers.
    table: String,
}

/// A question that was asked, and how the contestants did: Quipu first, then nginx, then others.
#[derive(Debug)]
pub struct Answered {
    /// For programs.
    pub name: &'static str,
    /// For people.
    pub words: String,
    /// Who sent it.
    pub driver: Driver,
    /// How they did.
    pub contest: Contest,
    /// Bytes of the answer that nginx returned.
    pub answer_bytes: usize,
}

impl Answered {
    /// The figure with its goal: the share of the contestant beside it.
    #[must_use]
    pub fn figure(&self, question: &Question) -> Figure {
        let is_fixed = matches!(self.driver, Driver::Oha(_));
        let value: fn(&Measured) -> f64 =
            if is_fixed { |it| it.outcome.p99 } else { |it| it.outcome.per_second };
        let ratios: Vec<String> =
            self.contest.ratios(1, value).iter().map(|ratio| format!("{ratio:.2}")).collect();
        Figure {
            name: question.name,
            question: self.words.clone(),
            of: self.contest.names.join(" / "),
            value: self.contest.ratio(1, value),
            unit: FigureUnit::Ratio,
            goal: question.goal,
            note: format!("rounds {}{}", ratios.join(", "), self.rate_missed()),
        }
    }

    /// Whether less was answered than was sent: then waits tell of a queue, not of a server.
    fn rate_missed(&self) -> String {
        let Driver::Oha(rate) = self.driver else { return String::new() };
        let mut missed = String::new();
        for (place, name) in self.contest.names.iter().enumerate() {
            let per_second = self.contest.median(place, |it| it.outcome.per_second);
            if per_second < RATE_SHARE_MIN * f64::from(rate) {
                let _ = write!(missed, "; {name} answered only {per_second:.0} a second");
            }
        }
        missed
    }

    fn is_throughput_beside_nginx(&self) -> bool {
        let is_nginx = self.contest.names.get(1).is_some_and(|name| name == "nginx");
        is_nginx && !matches!(self.driver, Driver::Oha(_))
    }

    fn bar(&self, marks: Vec<f64>) -> Option<Bar> {
        let value = self.contest.ratio(1, |it| it.outcome.per_second);
        let bar = Bar { label: self.words.clone(), value, marks };
        self.is_throughput_beside_nginx().then_some(bar)
    }

    fn to_json(&self) -> Value {
        let of = |place: usize, name: &String| {
            let median = |value: fn(&Measured) -> f64| self.contest.median(place, value);
            json!({
                "name": name,
                "per_second": median(|it| it.outcome.per_second),
                "p50_us": median(|it| it.outcome.p50),
                "p99_us": median(|it| it.outcome.p99),
                "cpu_us": median(|it| it.cpu),
                "resident_bytes": median(resident),
                "bytes_per_answer": median(|it| it.outcome.bytes),
            })
        };
        let names = self.contest.names.iter().enumerate();
        let contestants: Vec<Value> = names.map(|(place, name)| of(place, name)).collect();
        json!({"name": self.name, "question": self.words, "contestants": contestants})
    }
}

#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "shown with few digits")]
fn resident(measured: &Measured) -> f64 {
    measured.resident as f64
}

/// Requests a second, waits, CPU time and memory of every contestant, as a table in Markdown.
#[must_use]
pub fn format_details(answered: &[Answered]) -> String {
    let mut text = String::from(
        "| question | bytes | by | requests/s | p50 | p99 | CPU a request | memory |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for it in answered {
        for (place, name) in it.contest.names.iter().enumerate() {
            let median = |value: fn(&Measured) -> f64| it.contest.median(place, value);
            let (words, bytes) = if place == 0 {
                let bytes = it.answer_bytes;
                (it.words.as_str(), if bytes > 0 { bytes.to_string() } else { String::new() })
            } else {
                ("", String::new())
            };
            let _ = writeln!(
                text,
                "| {words} | {bytes} | {name} | {:.0} | {} | {} | {:.1} us | {:.0} MB |",
                median(|it| it.outcome.per_second),
                format_micros(median(|it| it.outcome.p50)),
                format_micros(median(|it| it.outcome.p99)),
                median(|it| it.cpu),
                median(resident) / 1e6,
            );
        }
    }
    text
}

/// A wait, in the unit that is short.
#[must_use]
pub fn format_micros(micros: f64) -> String {
    if micros.is_nan() {
        String::new()
    } else if micros < 1e4 {
        format!("{micros:.0} us")
    } else {
        format!("{:.1} ms", micros / 1e3)
    }
}

/// The same for programs.
#[must_use]
pub fn details_to_json(answered: &[Answered]) -> Value {
    answered.iter().map(Answered::to_json).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_shown_in_the_unit_that_is_short() {
        let shown = [291.4, 20_000.0, f64::NAN].map(format_micros);
        assert_eq!(shown, ["291 us", "20.0 ms", ""]);
    }
}
