//! Roots over all values of a list, beside alloy's.

use alloy_consensus::proofs::ordered_trie_root_with_encoder;
use alloy_primitives::B256;

use crate::builder::{Random, TestBlock, check, short_way};

/// Lengths where the shape of the trie changes: the first leaf, branches, keys of two and of three
/// bytes.
#[test]
fn a_block_of_any_length_gives_its_roots() {
    let mut random = Random::new(1);
    let lengths = (0..40).chain([126, 127, 128, 129, 130, 255, 256, 257, 300, 1000]);
    for count in lengths {
        let block = TestBlock::random(count + 1, B256::ZERO, count, &mut random);
        let other = ordered_trie_root_with_encoder(&block.transactions, |bytes, out| {
            out.extend_from_slice(bytes);
        });
        assert_eq!(other, block.header.transactions_root, "the rivals agree on {count}");
        check(&block.whole(&short_way(&block))).unwrap_or_else(|refusal| panic!("{refusal}"));
    }
}
