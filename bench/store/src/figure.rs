//! Figures: what was asked, what came out, what was promised, as a table and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// One line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The question, as a name: for programs.
    pub name: &'static str,
    /// The question, in words.
    pub question: String,
    /// The data that it was asked of.
    pub of: String,
    /// The answer.
    pub value: f64,
    /// What the answer counts.
    pub unit: FigureUnit,
    /// What was promised; `None` for what is only reported.
    pub goal: Option<Goal>,
    /// What one should know beside it.
    pub note: String,
}

/// What an answer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUnit {
    /// One thing as a share of another.
    Ratio,
    /// Bytes for each transaction.
    BytesPerTx,
    /// Bytes for each log.
    BytesPerLog,
    /// Millionths of a second of CPU time.
    Micros,
    /// Thousandths of a second of CPU time.
    Millis,
    /// Reads from the disk.
    Reads,
    /// Millions of bytes.
    Megabytes,
}

impl FigureUnit {
    fn symbol(self) -> &'static str {
        match self {
            Self::Ratio => "",
            Self::BytesPerTx | Self::BytesPerLog => " B",
            Self::Micros => " us",
            Self::Millis => " ms",
            Self::Reads => " reads",
            Self::Megabytes => " MB",
        }
    }

    fn show(self, value: f64) -> String {
        let digits = match self {
            Self::Ratio => 4,
            Self::Millis => 3,
            Self::BytesPerTx | Self::BytesPerLog | Self::Micros => 2,
            Self::Reads | Self::Megabytes => 0,
        };
        format!("{value:.digits$}{}", self.symbol())
    }

    fn show_goal(self, value: f64) -> String {
        format!("{value}{}", self.symbol())
    }
}

/// What was promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// What must hold.
    pub must: f64,
    /// What is aimed at.
    pub target: f64,
    /// Whether more is better; otherwise less is.
    pub is_more_better: bool,
}

impl Goal {
    /// At most so much.
    #[must_use]
    pub const fn at_most(must: f64, target: f64) -> Option<Self> {
        Some(Self { must, target, is_more_better: false })
    }

    /// At least so much.
    #[must_use]
    pub const fn at_least(must: f64, target: f64) -> Option<Self> {
        Some(Self { must, target, is_more_better: true })
    }
}

/// Whether a promise was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// What is aimed at is reached.
    Target,
    /// What must hold does.
    Must,
    /// What must hold does not.
    Missed,
    /// Nothing was promised.
    Reported,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Must => "must",
            Self::Missed => "MISSED",
            Self::Reported => "",
        }
    }
}

impl Figure {
    /// Whether the promise was kept. The value counts as it is, not as it is shown.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let Some(goal) = self.goal else { return Verdict::Reported };
        let keeps = |bound: f64| {
            if goal.is_more_better { self.value >= bound } else { self.value <= bound }
        };
        if keeps(goal.target) {
            Verdict::Target
        } else if keeps(goal.must) {
            Verdict::Must
        } else {
            Verdict::Missed
        }
    }

    fn cells(&self) -> [String; 6] {
        let goal = |bound: fn(&Goal) -> f64| {
            self.goal.map_or_else(String::new, |goal| self.unit.show_goal(bound(&goal)))
        };
        [
            self.question.clone(),
            self.of.clone(),
            self.unit.show(self.value),
            goal(|goal| goal.must),
            goal(|goal| goal.target),
            self.verdict().word().to_owned(),
        ]
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "question": self.question,
            "of": self.of,
            "value": self.value,
            "unit": self.unit.symbol().trim(),
            "must": self.goal.map(|goal| goal.must),
            "target": self.goal.map(|goal| goal.target),
            "verdict": self.verdict().word(),
            "note": self.note,
        })
    }
}

/// The figures as a table in Markdown that is also readable as it is, the notes below it.
#[must_use]
pub fn format_table(figures: &[Figure]) -> String {
    let head = ["measure", "of", "measured", "must", "target", "reached"].map(str::to_owned);
    let rows: Vec<[String; 6]> = figures.iter().map(Figure::cells).collect();
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            let cells = rows.iter().chain([&head]).filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        })
        .collect();
    let mut text = String::new();
    let mut line = |cells: &[String]| {
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(text, "| {cell:<width$} ");
        }
        text.push_str("|\n");
    };
    line(&head);
    line(&widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>());
    for row in &rows {
        line(row);
    }
    text.push('\n');
    for figure in figures.iter().filter(|figure| !figure.note.is_empty()) {
        let _ = writeln!(text, "- {} ({}): {}", figure.question, figure.of, figure.note);
    }
    text
}

/// The figures for programs.
#[must_use]
pub fn to_json(figures: &[Figure]) -> Value {
    figures.iter().map(Figure::to_json).collect()
}

/// One number as a share of another.
#[must_use]
#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "shown with few digits")]
pub fn ratio(amount: u64, whole: u64) -> f64 {
    amount as f64 / whole.max(1) as f64
}

/// The length of a list as a number of the width that files are counted in.
#[must_use]
pub fn count<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64, goal: Option<Goal>) -> Figure {
        Figure {
            name: "bytes_on_disk",
            question: "bytes".into(),
            of: "chain".into(),
            value,
            unit: FigureUnit::Ratio,
            goal,
            note: "all files".into(),
        }
    }

    #[test]
    fn promises_are_judged_in_their_direction() {
        for (value, goal, expected) in [
            (0.85, Goal::at_most(0.9, 0.85), Verdict::Target),
            (0.8501, Goal::at_most(0.9, 0.85), Verdict::Must),
            (0.91, Goal::at_most(0.9, 0.85), Verdict::Missed),
            (0.8, Goal::at_least(0.7, 0.8), Verdict::Target),
            (0.75, Goal::at_least(0.7, 0.8), Verdict::Must),
            (0.69, Goal::at_least(0.7, 0.8), Verdict::Missed),
            (0.69, None, Verdict::Reported),
        ] {
            assert_eq!(figure(value, goal).verdict(), expected, "{value} {goal:?}");
        }
    }

    #[test]
    fn the_table_is_markdown_with_its_notes_below() {
        let table = format_table(&[figure(0.8512, Goal::at_most(0.9, 0.85))]);
        let expected = "\
| measure | of    | measured | must | target | reached |
| ------- | ----- | -------- | ---- | ------ | ------- |
| bytes   | chain | 0.8512   | 0.9  | 0.85   | must    |

- bytes (chain): all files
";
        assert_eq!(table, expected);
    }
}
