//! `chain`, `segment` and `proof` are pure: nothing that waits, listens or fetches is linked into them.
//! `proof` shares no code with what it verifies. The binary contains no test double.

use std::path::Path;

use xtask::step;

use crate::graph::Graph;

const PURE: &[&str] = &["quipu-chain", "quipu-segment", "quipu-proof"];

/// Async runtimes, the network and object stores. Bare vocabulary such as `futures-core` is not
/// here: it cannot wait for anything by itself.
const FORBIDDEN: &[&str] = &[
    "async-std",
    "axum",
    "futures-executor",
    "h2",
    "http",
    "hyper",
    "jsonrpsee",
    "mio",
    "object_store",
    "openssl",
    "reqwest",
    "rustls",
    "smol",
    "socket2",
    "tokio",
];

#[test]
fn the_pure_crates_link_no_runtime_and_no_network() {
    let graph = Graph::of_this_workspace();
    let members = graph.arrows();
    let written: Vec<&str> =
        PURE.iter().copied().filter(|name| members.contains_key(name)).collect();
    assert!(written.contains(&"quipu-chain"), "chain has left the workspace");
    for name in written {
        let found = find_forbidden(&graph, name);
        assert!(found.is_empty(), "{name} must stay pure, but: {}", found.join("; "));
    }
}

#[test]
fn the_binary_links_no_test_double() {
    let graph = Graph::of_this_workspace();
    let linked = graph.linked_into("quipu-cli");
    assert!(linked.contains_key("quipu-store"), "{linked:?}");
    assert!(!linked.contains_key("quipu-testing"), "{:?}", linked.get("quipu-testing"));
}

/// A mistake of the server's libraries must not be repeated by whoever checks the server.
#[test]
fn the_verifier_of_proofs_shares_no_code_with_the_server() {
    let graph = Graph::of_this_workspace();
    let linked = graph.linked_into("quipu-proof");
    let is_shared = |name: &&&str| {
        let is_ours = name.starts_with("quipu-") && **name != "quipu-proof";
        is_ours || name.starts_with("alloy") || name.starts_with("serde")
    };
    assert!(linked.contains_key("sha3"), "it hashes");
    let found: Vec<&&str> = linked.keys().filter(is_shared).collect();
    assert!(found.is_empty(), "quipu-proof links {found:?}");
}

/// It is `no_std` itself, and asks for no crate that is not. By itself: what other crates of the workspace
/// ask for is in force for a build of all.
#[test]
fn the_verifier_of_proofs_needs_no_standard_library() {
    let mut tree = step::cargo();
    tree.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    tree.args(["tree", "--offline", "--locked", "--package", "quipu-proof", "--prefix", "none"]);
    let output = tree.args(["--edges", "normal,features"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let features = String::from_utf8(output.stdout).unwrap();
    assert!(features.contains("sha3 v"), "{features}");
    let with_std: Vec<&str> =
        features.lines().filter(|it| it.contains("feature \"std\"")).collect();
    assert!(with_std.is_empty(), "quipu-proof asks for std by {with_std:?}");
}

#[test]
fn a_forbidden_crate_is_found_with_the_way_to_it() {
    let graph = "chain -> trie serde\n trie -> client\n client -> tokio\n tokio ->\n serde ->";
    check(graph, &["chain -> trie -> client -> tokio"]);
}

#[test]
fn what_only_builds_or_tests_a_crate_is_not_linked_into_it() {
    check(
        "chain -> tokio:dev hyper:build trie\n trie -> mio:dev\n tokio ->\n hyper ->\n mio ->",
        &[],
    );
}

fn check(graph: &str, expected: &[&str]) {
    assert_eq!(find_forbidden(&Graph::made_up(graph), "chain"), expected);
}

fn find_forbidden(graph: &Graph, name: &str) -> Vec<String> {
    let linked = graph.linked_into(name);
    let forbidden = linked.iter().filter(|(package, _)| FORBIDDEN.contains(package));
    forbidden.map(|(_, way)| way.join(" -> ")).collect()
}
