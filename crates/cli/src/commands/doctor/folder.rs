//! What `doctor` finds in a data folder: its chain, what is held, its files, its writer.

use std::path::PathBuf;

use anyhow::anyhow;
use chain::{BlockNumber, BlockRange, ChainSpec};
use store::disk::{Disk, Folder};
use store::journal::unlisted_segments;
use store::lock::LOCK_NAME;
use store::manifest::ManifestError;
use store::notice::read_notice;
use store::read::block_on;
use store::{BlockId, Reader, StoreError, View};

use crate::Failure;
use crate::args::doctor::DoctorArgs;
use crate::chain_choice;
use crate::data_folder::{DataFolder, irregular_files, locate};
use crate::folder_text::{lost_blocks, pending_merge, unlisted_segment};
use crate::head_text::{head_faults, head_notes};
use crate::output::{counted, counted_grouped, grouped};
use crate::trust_text::sentence;

use super::DoctorFinding;

/// Ranges that are told one by one.
const RANGES_MAX: usize = 8;
/// The longest text that a lock's file is read for.
const HOLDER_BYTES_MAX: u64 = 4096;

/// With less than this nothing can be taken in or followed: a segment is some megabytes long.
const FREE_BYTES_MIN: u64 = 64 << 20;

/// What to do about a folder of which nothing is left.
const NOTHING_LEFT_ADVICE: &str = "bring the files back from a copy; without one, take the blocks in again, \
                                 into another folder: quipu import --data-dir NEW ARCHIVES";

/// What was found.
#[derive(Debug)]
pub(super) struct FolderExam {
    pub(super) path: PathBuf,
    pub(super) findings: Vec<DoctorFinding>,
    /// The chain, as far as the folder or the flags tell.
    pub(super) spec: Option<ChainSpec>,
    /// The newest block that is held.
    pub(super) tip: Option<BlockId>,
    /// Who writes to it now.
    pub(super) writer: Option<String>,
}

/// What the lock tells.
struct LockExam {
    finding: DoctorFinding,
    /// Who holds it.
    writer: Option<String>,
}

/// Looks at the folder that the arguments name. That it is not there, or cannot be opened, is a finding.
pub(super) fn examine_folder(args: &DoctorArgs) -> Result<FolderExam, Failure> {
    let path = locate(&args.data)?;
    let place = path.display().to_string();
    let mut exam = FolderExam { path, findings: Vec::new(), spec: None, tip: None, writer: None };
    let (folder, head) = match DataFolder::open_without_head(&args.data) {
        Ok(opened) => opened,
        Err(failure) => {
            let cause = open_todo(&failure, &place);
            let said = text_of(failure)?;
            let todo = cause.unwrap_or_else(|| hint_of(&said, &place));
            exam.findings.push(DoctorFinding::fix("data folder", said, todo));
            exam.spec = chain_choice::spec_by_flags(&args.chain, None)?;
            return Ok(exam);
        }
    };
    let findings = &mut exam.findings;
    findings.push(examine_files(&folder, &place)?);
    findings.extend(examine_space(&*folder.disk)?);
    exam.spec = examine_chain(args, &folder, findings)?;
    match head {
        Ok(recovery) => {
            let check = "quipu check tells more; what is proven of the head is served";
            let faults = head_faults(&recovery).into_iter();
            findings.extend(faults.map(|fault| DoctorFinding::fix("head", fault, check)));
            findings.extend(
                head_notes(&recovery).into_iter().map(|it| DoctorFinding::note("head", it)),
            );
        }
        Err(error) => findings.push(DoctorFinding::fix(
            "head",
            error.to_string(),
            format!("quipu repair --data-dir {place}"),
        )),
    }
    let view = folder.store.view();
    exam.tip = read_id(&view, view.tip());
    let lock = examine_lock(&folder)?;
    findings.extend(examine_blocks(&view, &place, lock.writer.as_deref()));
    findings.push(lock.finding);
    exam.writer = lock.writer;
    findings.extend(examine_rest(&folder, &view)?);
    Ok(exam)
}

/// What to do about a folder that cannot be opened; `None` if the error says it itself.
fn open_todo(failure: &Failure, place: &str) -> Option<String> {
    let cause = match failure {
        Failure::Work(error) => error.downcast_ref::<StoreError>(),
        Failure::Usage(_) | Failure::Told | Failure::Stopped(_) => None,
    };
    let repair = format!("quipu repair --data-dir {place}");
    let newer = "use the build that wrote the folder, or a newer one";
    match cause {
        Some(StoreError::ManifestMissing { .. }) => Some(repair),
        Some(StoreError::Manifest(error)) if error.is_damage() => Some(repair),
        Some(StoreError::Manifest(ManifestError::Corrupt { .. })) => Some(newer.to_owned()),
        Some(_) => Some(format!("see whether {place} can be read, and by whom")),
        None => None,
    }
}

/// What the way into a data folder advises itself.
fn hint_of(said: &str, place: &str) -> String {
    let hint = said.lines().find_map(|line| line.trim().strip_prefix("hint: "));
    hint.map_or_else(|| format!("see whether {place} can be read, and by whom"), str::to_owned)
}

/// What a failure says; one of the command line is none of the folder's.
fn text_of(failure: Failure) -> Result<String, Failure> {
    match failure {
        Failure::Work(error) => Ok(format!("{error:#}")),
        Failure::Usage(_) | Failure::Told | Failure::Stopped(_) => Err(failure),
    }
}

/// Whether blocks are listed, and none of them can be read: there is nothing to rebuild a manifest from,
/// and nothing that an import could go on from.
fn is_nothing_left(view: &View) -> bool {
    view.coverage().is_empty() && !view.manifest().segments().is_empty()
}

/// Whether every listed file is there with its length.
fn examine_files(folder: &DataFolder, place: &str) -> Result<DoctorFinding, Failure> {
    folder.store.pass_over_missing()?;
    let view = folder.store.view();
    let manifest = view.manifest();
    let count = manifest.segments().len() + manifest.runs().len();
    let bytes = manifest.segments().iter().map(|entry| entry.bytes);
    let bytes: u64 = bytes.chain(manifest.runs().iter().map(|entry| entry.bytes)).sum();
    let faults = folder.store.faulty_files();
    let files = counted(u64::try_from(count).unwrap_or(u64::MAX), "listed file");
    if faults.is_empty() {
        let said = format!("{place}: {files} with {} bytes, all there", grouped(bytes));
        return Ok(DoctorFinding::well("data folder", said));
    }
    let texts: Vec<&str> = faults.iter().map(|fault| fault.text.as_str()).collect();
    let said = format!("{place}: {} of {files} cannot be read: {}", faults.len(), texts.join("; "));
    if is_nothing_left(&view) {
        return Ok(DoctorFinding::fix("data folder", said, NOTHING_LEFT_ADVICE));
    }
    if faults.iter().all(|fault| fault.is_of_log_index) {
        let todo = format!("quipu index --data-dir {place} builds the log index again");
        return Ok(DoctorFinding::fix("data folder", said, todo));
    }
    let todo = format!(
        "bring the files back from a copy; without one, quipu repair --data-dir {place} lists what is \
         left, and an import brings their blocks back; quipu check --data-dir {place} proves the others"
    );
    Ok(DoctorFinding::fix("data folder", said, todo))
}

/// Whether the disk is full, or nearly.
fn examine_space(disk: &dyn Disk) -> Result<Option<DoctorFinding>, Failure> {
    let free = disk.free_bytes().map_err(|error| anyhow!("{error}"))?;
    Ok(free.filter(|free| *free < FREE_BYTES_MIN).map(|free| {
        let said = format!("{}: {} bytes are free on its disk", disk.place(), grouped(free));
        DoctorFinding::fix(
            "disk",
            said,
            "free some space, or move the data folder to a larger disk",
        )
    }))
}

fn examine_chain(
    args: &DoctorArgs,
    folder: &DataFolder,
    findings: &mut Vec<DoctorFinding>,
) -> Result<Option<ChainSpec>, Failure> {
    let found = match chain_choice::folder_chain(&args.chain, Some(folder.store())) {
        Ok(found) => found.map(|chain| chain.spec().clone()),
        Err(failure @ Failure::Usage(_)) => return Err(failure),
        Err(failure) => {
            let todo = format!("quipu repair --data-dir {} --genesis FILE", folder.path.display());
            findings.push(DoctorFinding::fix("chain", text_of(failure)?, todo));
            return Ok(None);
        }
    };
    let Some(spec) = &found else {
        findings.push(DoctorFinding::note("chain", "not known yet: nothing was taken in"));
        return Ok(None);
    };
    let id =
        spec.chain_id().map_or("an unknown chain id".to_owned(), |id| format!("chain id {id}"));
    let said = match spec.genesis_hash() {
        Some(hash) => format!("{}, {id}, genesis {hash}", spec.name()),
        None => {
            format!("{}, {id}, genesis not known: nothing anchors it but --anchor", spec.name())
        }
    };
    findings.push(DoctorFinding::well("chain", said));
    Ok(found)
}

/// What is held, and how far it can be trusted.
fn examine_blocks(view: &View, place: &str, writer: Option<&str>) -> Vec<DoctorFinding> {
    let held = view.coverage();
    if let (true, Some(writer)) = (held.is_empty(), writer) {
        return vec![DoctorFinding::note(
            "blocks",
            format!("none are held yet: {writer} is at work"),
        )];
    }
    if is_nothing_left(view) {
        return vec![DoctorFinding::fix("blocks", "none can be read", NOTHING_LEFT_ADVICE)];
    }
    if held.is_empty() {
        let todo = format!("quipu import --data-dir {place} ARCHIVES");
        return vec![DoctorFinding::fix("blocks", "none are held", todo)];
    }
    let count: u64 = held.iter().map(BlockRange::count).sum();
    let said = format!("{}: {}", counted_grouped(count, "block"), shown(held));
    let mut findings = vec![DoctorFinding::well("blocks", said)];
    let lost = view.lost();
    let gaps: Vec<BlockRange> = held
        .windows(2)
        .filter_map(|pair| match pair {
            [one, next] => BlockRange::from_ends(one.end(), next.first().checked_sub(1)?),
            _ => None,
        })
        .collect();
    if let (Some(first), Some(last)) = (gaps.first(), gaps.last()) {
        let todo = format!(
            "quipu backfill --data-dir {place} --upstream URL --blocks {}..{}",
            first.first(),
            last.last()
        );
        let said = format!("not held: {}", shown(&gaps));
        findings.push(DoctorFinding::note("gaps", said).with_todo(todo));
    }
    findings.extend(lost.iter().map(|range| {
        let todo = format!("quipu backfill --data-dir {place} --upstream URL --blocks {range}");
        DoctorFinding::fix("lost", lost_blocks(*range, held), todo)
    }));
    let receipts: u64 = view.coverage_receipts().iter().map(BlockRange::count).sum();
    if receipts < count {
        let said = format!("held of {} only", shown(view.coverage_receipts()));
        findings.push(DoctorFinding::note("receipts", said));
    }
    let statuses = view.statuses().unwrap_or_else(|conflict| {
        let todo = format!("quipu check --data-dir {place}");
        findings.push(DoctorFinding::fix("trust", conflict.to_string(), todo));
        Vec::new()
    });
    findings.extend(statuses.last().map(|(range, status)| {
        DoctorFinding::well("trust", format!("{range}, the highest range: {}", sentence(status)))
    }));
    let tip = read_id(view, view.tip());
    let finalized =
        view.finalized().map_or("nothing is final".to_owned(), |it| format!("{it} is final"));
    findings.extend(tip.map(|BlockId { number, hash }| {
        DoctorFinding::well("tip", format!("{number} {hash}; {finalized}"))
    }));
    findings
}

fn shown(ranges: &[BlockRange]) -> String {
    let mut texts: Vec<String> = ranges.iter().take(RANGES_MAX).map(ToString::to_string).collect();
    if let Some(more) = ranges.len().checked_sub(RANGES_MAX).filter(|more| *more > 0) {
        texts.push(format!("and {more} more"));
    }
    texts.join(", ")
}

fn read_id(view: &View, number: Option<BlockNumber>) -> Option<BlockId> {
    let number = number?;
    let mut reader = Reader::new().ok()?;
    let hash = block_on(view.read_hash(&mut reader, number)).ok()??;
    Some(BlockId { number, hash })
}

/// Who writes to the folder: whether somebody does is said by the lock, who it is by the lock's file. The
/// number of a process says nothing of one in another container.
fn examine_lock(folder: &DataFolder) -> Result<LockExam, Failure> {
    let said = match folder.disk.read(LOCK_NAME, HOLDER_BYTES_MAX) {
        Err(error) if error.is_missing() => String::new(),
        read => {
            String::from_utf8_lossy(&read.map_err(|error| anyhow!("{error}"))?).trim().to_owned()
        }
    };
    let is_locked = Folder::open(&folder.path).and_then(|folder| folder.is_locked(LOCK_NAME));
    let is_locked = is_locked.map_err(|error| anyhow!("{error}"))?;
    let unnamed = "a process that does not say which";
    let finding = match (is_locked, said.as_str()) {
        (true, "") => DoctorFinding::well("writer", unnamed),
        (true, said) => DoctorFinding::well("writer", format!("{said} writes to it")),
        (false, "") => DoctorFinding::well("writer", "none"),
        (false, said) => {
            DoctorFinding::well("writer", format!("none; the last one, {said}, was killed"))
        }
    };
    let writer = if said.is_empty() { unnamed.to_owned() } else { said };
    Ok(LockExam { finding, writer: is_locked.then_some(writer) })
}

/// Files that are not listed or are none, slots in pieces, and a follower's last words.
fn examine_rest(folder: &DataFolder, view: &View) -> Result<Vec<DoctorFinding>, Failure> {
    let place = folder.path.display();
    let unlisted = unlisted_segments(&*folder.disk)?;
    let unlisted = unlisted.iter().map(|name| DoctorFinding::note("files", unlisted_segment(name)));
    let irregular = irregular_files(&*folder.disk)?.into_iter();
    let irregular =
        irregular.map(|it| DoctorFinding::fix("files", it, "move it out of the data folder"));
    let pending = view.manifest().pending_merges();
    let pending =
        pending.iter().map(|slot| DoctorFinding::note("merges", pending_merge(slot.range)));
    let notice = read_notice(&*folder.disk)?;
    let notice = notice.map(|notice| {
        let todo = format!(
            "quipu rewind --data-dir {place} --to NUMBER:HASH, if that is what it asks for"
        );
        DoctorFinding::fix("following", format!("stands still: {notice}"), todo)
    });
    Ok(unlisted.chain(irregular).chain(pending).chain(notice).collect())
}

#[cfg(test)]
mod tests {
    use testing::disk::faulty::FaultyDisk;

    use super::*;

    #[test]
    fn a_disk_that_is_nearly_full_must_be_seen_to() {
        let disk = FaultyDisk::new(1);
        assert!(examine_space(&disk).unwrap().is_none());
        disk.set_free_bytes(FREE_BYTES_MIN);
        assert!(examine_space(&disk).unwrap().is_none());
        disk.set_free_bytes(FREE_BYTES_MIN - 1);
        assert!(examine_space(&disk).unwrap().unwrap().is_fix());
    }
}
