//! Which crate may name which: the table of ARCHITECTURE.md, kept true.

use std::collections::BTreeSet;

use crate::graph::Graph;

/// Each crate with those it may depend on, for building and testing alike. A crate that is not
/// here does not exist; one that is here may not have been written yet.
const ALLOWED: &[(&str, &[&str])] = &[
    ("quipu-chain", &[]),
    ("quipu-proof", &[]),
    ("quipu-pool", &[]),
    ("quipu-sample", &["quipu-pool", "quipu-chain"]),
    ("quipu-archive", &["quipu-sample", "quipu-pool", "quipu-chain"]),
    ("quipu-segment", &["quipu-chain"]),
    ("quipu-store", &["quipu-testing", "quipu-segment", "quipu-chain"]),
    ("quipu-testing", &["quipu-store", "quipu-chain"]),
    ("quipu-node", &["quipu-chain"]),
    (
        "quipu-ingest",
        &[
            "quipu-node",
            "quipu-testing",
            "quipu-store",
            "quipu-archive",
            "quipu-sample",
            "quipu-pool",
            "quipu-segment",
            "quipu-chain",
        ],
    ),
    ("quipu-replica", &["quipu-testing", "quipu-store", "quipu-segment", "quipu-chain"]),
    ("quipu-rpc", &["quipu-testing", "quipu-store", "quipu-segment", "quipu-chain"]),
    (
        "quipu-cli",
        &[
            "quipu-rpc",
            "quipu-ingest",
            "quipu-node",
            "quipu-replica",
            "quipu-proof",
            "quipu-testing",
            "quipu-store",
            "quipu-archive",
            "quipu-sample",
            "quipu-pool",
            "quipu-segment",
            "quipu-chain",
        ],
    ),
    (
        "bench-store",
        &[
            "quipu-rpc",
            "quipu-ingest",
            "quipu-store",
            "quipu-archive",
            "quipu-sample",
            "quipu-pool",
            "quipu-segment",
            "quipu-chain",
        ],
    ),
    ("bench-serve", &["bench-store", "quipu-rpc", "quipu-store", "quipu-segment", "quipu-chain"]),
    ("e2e-hostile", &["bench-serve", "bench-store"]),
    ("xtask", &[]),
];

#[test]
fn arrows_between_our_crates_point_down_only() {
    let wrong = find_wrong_arrows(&Graph::of_this_workspace());
    assert!(wrong.is_empty(), "ARCHITECTURE.md does not draw: {}", wrong.join(", "));
}

#[test]
fn an_arrow_that_the_table_lacks_is_found() {
    check(
        "quipu-cli -> quipu-ingest quipu-chain\n quipu-ingest -> quipu-chain\n quipu-chain ->",
        &[],
    );
    check("quipu-ingest -> quipu-rpc\n quipu-rpc ->", &["quipu-ingest -> quipu-rpc"]);
    check("quipu-chain -> quipu-segment:dev\n quipu-segment ->", &["quipu-chain -> quipu-segment"]);
    check("quipu-chain -> xtask:build\n xtask ->", &["quipu-chain -> xtask"]);
    check("quipu-segment -> quipu-chain:dev\n quipu-chain ->", &[]);
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
