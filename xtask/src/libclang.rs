//! libclang, with which the bindings of `RocksDB` are made from its headers: found, or installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::step::succeed;

/// Read by bindgen: the folder of the library, and more arguments for it.
const PATH: &str = "LIBCLANG_PATH";
const ARGUMENTS: &str = "BINDGEN_EXTRA_CLANG_ARGS";

/// Pinned, so that a new release cannot fail an old commit.
const PACKAGE: &str = "libclang==18.1.1";
/// Where the package keeps the library.
const PACKAGE_FOLDER: &str = "clang/native";

/// Where systems keep libraries, directly or one or two folders below.
const SYSTEM_FOLDERS: &[&str] = &["/usr/lib", "/usr/lib64", "/usr/local/lib"];

const REMEDY: &str = "RocksDB's bindings need libclang: install it (Debian: libclang-dev), or set \
                      LIBCLANG_PATH to the folder that has it";

/// Lets a build find libclang, after installing it under `target/tools` where there is none.
/// What is set is the same in every run: whatever changes here builds all that is bound anew.
pub fn provide(root: &Path, build: &mut Command) -> Result<()> {
    if env::var_os(PATH).is_none() && !is_in_system() {
        build.env(PATH, find_own(root).map_or_else(|| install(root), Ok).context(REMEDY)?);
    }
    // A libclang without a clang has no headers of its own, such as stdbool.h; the C compiler's do
    // as well. They come last: where clang's own are there, those count.
    if env::var_os(ARGUMENTS).is_none()
        && let Some(headers) = find_headers()
    {
        build.env(ARGUMENTS, format!("-idirafter {}", headers.display()));
    }
    Ok(())
}

fn is_in_system() -> bool {
    let near = SYSTEM_FOLDERS.iter().flat_map(|folder| {
        let below = list(Path::new(folder));
        let lowest = below.iter().map(|folder| folder.join("lib")).collect::<Vec<_>>();
        [PathBuf::from(folder)].into_iter().chain(below).chain(lowest)
    });
    near.into_iter().any(|folder| has_library(&folder))
}

fn find_own(root: &Path) -> Option<PathBuf> {
    let folder = tools(root).join(PACKAGE_FOLDER);
    has_library(&folder).then_some(folder)
}

fn install(root: &Path) -> Result<PathBuf> {
    println!("installing {PACKAGE} into target/tools");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]);
    succeed(pip.arg(tools(root)).arg(PACKAGE))
        .with_context(|| format!("cannot install {PACKAGE}"))?;
    let Some(folder) = find_own(root) else { bail!("{PACKAGE} has no {PACKAGE_FOLDER}") };
    Ok(folder)
}

/// The headers that the C compiler brings itself.
fn find_headers() -> Option<PathBuf> {
    let output = Command::new("cc").arg("-print-file-name=include").output().ok()?;
    let folder = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    // A compiler that has none repeats the question.
    folder.is_absolute().then_some(folder)
}

fn has_library(folder: &Path) -> bool {
    list(folder)
        .iter()
        .any(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_library_name))
}

/// `libclang.so`, `libclang-14.so.1`, `libclang.dylib`, but not `libclang-cpp.so.14`.
fn is_library_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("libclang") else { return false };
    let version = |it: char| it.is_ascii_digit() || it == '.' || it == '-';
    let rest = rest.trim_start_matches(version);
    rest.starts_with("so") || rest == "dylib"
}

/// What a folder holds; nothing where there is no folder.
fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn tools(root: &Path) -> PathBuf {
    root.join("target/tools/libclang")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_told_from_its_neighbours_by_name() {
        for name in ["libclang.so", "libclang.so.1", "libclang-14.so.1", "libclang-18.1.so"] {
            assert!(is_library_name(name), "{name}");
        }
        for name in ["libclang-cpp.so.14", "libclangAST.a", "libclang.a", "liblldb.so"] {
            assert!(!is_library_name(name), "{name}");
        }
    }
}
