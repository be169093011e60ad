//! `quipu verify-proof`: what a bundle proves, by a verifier that shares no code with the server.

use std::fs::File;
use std::io::{Read as _, stdin};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use proof::{BUNDLE_BYTES_MAX, ProofBundle, verify};

use crate::Failure;
use crate::args::prove::VerifyProofArgs;
use crate::output::print_lines;

pub(crate) fn run(args: &VerifyProofArgs) -> Result<(), Failure> {
    let file = args.bundle.as_deref().filter(|path| *path != Path::new("-"));
    let (name, text) = read(file)?;
    let verdict = ProofBundle::parse(&text).and_then(|bundle| verify(&bundle, &args.anchors));
    match verdict {
        Ok(verdict) => Ok(print_lines(&[verdict.to_string()])?),
        Err(refusal) => Err(Failure::Work(anyhow!("{name}: {refusal}"))),
    }
}

/// The text, or as much of it as shows that it is too long.
fn read(file: Option<&Path>) -> Result<(String, Vec<u8>), Failure> {
    let bytes_max = u64::try_from(BUNDLE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut text = Vec::new();
    let name = file.map_or_else(|| "the pipe".to_owned(), |path| path.display().to_string());
    let read = match file {
        Some(path) => File::open(path).and_then(|it| it.take(bytes_max).read_to_end(&mut text)),
        None => stdin().lock().take(bytes_max).read_to_end(&mut text),
    };
    read.with_context(|| name.clone())?;
    Ok((name, text))
}
