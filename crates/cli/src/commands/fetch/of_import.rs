//! An import of addresses as the fetch that it is.
//!
//! Knows: which arguments an import has, and where the others of a fetch come from.
//! Never knows: how a fetch goes.

use std::ffi::OsString;
use std::path::Path;

use ingest::fetch::MirrorUrl;

use crate::Failure;
use crate::args::Command;
use crate::args::fetch::FetchArgs;
use crate::args::import::ImportArgs;
use crate::config::parse_inner;

/// The arguments of the fetch, if addresses are imported and not files. What an import has no flag for is
/// by `config`, the environment or default, as for a fetch.
pub(crate) fn fetch_args(
    import: &ImportArgs,
    config: Option<&Path>,
) -> Result<Option<FetchArgs>, Failure> {
    let texts: Vec<String> =
        import.paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    if !texts.iter().any(|text| MirrorUrl::is_meant(text)) {
        return Ok(None);
    }
    let mut typed: Vec<OsString> = ["quipu", "fetch", "--from", "typed"].map(Into::into).into();
    for (flag, value) in [("--config", config), ("--data-dir", import.data.data_dir.as_deref())] {
        typed.extend(value.into_iter().flat_map(|value| [flag.into(), value.into()]));
    }
    let Command::Fetch(fetch) = parse_inner(&typed)?.command else { return Ok(None) };
    Ok(Some(FetchArgs {
        from: texts,
        selection: import.selection.clone(),
        data: import.data.clone(),
        work: import.work.clone(),
        chain: import.chain.clone(),
        ..fetch
    }))
}

#[cfg(test)]
mod tests {
    use chain::BlockRange;
    use clap::Parser as _;

    use super::*;
    use crate::args::Args;

    fn parse(line: &str) -> ImportArgs {
        let args = Args::try_parse_from(line.split_whitespace()).unwrap();
        let Command::Import(import) = args.command else { panic!("no import: {line}") };
        import
    }

    #[test]
    fn an_import_of_addresses_is_a_fetch_with_its_settings_and_one_of_files_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("quipu.toml");
        let text = "[fetch]\nkeep = \"kept\"\nblocks = \"7..8\"\n";
        std::fs::write(&config, text).unwrap();
        let line = "quipu import --data-dir d --blocks 1..2 https://a.example/x http://b.example";
        let fetch = fetch_args(&parse(line), Some(&config)).unwrap().unwrap();
        assert_eq!(fetch.from, ["https://a.example/x", "http://b.example"]);
        assert_eq!(fetch.data.data_dir, Some("d".into()));
        assert_eq!(fetch.keep, Some(folder.path().join("kept")));
        // What an import has a flag for is the import's.
        assert_eq!(fetch.selection.blocks, BlockRange::from_ends(1, 2));
        assert!(fetch_args(&parse("quipu import a.ere"), Some(&config)).unwrap().is_none());
    }
}
