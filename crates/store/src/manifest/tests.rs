//! The manifest as a value and as a text.

use super::*;

pub(super) fn segment(first: u64, last: u64) -> SegmentEntry {
    SegmentEntry {
        range: BlockRange::from_ends(first, last).unwrap(),
        file_name: format!("{first}-{last}.seg"),
        bytes: first * 1000 + 128,
        digest: B256::repeat_byte(u8::try_from(last % 251).unwrap()),
        has_receipts: true,
        status: StatusWord::Linked,
    }
}

fn run(subject: Subject, first_slot: u64, slot_count: u64) -> RunEntry {
    RunEntry {
        subject,
        span: RunSpan::new(first_slot, slot_count).unwrap(),
        file_name: format!("{subject}-{first_slot}-{slot_count}.run"),
        bytes: slot_count * 77,
    }
}

pub(super) fn sample() -> Manifest {
    let genesis_hash = Some(B256::repeat_byte(0xd4));
    Manifest::new(Network { chain_id: Some(1), genesis_hash })
        .with_segment(segment(8192, 8447))
        .and_then(|next| next.with_segment(segment(0, 8191)))
        .and_then(|next| {
            next.with_segment(SegmentEntry {
                has_receipts: false,
                status: StatusWord::Unanchored,
                ..segment(24_576, 24_600)
            })
        })
        .and_then(|next| next.with_run(run(Subject::Blocks, 0, 1)))
        .and_then(|next| next.with_run(run(Subject::Transactions, 2, 2)))
        .and_then(|next| next.with_run(run(Subject::Transactions, 0, 2)))
        .unwrap()
}

/// A text with its right checksum.
fn summed(lines: &str) -> Vec<u8> {
    format!("{lines}checksum {:08x}\n", crc32fast::hash(lines.as_bytes())).into_bytes()
}

#[test]
fn a_manifest_comes_back_as_it_was() {
    for manifest in [Manifest::new(Network::default()), sample()] {
        assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
    }
}

#[test]
fn the_text_is_the_one_that_is_documented() {
    let digest = |byte: &str| format!("0x{}", byte.repeat(32));
    let lines = format!(
        "quipu manifest 1\ngeneration 6\nchain 1\ngenesis {}\n\
         segment 0 8191 0-8191.seg 128 {} receipts linked\n\
         segment 8192 8447 8192-8447.seg 8192128 {} receipts linked\n\
         segment 24576 24600 24576-24600.seg 24576128 {} noreceipts unanchored\n\
         run transactions 0 2 transactions-0-2.run 154\n\
         run transactions 2 2 transactions-2-2.run 154\n\
         run blocks 0 1 blocks-0-1.run 77\n",
        digest("d4"),
        digest("9f"),
        digest("a4"),
        digest("02"),
    );
    assert_eq!(String::from_utf8(sample().encode()), String::from_utf8(summed(&lines)));
}

#[test]
fn the_order_of_arrival_changes_nothing() {
    let entries = [segment(0, 255), segment(256, 511), segment(1024, 1279)];
    let build = |order: [usize; 3]| {
        order.into_iter().fold(Manifest::new(Network::default()), |manifest, place| {
            manifest.with_segment(entries[place].clone()).unwrap()
        })
    };
    assert_eq!(build([0, 1, 2]).encode(), build([2, 0, 1]).encode());
    assert_eq!(build([0, 1, 2]).encode(), build([1, 2, 0]).encode());
}

#[test]
fn a_flipped_byte_is_an_error() {
    let bytes = sample().encode();
    for place in 0..bytes.len() {
        for bits in 1..=255 {
            let mut flipped = bytes.clone();
            flipped[place] ^= bits;
            let fault = Manifest::decode(&flipped).unwrap_err();
            assert!(!fault.to_string().is_empty(), "byte {place} ^ {bits}");
        }
    }
}

#[test]
fn a_flipped_byte_under_a_right_checksum_is_an_error_or_what_the_text_says() {
    let bytes = sample().encode();
    let body_bytes = bytes.len() - "checksum 01234567\n".len();
    let mut read_count = 0;
    for place in 0..body_bytes {
        for bits in 1..=255 {
            let mut flipped = bytes[..body_bytes].to_vec();
            flipped[place] ^= bits;
            let Ok(lines) = String::from_utf8(flipped) else { continue };
            let text = summed(&lines);
            if let Ok(manifest) = Manifest::decode(&text) {
                assert_eq!(manifest.encode(), text, "byte {place} ^ {bits}");
                read_count += 1;
            }
        }
    }
    assert!(read_count > 0, "another digest is another manifest");
}

#[test]
fn a_cut_manifest_is_an_error() {
    let bytes = sample().encode();
    for count in 0..bytes.len() {
        Manifest::decode(&bytes[..count]).unwrap_err();
        let mut zeros = bytes[..count].to_vec();
        zeros.resize(bytes.len(), 0);
        Manifest::decode(&zeros).unwrap_err();
    }
}

#[test]
fn a_text_with_a_right_checksum_is_still_checked() {
    let head = "quipu manifest 1\ngeneration 0\nchain -\ngenesis -\n";
    let digest = B256::ZERO;
    let cases = [
        ("quipu manifest 2\n".to_owned(), "line 1: manifest version 2, this build reads 1"),
        ("{}\n".to_owned(), "line 1: \"{}\" where"),
        (format!("{head}segment 5 4 a 1 {digest} receipts linked\n"), "line 5: blocks 5..4 are"),
        (
            format!("{head}segment 0 {} a 1 {digest} receipts linked\n", u64::MAX),
            "line 5: blocks 0",
        ),
        (format!("{head}segment 0 x a 1 {digest} receipts linked\n"), "line 5: last block: \"x\""),
        (format!("{head}segment 0 1 ../a 1 {digest} receipts linked\n"), "\"../a\" cannot be"),
        (format!("{head}segment 0 1 lock 1 {digest} receipts linked\n"), "\"lock\" cannot be"),
        (format!("{head}segment 0 1 a 1 {digest} yes linked\n"), "line 5: receipts: \"yes\""),
        (format!("{head}segment 0 1 a 1 {digest} receipts\n"), "line 5: status: \"\""),
        (
            format!("{head}segment 0 1 a 01 {digest} receipts linked\n"),
            "line 5: \"segment 0 1 a 01",
        ),
        (format!("{head}run blocks 1 2 a 1\n"), "line 5: 2 slots from 1"),
        (format!("{head}run uncles 0 2 a 1\n"), "line 5: subject: \"uncles\""),
        (format!("{head}run blocks 0 2 a 1 1\n"), "line 5: \"run blocks 0 2 a 1 1\" where"),
        (format!("{head}run blocks 0 2 a 1\nrun blocks 0 1 b 1\n"), "looks up the blocks of"),
        (format!("{head}run blocks 0 1 a 1\nrun blocks 1 1 a 1\n"), "a is listed twice"),
        (format!("{head}run blocks 1 1 a 1\nrun blocks 0 1 b 1\n"), "line 5: \"run blocks 1"),
        (format!("{head}\n"), "line 5: no line of a manifest begins so: \"\""),
        (format!("{head}generation 1\n"), "line 2: \"generation 0\" where"),
        ("quipu manifest 1\n".to_owned(), "line 2: \"checksum"),
    ];
    for (lines, expected) in cases {
        let fault = Manifest::decode(&summed(&lines)).unwrap_err().to_string();
        assert!(fault.contains(expected), "{fault}\nfor\n{lines}");
    }
}

#[test]
fn coverage_joins_what_touches_and_leaves_gaps() {
    let texts: Vec<String> = sample().coverage().iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["0..8447", "24576..24600"]);
    assert_eq!(Manifest::new(Network::default()).coverage(), []);
}

#[test]
fn a_segment_supersedes_those_that_lie_inside_it() {
    let young = (0..32).fold(Manifest::new(Network::default()), |manifest, place| {
        manifest.with_segment(segment(place * 256, place * 256 + 255)).unwrap()
    });
    let merged = young.with_segment(segment(0, 8191)).unwrap();
    assert_eq!(merged.segments(), [segment(0, 8191)]);
    assert_eq!(merged.coverage(), young.coverage());
    assert_eq!(merged.generation(), young.generation() + 1);
}

#[test]
fn a_segment_that_shares_blocks_and_does_not_hold_all_is_refused() {
    let manifest = sample();
    for entry in [segment(100, 200), segment(8000, 8200), segment(8447, 8448)] {
        let refusal = manifest.with_segment(entry).unwrap_err();
        assert!(matches!(refusal, Conflict::Blocks { .. }), "{refusal}");
    }
}

#[test]
fn receipts_may_come_and_never_go() {
    let bare = SegmentEntry { has_receipts: false, file_name: "bare".into(), ..segment(0, 8191) };
    let refusal = sample().with_segment(bare.clone()).unwrap_err();
    assert!(matches!(refusal, Conflict::Receipts { .. }), "{refusal}");
    let manifest = Manifest::new(Network::default()).with_segment(bare).unwrap();
    let filled = manifest.with_segment(segment(0, 8191)).unwrap();
    assert_eq!(filled.segments(), [segment(0, 8191)]);
}

#[test]
fn a_run_supersedes_its_halves_and_no_other_subject() {
    let merged = sample().with_run(run(Subject::Transactions, 0, 4)).unwrap();
    let runs = [run(Subject::Transactions, 0, 4), run(Subject::Blocks, 0, 1)];
    assert_eq!(merged.runs(), runs);
    let refusal = merged.with_run(run(Subject::Transactions, 2, 1)).unwrap_err();
    assert!(matches!(refusal, Conflict::Slots { .. }), "{refusal}");
}

#[test]
fn a_change_that_changes_nothing_keeps_the_generation() {
    let manifest = sample();
    assert_eq!(manifest.with_segment(segment(0, 8191)), Ok(manifest.clone()));
    assert_eq!(manifest.with_run(run(Subject::Blocks, 0, 1)), Ok(manifest.clone()));
    assert_eq!(manifest.without("nothing"), manifest);
}

#[test]
fn what_leaves_is_gone_and_the_rest_stays() {
    let manifest = sample().without("0-8191.seg").without("blocks-0-1.run");
    assert_eq!(manifest.segments().len(), 2);
    assert_eq!(manifest.runs().len(), 2);
    assert_eq!(manifest.generation(), sample().generation() + 2);
}
