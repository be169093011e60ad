//! `quipu index`: builds the log index of blocks that have none, and again what is damaged of it.

use chain::BlockRange;
use store::RunSubject;

use crate::Failure;
use crate::args::index::IndexArgs;
use crate::commands::import::{open_writer, to_failure};
use crate::data_folder::DataFolder;
use crate::interrupt::on_interrupt;
use crate::output::{counted, print_lines};
use crate::priority::give_way;
use crate::progress::Watch;

pub(crate) fn run(args: &IndexArgs) -> Result<(), Failure> {
    on_interrupt("what is indexed stays; the same command again goes on after it", || ())?;
    let folder = DataFolder::open(&args.data)?;
    let mut writer = open_writer(&folder, folder.spec()?)?;
    writer.want_log_index(true).map_err(|error| to_failure(&error))?;
    let damaged = give_way(|| give_up_damaged(&mut writer))?;
    let blocks = |writer: &store::Writer| -> u64 {
        writer.view().manifest().blocks_without_log_index().iter().map(BlockRange::count).sum()
    };
    let expected = blocks(&writer);
    let watch = Watch::blocks("indexing", expected);
    while give_way(|| writer.index_next_slot()).map_err(|error| to_failure(&error))?.is_some() {
        watch.reach(expected.saturating_sub(blocks(&writer)));
    }
    watch.finish();
    let damaged = damaged.iter().map(|name| format!("{name}: was damaged or missing, built again"));
    let indexed = match expected {
        0 => "every sealed block has its log index, and no file of it is damaged".to_owned(),
        count => format!("the logs of {} indexed", counted(count, "block")),
    };
    print_lines(&damaged.chain([indexed]).collect::<Vec<_>>())?;
    Ok(())
}

/// Reads the index as far as it is there, and takes damaged files off the manifest: their blocks are
/// then indexed with those that have no index. Returns the names of these files.
fn give_up_damaged(writer: &mut store::Writer) -> Result<Vec<String>, Failure> {
    let view = writer.view();
    let bytes = view.manifest().runs_of(RunSubject::Logs).map(|run| run.bytes).sum();
    let watch = Watch::bytes("checking the log index", bytes);
    drop(view);
    let mut seen = 0_u64;
    let damaged = writer.give_up_damaged_log_runs(|bytes| {
        seen = seen.saturating_add(bytes);
        watch.reach(seen);
    });
    watch.finish();
    damaged.map_err(|error| to_failure(&error))
}
