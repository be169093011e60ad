//! `quipu rewind`: drop what is above a block, after a conflict.

use anyhow::anyhow;
use chain::BlockNumber;
use chain::trust::{Anchor, Anchors};
use store::StoreError;
use store::head::{HeadError, HeadLimits};

use crate::Failure;
use crate::args::rewind::RewindArgs;
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
    let before = writer.view().tip();
    let Anchor { number, hash } = args.to;
    let gone = writer.rewind_to(BlockNumber(number), hash);
    let gone = gone.map_err(|error| refused(&error, args.to))?;
    let dropped = before.map_or(0, |before| before.get().saturating_sub(number));
    let sealed = gone.map_or(String::new(), |range| format!(", of which {range} were sealed"));
    print_lines(&[format!(
        "{} above {number} dropped{sealed}; the tip is {}",
        counted(dropped, "block"),
        args.to
    )])?;
    Ok(())
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
