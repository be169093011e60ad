//! `quipu verify`: prove archive files without storing them.

mod report;

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use chain::accumulator::EpochRoots;
use ingest::archive::ArchiveName;
use ingest::pool::threads_default;
use ingest::survey::{Job, find_archives, survey};

use crate::Failure;
use crate::args::VerifyArgs;
use crate::chain_choice;
use crate::progress::Watch;

pub(crate) use report::Output;

pub(crate) fn run(args: &VerifyArgs) -> Result<(), Failure> {
    let jobs = plan(args, find_archives(&args.paths)?)?;
    let threads = args.work.threads.unwrap_or_else(threads_default);
    prove_all(jobs, threads, if args.json { Output::Json } else { Output::Text })
}

/// Proves every file, prints what was found, and fails if anything was false.
pub(crate) fn prove_all(
    jobs: Vec<Job>,
    threads: NonZeroUsize,
    output: Output,
) -> Result<(), Failure> {
    let sizes = jobs.iter().filter_map(|job| fs::metadata(&job.path).ok());
    let watch = Watch::bytes("proving", sizes.map(|metadata| metadata.len()).sum());
    let findings = survey(jobs, threads, &watch, |error| watch.say(&report::refusal(error)));
    let elapsed = watch.finish();
    report::print(&findings, elapsed, output)?;
    if findings.iter().all(|finding| finding.outcome.is_ok()) { Ok(()) } else { Err(Failure::Told) }
}

/// Which chain each file is held against: the one that the flags name, or the file's own name.
fn plan(args: &VerifyArgs, files: Vec<PathBuf>) -> Result<Vec<Job>, Failure> {
    let by_flags = chain_choice::spec_by_flags(&args.chain)?;
    let networks: Vec<Option<String>> =
        files.iter().map(|path| ArchiveName::parse(path).map(|name| name.network)).collect();
    if !args.chain.anchors.is_empty()
        && by_flags.is_none()
        && networks.iter().any(|network| Some(network) != networks.first())
    {
        return Err(Failure::Usage(anyhow!(
            "--anchor with files of several networks: name one with --network, --genesis or \
             --chain-id"
        )));
    }
    let given_roots = match &args.chain.accumulators {
        Some(path) => Some(chain_choice::read_epoch_roots(path).map_err(Failure::Usage)?),
        None => None,
    };
    let mut roots_in = BTreeMap::new();
    let mut jobs = Vec::with_capacity(files.len());
    for (path, named) in files.into_iter().zip(networks) {
        let spec = match (&by_flags, &named) {
            (Some(spec), _) => spec.clone(),
            (None, name) => chain_choice::spec_by_name(name.as_deref().unwrap_or("unknown")),
        };
        let roots = match &given_roots {
            Some(roots) => Some(roots.clone()),
            None => roots_beside(&path, &mut roots_in)?,
        };
        let anchors = chain_choice::anchors(&spec, &args.chain.anchors, roots)?;
        let network = if by_flags.is_some() { Some(spec.name().to_owned()) } else { named };
        jobs.push(Job { path, network, spec, anchors });
    }
    Ok(jobs)
}

/// The epoch roots in an archive's folder, read once for each folder.
fn roots_beside(
    archive: &Path,
    seen: &mut BTreeMap<PathBuf, Option<EpochRoots>>,
) -> Result<Option<EpochRoots>, Failure> {
    let folder = archive.parent().unwrap_or(Path::new("")).to_owned();
    if let Some(roots) = seen.get(&folder) {
        return Ok(roots.clone());
    }
    let roots = chain_choice::find_epoch_roots(&folder)?;
    seen.insert(folder, roots.clone());
    Ok(roots)
}
