//! What a head does on a disk that does what it is told.

use chain::BlockNumber;
use chain::trust::Anchor;
use segment::TxIndex;
use testing::blocks::{BASE, block, id, run, spec};

use super::fixture::open;
use super::*;
use crate::disk::Folder;
use crate::disk::faulty::FaultyDisk;

/// The canonical chain as letters, lowest first.
fn letters(view: &HeadView) -> String {
    let letter = |block: &Arc<HeadBlock>| char::from(block.block().header.extra_data[0]);
    view.blocks().iter().map(letter).collect()
}

/// The head, opened again, has the same chain and nothing to report.
fn check(disk: &FaultyDisk, head: &Head, expected: &str) {
    assert_eq!(letters(&head.view()), expected);
    let (again, recovery) = open(disk).unwrap();
    assert!(recovery.is_clean(), "{recovery:?}");
    assert_eq!(letters(&again.view()), expected);
    assert_eq!(again.base(), head.base());
    for (block, again) in head.view().blocks().iter().zip(again.view().blocks()) {
        assert_eq!(block.block(), again.block());
        assert_eq!((block.tx_hashes(), block.bytes()), (again.tx_hashes(), again.bytes()));
    }
}

/// A head on `BASE` with these blocks.
fn head_with(letters: &str) -> (FaultyDisk, Head, Vec<Verified<Block>>) {
    let disk = FaultyDisk::new(1);
    let (mut head, recovery) = open(&disk).unwrap();
    assert_eq!((recovery, head.base()), (Recovery::default(), None));
    let blocks = run(BASE, letters);
    head.extend(blocks.clone()).unwrap();
    (disk, head, blocks)
}

#[test]
fn blocks_are_found_by_number_hash_and_transaction() {
    let (disk, head, blocks) = head_with("aaaaa");
    let view = head.view();
    assert_eq!((view.base(), view.blocks().len()), (Some(BASE), 5));
    assert_eq!(view.tip().unwrap().hash(), blocks[4].hash);
    for block in &blocks {
        let number = block.header.number;
        assert_eq!(view.find_block(BlockNumber(number)).unwrap().block(), block);
        assert_eq!(view.find_block_by_hash(&block.hash).unwrap().block(), block);
        for (index, tx) in block.transactions.iter().enumerate() {
            let place = view.find_tx(tx.envelope.tx_hash());
            assert_eq!(
                place,
                Some(TxPlace { number: BlockNumber(number), index: TxIndex::from_usize(index) })
            );
        }
    }
    assert!(
        view.find_block(BlockNumber(100)).is_none() && view.find_block(BlockNumber(106)).is_none()
    );
    assert!(view.find_block_by_hash(&BASE.1).is_none() && view.find_tx(&BASE.1).is_none());
    assert_eq!(head.bytes(), view.blocks().iter().map(|block| block.bytes()).sum::<u64>());
    check(&disk, &head, "aaaaa");
    assert_eq!(disk.list().unwrap(), ["head-1.log"]);
}

#[test]
fn a_reorg_keeps_everything_up_to_the_fork_point() {
    let (disk, mut head, blocks) = head_with("aaaa");
    let before = head.view();
    head.reorg(blocks[1].hash, run(id(&blocks[1]), "bbb")).unwrap();
    check(&disk, &head, "aabbb");
    assert_eq!(letters(&before), "aaaa", "a view does not change under its holder");
    assert!(head.view().find_block_by_hash(&blocks[2].hash).is_none());
    let tx_hash = blocks[3].transactions[0].envelope.tx_hash();
    assert!(before.find_tx(tx_hash).is_some() && head.view().find_tx(tx_hash).is_none());
    assert!(head.known(&blocks[3].hash) && !head.known(&BASE.1));
    // Whoever was told of what left the chain finds it there, and nothing else.
    let (again, _) = open(&disk).unwrap();
    for view in [head.view(), again.view()] {
        for block in &blocks[2..] {
            assert_eq!(view.find_side_block(&block.hash).unwrap().block(), block);
        }
        assert!(view.find_side_block(&blocks[1].hash).is_none());
        assert!(view.find_side_block(&view.tip().unwrap().hash()).is_none());
    }
    assert!(before.find_side_block(&blocks[3].hash).is_none());
}

#[test]
fn going_back_to_an_old_branch_costs_one_small_record() {
    let (disk, mut head, blocks) = head_with("aaaa");
    head.reorg(blocks[0].hash, run(id(&blocks[0]), "bb")).unwrap();
    let file_bytes = disk.file_bytes("head-1.log").unwrap();
    head.switch_to(blocks[3].hash).unwrap();
    check(&disk, &head, "aaaa");
    head.reorg(blocks[0].hash, run(id(&blocks[0]), "bb")).unwrap();
    check(&disk, &head, "abb");
    head.reorg(blocks[0].hash, blocks[1..].to_vec()).unwrap();
    check(&disk, &head, "aaaa");
    assert_eq!(disk.file_bytes("head-1.log").unwrap(), file_bytes + 3 * 134);
}

#[test]
fn a_rewind_goes_down_to_the_base_and_not_below() {
    let (disk, mut head, blocks) = head_with("aaaa");
    head.rewind(blocks[1].hash).unwrap();
    check(&disk, &head, "aa");
    let error = head.rewind(blocks[3].hash).unwrap_err();
    assert!(matches!(error, HeadError::NotCanonical { .. }), "{error}");
    head.rewind(BASE.1).unwrap();
    check(&disk, &head, "");
    assert_eq!(head.base(), Some(BASE));
    let error = head.extend(run((BlockNumber(7), BASE.1), "c")).unwrap_err().to_string();
    assert!(error.ends_with("has number 8, expected 101"), "{error}");
    head.switch_to(blocks[3].hash).unwrap();
    check(&disk, &head, "aaaa");
}

#[test]
fn what_was_sealed_leaves_with_the_branches_beside_it() {
    let (disk, mut head, blocks) = head_with("aaaaa");
    let beside = run(id(&blocks[0]), "bb");
    let above = run(id(&blocks[2]), "cc");
    head.reorg(blocks[0].hash, beside.clone()).unwrap();
    head.switch_to(blocks[4].hash).unwrap();
    head.reorg(blocks[2].hash, above.clone()).unwrap();
    head.switch_to(blocks[4].hash).unwrap();
    head.seal_below(BlockNumber(102), blocks[1].hash).unwrap();
    check(&disk, &head, "aaa");
    assert_eq!(head.base(), Some(id(&blocks[1])));
    assert!(head.known(&above[1].hash) && !head.known(&beside[0].hash));
    assert_eq!(disk.list().unwrap(), ["head-2.log"]);
    // Again, and lower: nothing to do. Another block of the same number: refused.
    head.seal_below(BlockNumber(102), blocks[1].hash).unwrap();
    head.seal_below(BlockNumber(50), B256::ZERO).unwrap();
    for (number, found, held) in
        [(102, beside[0].hash, &blocks[1]), (104, above[0].hash, &blocks[3])]
    {
        let error = head.seal_below(BlockNumber(number), found).unwrap_err().to_string();
        let text = format!(
            "block {found} is not canonical in the head, its block {number} is {}",
            held.hash
        );
        assert_eq!(error, text);
    }
    assert_eq!(disk.list().unwrap(), ["head-2.log"]);
    head.switch_to(above[1].hash).unwrap();
    check(&disk, &head, "acc");
    head.seal_below(BlockNumber(105), above[1].hash).unwrap();
    check(&disk, &head, "");
    assert_eq!(head.base(), Some(id(&above[1])));
}

#[test]
fn a_head_that_was_overtaken_stands_on_the_block_that_was_sealed() {
    let (disk, mut head, _) = head_with("aa");
    let far = (BlockNumber(5000), B256::repeat_byte(5));
    head.seal_below(BlockNumber(far.0.get()), far.1).unwrap();
    check(&disk, &head, "");
    assert_eq!(head.base(), Some(far));
    head.extend(run(far, "b")).unwrap();
    check(&disk, &head, "b");
}

#[test]
fn a_head_may_begin_with_genesis() {
    let disk = FaultyDisk::new(1);
    let (mut head, _) = open(&disk).unwrap();
    let genesis = block(0, B256::ZERO, b'g', true);
    head.extend(vec![genesis.clone()]).unwrap();
    head.extend(run(id(&genesis), "a")).unwrap();
    check(&disk, &head, "ga");
    assert_eq!(head.base(), None);
}

#[test]
fn blocks_that_do_not_link_are_refused_with_both_hashes() {
    let (disk, mut head, blocks) = head_with("aa");
    let error = head.extend(run(id(&blocks[0]), "b")).unwrap_err().to_string();
    assert!(error.contains(&format!("has parent {}", blocks[0].hash)), "{error}");
    assert!(error.ends_with(&format!("the block before it is {}", blocks[1].hash)), "{error}");
    let mut gap = run(id(&blocks[1]), "ccc");
    gap.remove(1);
    head.extend(gap).unwrap_err();
    head.reorg(B256::ZERO, run(id(&blocks[0]), "b")).unwrap_err();
    assert!(matches!(head.switch_to(B256::ZERO), Err(HeadError::Unknown { .. })));
    head.extend(Vec::new()).unwrap();
    check(&disk, &head, "aa");
}

#[test]
fn a_full_head_lets_side_branches_go_before_it_refuses() {
    let disk = FaultyDisk::new(1);
    let blocks = run(BASE, "aaaa");
    let bytes = |blocks: &[Verified<Block>]| {
        blocks.iter().map(|block| HeadBlock::new(block.clone()).bytes()).sum::<u64>()
    };
    let limits = HeadLimits { bytes_max: bytes(&blocks) };
    let arc = Arc::new(disk.clone());
    let (mut head, _) = Head::open(arc, &spec(), &Anchors::none(), limits).unwrap();
    head.extend(blocks[..3].to_vec()).unwrap();
    head.reorg(blocks[0].hash, run(id(&blocks[0]), "b")).unwrap();
    head.switch_to(blocks[2].hash).unwrap();
    head.extend(blocks[3..].to_vec()).unwrap();
    check(&disk, &head, "aaaa");
    assert_eq!(head.bytes(), limits.bytes_max);
    let more = run(id(&blocks[3]), "a");
    let error = head.extend(more.clone()).unwrap_err();
    let (found, bytes_max) = (limits.bytes_max + bytes(&more), limits.bytes_max);
    let told =
        format!("the head would have {found} bytes, at most {bytes_max}: nothing has become");
    assert!(error.to_string().starts_with(&told), "{error}");
    check(&disk, &head, "aaaa");
}

#[test]
fn a_branch_is_gathered_beside_the_chain_and_becomes_it_in_one_change() {
    let (disk, mut head, blocks) = head_with("aaaa");
    let branch = run(id(&blocks[1]), "bbbbb");
    head.adopt(branch[..2].to_vec(), None).unwrap();
    check(&disk, &head, "aaaa");
    // A crash between two pieces costs none of them.
    let (mut head, _) = open(&disk).unwrap();
    assert!(head.known(&branch[1].hash) && !head.known(&branch[2].hash));
    head.adopt(branch[2..4].to_vec(), None).unwrap();
    check(&disk, &head, "aaaa");
    head.adopt(branch[4..].to_vec(), Some(branch[4].hash)).unwrap();
    check(&disk, &head, "aabbbbb");
    head.adopt(Vec::new(), Some(blocks[3].hash)).unwrap();
    check(&disk, &head, "aaaa");
    head.adopt(run(id(&blocks[3]), "cc"), None).unwrap();
    check(&disk, &head, "aaaa");
    let strange = run((BlockNumber(103), B256::ZERO), "d");
    let error = head.adopt(strange, None).unwrap_err();
    assert!(matches!(error, HeadError::Unknown { hash } if hash.is_zero()), "{error}");
    let error =
        head.adopt(run((BlockNumber(7), blocks[1].hash), "d"), None).unwrap_err().to_string();
    assert!(error.ends_with("has number 8, expected 103"), "{error}");
    check(&disk, &head, "aaaa");
}

#[test]
fn a_branch_that_has_no_room_beside_the_chain_takes_its_place_at_once() {
    let disk = FaultyDisk::new(1);
    let blocks = run(BASE, "aaaaaa");
    let bytes = |blocks: &[Verified<Block>]| {
        blocks.iter().map(|block| HeadBlock::new(block.clone()).bytes()).sum::<u64>()
    };
    let limits = HeadLimits { bytes_max: bytes(&blocks) + 100 };
    let arc = Arc::new(disk.clone());
    let (mut head, _) = Head::open(arc, &spec(), &Anchors::none(), limits).unwrap();
    head.extend(blocks[..5].to_vec()).unwrap();
    head.adopt(run(id(&blocks[3]), "c"), None).unwrap();
    check(&disk, &head, "aaaaa");
    // Other side branches go first,
    let branch = run(id(&blocks[0]), "bbbbb");
    head.adopt(branch[..1].to_vec(), None).unwrap();
    check(&disk, &head, "aaaaa");
    assert_eq!(head.bytes(), bytes(&blocks[..5]) + bytes(&branch[..1]));
    // then the chain whose place it takes, which is never by a shorter one,
    let error = head.adopt(branch[1..3].to_vec(), None).unwrap_err();
    assert!(matches!(error, HeadError::Full { .. }), "{error}");
    check(&disk, &head, "aaaaa");
    head.adopt(branch[1..].to_vec(), None).unwrap();
    check(&disk, &head, "abbbbb");
    // and what is too large by itself is refused.
    let error = head.adopt(run(id(&branch[4]), "bbbbbbbb"), None).unwrap_err();
    assert!(matches!(error, HeadError::Full { .. }), "{error}");
    check(&disk, &head, "abbbbb");
}

#[test]
fn receipts_that_come_later_are_taken() {
    let disk = FaultyDisk::new(1);
    let (mut head, _) = open(&disk).unwrap();
    let bare = block(101, BASE.1, b'a', false);
    let whole = block(101, BASE.1, b'a', true);
    head.extend(vec![bare.clone()]).unwrap();
    check(&disk, &head, "a");
    head.reorg(BASE.1, vec![whole.clone()]).unwrap();
    head.reorg(BASE.1, vec![bare]).unwrap();
    check(&disk, &head, "a");
    assert_eq!(head.view().tip().unwrap().block(), &whole);
}

#[test]
fn a_block_that_contradicts_an_anchor_is_refused_with_all_above_it() {
    let (disk, mut head, blocks) = head_with("aaaa");
    let anchor = Anchor { number: 103, hash: B256::repeat_byte(1) };
    let anchors = Anchors::none().with_operator(anchor).unwrap();
    let arc = Arc::new(disk.clone());
    let (mut again, recovery) = Head::open(arc, &spec(), &anchors, HeadLimits::default()).unwrap();
    assert_eq!(letters(&again.view()), "aa");
    let refused: Vec<B256> = recovery.refused.iter().map(|refused| refused.hash).collect();
    assert_eq!(refused, [blocks[2].hash, blocks[3].hash]);
    assert!(recovery.refused[0].reason.starts_with("block 103: "), "{recovery:?}");
    again.extend(run(id(&blocks[1]), "b")).unwrap();
    check(&disk, &again, "aab");
    assert_eq!(disk.list().unwrap(), ["head-1.damaged", "head-2.log"]);
    head.extend(Vec::new()).unwrap();
}

#[test]
fn a_log_of_another_version_is_refused_and_left_alone() {
    let (disk, _head, _) = head_with("a");
    let mut bytes = disk.read("head-1.log", 1 << 20).unwrap();
    bytes[8] = 3;
    let checksum = crc32fast::hash(&bytes[..68]).to_le_bytes();
    bytes[68..72].copy_from_slice(&checksum);
    disk.write("head-1.log", &bytes).unwrap();
    let error = open(&disk).unwrap_err().to_string();
    let expected = "memory/head-1.log: head log of version 3, this build reads up to 2: ";
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(disk.list().unwrap(), ["head-1.log"]);
}

/// Says that a block is safe and another final.
fn finality(safe: &Verified<Block>, finalized: &Verified<Block>) -> Finality {
    let id = |block: &Verified<Block>| BlockId {
        number: BlockNumber(block.header.number),
        hash: block.hash,
    };
    Finality { safe: Some(id(safe)), finalized: Some(id(finalized)) }
}

#[test]
fn what_is_final_is_there_again_and_goes_back_only_when_it_is_lowered() {
    let (disk, mut head, blocks) = head_with("aaaaa");
    let told = finality(&blocks[3], &blocks[2]);
    head.set_finality(told).unwrap();
    assert_eq!(open(&disk).unwrap().0.finality(), told);
    // A lower block, and another one of its number, say nothing.
    let other = run(id(&blocks[1]), "b");
    for lower in [&blocks[1], &other[0]] {
        head.set_finality(finality(&blocks[3], lower)).unwrap();
        assert_eq!(head.finality(), told);
    }
    // Every kind of new log has it.
    head.seal_below(BlockNumber(101), blocks[0].hash).unwrap();
    assert_eq!(open(&disk).unwrap().0.finality(), told);
    head.log.pretend_batches(1 << 16);
    head.rewind(blocks[3].hash).unwrap();
    let (mut head, _) = open(&disk).unwrap();
    assert_eq!((head.finality(), disk.list().unwrap()), (told, vec!["head-3.log".to_owned()]));
    let to = BlockId { number: BlockNumber(102), hash: blocks[1].hash };
    head.lower_finality_with(to, |head| head.rewind(to.hash)).unwrap();
    let lowered = Finality { safe: Some(to), finalized: Some(to) };
    assert_eq!((head.finality(), open(&disk).unwrap().0.finality()), (lowered, lowered));
}

#[test]
fn no_block_takes_the_place_of_a_final_one_that_was_lost() {
    let (disk, mut head, blocks) = head_with("aaaa");
    head.set_finality(finality(&blocks[2], &blocks[2])).unwrap();
    let other = run(id(&blocks[0]), "bb");
    let error = head.reorg(blocks[0].hash, other.clone()).unwrap_err().to_string();
    let (found, expected) = (other[1].hash, blocks[2].hash);
    let start = format!("block 103 is {found}, but {expected} was recorded as final");
    assert!(error.starts_with(&start), "{error}");
    // As damage may leave it: the block is gone, what is known of it is not.
    head.rewind(blocks[0].hash).unwrap();
    let (mut head, _) = open(&disk).unwrap();
    head.extend(other[..1].to_vec()).unwrap();
    assert!(matches!(head.extend(other[1..].to_vec()), Err(HeadError::Final { .. })));
    head.reorg(blocks[0].hash, blocks[1..].to_vec()).unwrap();
    check(&disk, &head, "aaaa");
}

/// The same log as version 1 had it: tips without finality.
fn as_version_1(bytes: &[u8]) -> Vec<u8> {
    let mut old = bytes[..72].to_vec();
    old[8] = 1;
    let checksum = crc32fast::hash(&old[..68]).to_le_bytes();
    old[68..72].copy_from_slice(&checksum);
    let mut at = 72;
    while at < bytes.len() {
        let payload = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap());
        let end = at + 20 + usize::try_from(payload).unwrap();
        let mut record = bytes[at..end].to_vec();
        if record[8..12] == *b"TIP." {
            record.truncate(52);
            record[4..8].copy_from_slice(&32_u32.to_le_bytes());
            let checksum = crc32fast::hash(&record[4..]).to_le_bytes();
            record[..4].copy_from_slice(&checksum);
        }
        old.extend(record);
        at = end;
    }
    old
}

#[test]
fn a_log_of_the_version_without_finality_is_read_and_rewritten() {
    let (disk, head, blocks) = head_with("aaa");
    let old = as_version_1(&disk.read("head-1.log", 1 << 20).unwrap());
    let is_damaged = |position: usize| {
        let mut flipped = old.clone();
        flipped[position] ^= 1;
        disk.write("head-1.log", &flipped).unwrap();
        open(&disk).unwrap().1.has_damage()
    };
    assert!((0..old.len()).all(is_damaged));
    disk.write("head-1.log", &old).unwrap();
    check(&disk, &head, "aaa");
    let (mut head, _) = open(&disk).unwrap();
    assert_eq!(head.finality(), Finality::default());
    head.set_finality(finality(&blocks[1], &blocks[0])).unwrap();
    assert_eq!(disk.list().unwrap(), ["head-2.log"]);
    assert_eq!(disk.read("head-2.log", 1 << 20).unwrap()[8], 2);
    check(&disk, &head, "aaa");
    assert_eq!(open(&disk).unwrap().0.finality(), finality(&blocks[1], &blocks[0]));
}

#[test]
fn a_log_that_only_moves_its_tip_does_not_grow_for_ever() {
    let (disk, mut head, blocks) = head_with("aa");
    head.log.pretend_batches(1 << 16);
    head.rewind(blocks[0].hash).unwrap();
    check(&disk, &head, "a");
    assert_eq!(disk.list().unwrap(), ["head-2.log"]);
}

#[test]
fn a_head_in_a_real_folder_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Folder::open(folder.path()).unwrap();
    let blocks = run(BASE, "aaa");
    open(&disk).unwrap().0.extend(blocks[..2].to_vec()).unwrap();
    let (mut head, recovery) = open(&disk).unwrap();
    assert!(recovery.is_clean());
    head.extend(blocks[2..].to_vec()).unwrap();
    head.reorg(blocks[1].hash, run(id(&blocks[1]), "b")).unwrap();
    head.seal_below(BlockNumber(101), blocks[0].hash).unwrap();
    let (head, recovery) = open(&disk).unwrap();
    assert_eq!((letters(&head.view()).as_str(), recovery.is_clean()), ("ab", true));
    assert_eq!(disk.list().unwrap(), ["head-3.log"]);
}

#[test]
fn names_of_logs_are_told_from_others() {
    for (name, expected) in [
        ("head-7.log", Some(7)),
        ("head-07.log", None),
        ("head-+7.log", None),
        ("head-.log", None),
        ("head-7.log.staged", None),
        ("head-99999999999999999999.log", None),
    ] {
        assert_eq!(log::log_generation(name), expected, "{name}");
    }
}

/// Does something to the log of a head that goes on, which tells it once and then writes a log of its
/// own.
fn check_log_changed(change: impl FnOnce(&FaultyDisk), said: &str) {
    let (disk, mut head, blocks) = head_with("aaa");
    head.extend(run(id(&blocks[2]), "b")).unwrap();
    change(&disk);
    let more = run(id(&run(id(&blocks[2]), "b")[0]), "c");
    let refused = head.extend(more.clone()).unwrap_err();
    assert!(matches!(&refused, HeadError::LogChanged { .. }), "{refused}");
    let refused = refused.to_string();
    assert!(refused.contains("head-1.log") && refused.contains(said), "{refused}");
    assert_eq!(letters(&head.view()), "aaab", "the change is not done");
    head.extend(more).unwrap();
    check(&disk, &head, "aaabc");
    let names = disk.list().unwrap();
    assert!(names.contains(&"head-2.log".to_owned()), "{names:?}");
    assert!(!names.contains(&"head-1.log".to_owned()), "{names:?}");
}

#[test]
fn a_log_that_somebody_cut_replaced_or_removed_is_told_and_written_anew() {
    let read = |disk: &FaultyDisk| disk.read("head-1.log", 1 << 20).unwrap();
    check_log_changed(
        |disk| {
            let bytes = read(disk);
            disk.write("head-1.log", &bytes[..bytes.len() - 1]).unwrap();
        },
        "bytes, this process wrote",
    );
    check_log_changed(
        |disk| drop(disk.append("head-1.log", b"x").unwrap()),
        "bytes, this process wrote",
    );
    check_log_changed(|disk| disk.remove("head-1.log").unwrap(), "is not there");
    // A log of the same length, as of another chain.
    check_log_changed(
        |disk| {
            let mut bytes = read(disk);
            *bytes.last_mut().unwrap() ^= 1;
            disk.write("head-1.log", &bytes).unwrap();
        },
        "ends with another record",
    );
}

#[test]
fn a_log_that_somebody_cut_is_kept_for_whoever_wants_to_look() {
    let (disk, mut head, blocks) = head_with("aaa");
    disk.write("head-1.log", b"cut").unwrap();
    let more = run(id(&blocks[2]), "b");
    head.extend(more.clone()).unwrap_err();
    head.extend(more).unwrap();
    assert_eq!(disk.read("head-1.damaged", 9).unwrap(), b"cut");
}
