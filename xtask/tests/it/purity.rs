//! `chain`, `segment` and `proof` are pure: nothing that waits, listens or fetches is linked into them.
//! `proof` shares no code with what it verifies.

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
