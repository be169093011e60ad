//! The manifest as a value and as a text.

use super::*;
use chain::BlockNumber;

fn hash_of(number: u64) -> B256 {
    B256::left_padding_from(&(number + 1).to_be_bytes())
}

pub(crate) fn segment(first: u64, last: u64) -> SegmentEntry {
    SegmentEntry {
        range: BlockRange::from_ends(first, last).unwrap(),
        file_name: format!("{first}-{last}.seg"),
        bytes: first * 1000 + 128,
        digest: B256::repeat_byte(u8::try_from(last % 251).unwrap()),
        has_receipts: true,
        parent_hash: if first == 0 { B256::ZERO } else { hash_of(first - 1) },
        last_hash: hash_of(last),
        transaction_count: last,
        log_count: last * 2,
        difficulty: U256::from(last),
    }
}

pub(crate) fn run(subject: RunSubject, first_slot: u64, slot_count: u64) -> RunEntry {
    RunEntry {
        subject,
        span: RunSpan::new(first_slot, slot_count).unwrap(),
        file_name: format!("{subject}-{first_slot}-{slot_count}.run"),
        bytes: slot_count * 77,
        digest: B256::repeat_byte(7),
    }
}

pub(crate) fn with_segment(
    manifest: &Manifest,
    entry: SegmentEntry,
) -> Result<Manifest, ManifestConflict> {
    manifest.edited(Edit { segments: vec![entry], ..Edit::default() })
}

fn network() -> Network {
    Network {
        name: Some("mainnet".into()),
        chain_id: Some(1),
        genesis_hash: Some(B256::repeat_byte(0xd4)),
    }
}

pub(super) fn sample() -> Manifest {
    let bare = SegmentEntry { has_receipts: false, ..segment(24_576, 24_600) };
    let edit = Edit {
        network: network(),
        anchors: vec![Anchor { number: 8447, hash: hash_of(8447) }],
        epochs: vec![Epoch { number: 0, last: 8191 }],
        difficulties: vec![(8192, U256::from(8191)), (24_576, U256::from(7))],
        segments: vec![segment(8192, 8447), segment(0, 8191), bare],
        runs: vec![
            run(RunSubject::Blocks, 0, 1),
            run(RunSubject::Transactions, 2, 2),
            run(RunSubject::Transactions, 0, 2),
        ],
        ..Edit::default()
    };
    let manifest = Manifest::new(Network::default()).edited(edit).unwrap();
    let lost = [(9000, 9099), (9100, 9999), (8400, 8450)];
    let lost = lost.map(|(first, last)| BlockRange::from_ends(first, last).unwrap());
    let manifest = manifest.with_genesis_file(Some(B256::repeat_byte(9))).with_lost(lost);
    let known = [8191, 8449, 9999, 10_000];
    manifest.with_lost_hashes(
        known.map(|number| BlockId { number: BlockNumber(number), hash: hash_of(number) }),
    )
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
    let run_digest = digest("07");
    let (first, second, third) = (hash_of(8191), hash_of(8447), hash_of(24_600));
    let lines = format!(
        "quipu manifest 1\nnetwork mainnet\nchain 1\ngenesis {}\ngenesis-file {}\n\
         anchor 8447 {second}\nepoch 0 8191\ndifficulty 24576 7\n\
         lost 8448 8450\nlost 9000 9999\nlost-hash 8449 {}\nlost-hash 9999 {}\n\
         segment 0 8191 0-8191.seg 128 {} receipts {} {first} 8191 16382 8191\n\
         segment 8192 8447 8192-8447.seg 8192128 {} receipts {first} {second} 8447 16894 8447\n\
         segment 24576 24600 24576-24600.seg 24576128 {} noreceipts {} {third} 24600 49200 24600\n\
         run transactions 0 2 transactions-0-2.run 154 {run_digest}\n\
         run transactions 2 2 transactions-2-2.run 154 {run_digest}\n\
         run blocks 0 1 blocks-0-1.run 77 {run_digest}\n",
        digest("d4"),
        digest("09"),
        hash_of(8449),
        hash_of(9999),
        digest("9f"),
        B256::ZERO,
        digest("a4"),
        digest("02"),
        hash_of(24_575),
    );
    assert_eq!(String::from_utf8(sample().encode()), String::from_utf8(summed(&lines)));
}

#[test]
fn the_order_of_arrival_changes_nothing() {
    let entries = [segment(0, 255), segment(256, 511), segment(1024, 1279)];
    let build = |order: [usize; 3]| {
        order.into_iter().fold(Manifest::new(Network::default()), |manifest, place| {
            with_segment(&manifest, entries[place].clone()).unwrap()
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
    let head = "quipu manifest 1\nnetwork -\nchain -\ngenesis -\n";
    let three = "quipu manifest 3\nnetwork -\nchain -\ngenesis -\n";
    let digest = B256::ZERO;
    let rest = format!("{digest} receipts {digest} {digest} 0 0 0");
    let cases = [
        ("quipu manifest 4\n".to_owned(), "line 1: manifest version 4, this build reads 1 to 2"),
        ("{}\n".to_owned(), "line 1: \"{}\" where"),
        (format!("{head}segment 5 4 a 1 {rest}\n"), "line 5: blocks 5..4 are"),
        (format!("{head}segment 0 {} a 1 {rest}\n", u64::MAX), "line 5: blocks 0"),
        (format!("{head}segment 0 x a 1 {rest}\n"), "line 5: last block: \"x\""),
        (format!("{head}segment 0 1 ../a 1 {rest}\n"), "\"../a\" cannot be"),
        (format!("{head}segment 0 1 lock 1 {rest}\n"), "\"lock\" cannot be"),
        (format!("{head}segment 0 1 a 1 {digest} yes {rest}\n"), "line 5: receipts: \"yes\""),
        (format!("{head}segment 0 1 a 1 {digest} receipts\n"), "line 5: parent hash: \"\""),
        (format!("{head}segment 0 1 a 01 {rest}\n"), "line 5: \"segment 0 1 a 01"),
        (format!("{head}segment 0 1 a 1 {rest} 1\n"), "line 5: \"segment 0 1 a 1 "),
        (format!("{head}run blocks 1 2 a 1 {digest}\n"), "line 5: 2 slots from 1"),
        (format!("{head}run uncles 0 2 a 1 {digest}\n"), "line 5: subject: \"uncles\""),
        (format!("{head}run blocks 0 2 a 1\n"), "line 5: digest: \"\""),
        (
            format!("{head}run blocks 0 2 a 1 {digest}\nrun blocks 0 1 b 1 {digest}\n"),
            "looks up the blocks of",
        ),
        (
            format!("{head}run blocks 0 1 a 1 {digest}\nrun blocks 1 1 a 1 {digest}\n"),
            "a is listed twice",
        ),
        (
            format!("{head}run blocks 1 1 a 1 {digest}\nrun blocks 0 1 b 1 {digest}\n"),
            "line 5: \"run blocks 1",
        ),
        (format!("{head}anchor 1 {digest}\nanchor 1 {digest}\n"), "line 6: \"anchor 1"),
        (format!("{head}anchor x {digest}\n"), "line 5: anchor: \"x\""),
        (format!("{head}epoch 2 1\nepoch 1 1\n"), "line 5: \"epoch 2 1\" where"),
        (format!("{head}lost 5 4\n"), "line 5: blocks 5..4 are"),
        (format!("{head}lost 5 6\nlost 1 2\n"), "line 5: \"lost 5 6\" where"),
        (format!("{head}lost 1 2\nlost 3 4\n"), "line 5: \"lost 1 2\" where"),
        (format!("{head}lost 1 2\nsegment 2 3 a 1 {rest}\n"), "line 5: \"lost 1 2\" where"),
        (format!("{head}lost 1 2\nlost-hash 3 {digest}\n"), "line 6: \"lost-hash 3"),
        (format!("{head}genesis-file x\n"), "line 5: digest of genesis.json: \"x\""),
        (format!("{head}\n"), "line 5: no line of a manifest begins so: \"\""),
        (format!("{head}digest-only a\n"), "line 5: no line of a manifest begins so"),
        (three.to_owned(), "written by a development build"),
        (format!("{head}chain 1\n"), "line 3: \"chain -\" where"),
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
fn a_segment_takes_the_place_of_those_that_lie_inside_it() {
    let young: Vec<SegmentEntry> =
        (0..32).map(|place| segment(place * 256, place * 256 + 255)).collect();
    let gone = young.iter().map(|entry| entry.file_name.clone()).collect();
    let edit = Edit { segments: young, ..Edit::default() };
    let young = Manifest::new(Network::default()).edited(edit).unwrap();
    let refusal = with_segment(&young, segment(0, 8191)).unwrap_err();
    assert!(matches!(refusal, ManifestConflict::Blocks { .. }), "{refusal}");
    let edit = Edit { segments: vec![segment(0, 8191)], gone, ..Edit::default() };
    let merged = young.edited(edit).unwrap();
    assert_eq!(merged.segments(), [segment(0, 8191)]);
    assert_eq!(merged.coverage(), young.coverage());
}

#[test]
fn a_segment_that_shares_blocks_is_refused() {
    let manifest = sample();
    for entry in [segment(100, 200), segment(8000, 8200), segment(8447, 8448)] {
        let refusal = with_segment(&manifest, entry).unwrap_err();
        assert!(matches!(refusal, ManifestConflict::Blocks { .. }), "{refusal}");
    }
}

#[test]
fn what_is_held_stays_held_and_receipts_may_come_and_never_go() {
    let bare = SegmentEntry { has_receipts: false, file_name: "bare".into(), ..segment(0, 8191) };
    let gone = BTreeSet::from(["0-8191.seg".to_owned()]);
    let edit = Edit { segments: vec![bare.clone()], gone: gone.clone(), ..Edit::default() };
    let refusal = sample().edited(edit).unwrap_err();
    assert!(matches!(refusal, ManifestConflict::Lost { with_receipts: true, .. }), "{refusal}");
    let refusal = sample().edited(Edit { gone, ..Edit::default() }).unwrap_err();
    assert!(matches!(refusal, ManifestConflict::Lost { with_receipts: false, .. }), "{refusal}");
    let manifest = with_segment(&Manifest::new(Network::default()), bare).unwrap();
    let gone = BTreeSet::from(["bare".to_owned()]);
    let edit = Edit { segments: vec![segment(0, 8191)], gone, ..Edit::default() };
    assert_eq!(manifest.edited(edit).unwrap().segments(), [segment(0, 8191)]);
}

#[test]
fn a_run_takes_the_place_of_its_halves_and_of_no_other_subject() {
    let larger = run(RunSubject::Transactions, 0, 4);
    let refusal =
        sample().edited(Edit { runs: vec![larger.clone()], ..Edit::default() }).unwrap_err();
    assert!(matches!(refusal, ManifestConflict::Slots { .. }), "{refusal}");
    let gone = ["transactions-0-2.run", "transactions-2-2.run"].map(str::to_owned).into();
    let merged = sample().edited(Edit { runs: vec![larger.clone()], gone, ..Edit::default() });
    assert_eq!(merged.unwrap().runs(), [larger, run(RunSubject::Blocks, 0, 1)]);
}

#[test]
fn a_change_that_changes_nothing_gives_the_same_manifest() {
    let manifest = sample();
    let edit = Edit {
        network: network(),
        anchors: manifest.anchors().collect(),
        epochs: manifest.epochs().collect(),
        difficulties: vec![(0, U256::ZERO), (24_576, U256::from(7))],
        segments: vec![segment(0, 8191)],
        runs: vec![run(RunSubject::Blocks, 0, 1)],
        gone: BTreeSet::from(["nothing".to_owned()]),
        ..Edit::default()
    };
    assert_eq!(manifest.edited(edit), Ok(manifest.clone()));
}

#[test]
fn another_chain_is_refused_and_what_was_unknown_is_learnt() {
    let another = |network: Network| sample().edited(Edit { network, ..Edit::default() });
    let refusal = another(Network { chain_id: Some(2), ..Network::default() }).unwrap_err();
    assert!(refusal.to_string().contains("chain id is 2, but"), "{refusal}");
    let genesis_hash = Some(B256::ZERO);
    let refusal = another(Network { genesis_hash, ..Network::default() }).unwrap_err();
    assert!(refusal.to_string().contains("genesis hash is 0x00"), "{refusal}");
    let named = another(Network { name: Some("other".into()), ..Network::default() }).unwrap();
    assert_eq!(named, sample());
    let unknown = Manifest::new(Network::default());
    let told = Network { name: Some("chain 7/\u{e9}".into()), ..network() };
    let learnt = unknown.edited(Edit { network: told, ..Edit::default() }).unwrap();
    let name = Some("chain-7--".to_owned());
    assert_eq!(learnt.network(), &Network { name, ..network() });
    let anchors = vec![Anchor { number: 8447, hash: B256::ZERO }];
    let refusal = sample().edited(Edit { anchors, ..Edit::default() }).unwrap_err();
    assert!(refusal.to_string().starts_with("anchor 8447:0x00"), "{refusal}");
}

#[test]
fn an_anchor_that_contradicts_genesis_is_an_error_that_names_both() {
    let genesis_hash = B256::repeat_byte(1);
    let anchor = Anchor { number: 0, hash: B256::repeat_byte(2) };
    let network = Network { genesis_hash: Some(genesis_hash), ..Network::default() };
    let edit = Edit { anchors: vec![anchor], ..Edit::default() };
    let manifest = Manifest::new(network).edited(edit).unwrap();
    let expected = ManifestConflict::Anchor { refused: anchor, trusted: genesis_hash };
    assert_eq!(manifest.statuses(), Err(expected));
}

#[test]
fn statuses_follow_from_anchors_and_parent_links() {
    let text = |manifest: &Manifest| {
        let statuses = manifest.statuses().unwrap().into_iter();
        let lines = statuses.map(|(range, status)| format!("{range} {status}"));
        lines.collect::<Vec<_>>().join(", ")
    };
    let anchor = format!("anchored by 8447:{}", hash_of(8447));
    let epoch = "anchored by accumulator epoch 0";
    let expected = format!("0..8191 {epoch}, 8192..8447 {anchor}, 24576..24600 not anchored");
    assert_eq!(text(&sample()), expected);
    let more = with_segment(&sample(), segment(8448, 8703)).unwrap();
    assert!(text(&more).contains(&format!("8448..8703 linked to 8447:{}", hash_of(8447))));
}

#[test]
fn total_difficulties_follow_from_one_that_is_told_and_must_agree() {
    let known = |manifest: &Manifest, number: u64| {
        let (_, entry) = manifest.find_segment(BlockNumber(number)).unwrap();
        manifest.difficulty_before(entry).map(|sum| sum.to::<u64>())
    };
    assert_eq!(known(&sample(), 0), Some(0));
    assert_eq!(known(&sample(), 8192), Some(8191));
    assert_eq!(known(&sample(), 24_576), Some(7));
    let entries = [segment(256, 511), segment(512, 767)];
    let told = |number: u64, before: u64| Edit {
        difficulties: vec![(number, U256::from(before))],
        segments: entries.to_vec(),
        ..Edit::default()
    };
    let nothing = Manifest::new(Network::default());
    let silent = nothing.edited(Edit { segments: entries.to_vec(), ..Edit::default() }).unwrap();
    assert_eq!(known(&silent, 512), None);
    let above = nothing.edited(told(512, 1000)).unwrap();
    let below = nothing.edited(told(256, 1000 - 511)).unwrap();
    assert_eq!(above, below);
    assert_eq!((known(&above, 256), known(&above, 512)), (Some(489), Some(1000)));
    // A segment that is rebuilt over the block for which a sum was told leaves that sum behind.
    let gone = BTreeSet::from(["256-511.seg".to_owned()]);
    let grown = Edit { segments: vec![segment(250, 511)], gone, ..Edit::default() };
    let grown = below.edited(Edit { difficulties: vec![(250, U256::from(480))], ..grown }).unwrap();
    assert_eq!((known(&grown, 250), known(&grown, 512)), (Some(480), Some(480 + 511)));
    for edit in [told(512, 999), told(256, 490), told(512, 510)] {
        let refusal = above.edited(edit).unwrap_err();
        assert!(matches!(refusal, ManifestConflict::Difficulty { .. }), "{refusal}");
    }
}

#[test]
fn lost_blocks_are_remembered_until_they_are_held_or_cut_off() {
    let range = |first, last| BlockRange::from_ends(first, last).unwrap();
    let manifest = with_segment(&Manifest::new(Network::default()), segment(0, 255)).unwrap();
    let manifest = manifest.with_lost([range(200, 300), range(512, 767), range(301, 511)]);
    assert_eq!(manifest.lost(), [range(256, 767)]);
    let held = with_segment(&manifest, segment(512, 767)).unwrap();
    assert_eq!(held.lost(), [range(256, 511)]);
    let whole = with_segment(&held, segment(256, 511)).unwrap();
    assert_eq!(whole.lost(), []);
    let cut = manifest.edited(Edit { cut: Some(BlockNumber(400)), ..Edit::default() }).unwrap();
    assert_eq!(cut.lost(), [range(256, 400)]);
    let cut = manifest.edited(Edit { cut: Some(BlockNumber(255)), ..Edit::default() }).unwrap();
    assert_eq!(cut.lost(), []);
}

#[test]
fn no_segment_takes_the_place_of_a_lost_block_with_another_hash() {
    let range = |first, last| BlockRange::from_ends(first, last).unwrap();
    let own = |number| BlockId { number: BlockNumber(number), hash: hash_of(number) };
    let manifest = with_segment(&Manifest::new(Network::default()), segment(0, 255)).unwrap();
    let manifest = manifest.with_lost([range(256, 511)]).with_lost_hashes([own(100), own(511)]);
    assert_eq!(manifest.lost_hashes().collect::<Vec<_>>(), [own(511)], "what is held is not lost");
    let mut other = segment(256, 511);
    other.last_hash = B256::ZERO;
    let mut above = segment(512, 600);
    above.parent_hash = B256::ZERO;
    for foreign in [other, above] {
        let refused = with_segment(&manifest, foreign.clone()).unwrap_err();
        assert!(matches!(refused, ManifestConflict::LostBlock { number: 511, .. }), "{refused}");
        // Whoever wants the other chain takes the lost one back.
        let cut = manifest.edited(Edit { cut: Some(BlockNumber(255)), ..Edit::default() }).unwrap();
        with_segment(&cut, foreign).unwrap();
    }
    let held = with_segment(&manifest, segment(256, 511)).unwrap();
    assert_eq!((held.lost(), held.lost_hashes().count()), (&[][..], 0));
}
