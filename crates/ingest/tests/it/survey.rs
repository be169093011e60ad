//! Several archives together: joined, labelled, listed.

use std::path::{Path, PathBuf};

use archive::{Format, Remedy};
use chain::trust::{Anchor, Anchors};
use ingest::prove::NoProgress;
use ingest::survey::{Finding, Job, find_archives, survey};
use sample::{Payload, SampleSettings};

use crate::harness::made::{blocks, spec, threads, write};

fn settings(seed: u64) -> SampleSettings {
    SampleSettings {
        seed,
        block_count: 100,
        txs_per_block: 1,
        payload: Payload::Small,
        ..SampleSettings::default()
    }
}

fn survey_paths(settings: &SampleSettings, paths: &[PathBuf], anchors: &[Anchor]) -> Vec<Finding> {
    let spec = spec(settings);
    let trusted = anchors
        .iter()
        .fold(Anchors::of(&spec), |trusted, anchor| trusted.with_operator(*anchor).unwrap());
    let jobs = find_archives(paths).unwrap().into_iter().map(|path| Job {
        path,
        network: Some("sample".to_owned()),
        spec: spec.clone(),
        anchors: trusted.clone(),
    });
    survey(jobs.collect(), threads(2), &NoProgress, |_, _| {})
}

/// One line for each file: its range and verdict, or its refusal.
fn shown(findings: &[Finding]) -> Vec<String> {
    let line = |finding: &Finding| match &finding.outcome {
        Ok(proven) => {
            let parts = proven.statuses.iter().map(|(range, status)| format!("{range} {status}"));
            parts.collect::<Vec<_>>().join("; ")
        }
        Err(error) => format!("refused at block {:?}", error.block),
    };
    findings.iter().map(line).collect()
}

#[test]
fn files_that_follow_each_other_share_their_trust() {
    let settings = settings(1);
    let made = blocks(&settings);
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), Format::Ere, &made[..40]);
    write(&folder.path().join("b"), Format::Ere, &made[40..]);
    let paths = [folder.path().to_owned()];
    assert_eq!(
        shown(&survey_paths(&settings, &paths, &[])),
        ["0..0 anchored by genesis; 1..39 linked to genesis", "40..99 linked to genesis"]
    );
    let hash = chain::hash_header(&made[70].header);
    let anchor = Anchor { number: 70, hash };
    assert_eq!(
        shown(&survey_paths(&settings, &paths, &[anchor])),
        [
            format!("0..39 anchored by {anchor}"),
            format!("40..70 anchored by {anchor}; 71..99 linked to {anchor}")
        ]
    );
}

#[test]
fn a_file_that_does_not_follow_the_one_before_is_refused() {
    let (one, other) = (settings(1), settings(2));
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), Format::Ere, &blocks(&one)[..40]);
    write(&folder.path().join("b"), Format::Ere, &blocks(&other)[40..]);
    let findings = survey_paths(&one, &[folder.path().to_owned()], &[]);
    assert_eq!(
        shown(&findings),
        ["0..0 anchored by genesis; 1..39 linked to genesis", "refused at block Some(40)"]
    );
    let error = findings[1].outcome.as_ref().unwrap_err().to_string();
    assert!(error.contains("block 40, byte 8: hash of block 39 is 0x"), "{error}");
    assert!(error.contains("which stands on firmer ground"), "{error}");
}

/// A chain that shares its first `fork` blocks with another and then goes its own way: from there
/// on other transactions, with the true links.
fn forged(settings: &SampleSettings, fork: usize) -> Vec<chain::Candidate> {
    let mut made = blocks(settings);
    let mut parent_hash = chain::hash_header(&made[fork - 1].header);
    for block in &mut made[fork..] {
        let mut header = chain::decode_header(&block.header).unwrap();
        header.parent_hash = parent_hash;
        header.extra_data = b"forged".as_slice().into();
        block.header = alloy_rlp::encode(&header).into();
        parent_hash = chain::hash_header(&block.header);
    }
    made
}

#[test]
fn a_forged_file_is_refused_beside_an_anchored_one_and_not_the_other_way_round() {
    let settings = settings(1);
    let (made, forged) = (blocks(&settings), forged(&settings, 10));
    let anchor = Anchor { number: 70, hash: chain::hash_header(&made[70].header) };
    let anchored = format!("40..70 anchored by {anchor}; 71..99 linked to {anchor}");

    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("forged"), Format::Ere, &forged[..40]);
    write(&folder.path().join("genuine"), Format::Ere, &made[40..]);
    let paths = [folder.path().to_owned()];
    let refused = "refused at block Some(39)".to_owned();
    assert_eq!(
        shown(&survey_paths(&settings, &paths, &[anchor])),
        [refused.clone(), anchored.clone()]
    );

    write(&folder.path().join("genuine-low"), Format::Ere, &made[..40]);
    assert_eq!(
        shown(&survey_paths(&settings, &paths, &[anchor])),
        [refused, anchored, format!("0..39 anchored by {anchor}")]
    );
}

#[test]
fn of_two_chains_from_one_genesis_neither_is_believed_without_an_anchor() {
    let settings = settings(1);
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), Format::Ere, &blocks(&settings));
    write(&folder.path().join("b"), Format::Ere, &forged(&settings, 50));
    let findings = survey_paths(&settings, &[folder.path().to_owned()], &[]);
    for finding in &findings {
        let error = finding.outcome.as_ref().unwrap_err().to_string();
        assert!(error.contains("nothing tells which of the two is false"), "{error}");
    }
}

#[test]
fn files_that_overlap_are_one_chain() {
    let settings = settings(1);
    let made = blocks(&settings);
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), Format::Ere, &made[..40]);
    write(&folder.path().join("b"), Format::Ere, &made[20..60]);
    let anchor = Anchor { number: 59, hash: chain::hash_header(&made[59].header) };
    assert_eq!(
        shown(&survey_paths(&settings, &[folder.path().to_owned()], &[anchor])),
        [format!("0..39 anchored by {anchor}"), format!("20..59 anchored by {anchor}")]
    );
}

#[test]
fn total_difficulties_must_follow_from_file_to_file() {
    let settings = settings(1);
    let made = blocks(&settings);
    let mut raised = made[30..60].to_vec();
    for block in &mut raised {
        *block.total_difficulty.as_mut().unwrap() += alloy_primitives::U256::from(1);
    }
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), Format::Era1, &made[..30]);
    write(&folder.path().join("b"), Format::Era1, &raised);
    let findings = survey_paths(&settings, &[folder.path().to_owned()], &[]);
    let error = findings[1].outcome.as_ref().unwrap_err().to_string();
    assert!(error.contains("total difficulty of block 29 is "), "{error}");
    assert!(findings[0].outcome.is_ok());
}

#[test]
fn a_file_named_for_another_network_than_asked_is_refused() {
    let settings = settings(1);
    let folder = relabelled(&blocks(&settings), |name| name.replace("sample", "mainnet"));
    let findings = survey_paths(&settings, &[folder.path().to_owned()], &[]);
    let error = findings[0].outcome.as_ref().unwrap_err().to_string();
    assert!(error.contains("file name says network mainnet, asked for sample"), "{error}");
}

#[test]
fn a_folder_is_searched_once_whatever_links_lead_to_it() {
    let settings = settings(1);
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), Format::Ere, &blocks(&settings));
    for link in ["self", "again"] {
        std::os::unix::fs::symlink(folder.path(), folder.path().join(link)).unwrap();
    }
    assert_eq!(find_archives(&[folder.path().to_owned()]).unwrap().len(), 1);
}

#[test]
fn an_operators_anchor_with_another_hash_refuses_the_file() {
    let settings = settings(1);
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Format::Ere, &blocks(&settings));
    let anchor = Anchor { number: 50, hash: alloy_primitives::B256::repeat_byte(1) };
    let findings = survey_paths(&settings, &[folder.path().to_owned()], &[anchor]);
    assert_eq!(shown(&findings), ["refused at block Some(50)"]);
}

#[test]
fn a_file_of_another_chain_is_refused_at_its_genesis() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Format::Ere, &blocks(&settings(1)));
    let findings = survey_paths(&settings(2), &[folder.path().to_owned()], &[]);
    assert_eq!(shown(&findings), ["refused at block Some(0)"]);
}

/// Renames the one archive of a folder and removes the lists that know its old name.
fn relabelled(
    blocks: &[chain::Candidate],
    change: impl FnOnce(&str) -> String,
) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), Format::Ere, blocks).remove(0);
    for list in ["checksums.txt", "checksums_sha256.txt"] {
        let _ = std::fs::remove_file(folder.path().join(list));
    }
    let name = change(path.file_name().unwrap().to_str().unwrap());
    std::fs::rename(&path, folder.path().join(name)).unwrap();
    folder
}

#[test]
fn a_mislabelled_file_is_refused() {
    let settings = settings(1);
    let made = blocks(&settings);
    let refusal = |change: fn(&str) -> String| {
        let folder = relabelled(&made, change);
        let mut findings = survey_paths(&settings, &[folder.path().to_owned()], &[]);
        findings.remove(0).outcome.map(drop).map_err(|error| error.fault.to_string())
    };
    let other_era = refusal(|name| name.replace("-00000-", "-00007-")).unwrap_err();
    assert_eq!(other_era, "file name says era 7, the content has 0 (block 0)");
    let other_hash = refusal(|_| "sample-00000-00000000-noproofs.ere".to_owned()).unwrap_err();
    assert!(other_hash.starts_with("file name says hash 00000000"), "{other_hash}");
    let other_format = refusal(|name| name.replace(".ere", ".era1")).unwrap_err();
    assert_eq!(other_format, "file name says format era1, the content has ere");
    let no_receipts = refusal(|name| name.replace(".ere", "-noreceipts.ere")).unwrap_err();
    assert_eq!(no_receipts, "file name says receipts: without, the content has with");
    refusal(|_| "renamed.ere".to_owned()).unwrap();
    refusal(|name| name.replace(".ere", ".erae")).unwrap();
}

#[test]
fn a_checksum_list_of_either_style_refuses_another_file() {
    let settings = settings(1);
    let made = blocks(&settings);
    let zeros = "0".repeat(64);
    for (list, line) in [
        ("checksums.txt", format!("0x{zeros}")),
        ("checksums_sha256.txt", format!("{zeros}  NAME\n")),
    ] {
        let folder = relabelled(&made, str::to_owned);
        let archive = find_archives(&[folder.path().to_owned()]).unwrap().remove(0);
        let name = archive.file_name().unwrap().to_str().unwrap();
        std::fs::write(folder.path().join(list), line.replace("NAME", name)).unwrap();
        let findings = survey_paths(&settings, &[archive], &[]);
        let error = findings[0].outcome.as_ref().unwrap_err().to_string();
        assert!(error.contains("SHA-256 is 0x") && error.contains(list), "{error}");
    }
}

#[test]
fn folders_without_archives_and_missing_paths_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = find_archives(&[folder.path().to_owned()]).unwrap_err().to_string();
    assert!(error.contains("no archives in this folder"), "{error}");
    let missing = [Path::new("/no/such/file.era1").to_owned()];
    let findings = survey_paths(&settings(1), &missing, &[]);
    let error = findings[0].outcome.as_ref().unwrap_err();
    assert!(error.to_string().starts_with("/no/such/file.era1: "), "{error}");
    assert_eq!(error.remedy(), Remedy::FixPath);
}
