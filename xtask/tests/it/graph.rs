//! The dependency graph as `cargo metadata` tells it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use xtask::step;

/// What `cargo metadata` printed.
pub(crate) struct Graph(Value);

impl Graph {
    /// The real graph of this workspace, with the features that are in force.
    pub(crate) fn of_this_workspace() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut metadata = step::cargo();
        metadata.current_dir(root).args(["metadata", "--format-version", "1", "--locked"]);
        // For this platform only: what other platforms need may not have been fetched, and a test
        // does not use the network.
        metadata.arg("--offline").arg("--filter-platform").arg(step::host().unwrap());
        let output = metadata.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self(serde_json::from_slice(&output.stdout).unwrap())
    }

    /// A made-up graph in the same form. Each line is `package -> dependency dependency`; a
    /// dependency may be followed by `:dev` or `:build`.
    pub(crate) fn made_up(lines: &str) -> Self {
        let mut nodes = Vec::new();
        let mut packages = Vec::new();
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (name, dependencies) = line.split_once("->").unwrap();
            let dependencies: Vec<(&str, Option<&str>)> = dependencies
                .split_whitespace()
                .map(|word| match word.split_once(':') {
                    Some((name, kind)) => (name, Some(kind)),
                    None => (word, None),
                })
                .collect();
            let name = name.trim();
            let deps: Vec<Value> = dependencies
                .iter()
                .map(|(name, kind)| serde_json::json!({"pkg": name, "dep_kinds": [{"kind": kind}]}))
                .collect();
            let declared: Vec<Value> = dependencies
                .iter()
                .map(|(name, kind)| serde_json::json!({"name": name, "kind": kind, "path": name}))
                .collect();
            nodes.push(serde_json::json!({"id": name, "deps": deps}));
            packages.push(serde_json::json!({"id": name, "name": name, "dependencies": declared}));
        }
        let members: Vec<&str> =
            packages.iter().filter_map(|package| package["id"].as_str()).collect();
        Self(serde_json::json!({
            "workspace_members": members,
            "packages": packages,
            "resolve": {"nodes": nodes},
        }))
    }

    /// The workspace's crates, each with those of its own folder tree that it names, for
    /// whatever purpose: building, testing or running.
    pub(crate) fn arrows(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let members: BTreeSet<&str> = list(&self.0["workspace_members"]).map(text).collect();
        list(&self.0["packages"])
            .filter(|package| members.contains(text(&package["id"])))
            .map(|package| {
                let ours = list(&package["dependencies"]).filter(|to| to["path"].is_string());
                (text(&package["name"]), ours.map(|to| text(&to["name"])).collect())
            })
            .collect()
    }

    /// Every package that ends up inside `name`, each with the way to it. Follows what is linked
    /// in, not what builds or tests it.
    pub(crate) fn linked_into(&self, name: &str) -> BTreeMap<&str, Vec<&str>> {
        let names: BTreeMap<&str, &str> = list(&self.0["packages"])
            .map(|package| (text(&package["id"]), text(&package["name"])))
            .collect();
        let nodes: BTreeMap<&str, &Value> =
            list(&self.0["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
        let start = names.iter().find(|(_, candidate)| **candidate == name);
        let mut ways = BTreeMap::new();
        let mut visited = BTreeSet::new();
        let mut pending: Vec<(&str, Vec<&str>)> =
            start.map(|(id, _)| (*id, Vec::new())).into_iter().collect();
        while let Some((id, way)) = pending.pop() {
            if !visited.insert(id) {
                continue;
            }
            let way: Vec<&str> = way.into_iter().chain([names[id]]).collect();
            for dependency in list(&nodes[id]["deps"]) {
                if list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null()) {
                    pending.push((text(&dependency["pkg"]), way.clone()));
                }
            }
            ways.insert(names[id], way);
        }
        ways
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("cargo metadata has a list here").iter()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("cargo metadata has a string here")
}
