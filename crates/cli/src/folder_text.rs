//! What is said of the files of a data folder, by more than one command.

use chain::BlockRange;

/// A slot that is held whole and still in pieces.
pub(crate) fn pending_merge(blocks: BlockRange) -> String {
    format!("blocks {blocks} are not merged into one segment yet: the next writer does it")
}

/// A segment that neither the manifest lists nor a commit has left.
pub(crate) fn unlisted_segment(file_name: &str) -> String {
    format!(
        "{file_name} is not listed by the manifest, and is neither read nor removed: `quipu repair` \
         lists it if its blocks are not held otherwise; if you do not want them, remove the file"
    )
}

/// Blocks that no file has any more.
pub(crate) fn lost_blocks(blocks: BlockRange) -> String {
    format!(
        "blocks {blocks} are lost: this folder knew them, and no file has them; they are answered as \
         not held, until `quipu import` or `quipu backfill --blocks {blocks}` brings them back"
    )
}
