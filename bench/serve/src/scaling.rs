//! What changes with connections.
//!
//! Knows: which points are looked at.
//! Never knows: how one of them is measured.

use anyhow::Result;

use crate::contest::Measured;
use crate::nginx::Nginx;
use crate::plot::{Line, Panel};
use crate::questions::Question;
use crate::report::Scale;
use crate::run::Asking;

/// Connections at which throughput is looked at.
const CONNECTIONS: [u32; 8] = [1, 4, 16, 64, 256, 1024, 4096, 10_000];
/// Rounds of each point: a plot shows a trend, which needs fewer.
const ROUNDS_MAX: usize = 3;

fn per_second(measured: &Measured) -> f64 {
    measured.outcome.per_second
}

fn line(label: &str) -> Line {
    Line { label: label.to_owned(), points: Vec::new() }
}

impl Asking<'_> {
    /// All of it.
    pub(crate) fn of_scale(&mut self) -> Result<()> {
        if !self.request.wants("scaling") {
            return Ok(());
        }
        let hot = self.question("hot-transaction")?.clone();
        let answers = [self.usual_answer(&hot)?];
        let nginx = Nginx::start(&self.work.join("nginx-scaling"), &answers)?;
        self.of_connections(&hot, &nginx)
    }

    fn rounds_of_scale(&self) -> usize {
        self.request.rounds.min(ROUNDS_MAX)
    }

    fn of_connections(&mut self, hot: &Question, nginx: &Nginx) -> Result<()> {
        let mut lines = ["Quipu", "nginx"].map(line);
        for connections in CONNECTIONS {
            self.say(&format!("{connections} connections"));
            let question = Question { connections, ..hot.clone() };
            let contest = self.contest(&question, nginx, self.rounds_of_scale())?;
            for (place, line) in lines.iter_mut().enumerate() {
                line.points.push((f64::from(connections), contest.median(place, per_second)));
            }
        }
        self.report.scales.push(Scale {
            name: "serving-connections",
            title: "A hot transaction, by connections",
            across: "connections",
            panels: vec![Panel { up: "requests/s", lines: lines.to_vec() }],
        });
        Ok(())
    }
}
