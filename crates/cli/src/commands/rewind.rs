//! `quipu rewind`: drop what is above a block, after a conflict.

use alloy_primitives::hex;
use anyhow::anyhow;
use chain::trust::{Anchor, Anchors};
use chain::{BlockNumber, BlockRange};
use replica::{retract, segments_within};
use store::head::{HeadError, HeadLimits};
use store::read::block_on;
use store::{Reader, StoreError, View};

use crate::Failure;
use crate::args::rewind::RewindArgs;
use crate::bucket::{bucket_failure, bucket_runtime, open_bucket, read_bucket};
use crate::commands::import::{open_writer, to_failure};
use crate::data_folder::DataFolder;
use crate::output::{counted, print_lines};

pub(crate) fn run(args: &RewindArgs) -> Result<(), Failure> {
    let folder = DataFolder::open(&args.data)?;
    let spec = folder.spec()?;
    let mut writer = open_writer(&folder, spec.clone())?;
    writer
        .open_head(&Anchors::of(&spec), HeadLimits::default())
        .map_err(|error| to_failure(&error))?;
    let count = |view: &View| view.coverage().iter().map(BlockRange::count).sum::<u64>();
    let before = count(&writer.view());
    let Anchor { number, hash } = args.to;
    if let Some(url) = &args.retract_at {
        retract_above(url, &writer.view(), args.to)?;
    }
    let gone = writer.rewind_to(BlockNumber(number), hash);
    let gone = gone.map_err(|error| refused(&error, args.to))?;
    let view = writer.view();
    let dropped = before.saturating_sub(count(&view));
    let sealed =
        gone.map_or(String::new(), |range| format!(", sealed blocks of {range} among them"));
    let tip = view.tip().ok_or_else(|| anyhow!("no block is held any more"))?;
    let hash = block_on(view.read_hash(&mut Reader::new()?, tip))?;
    print_lines(&[format!(
        "{} above {number} dropped{sealed}; the tip is {tip}:{}",
        counted(dropped, "block"),
        hash.unwrap_or_default()
    )])?;
    Ok(())
}

/// Withdraws from a bucket all segments with blocks that the folder is about to drop, also those of older
/// publications and of others. Before it drops them: whatever stops us, the same command does it again.
fn retract_above(url: &str, view: &View, to: Anchor) -> Result<(), Failure> {
    let held = block_on(view.read_hash(&mut Reader::new()?, BlockNumber(to.number)))?;
    if held != Some(to.hash) {
        // The rewind says what is wrong with it.
        return Ok(());
    }
    let own = view.manifest().segments().iter().map(|entry| entry.range.last()).max();
    let dropped = own.and_then(|last| BlockRange::from_ends(to.number.checked_add(1)?, last));
    let Some(dropped) = dropped else { return Ok(()) };
    let (bucket, runtime) = (open_bucket("--retract-at", url)?, bucket_runtime()?);
    let names = segments_within(&runtime.block_on(read_bucket(&bucket))?, dropped);
    let done = runtime.block_on(retract(&bucket, &names));
    let done = done.map_err(|error| bucket_failure(&error))?;
    let count = counted(u64::try_from(names.len()).unwrap_or(u64::MAX), "segment");
    let place = bucket.place();
    let line = match done {
        Some(name) => format!("{place}: {count} withdrawn; retraction {}", hex::encode(name)),
        None => format!("{place}: nothing above {} is published", to.number),
    };
    Ok(print_lines(&[line])?)
}

fn refused(error: &StoreError, to: Anchor) -> Failure {
    if let StoreError::NotHeld { number } = error {
        return Failure::Work(anyhow!(
            "block {number} is not held\n  hint: `quipu stat` says what is; name the last block that \
             shall stay"
        ));
    }
    if let StoreError::Head(HeadError::NotCanonical { canonical: Some(held), .. }) = error {
        return Failure::Work(anyhow!(
            "block {} is {held} here, not {}\n  hint: name a block below the conflict, with the hash \
             that it has here",
            to.number,
            to.hash
        ));
    }
    to_failure(error)
}
