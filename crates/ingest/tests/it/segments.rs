//! Verified blocks into a segment and back: every byte, from few reads, and damage noticed.

use std::sync::Arc;

use alloy_rlp::{BufMut, Encodable, Header};
use archive::Archive;
use chain::trust::Anchors;
use chain::{Block, BlockNumber, BlockRange, ChainSpec, Start, Verified, Verifier};
use sample::{Payload, SampleSettings};
use segment::{
    Census, Corrupt, Encoder, FOOTER_BYTES, Footer, Inflater, RowParts, RowsRoom, Segment,
    SegmentWriter, Tables, TxIndex, TxOrdinal, WriteFault, count_block, groups, is_counted,
};
use testing::shared_data::shared_data;

use crate::harness::made::{blocks, proven_blocks, spec};

/// A sample chain's blocks, proven.
fn verified(settings: &SampleSettings) -> Vec<Verified<Block>> {
    let spec = spec(settings);
    let anchors = Anchors::of(&spec);
    let mut verifier = Verifier::new(&spec, &anchors, Start::At(0));
    blocks(settings).into_iter().map(|block| verifier.verify(block).unwrap()).collect()
}

fn range_of(blocks: &[Verified<Block>]) -> BlockRange {
    BlockRange::from_count(blocks[0].header.number, blocks.len() as u64).unwrap()
}

fn tables_of(blocks: &[Verified<Block>]) -> Arc<Tables> {
    let (range, mut census) = (range_of(blocks), Census::default());
    for block in blocks.iter().filter(|block| is_counted(range, BlockNumber(block.header.number))) {
        count_block(&mut census, block);
    }
    Arc::new(census.into_tables())
}

/// The blocks of each group.
fn in_groups(blocks: &[Verified<Block>]) -> impl Iterator<Item = &[Verified<Block>]> {
    let first = blocks[0].header.number;
    let at = move |number: u64| usize::try_from(number - first).unwrap();
    groups(range_of(blocks)).map(move |group| &blocks[at(group.first())..at(group.end())])
}

fn write(blocks: &[Verified<Block>]) -> Vec<u8> {
    let encoder = Encoder::new(tables_of(blocks), blocks[0].receipts.is_some());
    let mut writer = SegmentWriter::new(range_of(blocks), &encoder).unwrap();
    let mut bytes = Vec::new();
    for group in in_groups(blocks) {
        bytes.extend(writer.push(encoder.encode_group(group).unwrap()).unwrap());
    }
    let (rest, _) = writer.finish().unwrap();
    bytes.extend(rest);
    bytes
}

fn open(bytes: &[u8]) -> Result<Segment, Corrupt> {
    let footer = Footer::parse(&bytes[bytes.len().saturating_sub(FOOTER_BYTES)..])?;
    let tail = footer.tail_range(bytes.len() as u64)?;
    Segment::open(footer, &mut Inflater::new().unwrap(), slice(bytes, &tail))
}

/// The bytes of a range; nothing where it lies outside, as a short read would give.
fn slice<'a>(bytes: &'a [u8], range: &std::ops::Range<u64>) -> &'a [u8] {
    let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
    bytes.get(range).unwrap_or_default()
}

/// Everything a segment says of a block, as bytes.
fn read_block(
    segment: &Segment,
    bytes: &[u8],
    number: BlockNumber,
) -> Result<Vec<Vec<u8>>, Corrupt> {
    let (mut said, mut inflater) = (Vec::new(), Inflater::new().unwrap());
    let inflater = &mut inflater;
    let place = segment.find_header(number).unwrap();
    let header = segment.read_header(inflater, &place, slice(bytes, &place.range), number)?;
    said.push(header.rlp.to_vec());
    said.push(header.block_bytes.to_string().into_bytes());
    let place = segment.find_extras(number).unwrap();
    let others = segment.read_extras(inflater, &place, slice(bytes, &place.range), number)?;
    said.push(others.ommers.to_vec());
    said.extend(others.withdrawals.map(|list| list.to_vec()));
    let ordinals = segment.find_ordinals(number).unwrap();
    assert_eq!(header.transaction_count, ordinals.end.checked_sub(ordinals.start).unwrap());
    let place = segment.find_block(number).unwrap();
    let whole =
        segment.read_block(inflater, &place, slice(bytes, &place.range), RowParts::Receipt)?;
    assert_eq!(whole.len() as u64, header.transaction_count);
    let mut logs_before = 0;
    for (index, ordinal) in (ordinals.start.get()..ordinals.end.get()).map(TxOrdinal).enumerate() {
        let place = segment.find_row(ordinal).unwrap();
        let (page, room) = (slice(bytes, &place.page.range), &mut RowsRoom::default());
        let rows = segment.open_rows(inflater, &place.page, page, room, RowParts::Receipt)?;
        let payloads = slice(bytes, &segment.find_payloads(&place, &rows));
        let row = segment.read_row(inflater, &place, &rows, payloads)?;
        let row = row.view();
        assert!(Some(row) == whole.get(index), "a row of its block is the row alone");
        let position = segment.position_of(&place, &rows).unwrap();
        assert_eq!((position.number, position.index), (number, TxIndex(index as u64)));
        assert_eq!(Some(position.hash), segment.find_hash(number));
        assert_eq!(position.before.is_some(), row.receipt.is_some());
        said.push(row.encoded.to_vec());
        said.push(row.sender.to_vec());
        if let (Some(receipt), Some(before)) = (row.receipt, position.before) {
            assert_eq!(before.logs, logs_before);
            logs_before += receipt.log_count() as u64;
            said.push(format!("{:?}", receipt.to_fields(before.gas)).into_bytes());
        }
    }
    Ok(said)
}

/// The same of the block itself.
fn expected(block: &Block) -> Vec<Vec<u8>> {
    let mut said = vec![
        block.header_rlp.to_vec(),
        rlp_of(block).len().to_string().into_bytes(),
        block.ommers_rlp.to_vec(),
    ];
    said.extend(block.withdrawals_rlp.as_ref().map(|list| list.to_vec()));
    for (index, transaction) in block.transactions.iter().enumerate() {
        said.push(transaction.encoded.to_vec());
        said.push(transaction.sender.to_vec());
        if let Some(receipts) = &block.receipts {
            said.push(format!("{:?}", receipts[index].fields).into_bytes());
        }
    }
    said
}

/// The whole block as it travels between nodes.
fn rlp_of(block: &Block) -> Vec<u8> {
    let list = |payload: Vec<u8>| {
        let mut rlp = Vec::new();
        Header { list: true, payload_length: payload.len() }.encode(&mut rlp);
        rlp.put_slice(&payload);
        rlp
    };
    let mut transactions = Vec::new();
    for transaction in &block.transactions {
        if transaction.envelope.is_legacy() {
            transactions.put_slice(&transaction.encoded);
        } else {
            transaction.encoded.encode(&mut transactions);
        }
    }
    let mut parts = block.header_rlp.to_vec();
    parts.extend(list(transactions));
    parts.extend_from_slice(&block.ommers_rlp);
    parts.extend(block.withdrawals_rlp.iter().flatten());
    list(parts)
}

fn check(blocks: &[Verified<Block>]) -> Vec<u8> {
    let bytes = write(blocks);
    let segment = open(&bytes).unwrap();
    let facts = segment.facts();
    assert_eq!(facts.range, range_of(blocks));
    assert_eq!(facts.parent_hash, blocks[0].header.parent_hash);
    assert_eq!(facts.last_hash, blocks.last().unwrap().hash);
    let logs = blocks.iter().flat_map(|block| block.receipts.iter().flatten());
    assert_eq!(facts.log_count, logs.map(|receipt| receipt.fields.logs.len() as u64).sum::<u64>());
    for block in blocks {
        let number = block.header.number;
        assert!(
            read_block(&segment, &bytes, BlockNumber(number)).unwrap() == expected(block),
            "block {number}"
        );
    }
    bytes
}

fn settings(payload: Payload) -> SampleSettings {
    SampleSettings {
        seed: 5,
        block_count: 200,
        txs_per_block: 6,
        payload,
        ..SampleSettings::default()
    }
}

#[test]
fn every_block_of_the_sample_chain_comes_back_to_the_byte() {
    for payload in [Payload::Small, Payload::Mainnet] {
        let blocks = verified(&settings(payload));
        let bytes = check(&blocks);
        let parts = open(&bytes).unwrap().part_bytes();
        assert!(parts.transactions > 0 && parts.receipts > 0 && parts.headers > 0);
        // From the middle of a group.
        check(&blocks[5..90]);
    }
}

#[test]
fn headers_share_a_page_until_their_blocks_have_512_transactions() {
    for txs_per_block in [600, 150, 1] {
        let settings = SampleSettings {
            seed: 5,
            block_count: 40,
            txs_per_block,
            payload: Payload::Small,
            ..SampleSettings::default()
        };
        let blocks = verified(&settings);
        let segment = open(&check(&blocks)).unwrap();
        let (mut first, mut sum, mut page_count) = (0, 0, 0);
        for block in &blocks {
            let number = block.header.number;
            if sum >= 512 || number % 16 == 0 {
                (first, sum, page_count) = (number, 0, page_count + 1);
                let before = number.checked_sub(1);
                assert_ne!(
                    before.and_then(|it| segment.find_header(BlockNumber(it))),
                    segment.find_header(BlockNumber(first))
                );
                assert_ne!(
                    before.and_then(|it| segment.find_extras(BlockNumber(it))),
                    segment.find_extras(BlockNumber(first))
                );
            }
            sum += block.transactions.len();
            assert_eq!(
                segment.find_header(BlockNumber(number)),
                segment.find_header(BlockNumber(first))
            );
            assert_eq!(
                segment.find_extras(BlockNumber(number)),
                segment.find_extras(BlockNumber(first))
            );
        }
        println!("{txs_per_block} transactions a block: {page_count} pages of headers");
        assert!((3..=40).contains(&page_count));
    }
}

#[test]
fn the_same_blocks_give_the_same_bytes() {
    let blocks = verified(&settings(Payload::Small));
    assert!(write(&blocks) == write(&blocks));
}

#[test]
fn groups_may_be_encoded_in_any_order_but_only_written_in_theirs() {
    let blocks = &verified(&settings(Payload::Small))[5..90];
    let encoder = Encoder::new(tables_of(blocks), true);
    let mut backwards: Vec<_> = in_groups(blocks)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .map(|group| encoder.encode_group(group).unwrap())
        .collect();
    let mut writer = SegmentWriter::new(range_of(blocks), &encoder).unwrap();
    let fault = writer.push(backwards[0].clone()).unwrap_err();
    assert!(matches!(fault, WriteFault::NotNext { expected: 5, .. }), "{fault}");
    let mut bytes = Vec::new();
    while let Some(group) = backwards.pop() {
        bytes.extend(writer.push(group).unwrap());
    }
    bytes.extend(writer.finish().unwrap().0);
    assert!(bytes == write(blocks));
}

#[test]
fn blocks_that_are_no_whole_group_are_refused() {
    let blocks = &verified(&settings(Payload::Small))[..40];
    let (range, tables) = (range_of(blocks), tables_of(blocks));
    let encoder = Encoder::new(Arc::clone(&tables), true);
    let refused = |blocks: &[Verified<Block>]| encoder.encode_group(blocks).unwrap_err();
    assert!(matches!(refused(&[]), WriteFault::Empty));
    assert!(matches!(refused(&blocks[8..20]), WriteFault::NotGroup { first: 8, last: 19 }));
    let gap = [blocks[1].clone(), blocks[3].clone()];
    assert!(matches!(refused(&gap), WriteFault::NotNext { found: 3, expected: 2 }));
    let bare = Encoder::new(tables, false);
    let fault = bare.encode_group(&blocks[..2]).unwrap_err();
    assert!(matches!(fault, WriteFault::ReceiptsPresence { number: 0, has_receipts: true }));

    let mut writer = SegmentWriter::new(range, &encoder).unwrap();
    let part = encoder.encode_group(&blocks[..10]).unwrap();
    assert!(matches!(writer.push(part), Err(WriteFault::NotGroup { first: 0, last: 9 })));
    let other = Encoder::new(Arc::default(), true).encode_group(&blocks[..16]).unwrap();
    assert!(matches!(writer.push(other), Err(WriteFault::OtherTables { number: 0 })));
    writer.push(encoder.encode_group(&blocks[..16]).unwrap()).unwrap();
    assert!(matches!(writer.finish(), Err(WriteFault::Missing { expected: 16, .. })));
    let range = BlockRange::from_ends(200, 300).unwrap();
    assert!(matches!(SegmentWriter::new(range, &encoder), Err(WriteFault::Shape(_))));
}

#[test]
fn a_census_may_be_taken_in_any_order() {
    let blocks = verified(&settings(Payload::Mainnet));
    let tables = |order: &mut dyn Iterator<Item = &Verified<Block>>| {
        let mut sum = Census::default();
        for block in order {
            let mut census = Census::default();
            count_block(&mut census, block);
            sum.merge(census);
        }
        sum.into_tables()
    };
    assert_eq!(tables(&mut blocks.iter()), tables(&mut blocks.iter().rev()));
}

#[test]
fn every_flipped_byte_gives_an_error_or_the_same_answers() {
    let settings = SampleSettings { block_count: 40, txs_per_block: 1, ..settings(Payload::Small) };
    let blocks = &verified(&settings)[24..34];
    let bytes = write(blocks);
    let answers = |bytes: &[u8]| -> Result<Vec<Vec<Vec<u8>>>, Corrupt> {
        let segment = open(bytes)?;
        blocks
            .iter()
            .map(|block| read_block(&segment, bytes, BlockNumber(block.header.number)))
            .collect()
    };
    let sound = answers(&bytes).unwrap();
    let mut refused = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        match answers(&damaged) {
            Ok(said) => assert!(said == sound, "byte {at}: another answer"),
            Err(_) => refused += 1,
        }
    }
    println!("{refused} of {} flips refused", bytes.len());
    assert_eq!(refused, bytes.len(), "every byte is under a checksum");
}

#[test]
fn real_chain_data_comes_back_to_the_byte() {
    let Some(folder) = shared_data() else { return };
    for name in [
        "ere/hivechain-00000-d226371d-noproofs.ere",
        "ere/anvil-00000-3c0295fc-noproofs.ere",
        "ere/mainnet-01896-56a9bb03-noproofs.ere",
        "ere/relinked-02560-8eb90bff-noproofs.ere",
        // Its receipts do not sum up to the headers' gas, and 21 are below 21,000.
        "amsterdam/amsterdam-00000-41511eb0-noproofs.ere",
    ] {
        let archive = Archive::open(&folder.join(name)).unwrap();
        let blocks = proven_blocks(&archive, &ChainSpec::bare("any", None, None));
        let bytes = check(&blocks);
        println!("{name}: {} of {} bytes", bytes.len(), archive.bytes_count());
    }
}
