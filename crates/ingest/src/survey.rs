//! Many archives at once: found in folders, proven one after the other, joined by parent links.
//!
//! Knows: which files are archives, checksum lists beside them, which files belong to one chain.
//! Never knows: how findings are shown.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use chain::trust::{Anchors, Status, assess};
use chain::{BlockRange, ChainSpec};
use thiserror::Error;

use crate::archive::{Archive, ArchiveError, ArchiveName, ChecksumList, Fault, hash_file};
use crate::prove::{Progress, Prover, Report, check_name};

/// How deep folders are searched: deep enough for any layout, and it ends on a loop of links.
const FOLDER_DEPTH_MAX: usize = 16;

/// Why no archives could be found where the user said.
#[derive(Debug, Error)]
pub enum FindError {
    /// A path cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder holds none.
    #[error("{}: no archives in this folder (.era1, .ere, .erae)", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
}

/// One file to prove, and what to prove it against.
#[derive(Debug)]
pub struct Job {
    /// The file.
    pub path: PathBuf,
    /// Files of the same network are joined; `None` stands alone.
    pub network: Option<String>,
    /// The chain's facts.
    pub spec: ChainSpec,
    /// What is trusted of it.
    pub anchors: Anchors,
}

/// What was found out about one file.
#[derive(Debug)]
pub struct Finding {
    /// The file.
    pub path: PathBuf,
    /// Proven, or why not.
    pub outcome: Result<Proven, ArchiveError>,
}

/// A proven file and how far it can be trusted to be canonical.
#[derive(Debug)]
pub struct Proven {
    /// What the proof showed.
    pub report: Report,
    /// The status of every block, as ranges.
    pub statuses: Vec<(BlockRange, Status)>,
}

/// The archives that the paths name: files as they are, folders searched.
pub fn find_archives(paths: &[PathBuf]) -> Result<Vec<PathBuf>, FindError> {
    let mut found = Vec::new();
    for path in paths {
        let metadata = fs::metadata(path).map_err(at(path))?;
        if !metadata.is_dir() {
            found.push(path.clone());
            continue;
        }
        let before = found.len();
        search(path, 0, &mut found)?;
        if found.len() == before {
            return Err(FindError::Empty { path: path.clone() });
        }
    }
    Ok(found)
}

/// Proves every file with all threads, then judges the files of each network together.
/// `refused` hears of a file as soon as it is refused.
pub fn survey(
    jobs: Vec<Job>,
    threads: NonZeroUsize,
    progress: &dyn Progress,
    mut refused: impl FnMut(&ArchiveError),
) -> Vec<Finding> {
    let mut outcomes = Vec::with_capacity(jobs.len());
    for job in &jobs {
        let outcome = prove_file(job, threads, progress);
        if let Err(error) = &outcome {
            refused(error);
        }
        outcomes.push(outcome);
    }
    let mut statuses = vec![Vec::new(); jobs.len()];
    for group in groups(&jobs) {
        judge(&jobs, &group, &mut outcomes, &mut statuses, &mut refused);
    }
    let findings = jobs.into_iter().zip(outcomes).zip(statuses);
    findings
        .map(|((job, outcome), statuses)| Finding {
            path: job.path,
            outcome: outcome.map(|report| Proven { report, statuses }),
        })
        .collect()
}

/// Proves one file: structure, checksum list beside it, every block, the file as a whole, its
/// name.
fn prove_file(
    job: &Job,
    threads: NonZeroUsize,
    progress: &dyn Progress,
) -> Result<Report, ArchiveError> {
    let archive = Archive::open(&job.path)?;
    check_checksum(&job.path)?;
    let prover = Prover { spec: &job.spec, anchors: &job.anchors, threads, progress };
    let report = prover.prove(&archive)?;
    check_name(&archive, &report)?;
    Ok(report)
}

/// Holds a file against the checksum lists beside it, if there are any.
fn check_checksum(path: &Path) -> Result<(), ArchiveError> {
    let refuse = |fault| ArchiveError {
        file: path.display().to_string(),
        block: None,
        offset: 0,
        fault: Box::new(fault),
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let lists = ChecksumList::read_in(folder.unwrap_or(Path::new(".")))
        .map_err(|error| refuse(Fault::ChecksumList(error)))?;
    let mut found = None;
    for list in &lists {
        let Some(expected) = list.find(path) else { continue };
        let found = match found {
            Some(found) => found,
            None => *found.insert(hash_file(path).map_err(|error| refuse(Fault::Io(error)))?),
        };
        if found != expected {
            let list = list.file().to_owned();
            return Err(refuse(Fault::Checksum { found, expected, list }));
        }
    }
    Ok(())
}

/// Positions of the jobs that belong together, network by network.
fn groups(jobs: &[Job]) -> Vec<Vec<usize>> {
    let mut by_network: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut alone = Vec::new();
    for (position, job) in jobs.iter().enumerate() {
        match &job.network {
            Some(network) => by_network.entry(network).or_default().push(position),
            None => alone.push(vec![position]),
        }
    }
    by_network.into_values().chain(alone).collect()
}

/// Gives every proven file of a group its statuses; a file that does not follow the one before it
/// is refused.
fn judge(
    jobs: &[Job],
    group: &[usize],
    outcomes: &mut [Result<Report, ArchiveError>],
    statuses: &mut [Vec<(BlockRange, Status)>],
    refused: &mut impl FnMut(&ArchiveError),
) {
    loop {
        let proven: Vec<(usize, &Report)> = group
            .iter()
            .filter_map(|position| Some((*position, outcomes.get(*position)?.as_ref().ok()?)))
            .collect();
        let Some(job) = proven.first().and_then(|(position, _)| jobs.get(*position)) else {
            return;
        };
        let runs: Vec<_> = proven.iter().map(|(_, report)| report.run.clone()).collect();
        let broken = match assess(&runs, &job.anchors) {
            Ok(assessed) => {
                for ((position, _), ranges) in proven.iter().zip(assessed) {
                    if let Some(place) = statuses.get_mut(*position) {
                        *place = ranges;
                    }
                }
                return;
            }
            Err(broken) => broken,
        };
        let upper = proven.iter().find(|(_, report)| {
            report.run.range.first() == broken.above && report.run.parent_hash == broken.parent_hash
        });
        let Some((position, report)) = upper.copied() else { return };
        let error = ArchiveError {
            file: jobs.get(position).map(|job| job.path.display().to_string()).unwrap_or_default(),
            block: Some(broken.above),
            offset: report.first_header_offset,
            fault: Box::new(Fault::Link(broken)),
        };
        refused(&error);
        if let Some(outcome) = outcomes.get_mut(position) {
            *outcome = Err(error);
        }
    }
}

fn search(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), FindError> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(at(folder))?.path());
    }
    paths.sort();
    for path in paths {
        if path.is_dir() && depth < FOLDER_DEPTH_MAX {
            search(&path, depth + 1, found)?;
        } else if ArchiveName::is_archive(&path) {
            found.push(path);
        }
    }
    Ok(())
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FindError {
    let path = path.to_owned();
    move |source| FindError::Io { path, source }
}
