//! What `compare` prints: a line for each kind of difference, then counts by method, then a sum.

use std::time::Duration;

use rpc::compare::{CompareTally, ComparedCall, Difference};

use crate::output::{counted, grouped};

/// One difference.
pub(super) fn difference(question: &ComparedCall, difference: &Difference) -> String {
    let ComparedCall { method, params } = question;
    let Difference { path, ours, theirs, .. } = difference;
    format!("{method} {params}: {path}: ours {ours}, theirs {theirs}")
}

/// All of what was found.
pub(super) fn lines(endpoint: &str, tally: &CompareTally, elapsed: Duration) -> Vec<String> {
    let mut lines = Vec::new();
    for (method, pattern, group) in tally.groups() {
        lines.push(format!("{method}  {pattern}  {}", counted(group.count, "difference")));
        lines.push(format!("  {}", difference(&group.question, &group.example)));
    }
    if tally.ungrouped() > 0 {
        lines.push(format!("and {} of further kinds", counted(tally.ungrouped(), "difference")));
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    let width = tally.methods().map(|(method, _)| method.len()).max().unwrap_or_default();
    lines.push(format!("{:width$}  {:>10}  {:>10}", "", "asked", "differ"));
    for (method, count) in tally.methods() {
        let [asked, differing] = [count.asked, count.differing].map(grouped);
        lines.push(format!("{method:width$}  {asked:>10}  {differing:>10}"));
    }
    let verdict = match tally.differences() {
        0 => "no differences".to_owned(),
        count => counted(count, "difference"),
    };
    let questions = counted(tally.asked(), "question");
    lines.push(format!("{endpoint}: {questions} in {:.1} s: {verdict}", elapsed.as_secs_f64()));
    lines
}
