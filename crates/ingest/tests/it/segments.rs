//! Verified blocks into a segment and back: every byte, from few reads, and damage noticed.

use chain::trust::Anchors;
use chain::{Block, ChainSpec, Start, Verified, Verifier};
use ingest::archive::Archive;
use ingest::sample::{Payload, Settings};
use segment::{
    Census, Corrupt, FOOTER_BYTES, Facts, Footer, Inflater, Segment, SegmentWriter, count_block,
};

use crate::made::{blocks, proven_blocks, spec};
use crate::shared_data::shared_data;

/// A sample chain's blocks, proven.
fn verified(settings: &Settings) -> Vec<Verified<Block>> {
    let spec = spec(settings);
    let anchors = Anchors::of(&spec);
    let mut verifier = Verifier::new(&spec, &anchors, Start::At(0));
    blocks(settings).into_iter().map(|block| verifier.verify(block).unwrap()).collect()
}

fn write(blocks: &[Verified<Block>], chain_id: Option<u64>) -> Vec<u8> {
    let mut census = Census::default();
    for block in blocks {
        count_block(&mut census, block);
    }
    let facts = Facts {
        first: blocks[0].header.number,
        block_count: 0,
        transaction_count: 0,
        chain_id,
        has_receipts: blocks[0].receipts.is_some(),
        difficulty_before: None,
    };
    let mut writer = SegmentWriter::new(facts, census.into_tables()).unwrap();
    let mut bytes = Vec::new();
    for block in blocks {
        bytes.extend(writer.push(block).unwrap());
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
fn read_block(segment: &Segment, bytes: &[u8], number: u64) -> Result<Vec<Vec<u8>>, Corrupt> {
    let (mut said, mut inflater) = (Vec::new(), Inflater::new().unwrap());
    let inflater = &mut inflater;
    let place = segment.find_header(number).unwrap();
    said.push(segment.read_header(inflater, &place, slice(bytes, &place.range), number)?.to_vec());
    let place = segment.find_others(number).unwrap();
    let others = segment.read_others(inflater, &place, slice(bytes, &place.range), number)?;
    said.push(others.ommers.to_vec());
    said.extend(others.withdrawals.map(|list| list.to_vec()));
    let mut gas_before = 0;
    for (index, ordinal) in segment.find_ordinals(number).unwrap().enumerate() {
        let place = segment.find_row(ordinal).unwrap();
        let rows = segment.open_rows(inflater, &place.page, slice(bytes, &place.page.range))?;
        let own = place.payloads.get(rows.payloads_of(place.row)).unwrap_or_default();
        let payloads: Vec<&[u8]> = own.iter().map(|payload| slice(bytes, &payload.range)).collect();
        let row = segment.read_row(inflater, &place, &rows, &payloads)?;
        let block = rows.blocks().iter().find(|block| block.number == number).unwrap();
        assert!(block.first_index <= index as u64);
        said.push(row.encoded.to_vec());
        said.push(row.sender.to_vec());
        if let Some(receipt) = row.receipt {
            let fields = receipt.into_fields(gas_before);
            gas_before = fields.cumulative_gas_used;
            said.push(format!("{fields:?}").into_bytes());
        }
    }
    Ok(said)
}

/// The same of the block itself.
fn expected(block: &Block) -> Vec<Vec<u8>> {
    let mut said = vec![block.header_rlp.to_vec(), block.ommers_rlp.to_vec()];
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

fn check(blocks: &[Verified<Block>], chain_id: Option<u64>) -> Vec<u8> {
    let bytes = write(blocks, chain_id);
    let segment = open(&bytes).unwrap();
    assert_eq!(segment.facts().block_count, blocks.len() as u64);
    for block in blocks {
        let number = block.header.number;
        assert!(read_block(&segment, &bytes, number).unwrap() == expected(block), "block {number}");
    }
    bytes
}

fn settings(payload: Payload) -> Settings {
    Settings { seed: 5, block_count: 200, txs_per_block: 6, payload }
}

#[test]
fn every_block_of_the_sample_chain_comes_back_to_the_byte() {
    for payload in [Payload::Small, Payload::Mainnet] {
        let settings = settings(payload);
        let blocks = verified(&settings);
        let chain_id = spec(&settings).chain_id();
        check(&blocks, chain_id);
        // From the middle of a group, and without knowing the chain.
        check(&blocks[5..90], None);
    }
}

#[test]
fn the_same_blocks_give_the_same_bytes() {
    let blocks = verified(&settings(Payload::Small));
    assert!(write(&blocks, None) == write(&blocks, None));
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
    let settings = Settings { block_count: 40, txs_per_block: 1, ..settings(Payload::Small) };
    let blocks = &verified(&settings)[24..34];
    let bytes = write(blocks, None);
    let answers = |bytes: &[u8]| -> Result<Vec<Vec<Vec<u8>>>, Corrupt> {
        let segment = open(bytes)?;
        blocks.iter().map(|block| read_block(&segment, bytes, block.header.number)).collect()
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
        "hivechain-00000-d226371d-noproofs.ere",
        "anvil-00000-3c0295fc-noproofs.ere",
        "mainnet-01896-56a9bb03-noproofs.ere",
        "relinked-02560-8eb90bff-noproofs.ere",
    ] {
        let archive = Archive::open(&folder.join("ere").join(name)).unwrap();
        let blocks = proven_blocks(&archive, &ChainSpec::bare("any", None, None));
        let bytes = check(&blocks, Some(1));
        println!("{name}: {} of {} bytes", bytes.len(), archive.bytes_count());
    }
}
