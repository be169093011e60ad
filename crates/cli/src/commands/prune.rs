//! `quipu prune`: what is superseded, removed from a bucket.

use std::fmt::Write as _;
use std::time::UNIX_EPOCH;

use replica::{Pruning, prune};

use crate::Failure;
use crate::args::bucket::PruneArgs;
use crate::bucket::{
    bucket_failure, bucket_runtime, open_bucket_for_upkeep, read_bucket, refuse_unpublished,
};
use crate::output::{counted, grouped, print_lines};
use crate::unix_time::since_1970;

pub(crate) fn run(args: &PruneArgs) -> Result<(), Failure> {
    let bucket = open_bucket_for_upkeep(&args.at)?;
    let now = UNIX_EPOCH + since_1970();
    let runtime = bucket_runtime()?;
    let pruned = runtime.block_on(prune(&bucket, args.older_than, now));
    let pruned = pruned.map_err(|error| bucket_failure(&error))?;
    // Files that no manifest lists any more are pruned too.
    if pruned == Pruning::default() {
        refuse_unpublished(&bucket, &runtime.block_on(read_bucket(&bucket))?)?;
    }
    let manifests = u64::try_from(pruned.manifests.len()).unwrap_or(u64::MAX);
    let mut line = format!(
        "{}: {} and {} with {} bytes removed",
        bucket.place(),
        counted(manifests, "manifest"),
        counted(pruned.files, "file"),
        grouped(pruned.bytes)
    );
    if pruned.files_noted > 0 {
        let noted = counted(pruned.files_noted, "file");
        let _ = write!(
            line,
            "; {noted} not listed any more, to be removed when that was so for {} s",
            args.older_than.as_secs()
        );
    }
    if pruned.staged > 0 {
        let staged = counted(pruned.staged, "unfinished upload");
        let _ = write!(line, "; {staged} with {} bytes removed", grouped(pruned.staged_bytes));
    }
    Ok(print_lines(&[line])?)
}
