//! `cargo xtask tidy`: house rules that no other tool checks. An ordinary test runs them too.
//!
//! They read files as text; a rule that needs Rust's grammar belongs into a lint.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

mod circles;
mod markdown;
mod marker;
mod paths;
mod source;

/// Folders that hold no text of ours, at any depth.
const SKIPPED: &[&str] = &[".git", "target", "artifacts", "corpus"];

/// One breach of a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    path: String,
    line: usize,
    message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Prints every problem of the repository; any is a failure.
pub fn run(root: &Path) -> Result<()> {
    let problems = find_problems(root)?;
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() { Ok(()) } else { bail!("{} breaches of house rules", problems.len()) }
}

/// Every breach of a rule in the repository at `root`, in order of path.
pub fn find_problems(root: &Path) -> Result<Vec<Problem>> {
    let mut paths = Vec::new();
    list_files(root, "", &mut paths)?;
    paths.sort_unstable();
    let mut problems = Vec::new();
    let mut sources = Vec::new();
    for path in &paths {
        let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
        let is_text = matches!(extension, Some("rs" | "md" | "toml" | "sh"));
        if !is_text {
            continue;
        }
        let text = fs::read_to_string(root.join(path)).with_context(|| path.clone())?;
        let mut report = |line, message| {
            problems.push(Problem { path: path.clone(), line, message });
        };
        marker::check(&text, &mut report);
        if extension == Some("rs") {
            source::check(path, &text, &mut report);
        }
        if extension == Some("md") {
            markdown::check(path, &text, &Checkout { root }, &mut report);
        }
        if extension == Some("rs") {
            sources.push((path.clone(), text));
        }
    }
    let mut report = |path: &str, message| {
        problems.push(Problem { path: path.to_owned(), line: 1, message });
    };
    circles::check(&sources, &mut report);
    Ok(problems)
}

/// The files on disk.
struct Checkout<'a> {
    root: &'a Path,
}

impl markdown::LinkTargets for Checkout<'_> {
    fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    fn document(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }
}

/// Lists files by their path from the root, with forward slashes.
fn list_files(root: &Path, folder: &str, paths: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder)).with_context(|| folder.to_owned())? {
        let entry = entry.with_context(|| folder.to_owned())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type().with_context(|| path.clone())?;
        if kind.is_file() {
            paths.push(path);
        } else if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            list_files(root, &path, paths)?;
        }
    }
    Ok(())
}
