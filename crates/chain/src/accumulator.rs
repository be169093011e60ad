//! Pre-merge accumulators: one root commits to 8192 block hashes and total difficulties.

use std::mem;
use std::sync::{Arc, LazyLock};

use alloy_primitives::{B256, U256, b256};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// Blocks in a full epoch; epoch `n` begins with block `n * EPOCH_BLOCKS`.
pub const EPOCH_BLOCKS: u64 = 8192;

/// Mainnet's epochs up to the merge; the last one is partial.
const MAINNET_EPOCHS: usize = 1897;
/// The first block after the merge: mainnet's last epoch ends before it.
const MAINNET_MERGE_BLOCK: u64 = 15_537_394;
const ROOT_BYTES: usize = 32;
const LIST_BYTES: usize = MAINNET_EPOCHS * ROOT_BYTES;
/// In SSZ a container's variable field is preceded by its offset; ours has one field, at 4.
const SSZ_OFFSET: [u8; 4] = 4_u32.to_le_bytes();

/// A tree of depth 13 has one leaf for each block of an epoch.
const EPOCH_DEPTH: usize = 13;
const _: () = assert!(1 << EPOCH_DEPTH == EPOCH_BLOCKS, "one leaf a block");
/// EIP-7643's list of epochs has a limit of 2048.
const LIST_DEPTH: usize = 11;

/// The hash tree root of `HistoricalHashesAccumulator` at the merge, as EIP-7643 gives it. It is
/// compiled in so that the list itself may come from anywhere.
const MAINNET_ROOT: B256 =
    b256!("0xec8e040fd6c557b41ca8ddd38f7e9d58a9281918dc92bdb72342a38fb085e701");

/// The accumulator root of an epoch's blocks: their hashes with the total difficulty up to and
/// including each. A partial epoch gives the root of a partial epoch.
///
/// # Panics
///
/// With more records than an epoch has blocks, which no caller may have collected.
#[must_use]
pub fn epoch_root(records: &[(B256, U256)]) -> B256 {
    list_root(record_leaves(records), EPOCH_DEPTH)
}

/// The tree over an epoch's records: its root, and the way of each block up to it.
#[derive(Debug)]
pub struct EpochTree {
    totals: Vec<U256>,
    tree: ListTree,
}

impl EpochTree {
    /// Hashes all of it.
    ///
    /// # Panics
    ///
    /// As [`epoch_root`].
    #[must_use]
    pub fn new(records: &[(B256, U256)]) -> Self {
        let totals = records.iter().map(|(_, total_difficulty)| *total_difficulty).collect();
        Self { totals, tree: ListTree::new(record_leaves(records), EPOCH_DEPTH) }
    }

    /// As [`epoch_root`] gives it.
    #[must_use]
    pub fn root(&self) -> B256 {
        self.tree.root
    }

    /// The nodes beside the way of a block, from its hash up. `None` if the record at this place is not
    /// that of a block with this hash.
    #[must_use]
    pub fn branch(&self, record: usize, hash: &B256) -> Option<Vec<B256>> {
        let total_difficulty = B256::new(self.totals.get(record)?.to_le_bytes());
        if *self.tree.leaf(record)? != hash_pair(hash, &total_difficulty) {
            return None;
        }
        let mut siblings = vec![total_difficulty];
        siblings.extend(self.tree.branch(record)?);
        Some(siblings)
    }
}

fn record_leaves(records: &[(B256, U256)]) -> Vec<B256> {
    records
        .iter()
        .map(|(hash, total_difficulty)| hash_pair(hash, &B256::new(total_difficulty.to_le_bytes())))
        .collect()
}

/// How many pre-merge blocks an epoch of mainnet has: the merge cut the last one short, and there
/// are none after it.
#[must_use]
pub fn mainnet_epoch_blocks(epoch: u64) -> u64 {
    let first = epoch.saturating_mul(EPOCH_BLOCKS);
    MAINNET_MERGE_BLOCK.saturating_sub(first).min(EPOCH_BLOCKS)
}

/// The accumulator roots of all of mainnet's pre-merge epochs. Holding one means that the list
/// hashed to the root that EIP-7643 fixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochRoots(Arc<[B256]>);

/// Why bytes are not mainnet's list of epoch roots.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum EpochRootsError {
    /// Neither form has this length.
    #[error(
        "not mainnet's epoch roots: {found} bytes, expected {LIST_BYTES} or, as SSZ, {}",
        SSZ_OFFSET.len() + LIST_BYTES
    )]
    Length {
        /// How many bytes there are.
        found: usize,
    },
    /// The length of the SSZ form without its beginning.
    #[error(
        "not mainnet's epoch roots: SSZ offset is {found}, expected {}",
        u32::from_le_bytes(SSZ_OFFSET)
    )]
    Offset {
        /// The offset that was read.
        found: u32,
    },
    /// Another list.
    #[error("not mainnet's epoch roots: they hash to {found}, EIP-7643 says {expected}")]
    Root {
        /// What this list hashes to.
        found: B256,
        /// What mainnet's list hashes to.
        expected: B256,
    },
}

/// Mainnet's list in SSZ form: public facts that never change, so that nobody has to look for them.
const MAINNET_LIST: &[u8] = include_bytes!("../data/mainnet-accumulators.bin");

static MAINNET: LazyLock<EpochRoots> = LazyLock::new(|| {
    EpochRoots::parse(MAINNET_LIST).unwrap_or_else(|error| unreachable!("our own list: {error}"))
});

impl EpochRoots {
    /// The list that is compiled in.
    #[must_use]
    pub fn mainnet() -> Self {
        MAINNET.clone()
    }

    /// Reads the list, in SSZ form or as bare roots, and believes it only when it hashes to the
    /// compiled-in root.
    pub fn parse(bytes: &[u8]) -> Result<Self, EpochRootsError> {
        let list = match bytes.split_first_chunk() {
            Some((offset, list)) if list.len() == LIST_BYTES => {
                if *offset != SSZ_OFFSET {
                    return Err(EpochRootsError::Offset { found: u32::from_le_bytes(*offset) });
                }
                list
            }
            _ if bytes.len() == LIST_BYTES => bytes,
            _ => return Err(EpochRootsError::Length { found: bytes.len() }),
        };
        let roots: Vec<B256> = list.chunks_exact(ROOT_BYTES).map(B256::from_slice).collect();
        let found = accumulator_root(roots.clone());
        if found != MAINNET_ROOT {
            return Err(EpochRootsError::Root { found, expected: MAINNET_ROOT });
        }
        Ok(Self(roots.into()))
    }

    /// The root of an epoch; `None` after the merge.
    #[must_use]
    pub fn get(&self, epoch: u64) -> Option<B256> {
        self.0.get(usize::try_from(epoch).ok()?).copied()
    }

    /// The way of an epoch's root to [`EpochRoots::accumulator`]: the nodes beside it, from below.
    #[must_use]
    pub fn branch(&self, epoch: u64) -> Option<Vec<B256>> {
        /// There is one such list, whoever holds it.
        static TREE: LazyLock<ListTree> =
            LazyLock::new(|| ListTree::new(MAINNET.0.to_vec(), LIST_DEPTH));
        let mut siblings = TREE.branch(usize::try_from(epoch).ok()?)?;
        siblings.push(list_root(Vec::new(), EPOCH_DEPTH));
        Some(siblings)
    }

    /// The one hash that commits to all of them.
    #[must_use]
    pub const fn accumulator() -> B256 {
        MAINNET_ROOT
    }

    /// How many epochs there are.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "the list always has every epoch")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// The root of the container: the list of epochs, beside a current epoch that the merge left empty.
fn accumulator_root(roots: Vec<B256>) -> B256 {
    hash_pair(&list_root(roots, LIST_DEPTH), &list_root(Vec::new(), EPOCH_DEPTH))
}

/// The hash tree root of an SSZ list whose limit is `2^depth`.
fn list_root(leaves: Vec<B256>, depth: usize) -> B256 {
    ListTree::new(leaves, depth).root
}

/// The nodes of an SSZ list.
#[derive(Debug)]
struct ListTree {
    /// From the leaves up, below the top. Only what lies above leaves that exist is here: what is missing
    /// on a level is one known hash, the root of an all-zero subtree.
    levels: Vec<Vec<B256>>,
    /// Of the tree with the count of its leaves.
    root: B256,
}

impl ListTree {
    /// Hashes a list whose limit is `2^depth`.
    fn new(leaves: Vec<B256>, depth: usize) -> Self {
        let count = leaves.len();
        assert!(count <= 1 << depth, "{count} leaves in a list of at most {}", 1 << depth);
        let mut level = leaves;
        let mut levels = Vec::with_capacity(depth);
        let mut zero_subtree = B256::ZERO;
        for _ in 0..depth {
            let above = level
                .chunks(2)
                .map(|pair| {
                    let [left, right] = [0, 1].map(|side| pair.get(side).unwrap_or(&zero_subtree));
                    hash_pair(left, right)
                })
                .collect();
            levels.push(mem::replace(&mut level, above));
            zero_subtree = hash_pair(&zero_subtree, &zero_subtree);
        }
        let top = level.first().unwrap_or(&zero_subtree);
        Self { root: hash_pair(top, &count_leaf(count)), levels }
    }

    fn leaf(&self, index: usize) -> Option<&B256> {
        self.levels.first()?.get(index)
    }

    /// The nodes beside a leaf's way to the root, from the leaf up, and the leaf that tells how many
    /// leaves there are. `None` if there is no such leaf.
    fn branch(&self, leaf: usize) -> Option<Vec<B256>> {
        self.leaf(leaf)?;
        let mut zero_subtree = B256::ZERO;
        let mut siblings = Vec::with_capacity(self.levels.len().saturating_add(1));
        for (height, level) in self.levels.iter().enumerate() {
            siblings.push(*level.get((leaf >> height) ^ 1).unwrap_or(&zero_subtree));
            zero_subtree = hash_pair(&zero_subtree, &zero_subtree);
        }
        siblings.push(count_leaf(self.levels.first()?.len()));
        Some(siblings)
    }
}

fn count_leaf(count: usize) -> B256 {
    B256::new(U256::from(count).to_le_bytes())
}

fn hash_pair(left: &B256, right: &B256) -> B256 {
    let digest = Sha256::new().chain_update(left).chain_update(right).finalize();
    B256::new(digest.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(count: u64) -> Vec<(B256, U256)> {
        (0..count)
            .map(|number| (B256::from(U256::from(number + 1)), U256::from(number * 1_000_003)))
            .collect()
    }

    /// The definition, word for word: all 8192 leaves, zero nodes where there is no block.
    fn naive_epoch_root(records: &[(B256, U256)]) -> B256 {
        let mut nodes: Vec<[u8; 32]> = records
            .iter()
            .map(|(hash, total)| {
                Sha256::digest([hash.0, total.to_le_bytes::<32>()].concat()).into()
            })
            .collect();
        nodes.resize(8192, [0; 32]);
        while nodes.len() > 1 {
            nodes = nodes.chunks(2).map(|pair| Sha256::digest(pair.concat()).into()).collect();
        }
        let mut count = [0; 32];
        count[..8].copy_from_slice(&u64::try_from(records.len()).unwrap().to_le_bytes());
        B256::new(Sha256::digest([nodes[0], count].concat()).into())
    }

    #[test]
    fn an_epoch_root_is_what_the_definition_gives() {
        for count in [0, 1, 2, 3, 8191, 8192] {
            let records = records(count);
            assert_eq!(epoch_root(&records), naive_epoch_root(&records), "{count} records");
        }
    }

    /// From a block's hash to the accumulator, by the definition of a branch.
    #[test]
    fn a_branch_leads_from_a_hash_to_a_root() {
        let climb = |leaf: B256, index: usize, siblings: &[B256]| {
            siblings.iter().enumerate().fold(leaf, |node, (height, sibling)| {
                if (index >> height) & 1 == 0 {
                    hash_pair(&node, sibling)
                } else {
                    hash_pair(sibling, &node)
                }
            })
        };
        for count in [1, 2, 3, 5000, 8192] {
            let records = records(count);
            let tree = EpochTree::new(&records);
            assert_eq!(tree.root(), epoch_root(&records), "{count} records");
            for record in [0, 1, 2, 4999, 8191] {
                let Some((hash, _)) = records.get(record) else {
                    assert_eq!(tree.branch(record, &B256::ZERO), None, "{record} of {count}");
                    continue;
                };
                let branch = tree.branch(record, hash).unwrap();
                assert_eq!(branch.len(), 1 + 13 + 1);
                // The total difficulty and the length are to the right of the way.
                let found = climb(*hash, record << 1, &branch);
                assert_eq!(found, tree.root(), "{record} of {count}");
                // No other block has this place.
                assert_eq!(tree.branch(record, &B256::repeat_byte(9)), None, "{record} of {count}");
            }
        }
        let roots = EpochRoots::mainnet();
        for epoch in [0, 1, 1000, 1895, 1896] {
            let branch = roots.branch(epoch).unwrap();
            assert_eq!(branch.len(), 11 + 1 + 1);
            let index = usize::try_from(epoch).unwrap();
            assert_eq!(climb(roots.get(epoch).unwrap(), index, &branch), MAINNET_ROOT, "{epoch}");
        }
        assert_eq!(roots.branch(1897), None);
    }

    #[test]
    fn an_epoch_root_depends_on_hash_difficulty_and_count() {
        let base = records(3);
        let mut other_hash = base.clone();
        other_hash[1].0 = B256::repeat_byte(9);
        let mut other_difficulty = base.clone();
        other_difficulty[2].1 += U256::from(1);
        for other in [&base[..2], &other_hash, &other_difficulty] {
            assert_ne!(epoch_root(other), epoch_root(&base));
        }
    }

    #[test]
    fn a_list_that_is_not_mainnets_is_refused_and_says_why() {
        let check = |bytes: &[u8], expected: &str| {
            assert_eq!(EpochRoots::parse(bytes).unwrap_err().to_string(), expected);
        };
        check(&[], "not mainnet's epoch roots: 0 bytes, expected 60704 or, as SSZ, 60708");
        check(
            &[4, 0, 0, 0],
            "not mainnet's epoch roots: 4 bytes, expected 60704 or, as SSZ, 60708",
        );
        check(&vec![5; 60_708], "not mainnet's epoch roots: SSZ offset is 84215045, expected 4");
        let found = accumulator_root(vec![B256::ZERO; MAINNET_EPOCHS]);
        check(
            &vec![0; LIST_BYTES],
            &format!(
                "not mainnet's epoch roots: they hash to {found}, EIP-7643 says {MAINNET_ROOT}"
            ),
        );
    }

    #[test]
    fn mainnets_list_is_believed_in_both_forms_and_not_with_a_flipped_bit() {
        let ssz = MAINNET_LIST.to_vec();
        let roots = EpochRoots::parse(&ssz).unwrap();
        assert_eq!(EpochRoots::parse(&ssz[4..]).unwrap(), roots);
        assert_eq!(roots.len(), 1897);
        assert!(roots.get(0).unwrap().to_string().starts_with("0x5ec1ffb8"));
        assert!(roots.get(1896).unwrap().to_string().starts_with("0xe6ebe562"));
        assert_eq!(roots.get(1897), None);
        let mut flipped = ssz;
        flipped[1000] ^= 1;
        assert!(matches!(EpochRoots::parse(&flipped), Err(EpochRootsError::Root { .. })));
    }
}
