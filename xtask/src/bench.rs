//! `cargo xtask bench`: the benchmarks of the workspace.
//!
//! `store`, `serve`, `compare`, `follow`, `fetch`, `bucket`, `proofs`, `hostile` and `soak` are programs
//! that print tables; without a name, every crate's own benchmarks run.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::libclang;
use crate::step::{cargo, script, succeed, target};
use crate::tools::{self, Packaged};

/// The crates that have benchmarks of their own.
const CRATES: &[&str] = &["quipu-ingest", "quipu-segment"];

/// What `serve` starts: the limit, two load generators, and what makes certificates.
const SERVE_PACKAGES: &[Packaged] = &[
    Packaged { program: "nginx", package: "nginx-light" },
    Packaged { program: "wrk", package: "wrk" },
    Packaged { program: "h2load", package: "nghttp2-client" },
    Packaged { program: "openssl", package: "openssl" },
];
/// The third. Pinned, so that a new release cannot fail an old commit.
const OHA_VERSION: &str = "1.16.0";

/// What `bucket` starts.
const BUCKET_PACKAGES: &[Packaged] = &[Packaged { program: "wrk", package: "wrk" }];

/// Nodes that `serve` compares with and follows, and the questions that need them.
const NODES: &[&str] = &["anvil", "geth"];
const NODE_QUESTIONS: &[&str] = &["rivals", "reorgs"];

/// Runs what the first argument names, or every crate's benchmarks; other arguments are passed on.
pub fn run(root: &Path, arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((name, rest)) if name == "store" => {
            succeed(program(root, &["--package", "bench-store"]).args(rest))
        }
        Some((name, rest)) if name == "serve" => serve(root, rest),
        // A workspace of its own, which alone links rivals.
        Some((name, rest)) if name == "compare" => {
            let mut compare = program(root, &["--manifest-path", "bench/compare/Cargo.toml"]);
            libclang::provide(root, &mut compare)?;
            succeed(compare.args(rest))
        }
        // Needs a real node, which a script provides.
        Some((name, rest)) if name == "follow" => {
            succeed(script(root, "bench/follow/run").args(rest))
        }
        // Needs nginx, which a script provides.
        Some((name, rest)) if name == "fetch" => {
            succeed(script(root, "bench/fetch/run").args(rest))
        }
        Some((name, rest)) if name == "proofs" => {
            succeed(script(root, "bench/proofs/run").args(rest))
        }
        // Needs a web server, which a script provides, a load generator, and a program that draws.
        Some((name, rest)) if name == "bucket" => {
            tools::provide_packages(BUCKET_PACKAGES)?;
            build_with_server(root, "bench-serve")?;
            succeed(script(root, "bench/bucket/run").args(rest))
        }
        // Needs a real node too, and a program that draws.
        Some((name, rest)) if name == "soak" => {
            build_with_server(root, "bench-serve")?;
            succeed(script(root, "bench/soak/run").args(rest))
        }
        Some((name, rest)) if name == "hostile" => {
            build_with_server(root, "e2e-hostile")?;
            let hostile = target(root).join("dist/e2e-hostile");
            succeed(Command::new(hostile).current_dir(root).args(rest))
        }
        _ => run_crates(root, arguments),
    }
}

/// The binary as it ships is served, and driven by load generators that are installed where they miss.
fn serve(root: &Path, arguments: &[String]) -> Result<()> {
    tools::provide_packages(SERVE_PACKAGES)?;
    tools::provide_crate(root, "oha", OHA_VERSION, &[])?;
    if wants_nodes(arguments) {
        for node in NODES {
            // What needs it is left out, and says so.
            if let Err(error) = tools::provide_node(root, node) {
                println!("{error:#}");
            }
        }
    }
    build_with_server(root, "bench-serve")?;
    let mut serve = Command::new(target(root).join("dist/bench-serve"));
    serve.current_dir(root).env("PATH", tools::search_path(root)?);
    succeed(serve.args(arguments))
}

/// Builds the binary as it ships, and what drives it.
fn build_with_server(root: &Path, package: &str) -> Result<()> {
    // Built together: apart, their dependencies would be built twice, with other features.
    let mut build = cargo();
    build.current_dir(root).args(["build", "--profile", "dist", "--locked", "--quiet"]);
    succeed(build.args(["--package", "quipu-cli", "--package", package]))
}

/// Whether anything is asked for that needs a node: all is, unless questions are named.
fn wants_nodes(arguments: &[String]) -> bool {
    let is_asked = |it: &String| NODE_QUESTIONS.contains(&it.as_str());
    !arguments.iter().any(|it| it == "--only") || arguments.iter().any(is_asked)
}

/// Builds a program and runs it, with what is added as its arguments.
fn program(root: &Path, which: &[&str]) -> Command {
    let mut program = cargo();
    program.current_dir(root).args(["run", "--profile", "dist", "--locked", "--quiet"]);
    program.args(which).arg("--");
    program
}

fn run_crates(root: &Path, arguments: &[String]) -> Result<()> {
    for name in CRATES {
        let mut bench = cargo();
        bench.current_dir(root).args([
            "bench",
            "--locked",
            "--package",
            name,
            "--bench",
            "*",
            "--",
        ]);
        succeed(bench.args(arguments))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_wanted_for_what_needs_them() {
        for (arguments, expected) in [
            ("", true),
            ("--rounds 2", true),
            ("--only hot-block", false),
            ("--only hot-block --only reorgs", true),
        ] {
            let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
            assert_eq!(wants_nodes(&arguments), expected, "{arguments:?}");
        }
    }
}
