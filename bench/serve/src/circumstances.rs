//! Quipu beside itself: with a cold page cache, beside an import, at rest and under load.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bench_store::figure::{Figure, FigureUnit, Goal, ratio};
use rustix::fs::{Advice, fadvise};

use crate::contest::{Contest, Contestant, Rules};
use crate::machine::usage;
use crate::process::Running;
use crate::quipu::{BenchChain, Quipu};
use crate::server::ServerProcess;

const MEGABYTE: u64 = 1_000_000;

/// The same server twice: first in the circumstance, then without it.
fn twice(served: &ServerProcess, circumstance: &str) -> [Contestant; 2] {
    [format!("Quipu, {circumstance}"), "Quipu".to_owned()].map(|name| served.contestant(&name))
}

/// Every turn begins with none of the data folder's files in the page cache, or with all.
pub fn cold(rules: &Rules<'_>, served: &ServerProcess, store: &Path) -> Result<Contest> {
    rules.hold(&twice(served, "cold cache"), |place| {
        for path in files(store)? {
            let mut file = File::open(&path).with_context(|| path.display().to_string())?;
            if place == 0 {
                fadvise(&file, 0, None, Advice::DontNeed).context("the page cache")?;
            } else {
                io::copy(&mut file, &mut io::sink())?;
            }
        }
        Ok(())
    })
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).context("the data folder")? {
        let path = entry?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// An import of the same chain into another folder runs during every other turn, and stands
/// still in the others. When it is done it begins again.
pub fn beside_import(
    rules: &Rules<'_>,
    served: &ServerProcess,
    quipu: &Quipu,
    chain: &BenchChain,
    work: &Path,
) -> Result<Contest> {
    let to = work.join("imported-beside");
    let mut import: Option<Running> = None;
    rules.hold(&twice(served, "beside an import"), |place| {
        let is_running = import.as_mut().map_or(Ok(false), Running::is_running)?;
        if place == 0 && !is_running {
            import = Some(quipu.import_beside(chain, &to)?);
        }
        match &import {
            Some(import) if place == 0 => import.resume(),
            Some(import) => import.pause(),
            None => {}
        }
        Ok(())
    })
}

/// What something beside it costs: waits, and CPU time.
#[must_use]
pub fn beside_figures(names: [&'static str; 2], beside: &str, contest: &Contest) -> [Figure; 2] {
    let [p99, cpu] = names;
    let figure = |name, question: &str, value, goal| Figure {
        name,
        question: question.to_owned(),
        of: format!("beside {beside} / without"),
        value,
        unit: FigureUnit::Ratio,
        goal,
        note: String::new(),
    };
    [
        figure(
            p99,
            "p99 of random transactions at 10,000/s",
            contest.ratio(1, |it| it.outcome.p99),
            Goal::at_most(2.0, 1.3),
        ),
        figure(
            cpu,
            "CPU a request of the same",
            contest.ratio(1, |it| it.cpu),
            Goal::at_most(1.3, 1.1),
        ),
    ]
}

/// The most memory that a server ever has under these loads, beyond what it has at rest.
pub fn memory_under_load(served: &ServerProcess, loads: &[Rules<'_>]) -> Result<Figure> {
    let idle = usage(served.id())?.resident;
    let [contestant, _] = twice(served, "under load");
    for rules in loads {
        rules.measure(&contestant)?;
    }
    let peak = usage(served.id())?.peak;
    Ok(Figure {
        name: "memory",
        question: "memory under the hot load, beyond idle".to_owned(),
        of: "hot transaction and hot full block".to_owned(),
        value: ratio(peak.saturating_sub(idle), MEGABYTE),
        unit: FigureUnit::Megabytes,
        goal: Goal::at_most(200.0, 100.0),
        note: format!(
            "{:.0} MB idle, {:.0} MB at the highest",
            ratio(idle, MEGABYTE),
            ratio(peak, MEGABYTE)
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_files_of_the_folder_itself_are_evicted() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "a").unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        assert_eq!(files(folder.path()).unwrap(), [folder.path().join("a")]);
        assert!(files(&folder.path().join("gone")).is_err());
    }

    #[test]
    fn a_process_that_stands_still_goes_on() {
        let mut command = Command::new("sleep");
        let mut running = Running::start(command.arg("0.05")).unwrap();
        running.pause();
        running.resume();
        assert!(running.child().wait().unwrap().success());
    }
}
