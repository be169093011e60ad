//! `quipu merge`: the larger lookup runs of a bucket.

use crate::Failure;
use crate::args::bucket::MergeArgs;
use crate::bucket::open_bucket;

pub(crate) fn run(args: &MergeArgs) -> Result<(), Failure> {
    let _bucket = open_bucket("--at", &args.at)?;
    let _ = &args.work_dir;
    todo!("when replica has it")
}
