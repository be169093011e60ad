//! The house rules, as an ordinary test.

use std::fs;
use std::path::Path;

use xtask::tidy::find_problems;

#[test]
fn the_repository_keeps_its_house_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let problems: Vec<String> =
        find_problems(root).unwrap().iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn a_repository_that_breaks_them_is_told_where() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("src/target")).unwrap();
    fs::write(root.path().join("src/utils.rs"), "mod a; \n").unwrap();
    fs::write(root.path().join("src/target/skipped.rs"), "mod a; \n").unwrap();
    fs::write(root.path().join("README.md"), "[a](gone.md)\n").unwrap();
    let places: Vec<String> = find_problems(root.path())
        .unwrap()
        .iter()
        .map(|problem| problem.to_string().split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(places, ["README.md:1:", "src/utils.rs:1:", "src/utils.rs:1:"]);
}
