//! How many bytes does a data folder take beside the archive it was made from?

use std::path::Path;

use anyhow::Result;
use pool::threads_default;

use crate::anatomy::{Anatomy, file_bytes};
use crate::archives::{ArchiveFile, RELINKED, RELINKED_8K, find_real};
use crate::era::project;
use crate::figure::{Figure, FigureUnit, Goal, ratio};
use crate::folder::BenchFolder;

/// Real chains: what must hold of each, what is aimed at, and what xz -9e makes of it in one piece.
const CHAINS: [(&str, Option<Goal>, &str); 2] = [
    (RELINKED, Goal::at_most(0.90, 0.85), "0.819"),
    (RELINKED_8K, Goal::at_most(0.76, 0.69), "0.628"),
];

/// Imports the real chains that are at hand and weighs their folders.
pub fn bytes_on_disk(data: &Path, work: &Path) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (name, goal, solid) in CHAINS {
        let Some(file) = find_real(data, name) else { continue };
        let folder = BenchFolder::at(work.join(name));
        folder.import(&file, None, threads_default())?;
        figures.extend(weigh(&file, &folder, goal, solid)?);
        folder.remove()?;
    }
    Ok(figures)
}

fn weigh(
    file: &ArchiveFile,
    folder: &BenchFolder,
    goal: Option<Goal>,
    solid: &str,
) -> Result<[Figure; 2]> {
    let archive_bytes = file_bytes(&file.path)?;
    let anatomy = Anatomy::of(folder)?;
    let bytes = anatomy.bytes();
    let measured = Figure {
        name: "bytes_on_disk",
        question: "bytes on disk / ere file".into(),
        of: file.title.clone(),
        value: ratio(bytes, archive_bytes),
        unit: FigureUnit::Ratio,
        goal,
        note: format!(
            "{bytes} of {archive_bytes} bytes, {} transactions; solid xz -9e without random access \
             {solid}; {}",
            anatomy.transaction_count,
            anatomy.describe()
        ),
    };
    let projection = project(file, archive_bytes, &anatomy)?;
    let projected = Figure {
        name: "bytes_on_disk_projected",
        question: "the same, projected to 8192 such blocks, at worst".into(),
        value: projection.high,
        goal: None,
        note: format!(
            "a projection, between {:.3} and {:.3}: rows, payloads, headers, directory and lookups \
             scaled by blocks, tables once and at their limit; the low end has rows as dense as \
             under tables counted over themselves, the high end under tables of half as many other \
             blocks, where an era counts 256",
            projection.low, projection.high
        ),
        ..measured.clone()
    };
    Ok([measured, projected])
}

/// What the lookup by transaction hash takes in a folder.
pub fn lookup_bytes(of: &str, folder: &BenchFolder) -> Result<Figure> {
    let anatomy = Anatomy::of(folder)?;
    Ok(Figure {
        name: "transaction_lookup_bytes",
        question: "transaction-hash lookup, bytes a transaction".into(),
        of: of.to_owned(),
        value: ratio(anatomy.transaction_lookups, anatomy.transaction_count),
        unit: FigureUnit::BytesPerTx,
        goal: Goal::at_most(6.0, 5.3),
        note: format!("{} transactions", anatomy.transaction_count),
    })
}
