//! `quipu publish`: what is sealed, sent to a bucket.

use alloy_primitives::hex;
use anyhow::anyhow;
use chain::BlockRange;
use replica::{Publication, PublishError, PublishTask, Published, publish};
use store::{View, YOUNG_SLOT_BLOCKS};

use crate::Failure;
use crate::args::bucket::PublishArgs;
use crate::bucket::{
    TransferProgress, bucket_failure, bucket_runtime, open_bucket, refuse_place_in,
};
use crate::data_folder::DataFolder;
use crate::hints::disk_hint;
use crate::interrupt::on_interrupt;
use crate::output::{counted, grouped, note, print_lines};

/// How often a folder is published anew whose files a writer beside us has merged away meanwhile.
const TRIES_MAX: u32 = 8;

pub(crate) fn run(args: &PublishArgs) -> Result<(), Failure> {
    let bucket = open_bucket("--to", &args.to)?;
    let folder = DataFolder::open(&args.data)?;
    refuse_place_in(&folder.path, "--to", &bucket)?;
    on_interrupt("what was sent stays there; run it again to go on", || ())?;
    let runtime = bucket_runtime()?;
    let mut tries = 1;
    let done = loop {
        let view = folder.store.view();
        let manifest = view.manifest();
        let genesis = folder.store.read_genesis()?;
        let progress = TransferProgress::new("publishing");
        let task = PublishTask {
            disk: &folder.disk,
            manifest,
            genesis: genesis.as_deref(),
            progress: &progress,
            stop: &|| false,
        };
        let done = runtime.block_on(publish(&bucket, &Published::default(), task));
        progress.finish();
        let is_gone = matches!(&done, Err(PublishError::Disk(error)) if error.is_missing());
        if !is_gone || tries >= TRIES_MAX || !folder.store.refresh()? {
            break done;
        }
        drop(view);
        tries += 1;
    };
    let done = done.map_err(|error| refused(error, &folder.store.view()))?;
    for name in &done.withdrawn {
        note(&format!("{name} was withdrawn from the bucket: no reader serves it"));
    }
    print_lines(&[told(&done, bucket.place())])?;
    match done.withdrawn.len() {
        0 => Ok(()),
        count => Err(Failure::Work(anyhow!(
            "{}: {count} of the folder's segments are withdrawn there and not served\n  hint: if they are \
             right after all, remove the object below retractions/ that names them and publish again",
            bucket.place()
        ))),
    }
}

fn told(done: &Publication, place: &str) -> String {
    let Publication { files_put, bytes_put, files_there, removed, .. } = done;
    let there = match files_there {
        0 => String::new(),
        count => format!(", {} there already", counted(*count, "file")),
    };
    let removed = match removed.len() {
        0 => String::new(),
        count => {
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            format!(", {} superseded", counted(count, "manifest"))
        }
    };
    format!(
        "{place}: {} sent, {} bytes{there}{removed}; manifest {}",
        counted(*files_put, "file"),
        grouped(*bytes_put),
        hex::encode(done.manifest)
    )
}

fn refused(error: PublishError, view: &View) -> Failure {
    let hint = if let PublishError::Bucket(error) = &error {
        return bucket_failure(error);
    } else if let PublishError::Disk(error) = &error {
        disk_hint(error).to_owned()
    } else if matches!(error, PublishError::Empty { .. }) {
        let waiting = view.coverage().iter().map(BlockRange::count).sum();
        format!(
            "blocks of a followed node are sealed {YOUNG_SLOT_BLOCKS} at a time when they are final; \
             {} not sealed yet",
            counted(waiting, "block")
        )
    } else {
        return error.into();
    };
    Failure::Work(anyhow!("{error}\n  hint: {hint}"))
}
