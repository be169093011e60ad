//! `quipu merge`: the larger lookup runs of a bucket.

use std::sync::Arc;

use replica::{RunMergeError, merge_runs};
use store::disk::{Disk, Folder};

use crate::Failure;
use crate::args::bucket::MergeArgs;
use crate::bucket::{
    TransferProgress, bucket_failure, bucket_runtime, open_bucket_for_upkeep, read_bucket,
    refuse_unpublished,
};
use crate::interrupt::on_interrupt;
use crate::output::{counted, print_lines};

pub(crate) fn run(args: &MergeArgs) -> Result<(), Failure> {
    let bucket = open_bucket_for_upkeep(&args.at)?;
    // Goes with what is in it, whatever happens.
    let scratch = match &args.work_dir {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let path = scratch.path().to_owned();
    on_interrupt("nothing was merged; the bucket is as it was", move || {
        let _ = std::fs::remove_dir_all(path);
    })?;
    let disk: Arc<dyn Disk> = Arc::new(Folder::create(scratch.path())?);
    let progress = TransferProgress::new("merging");
    let runtime = bucket_runtime()?;
    let merged = runtime.block_on(merge_runs(&bucket, &disk, &progress, &|| false));
    progress.finish();
    let merged = merged.map_err(|error| {
        if let RunMergeError::Bucket(error) = &error { bucket_failure(error) } else { error.into() }
    })?;
    let place = bucket.place();
    let line = if merged.publication.is_none() {
        refuse_unpublished(&bucket, &runtime.block_on(read_bucket(&bucket))?)?;
        format!("{place}: its runs are as large as its slots allow")
    } else {
        let count = counted(u64::try_from(merged.built.len()).unwrap_or(u64::MAX), "run");
        format!("{place}: {count} built; quipu prune removes what they replace")
    };
    Ok(print_lines(&[line])?)
}
