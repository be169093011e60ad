//! `series [--logarithmic] TITLE CSV`: what was measured over time or by a size, drawn as SVG.

#![expect(clippy::print_stdout, reason = "the plot is its output")]

use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use bench_serve::plot::{Line, Panel, Scaling, panels};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(svg) => {
            print!("{svg}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("series: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<String> {
    let (scaling, arguments) = match arguments.split_first() {
        Some((flag, rest)) if flag == "--logarithmic" => (Scaling::Logarithmic, rest),
        _ => (Scaling::Linear, arguments),
    };
    let [title, path] = arguments else { anyhow::bail!("usage: series [--logarithmic] TITLE CSV") };
    let text = std::fs::read_to_string(path).with_context(|| path.clone())?;
    let (across, read) = read(&text).with_context(|| path.clone())?;
    Ok(panels(title, &across, scaling, &read))
}

/// What goes across, and the panels in the order of their first columns.
fn read(text: &str) -> Result<(String, Vec<Panel>)> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().context("no head")?.split(',').collect();
    let (across, names) = names.split_first().context("no columns")?;
    let mut columns = vec![Vec::new(); names.len()];
    for (row, line) in lines.enumerate() {
        let values: Result<Vec<f64>, _> = line.split(',').map(str::parse).collect();
        let values = values.with_context(|| format!("row {row}"))?;
        let (time, values) = values.split_first().context("a row without columns")?;
        ensure!(values.len() == columns.len(), "row {row} has {} values", values.len());
        for (column, value) in columns.iter_mut().zip(values) {
            column.push((*time, *value));
        }
    }
    let mut read: Vec<Panel> = Vec::new();
    for (name, points) in names.iter().zip(columns) {
        let (up, label) = name.split_once(':').with_context(|| format!("{name} has no colon"))?;
        let line = Line { label: label.to_owned(), points };
        match read.iter_mut().find(|panel| panel.up == up) {
            Some(panel) => panel.lines.push(line),
            None => read.push(Panel { up: up.to_owned(), lines: vec![line] }),
        }
    }
    Ok(((*across).to_owned(), read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_one_panel_are_its_lines() {
        let (across, read) =
            read("minutes,MB:all,files:open,MB:heap\n0,5,1,2\n1.5,6,1,2\n").unwrap();
        assert_eq!(across, "minutes");
        let found: Vec<(&str, usize)> =
            read.iter().map(|panel| (panel.up.as_str(), panel.lines.len())).collect();
        assert_eq!(found, [("MB", 2), ("files", 1)]);
        assert_eq!(read[0].lines[0].points, [(0.0, 5.0), (1.5, 6.0)]);
    }

    #[test]
    fn a_table_with_a_mistake_is_told_by_its_place() {
        for (text, expected) in [
            ("", "no head"),
            ("minutes,MB\n", "MB has no colon"),
            ("minutes,MB:all\n1\n", "row 0 has 0 values"),
            ("minutes,MB:all\n1,2\n1,x\n", "row 1"),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), expected);
        }
    }
}
