//! `cargo xtask fmt` reaches every crate of the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use xtask::fmt::OUTSIDE_MANIFESTS;

/// Manifests below a folder that begin a workspace of their own, by their path from `root`.
fn find_workspaces(root: &Path, folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["target", "node_modules"].contains(&&*name) && !name.starts_with('.')
        {
            find_workspaces(root, &path, found);
        } else if name == "Cargo.toml"
            && fs::read_to_string(&path).unwrap().lines().any(|line| line == "[workspace]")
        {
            found.insert(path.strip_prefix(root).unwrap().to_string_lossy().into_owned());
        }
    }
}

#[test]
fn every_workspace_beside_the_main_one_is_formatted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeSet::new();
    find_workspaces(root, root, &mut found);
    assert!(found.remove("Cargo.toml"), "the main workspace: {found:?}");
    assert_eq!(found, OUTSIDE_MANIFESTS.map(str::to_owned).into());
}
