//! `quipu index`: the log index of blocks that have none.

use chain::BlockRange;

use crate::Failure;
use crate::args::index::IndexArgs;
use crate::commands::import::{open_writer, to_failure};
use crate::data_folder::DataFolder;
use crate::interrupt::on_interrupt;
use crate::output::{counted, print_lines};
use crate::priority::use_idle_scheduling;
use crate::progress::Watch;

pub(crate) fn run(args: &IndexArgs) -> Result<(), Failure> {
    on_interrupt("what is indexed stays; the same command again goes on after it", || ())?;
    use_idle_scheduling();
    let folder = DataFolder::open(&args.data)?;
    let mut writer = open_writer(&folder, folder.spec()?)?;
    writer.want_log_index(true).map_err(|error| to_failure(&error))?;
    let blocks = |writer: &store::Writer| -> u64 {
        writer.view().manifest().blocks_without_log_index().iter().map(BlockRange::count).sum()
    };
    let expected = blocks(&writer);
    let watch = Watch::blocks("indexing", expected);
    while writer.index_next_slot().map_err(|error| to_failure(&error))?.is_some() {
        watch.reach(expected.saturating_sub(blocks(&writer)));
    }
    watch.finish();
    print_lines(&[match expected {
        0 => "every sealed block has its log index".to_owned(),
        count => format!("the logs of {} indexed", counted(count, "block")),
    }])?;
    Ok(())
}
