//! `quipu verify`: prove archive files without storing them.

mod report;

use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::anyhow;
use archive::{ArchiveName, shown};
use chain::accumulator::EpochRoots;
use ingest::folder_chain::spec_by_name;
use ingest::survey::{Job, NoArchives, find_archives, survey};
use pool::threads_default;

use crate::Failure;
use crate::args::verify::VerifyArgs;
use crate::chain_choice;
use crate::interrupt::on_interrupt;
use crate::output::{Verbosity, note, print_lines, verbosity};
use crate::progress::Watch;

use report::Output;

pub(crate) use report::{NAME_ARCHIVE_HINT, hint, remedy_hint};

pub(crate) fn run(args: &VerifyArgs) -> Result<(), Failure> {
    let files = find_archives(&args.paths).map_err(|error| no_archives(&error))?;
    on_interrupt("not every file was proven; nothing was changed", || ())?;
    let genesis = files.iter().find_map(|path| chain_choice::genesis_beside(path));
    let jobs = plan(args, files)?;
    let is_genesis_known = jobs.iter().any(|job| job.spec.genesis_hash().is_some());
    let threads = args.work.threads.unwrap_or_else(threads_default);
    let proven = prove_all(jobs, threads, if args.json { Output::Json } else { Output::Text });
    if let Some(genesis) = genesis.filter(|_| !is_genesis_known) {
        note(&format!(
            "the archives were held against no genesis; if you trust the one beside them, name it: \
             --genesis {}",
            shown(&genesis)
        ));
    }
    proven
}

/// Why there is nothing to read, and what to do about it.
pub(crate) fn no_archives(error: &NoArchives) -> Failure {
    let hint = match error {
        NoArchives::None { .. } => "name the files themselves, or another folder",
        NoArchives::Packed { .. } | NoArchives::Compressed { .. } => {
            "unpack it first (gunzip, unzstd, ...), and give what comes out"
        }
        NoArchives::Other { .. } => NAME_ARCHIVE_HINT,
        NoArchives::Absent { .. } => return Failure::Work(anyhow!("{error}")),
    };
    Failure::Work(anyhow!("{error}\n  hint: {hint}"))
}

/// Proves every file, prints what was found, and fails if anything was false.
fn prove_all(jobs: Vec<Job>, threads: NonZeroUsize, output: Output) -> Result<(), Failure> {
    let sizes = jobs.iter().filter_map(|job| fs::metadata(&job.path).ok());
    let watch = Watch::bytes("proving", sizes.map(|metadata| metadata.len()).sum());
    let is_verbose = verbosity() == Verbosity::Verbose;
    let findings = survey(jobs, threads, &watch, |path, outcome| match outcome {
        Err(error) => watch.say(&report::refusal(error)),
        // Verdicts come at the end: a later file may anchor this one.
        Ok(report) if is_verbose => watch.say(&report::progress(path, report)),
        Ok(_) => {}
    });
    let elapsed = watch.finish();
    print_lines(&report::lines(&findings, elapsed, output))?;
    if findings.iter().all(|finding| finding.outcome.is_ok()) { Ok(()) } else { Err(Failure::Told) }
}

/// Which chain each file is held against: the one that the flags name, or the file's own name.
fn plan(args: &VerifyArgs, files: Vec<PathBuf>) -> Result<Vec<Job>, Failure> {
    let by_flags = chain_choice::spec_by_flags(&args.chain, None)?;
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
    let roots = EpochRoots::mainnet();
    let mut jobs = Vec::with_capacity(files.len());
    for (path, named) in files.into_iter().zip(networks) {
        let spec = match (&by_flags, &named) {
            (Some(spec), _) => spec.clone(),
            (None, name) => spec_by_name(name.as_deref().unwrap_or("unknown")),
        };
        let anchors = chain_choice::anchors(&spec, &args.chain.anchors, Some(roots.clone()))?;
        let network = if by_flags.is_some() { Some(spec.name().to_owned()) } else { named };
        jobs.push(Job { path, network, spec, anchors });
    }
    Ok(jobs)
}
