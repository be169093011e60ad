//! Many archives at once: found in folders, proven one after the other, joined by parent links.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use archive::file_kind::FileBegin;
use archive::{Archive, ArchiveError, ArchiveFault, ArchiveName, ChecksumList, hash_file, shown};
use chain::trust::{
    Anchors, Claims, Opponent, TrustConflict, TrustOrder, TrustStatus, assess, meeting_points,
};
use chain::{BlockRange, ChainSpec};
use thiserror::Error;

use crate::prove::{Progress, ProofReport, Prover, check_name};

/// Why no archives could be found where the user said.
#[derive(Debug, Error)]
pub enum NoArchives {
    /// A folder without any.
    #[error("{}: no archives in this folder (.era1, .ere, .erae)", shown(.folder))]
    None {
        /// The folder.
        folder: PathBuf,
    },
    /// A folder with archives that somebody has packed.
    #[error("{}: no archives in this folder (.era1, .ere, .erae), but {} is one that is compressed", shown(.folder), shown(.packed))]
    Packed {
        /// The folder.
        folder: PathBuf,
        /// The first of them.
        packed: PathBuf,
    },
    /// Nothing has this name.
    #[error("{}: there is no such file or folder", shown(.path))]
    Absent {
        /// The name.
        path: PathBuf,
    },
    /// A file that is something else, by its name and by its first bytes.
    #[error("{}: this is no archive: {begin}", shown(.path))]
    Other {
        /// The file.
        path: PathBuf,
        /// Its first bytes.
        begin: FileBegin,
    },
    /// A file that begins as compressed ones do.
    #[error("{}: this file is compressed, and archives are read as they were published", shown(.path))]
    Compressed {
        /// The file.
        path: PathBuf,
    },
}

/// One file to prove, and what to prove it against.
#[derive(Debug)]
pub struct Job {
    /// The file.
    pub path: PathBuf,
    /// Files of the same network are joined; `None` stands alone. They must have equal anchors.
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
    pub outcome: Result<ProvenArchive, ArchiveError>,
}

/// A proven file and how far it can be trusted to be canonical.
#[derive(Debug)]
pub struct ProvenArchive {
    /// What the proof showed.
    pub report: ProofReport,
    /// The status of every block, as ranges.
    pub statuses: Vec<(BlockRange, TrustStatus)>,
}

/// The archives that the paths name: files as they are, folders searched. A path that cannot be
/// read is taken for a file: proving it says why.
pub fn find_archives(paths: &[PathBuf]) -> Result<Vec<PathBuf>, NoArchives> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let before = found.len();
        search(path, &mut seen, &mut found);
        if found.len() == before {
            let folder = path.clone();
            return Err(match find_packed(path) {
                Some(packed) => NoArchives::Packed { folder, packed },
                None => NoArchives::None { folder },
            });
        }
    }
    Ok(found)
}

/// Refuses paths of which nothing can be read, before long work begins: names that nobody has, files
/// that must be unpacked first, and files that are no archives. Where others can be read, each is told when its turn comes.
pub fn refuse_unreadable(paths: &[PathBuf]) -> Result<(), NoArchives> {
    let mut first = None;
    for path in paths {
        let is_absent = path.metadata().is_err_and(|it| it.kind() == io::ErrorKind::NotFound);
        let error = if is_absent {
            NoArchives::Absent { path: path.clone() }
        } else {
            let begin = FileBegin::read(path).ok().filter(|_| path.is_file());
            let path = path.clone();
            match begin {
                Some(begin) if begin.is_compressed() => NoArchives::Compressed { path },
                Some(begin) if !begin.is_e2store() && !ArchiveName::is_archive(&path) => {
                    NoArchives::Other { path, begin }
                }
                Some(_) | None => return Ok(()),
            }
        };
        first.get_or_insert(error);
    }
    first.map_or(Ok(()), Err)
}

/// A file of this folder that is an archive but for one ending more.
fn find_packed(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let is_packed = |path: &PathBuf| {
        path.is_file()
            && ArchiveName::is_archive(&path.with_extension(""))
            && FileBegin::read(path).is_ok_and(|begin| begin.is_compressed())
    };
    entries.map(|entry| entry.path()).filter(is_packed).min()
}

/// Proves every file with all threads, then judges the files of each network together. `heard`
/// is told of every file as soon as it is proven or refused, and again if another file then
/// contradicts it.
pub fn survey(
    jobs: Vec<Job>,
    threads: NonZeroUsize,
    progress: &dyn Progress,
    mut heard: impl FnMut(&Path, Result<&ProofReport, &ArchiveError>),
) -> Vec<Finding> {
    let groups = groups(&jobs);
    let mut outcomes = Vec::with_capacity(jobs.len());
    let points = points(&jobs, &groups);
    for (job, points) in jobs.iter().zip(&points) {
        let outcome = prove_file(job, threads, progress, points);
        heard(&job.path, outcome.as_ref());
        outcomes.push(outcome);
    }
    let mut statuses = vec![Vec::new(); jobs.len()];
    for group in &groups {
        judge(&jobs, group, &mut outcomes, &mut statuses, &mut heard);
    }
    let findings = jobs.into_iter().zip(outcomes).zip(statuses);
    findings
        .map(|((job, outcome), statuses)| Finding {
            path: job.path,
            outcome: outcome.map(|report| ProvenArchive { report, statuses }),
        })
        .collect()
}

/// Proves one file: structure, checksum list beside it, every block, the file as a whole, its
/// name.
fn prove_file(
    job: &Job,
    threads: NonZeroUsize,
    progress: &dyn Progress,
    points: &BTreeSet<u64>,
) -> Result<ProofReport, ArchiveError> {
    let archive = Archive::open(&job.path)?;
    check_network(&job.path, &job.spec)?;
    check_checksum(&job.path)?;
    let prover = Prover { spec: &job.spec, anchors: &job.anchors, threads, progress, points };
    let report = prover.prove(&archive)?;
    check_name(&archive, &report)?;
    Ok(report)
}

fn refuse_file(path: &Path, fault: ArchiveFault) -> ArchiveError {
    ArchiveError { file: shown(path), block: None, offset: 0, fault: Box::new(fault) }
}

/// A name that says one known network is not read as another's.
pub(crate) fn check_network(path: &Path, spec: &ChainSpec) -> Result<(), ArchiveError> {
    let Some(name) = ArchiveName::parse(path) else { return Ok(()) };
    let known = ChainSpec::known(&name.network).and_then(|spec| spec.chain_id());
    match (known, spec.chain_id()) {
        (Some(said), Some(asked)) if said != asked => {
            let (expected, found) = (name.network, spec.name().to_owned());
            Err(refuse_file(path, ArchiveFault::Network { found, expected }))
        }
        _ => Ok(()),
    }
}

/// Holds a file against the checksum lists beside it, if there are any.
pub(crate) fn check_checksum(path: &Path) -> Result<(), ArchiveError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let lists = ChecksumList::read_in(folder.unwrap_or(Path::new(".")))
        .map_err(|error| refuse_file(path, ArchiveFault::ChecksumList(error)))?;
    let mut found = None;
    for list in &lists {
        let Some(expected) = list.find(path) else { continue };
        let found = match found {
            Some(found) => found,
            None => {
                *found.insert(hash_file(path).map_err(|error| refuse_file(path, error.into()))?)
            }
        };
        if found != expected {
            let list = list.file().to_owned();
            return Err(refuse_file(path, ArchiveFault::Checksum { found, expected, list }));
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

/// For every job the blocks where its file may meet the others of its group. Files that have
/// others are opened for it; those that cannot be are refused later, with the reason.
fn points(jobs: &[Job], groups: &[Vec<usize>]) -> Vec<BTreeSet<u64>> {
    let mut points = vec![BTreeSet::new(); jobs.len()];
    for group in groups {
        let members = || group.iter().filter_map(|position| jobs.get(*position));
        let ranges: Vec<BlockRange> = members()
            .filter(|_| group.len() > 1)
            .filter_map(|job| Archive::open(&job.path).ok())
            .map(|archive| archive.range())
            .collect();
        let Some(first) = members().next() else { continue };
        let meeting = meeting_points(&ranges, &first.anchors);
        for position in group {
            if let Some(place) = points.get_mut(*position) {
                place.clone_from(&meeting);
            }
        }
    }
    points
}

/// Gives every proven file of a group its statuses, or refuses it for what another one says.
fn judge(
    jobs: &[Job],
    group: &[usize],
    outcomes: &mut [Result<ProofReport, ArchiveError>],
    statuses: &mut [Vec<(BlockRange, TrustStatus)>],
    heard: &mut impl FnMut(&Path, Result<&ProofReport, &ArchiveError>),
) {
    let proven: Vec<(usize, &Job, &ProofReport)> = group
        .iter()
        .filter_map(|position| {
            let report = outcomes.get(*position)?.as_ref().ok()?;
            Some((*position, jobs.get(*position)?, report))
        })
        .collect();
    let Some((_, first, _)) = proven.first() else { return };
    let runs: Vec<_> = proven.iter().map(|(_, _, report)| report.run.clone()).collect();
    let mut refused = Vec::new();
    for (assessment, (position, job, report)) in
        assess(&runs, &first.anchors).into_iter().zip(&proven)
    {
        match assessment {
            Ok(ranges) => {
                if let Some(place) = statuses.get_mut(*position) {
                    *place = ranges;
                }
            }
            Err(conflict) => {
                let other = match conflict.with {
                    Opponent::Anchor => None,
                    Opponent::ProvenRun(other, _) => {
                        proven.get(other).map(|(_, job, _)| &*job.path)
                    }
                };
                let fault = ArchiveFault::Contradiction(describe(&conflict, other));
                let error = ArchiveError {
                    file: shown(&job.path),
                    block: Some(conflict.number.max(report.run.range.first())),
                    offset: report.first_header_offset,
                    fault: Box::new(fault),
                };
                heard(&job.path, Err(&error));
                refused.push((*position, error));
            }
        }
    }
    for (position, error) in refused {
        if let Some(outcome) = outcomes.get_mut(position) {
            *outcome = Err(error);
        }
    }
}

fn describe(conflict: &TrustConflict, other: Option<&Path>) -> String {
    let (by, verdict) = match (other.map(shown), conflict.with) {
        (Some(other), Opponent::ProvenRun(_, TrustOrder::Firmer)) => {
            (other, ", which stands on firmer ground")
        }
        (Some(other), _) => (other, "; nothing tells which of the two is false"),
        (None, _) => ("an anchor".to_owned(), ""),
    };
    format!("{}{verdict}", describe_claims(conflict, "this file", &by))
}

/// What two sides say of the block where they meet.
pub(crate) fn describe_claims(conflict: &TrustConflict, here_by: &str, there_by: &str) -> String {
    let number = conflict.number;
    let (what, here, there) = match conflict.claims {
        Claims::Hash(here, there) => ("hash", here.to_string(), there.to_string()),
        Claims::TotalDifficulty(here, there) => {
            ("total difficulty", here.to_string(), there.to_string())
        }
    };
    format!("{what} of block {number} is {here} by {here_by}, {there} by {there_by}")
}

/// Archives in a folder and below it, in order; each folder once, whatever links lead to it.
fn search(folder: &Path, seen: &mut BTreeSet<PathBuf>, found: &mut Vec<PathBuf>) {
    let entries = fs::canonicalize(folder).and_then(|real| {
        if !seen.insert(real) {
            return Ok(Vec::new());
        }
        let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
        entries.collect::<io::Result<Vec<PathBuf>>>()
    });
    let Ok(mut entries) = entries else {
        found.push(folder.to_owned());
        return;
    };
    entries.sort();
    for path in entries {
        if path.is_dir() {
            search(&path, seen, found);
        } else if ArchiveName::is_archive(&path) {
            found.push(path);
        }
    }
}
