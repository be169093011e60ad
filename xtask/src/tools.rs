//! Programs of others that tasks run: found, or installed.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::step::{cargo, script, succeed};

/// Where administrators' programs lie that a user's search path may lack.
const ADMIN_FOLDERS: &[&str] = &["/usr/sbin", "/usr/local/sbin", "/sbin"];

/// A program, and the Debian package that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packaged {
    /// What is started.
    pub program: &'static str,
    /// What is installed.
    pub package: &'static str,
}

/// Sees that the programs are there, after installing the packages of those that are not.
pub fn provide_packages(wanted: &[Packaged]) -> Result<()> {
    let missing: Vec<&str> =
        wanted.iter().filter(|it| find(it.program).is_none()).map(|it| it.package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    println!("installing {names}");
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(&missing);
    succeed(&mut install).with_context(|| format!("install them yourself: {names}"))?;
    match wanted.iter().find(|it| find(it.program).is_none()) {
        None => Ok(()),
        Some(it) => bail!("the package {} has no {}", it.package, it.program),
    }
}

/// A program of this version, ours or the one on the search path; where there is none it is built
/// into `target/tools`.
pub fn provide_crate(root: &Path, name: &str, version: &str, options: &[&str]) -> Result<PathBuf> {
    let program = folder(root).join("bin").join(name);
    let candidates = [program.clone(), PathBuf::from(name)];
    if let Some(found) = candidates.into_iter().find(|it| has_version(it, version)) {
        return Ok(found);
    }
    println!("installing {name} {version} into target/tools");
    let mut install = cargo();
    install.args(["install", name, "--version", version, "--locked", "--quiet", "--root"]);
    install.arg(folder(root)).args(options);
    succeed(&mut install).with_context(|| format!("cannot install {name}"))?;
    Ok(program)
}

/// Sees that a node that others made is there, as the end-to-end checks pin it.
pub fn provide_node(root: &Path, name: &str) -> Result<()> {
    let mut install = script(root, "e2e/install");
    succeed(install.arg(name).arg(folder(root))).with_context(|| format!("cannot install {name}"))
}

/// The search path with ours first, and with what only administrators' have last.
pub fn search_path(root: &Path) -> Result<OsString> {
    let given = env::var_os("PATH").unwrap_or_default();
    let ours = [folder(root).join("bin")];
    let folders = ours.into_iter().chain(env::split_paths(&given));
    let folders = folders.chain(ADMIN_FOLDERS.iter().map(PathBuf::from));
    env::join_paths(folders).context("the search path")
}

/// Where ours are kept.
#[must_use]
pub fn folder(root: &Path) -> PathBuf {
    root.join("target/tools")
}

/// A program on the search path, or where administrators keep theirs.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let given = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&given).chain(ADMIN_FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Whether a program is there and says that it is of this version.
#[must_use]
pub fn has_version(program: &Path, version: &str) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| {
        let said = String::from_utf8_lossy(&output.stdout);
        said.split_whitespace().any(|word| word == version)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_told_by_version() {
        let program = find("rustc").unwrap();
        let output = Command::new(&program).arg("--version").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let version = said.split_whitespace().nth(1).unwrap();
        assert!(has_version(&program, version));
        assert!(!has_version(&program, "0.0.0"));
        assert!(!has_version(Path::new("no-such-program"), version));
        assert_eq!(find("no-such-program"), None);
    }
}
