//! What is said of the files of a data folder, by more than one command.

use chain::BlockRange;
use store::StoreError;

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

/// Blocks that no file has any more, beside those that are held. What lay between the two may be lost too,
/// and blocks that link to nothing are not taken: so all of it is to be brought.
pub(crate) fn lost_blocks(blocks: BlockRange, held: &[BlockRange]) -> String {
    let below = held.iter().filter(|it| it.end() <= blocks.first()).map(BlockRange::end).max();
    let first = below.unwrap_or(blocks.first());
    let wanted = BlockRange::from_ends(first, blocks.last()).unwrap_or(blocks);
    format!(
        "blocks {blocks} are lost: this folder knew them, and no file has them; they are answered as \
         not held, until `quipu import` or `quipu backfill --blocks {wanted}` brings them back"
    )
}

/// What a head's log lost, for whoever has just accepted that.
pub(crate) fn head_loss(error: &StoreError) -> String {
    let StoreError::HeadLost { folder, recorded, found } = error else { return error.to_string() };
    format!("{folder}: the head's log is gone or lost its end: {recorded}, {found}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen: the last block of a head that was lost was to be brought alone, and linked to nothing.
    #[test]
    fn what_lies_between_a_lost_block_and_what_is_held_is_to_be_brought_too() {
        let range = |first, last| BlockRange::from_ends(first, last).unwrap();
        let said = |held: &[BlockRange]| lost_blocks(range(949, 949), held);
        assert!(said(&[range(0, 767)]).contains("--blocks 768..949"));
        assert!(said(&[range(0, 5), range(7, 948), range(950, 999)]).contains("--blocks 949..949"));
        assert!(said(&[]).contains("--blocks 949..949"));
    }
}
