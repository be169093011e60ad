//! The server that a fetch goes on as.
//!
//! Knows: which of a fetch's arguments it gets, and where the others come from.
//! Never knows: how it serves.

use std::ffi::OsString;
use std::path::Path;

use anyhow::anyhow;

use crate::Failure;
use crate::args::Command;
use crate::args::fetch::FetchArgs;
use crate::args::serve::ServeArgs;
use crate::config::parse_inner;

/// The arguments of the server, if one shall go on: its other settings are by `config`, the
/// environment or default. What can be found wrong with them without asking anybody is found here, not
/// after hours of download.
pub(super) fn serve_args(
    args: &FetchArgs,
    config: Option<&Path>,
) -> Result<Option<ServeArgs>, Failure> {
    if !args.then_follow {
        return Ok(None);
    }
    if args.upstream.upstreams.is_empty() {
        return Err(Failure::Usage(anyhow!("--then-follow needs a node: give --upstream URL")));
    }
    // Their addresses, and how many must agree.
    drop(args.upstream.unknown_nodes()?);
    let mut typed: Vec<OsString> = vec!["quipu".into(), "serve".into()];
    let listen = args.listen.as_ref().map(|listen| listen.to_string().into());
    for (flag, value) in [
        ("--config", config.map(|path| path.as_os_str().to_owned())),
        ("--data-dir", args.data.data_dir.as_ref().map(|path| path.as_os_str().to_owned())),
        ("--listen", listen),
    ] {
        typed.extend(value.into_iter().flat_map(|value| [flag.into(), value]));
    }
    let Command::Serve(mut serve) = parse_inner(&typed)?.command else { return Ok(None) };
    serve.follow.upstream.clone_from(&args.upstream);
    serve.follow.chain.clone_from(&args.chain);
    serve.check()?;
    Ok(Some(*serve))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Args;

    fn parse(line: &str) -> Args {
        Args::try_parse_from(line.split_whitespace()).unwrap()
    }

    #[test]
    fn the_server_that_goes_on_has_the_same_folder_chain_and_nodes() {
        let line = "quipu fetch --from http://a.example --data-dir d --network sepolia --then-follow \
                    --upstream ws://n.example --quorum 1 --listen 127.0.0.1:7";
        let Command::Fetch(fetch) = parse(line).command else { panic!("no fetch") };
        let serve = serve_args(&fetch, None).unwrap().unwrap();
        assert_eq!(serve.data.data_dir, Some("d".into()));
        assert_eq!(serve.follow.chain.network.as_deref(), Some("sepolia"));
        assert_eq!(serve.follow.upstream.upstreams, ["ws://n.example"]);
        assert_eq!(serve.listen.to_string(), "127.0.0.1:7");
        let Command::Fetch(fetch) = parse("quipu fetch --from http://a.example").command else {
            panic!("no fetch")
        };
        assert!(serve_args(&fetch, None).unwrap().is_none());
    }
}
