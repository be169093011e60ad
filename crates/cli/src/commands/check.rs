//! `quipu check`: everything that is stored, proven again.

use ingest::check::check_all;
use ingest::pool::threads_default;

use crate::Failure;
use crate::args::CheckArgs;
use crate::data_folder::DataFolder;
use crate::folder_chain::spec_of;
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
    let elapsed = watch.finish();
    let place = folder.path.display();
    if refused_count > 0 {
        let line = format!(
            "{place}: {refused_count} of its files are not what they should be\n  hint: bring them \
             back from a copy, or import the blocks again into another folder"
        );
        print_lines(&[line])?;
        return Err(Failure::Told);
    }
    let line = format!(
        "{place}: all is as it should be: {} blocks, {} transactions, {} files with {} bytes in \
         {:.1} s ({} transactions/s)",
        found.block_count,
        found.transaction_count,
        segments.len() + view.manifest().runs().len(),
        found.bytes,
        elapsed.as_secs_f64(),
        per_second(found.transaction_count, elapsed)
    );
    Ok(print_lines(&[line])?)
}
