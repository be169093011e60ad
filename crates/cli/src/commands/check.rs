//! `quipu check`: everything that is stored, proven again.

use ingest::check::check_all;
use ingest::pool::threads_default;

use crate::Failure;
use crate::args::CheckArgs;
use crate::data_folder::DataFolder;
use crate::folder_chain::spec_of;
use crate::head_text::{head_faults, head_notes};
use crate::output::print_lines;
use crate::progress::{Watch, per_second};

pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let folder = DataFolder::open(&args.data)?;
    let spec = spec_of(&folder)?;
    let threads = args.work.threads.unwrap_or_else(threads_default);
    let view = folder.store.view();
    let segments = view.manifest().segments();
    let watch = Watch::bytes("checking", segments.iter().map(|entry| entry.bytes).sum());
    let mut refused_count = 0_u64;
    let found = check_all(&view, &spec, threads, &watch, |error| {
        refused_count += 1;
        watch.say(&format!("error: {error}"));
    });
    let recovery = folder.store.head_recovery();
    for fault in head_faults(&recovery) {
        refused_count += 1;
        watch.say(&format!("error: {fault}"));
    }
    let elapsed = watch.finish();
    for note in head_notes(&recovery) {
        eprintln!("note: {note}");
    }
    let place = folder.path.display();
    if refused_count > 0 {
        let line = format!(
            "{place}: {refused_count} of its files are not what they should be\n  hint: bring them \
             back from a copy, or import the blocks again into another folder"
        );
        print_lines(&[line])?;
        return Err(Failure::Told);
    }
    // Every block of the head was proven when its log was read, and that the lowest stands on what is
    // sealed.
    let head = view.head().blocks();
    let head_transactions = head.iter().map(|block| block.tx_hashes().len()).sum::<usize>();
    let in_head = match head {
        [] => String::new(),
        [first, .., last] => format!(" ({}..{} in the head)", first.number(), last.number()),
        [only] => format!(" ({} in the head)", only.number()),
    };
    let line = format!(
        "{place}: all is as it should be: {} blocks{in_head}, {} transactions, {} files with {} bytes \
         in {:.1} s ({} transactions/s)",
        found.block_count + u64::try_from(head.len()).unwrap_or(u64::MAX),
        found.transaction_count + u64::try_from(head_transactions).unwrap_or(u64::MAX),
        segments.len() + view.manifest().runs().len() + usize::from(recovery.log.is_some()),
        found.bytes + store::head::file_bytes(&*folder.disk)?,
        elapsed.as_secs_f64(),
        per_second(found.transaction_count, elapsed)
    );
    let pending = view.manifest().pending_merges();
    let pending = pending.iter().map(|slot| {
        format!(
            "blocks {} are not merged into one segment yet: the next writer does it",
            slot.range
        )
    });
    Ok(print_lines(&std::iter::once(line).chain(pending).collect::<Vec<_>>())?)
}
