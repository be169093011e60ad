//! That the documentation, the dashboard and the alerts are about metrics that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::exposition::Exposition;
use super::table::{METRICS, Metric, MetricKind, MetricRow};

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn find(name: &str) -> Option<&'static MetricRow> {
    METRICS.iter().map(|(_, row)| row).find(|row| row.name == name)
}

/// Everything in a text that looks like a metric.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    words.filter(|word| word.starts_with("quipu_") || word.starts_with("process_")).collect()
}

/// Whether there is a metric of this name, or one that a histogram has under it.
fn exists(name: &str) -> bool {
    let parts = ["_bucket", "_count", "_sum"].into_iter();
    let mut wholes = parts.filter_map(|part| name.strip_suffix(part));
    find(name).is_some_and(|row| row.kind != MetricKind::Histogram)
        || wholes.any(|name| find(name).is_some_and(|row| row.kind == MetricKind::Histogram))
}

/// The kind of a metric and its labels, as the documentation writes them.
fn described(row: &MetricRow) -> String {
    let kind = match row.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    };
    let labels: Vec<String> = row.labels.iter().map(|label| format!("`{label}`")).collect();
    if labels.is_empty() { kind.to_owned() } else { format!("{kind} by {}", labels.join(", ")) }
}

#[test]
fn the_documentation_has_a_row_for_every_metric_and_for_no_other() {
    let page = read("docs/metrics.md");
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        let is_metric = name.starts_with("quipu_") || name.starts_with("process_");
        is_metric.then_some((name, cells.next()?.to_owned()))
    });
    let (found, expected): (BTreeSet<_>, BTreeSet<_>) =
        (rows.collect(), METRICS.iter().map(|(_, row)| (row.name, described(row))).collect());
    let (missing, more): (Vec<_>, Vec<_>) =
        (expected.difference(&found).collect(), found.difference(&expected).collect());
    assert!(missing.is_empty() && more.is_empty(), "missing: {missing:#?}\nwrong: {more:#?}");
    for name in names(&page) {
        assert!(find(name).is_some() || exists(name), "{name} is no metric");
    }
}

#[test]
fn names_and_texts_are_as_prometheus_wants_them() {
    for (position, (metric, row)) in METRICS.iter().enumerate() {
        assert_eq!(metric.index(), position);
        let name = row.name;
        assert_eq!(name.ends_with("_total"), row.kind == MetricKind::Counter, "{name}");
        assert!(row.help.ends_with('.') && !row.help.contains('\n'), "{name}: {}", row.help);
        assert_eq!(find(name).map(|found| found.help), Some(row.help), "{name} is there twice");
    }
}

#[test]
fn every_query_of_the_dashboard_is_about_metrics_that_exist() {
    let dashboard: Value = serde_json::from_str(&read("packaging/grafana/quipu.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let queries: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    let shown: BTreeSet<&str> = queries.iter().flat_map(|query| names(query)).collect();
    for query in &queries {
        let names = names(query);
        assert!(!names.is_empty() && names.iter().all(|name| exists(name)), "{query}");
    }
    // And every metric is on it.
    for (_, row) in METRICS {
        let parts = ["", "_bucket", "_count", "_sum"].map(|part| format!("{}{part}", row.name));
        let is_shown = parts.iter().any(|name| shown.contains(name.as_str()));
        assert!(is_shown, "{} is not on the dashboard", row.name);
    }
}

#[test]
fn every_alert_is_about_metrics_that_exist_and_is_explained() {
    let (rules, page) = (read("packaging/prometheus/alerts.yml"), read("docs/metrics.md"));
    for name in names(&rules) {
        assert!(exists(name), "{name} is no metric");
    }
    let mut alerts = 0;
    for rule in rules.split("- alert: ").skip(1) {
        alerts += 1;
        let name = rule.lines().next().unwrap();
        let runbook = format!("runbook: docs/metrics.md#{}\n", name.to_lowercase());
        assert!(rule.contains(&runbook), "{name} has no {runbook}");
        assert!(page.contains(&format!("\n### {name}\n")), "{name} is not explained");
        let is_severe = ["severity: critical\n", "severity: warning\n"];
        assert!(is_severe.iter().any(|severity| rule.contains(severity)), "{name}");
    }
    assert_eq!(alerts, page.matches("\n### Quipu").count(), "an alert that is explained is gone");
    let tests = read("packaging/prometheus/alerts-test.yml");
    for name in names(&tests) {
        assert!(exists(name), "{name} is no metric");
    }
    // Each is seen to fire, and not to.
    for rule in rules.split("- alert: ").skip(1) {
        let name = rule.lines().next().unwrap();
        let marker = format!("alertname: {name}\n");
        let expected = |rest: &str| rest.trim_start().starts_with("exp_alerts:");
        let fires: Vec<bool> = tests.split(&marker).skip(1).map(expected).collect();
        assert!(fires.contains(&true) && fires.contains(&false), "{name}: {fires:?}");
    }
}

#[test]
fn the_text_has_the_help_and_the_kind_of_each_metric_and_escapes_labels() {
    let mut page = Exposition::new();
    page.count(Metric::UpstreamInvalidResponses, &[("upstream", "a\"b")], 3);
    page.gauge(Metric::Ready, &[], 1);
    let depths = [(1.0, 4), (2.0, 5)];
    page.histogram(Metric::FollowReorgs, &[], depths.into_iter(), (6, 20.0));
    let expected = "\
# HELP quipu_ready 1 if /readyz answers 200, else 0.
# TYPE quipu_ready gauge
quipu_ready 1
# HELP quipu_follow_reorg_depth_blocks Reorgs by the number of blocks that they took away.
# TYPE quipu_follow_reorg_depth_blocks histogram
quipu_follow_reorg_depth_blocks_bucket{le=\"1\"} 4
quipu_follow_reorg_depth_blocks_bucket{le=\"2\"} 5
quipu_follow_reorg_depth_blocks_bucket{le=\"+Inf\"} 6
quipu_follow_reorg_depth_blocks_sum 20
quipu_follow_reorg_depth_blocks_count 6
# HELP quipu_upstream_invalid_responses_total Responses of an upstream node that failed verification.
# TYPE quipu_upstream_invalid_responses_total counter
quipu_upstream_invalid_responses_total{upstream=\"a\\\"b\"} 3
";
    assert_eq!(String::from_utf8(page.encode()).unwrap(), expected);
}
