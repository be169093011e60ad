//! Imports that are killed at random moments: the next one completes them, to the byte.
//!
//! `QUIPU_KILLS` says how often (10 unless told), `QUIPU_SEED` repeats the moments of an earlier run as
//! far as the machine lets it.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use chain::SplitMix64;

use crate::harness::data::{files, write_part};
use crate::harness::run::{archive, command, quipu, text};

const KILLS_DEFAULT: u64 = 10;

/// Blocks in each archive: no multiple of 256, so that most of them rebuild a segment of the one
/// before and remove it.
const PART_BLOCKS: u64 = 200;
const PART_COUNT: u64 = 6;

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// A chain in several archives below one folder.
fn make_archives(folder: &Path) -> PathBuf {
    let whole = folder.join("whole");
    let count = (PART_BLOCKS * PART_COUNT).to_string();
    let args = ["sample", "--to", text(&whole), "--block-count", &count, "--txs-per-block", "1"];
    quipu(&args).ends_with(0);
    let parts = folder.join("parts");
    for part in 0..PART_COUNT {
        let first = part * PART_BLOCKS;
        let last = first + PART_BLOCKS - 1;
        write_part(&archive(&whole), first..=last, true, &parts.join(part.to_string()));
    }
    std::fs::copy(whole.join("genesis.json"), parts.join("genesis.json")).unwrap();
    parts
}

fn start(parts: &Path, data: &Path) -> Child {
    let genesis = parts.join("genesis.json");
    let args = ["import", "--data-dir", text(data), "--genesis", text(&genesis), text(parts)];
    command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A reader sees a folder that holds together, whatever the writer was at when it died.
fn check_readable(data: &Path) {
    if data.join("lock").exists() {
        let stat = quipu(&["stat", "--json", "--data-dir", text(data)]).ends_with(0).json();
        let blocks = stat["blocks"].as_u64().unwrap();
        assert_eq!(blocks % PART_BLOCKS, 0, "a file is taken as a whole");
        quipu(&["check", "--data-dir", text(data)]).ends_with(0);
    }
}

#[test]
fn a_killed_import_is_completed_by_the_next_one_to_the_byte() {
    let seed = from_env("QUIPU_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let kills = from_env("QUIPU_KILLS").unwrap_or(KILLS_DEFAULT);
    println!("QUIPU_SEED={seed} QUIPU_KILLS={kills}");
    let mut chance = SplitMix64::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let parts = make_archives(folder.path());
    let undisturbed = folder.path().join("undisturbed");
    let begun = Instant::now();
    assert!(start(&parts, &undisturbed).wait().unwrap().success());
    let whole = u64::try_from(begun.elapsed().as_micros()).unwrap();
    let expected = files(&undisturbed);

    let (mut killed, mut round) = (0, 0);
    while killed < kills {
        round += 1;
        let data = folder.path().join(format!("data-{round}"));
        // The same folder is killed again and again until an import gets through.
        loop {
            let mut child = start(&parts, &data);
            if killed < kills {
                // Not for something: a kill comes at any moment, also between two events.
                std::thread::sleep(Duration::from_micros(chance.below(whole)));
                if child.try_wait().unwrap().is_none() {
                    child.kill().unwrap();
                    killed += 1;
                }
            }
            let is_through = child.wait().unwrap().success();
            check_readable(&data);
            if is_through {
                break;
            }
        }
        assert!(files(&data) == expected, "seed {seed}, round {round}");
        std::fs::remove_dir_all(&data).unwrap();
    }
    println!("{killed} kills in {round} rounds");
}
