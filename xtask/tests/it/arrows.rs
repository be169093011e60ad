//! Which crate may name which: the table of ARCHITECTURE.md, kept true.

use std::collections::BTreeSet;

use crate::graph::Graph;

/// Each crate with those it may depend on, for building and testing alike. A crate that is not
/// here does not exist; one that is here may not have been written yet.
const ALLOWED: &[(&str, &[&str])] = &[
    ("chain", &[]),
    ("segment", &["chain"]),
    ("store", &["segment", "chain"]),
    ("ingest", &["store", "segment", "chain"]),
    ("replica", &["store", "segment", "chain"]),
    ("rpc", &["store", "segment", "chain"]),
    ("cli", &["rpc", "ingest", "replica", "store", "segment", "chain"]),
    ("bench-store", &["ingest", "store", "segment", "chain"]),
    ("bench-serve", &["bench-store", "rpc", "store", "segment", "chain"]),
    ("xtask", &[]),
];

#[test]
fn arrows_between_our_crates_point_down_only() {
    let wrong = find_wrong_arrows(&Graph::of_this_workspace());
    assert!(wrong.is_empty(), "ARCHITECTURE.md does not draw: {}", wrong.join(", "));
}

#[test]
fn an_arrow_that_the_table_lacks_is_found() {
    check("cli -> ingest chain\n ingest -> chain\n chain ->", &[]);
    check("ingest -> rpc\n rpc ->", &["ingest -> rpc"]);
    check("chain -> segment:dev\n segment ->", &["chain -> segment"]);
    check("chain -> xtask:build\n xtask ->", &["chain -> xtask"]);
    check("segment -> chain:dev\n chain ->", &[]);
}

#[test]
fn a_crate_that_the_table_lacks_is_found() {
    check("shared ->", &["shared is not in the table"]);
}

fn check(graph: &str, expected: &[&str]) {
    assert_eq!(find_wrong_arrows(&Graph::made_up(graph)), expected);
}

fn find_wrong_arrows(graph: &Graph) -> Vec<String> {
    let mut wrong = Vec::new();
    for (from, dependencies) in graph.arrows() {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == from) else {
            wrong.push(format!("{from} is not in the table"));
            continue;
        };
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        for to in dependencies.difference(&allowed) {
            wrong.push(format!("{from} -> {to}"));
        }
    }
    wrong
}
