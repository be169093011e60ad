//! `quipu verify`: prove archive files without storing them.

mod report;

use std::collections::BTreeSet;
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
use crate::output::print_lines;
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
    let is_alone = jobs.len() == 1;
    let findings = survey(jobs, threads, &watch, |path, outcome| match outcome {
        Err(error) => watch.say(&report::refusal(error)),
        // Verdicts come at the end: a later file may anchor this one.
        Ok(_) if is_alone => {}
        Ok(report) => watch.say(&report::progress(path, report)),
    });
    let elapsed = watch.finish();
    print_lines(&report::lines(&findings, elapsed, output))?;
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
    let roots = find_roots(args, &files)?;
    let mut is_roots_used = false;
    let mut jobs = Vec::with_capacity(files.len());
    for (path, named) in files.into_iter().zip(networks) {
        let spec = match (&by_flags, &named) {
            (Some(spec), _) => spec.clone(),
            (None, name) => chain_choice::spec_by_name(name.as_deref().unwrap_or("unknown")),
        };
        let anchors = chain_choice::anchors(&spec, &args.chain.anchors, roots.clone())?;
        is_roots_used |= anchors.expected_epoch_root(0).is_some();
        let network = if by_flags.is_some() { Some(spec.name().to_owned()) } else { named };
        jobs.push(Job { path, network, spec, anchors });
    }
    if args.chain.accumulators.is_some() && !is_roots_used {
        eprintln!(
            "warning: --accumulators is mainnet's list, and no file here is mainnet's by name or --network"
        );
    }
    Ok(jobs)
}

/// Mainnet's epoch roots: from the flag, or from beside the archives. There is only one such list,
/// so the first that is found will do for all.
fn find_roots(args: &VerifyArgs, files: &[PathBuf]) -> Result<Option<EpochRoots>, Failure> {
    if let Some(path) = &args.chain.accumulators {
        return chain_choice::read_epoch_roots(path).map(Some).map_err(Failure::Usage);
    }
    let parents = files.iter().filter_map(|file| file.parent());
    let folders: BTreeSet<&Path> = args.paths.iter().map(PathBuf::as_path).chain(parents).collect();
    for folder in folders {
        match chain_choice::find_epoch_roots(folder) {
            Ok(Some(roots)) => return Ok(Some(roots)),
            Ok(None) => {}
            Err(error) => eprintln!("warning: not used: {error:#}"),
        }
    }
    Ok(None)
}
