//! No circles: the modules of one parent, each with all that lies below it, depend on each other in
//! one direction.
//!
//! A module may name its parent and its children: they are one piece of work in several files. Names
//! that a module takes from another one through a re-export count as that other one's.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{code_of, named_paths, test_modules, used_paths};

/// How often a re-export of a re-export is followed.
const REEXPORTS_MAX: usize = 5;

/// A module's path inside its crate: empty for the root.
type ModulePath = Vec<String>;

/// The modules of one crate.
struct Crate {
    modules: BTreeMap<ModulePath, Module>,
}

struct Module {
    path: String,
    code: String,
    /// Names that a `use` brings, and where from.
    brought: BTreeMap<String, Vec<String>>,
}

/// Which module names which, among the children of one parent: the two, and one pair of files.
type Edges = BTreeMap<ModulePath, BTreeMap<ModulePath, (String, String)>>;

/// Reports every circle. `sources` are the Rust files of the repository, by path.
pub(super) fn check(sources: &[(String, String)], report: &mut impl FnMut(&str, String)) {
    let mut crates: BTreeMap<&str, Vec<&(String, String)>> = BTreeMap::new();
    for source in sources {
        if let Some((root, _)) = source.0.split_once("/src/") {
            crates.entry(root).or_default().push(source);
        }
    }
    for (root, sources) in crates {
        let edges = Crate::read(root, &sources).edges();
        for circle in find_circles(&edges) {
            let names = circle.iter().map(|module| module.join("::"));
            let mut steps = Vec::new();
            for (from, to) in circle.iter().zip(circle.iter().cycle().skip(1)) {
                if let Some((file, target)) = edges.get(from).and_then(|edges| edges.get(to)) {
                    steps.push(format!("{file} names {target}"));
                }
            }
            let names = names.collect::<Vec<_>>().join(" -> ");
            report(root, format!("circle of modules {names}: {}", steps.join(", ")));
        }
    }
}

impl Crate {
    fn read(root: &str, sources: &[&(String, String)]) -> Self {
        let mut modules = BTreeMap::new();
        let mut tests = Vec::new();
        for (path, text) in sources {
            let Some(module) = module_of(root, path) else { continue };
            let code = code_of(text);
            tests.extend(test_modules(text).into_iter().map(|name| child(&module, name)));
            let brought = used_paths(&code).into_iter().filter_map(|path| {
                let path: Vec<String> = path.into_iter().map(str::to_owned).collect();
                Some((path.last()?.clone(), path))
            });
            let brought = brought.collect();
            modules.insert(module, Module { path: path.clone(), code, brought });
        }
        modules.retain(|module: &ModulePath, _| !tests.iter().any(|test| module.starts_with(test)));
        Self { modules }
    }

    fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (from, module) in &self.modules {
            for path in named_paths(&module.code) {
                let path: Vec<String> = path.into_iter().map(str::to_owned).collect();
                let Some(to) = self.resolve(from, &path, 0) else { continue };
                let shared = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
                let side = |of: &ModulePath| of.get(..=shared).map(<[String]>::to_vec);
                if let (Some(own), Some(other)) = (side(from), side(&to))
                    && let Some(target) = self.modules.get(&to)
                {
                    let files = (module.path.clone(), target.path.clone());
                    edges.entry(own).or_default().entry(other).or_insert(files);
                }
            }
        }
        edges
    }

    /// The module in which the last name of a path is defined, as far as that can be told.
    fn resolve(&self, from: &ModulePath, path: &[String], depth: usize) -> Option<ModulePath> {
        let mut module = from.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                module.clear();
                rest = rest.get(1..)?;
            }
            "self" => rest = rest.get(1..)?,
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    module.pop();
                    rest = rest.get(1..)?;
                }
            }
            name => {
                self.modules.get(&child(from, name))?;
            }
        }
        for name in rest {
            let deeper = child(&module, name);
            if self.modules.contains_key(&deeper) {
                module = deeper;
                continue;
            }
            let brought = self.modules.get(&module).and_then(|it| it.brought.get(name));
            let brought = brought.filter(|path| depth < REEXPORTS_MAX && *path != rest);
            let origin = brought.and_then(|path| self.resolve(&module, path, depth + 1));
            return Some(origin.unwrap_or(module));
        }
        Some(module)
    }
}

fn child(module: &[String], name: &str) -> ModulePath {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// The module that a file is; `None` if it is none of the library or the program.
fn module_of(root: &str, path: &str) -> Option<ModulePath> {
    let inside = path.strip_prefix(root)?.strip_prefix("/src/")?.strip_suffix(".rs")?;
    let mut parts: Vec<String> = inside.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|name| name == "mod") {
        parts.pop();
    }
    match inside {
        "lib" | "main" => Some(Vec::new()),
        _ if parts.first().is_some_and(|name| name == "bin") => None,
        _ => Some(parts),
    }
}

/// One shortest circle for every set of modules that can all reach each other.
fn find_circles(edges: &Edges) -> Vec<Vec<ModulePath>> {
    let mut circles: Vec<Vec<ModulePath>> = Vec::new();
    let mut told = BTreeSet::new();
    for module in edges.keys() {
        if told.contains(module) {
            continue;
        }
        if let Some(circle) = shortest_circle(edges, module) {
            told.extend(circle.iter().cloned());
            circles.push(circle);
        }
    }
    circles
}

/// A shortest way from a module back to itself.
fn shortest_circle(edges: &Edges, start: &ModulePath) -> Option<Vec<ModulePath>> {
    let mut reached = BTreeSet::new();
    let mut ways = vec![vec![start.clone()]];
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let next = way.last().and_then(|module| edges.get(module)).into_iter();
            for module in next.flat_map(BTreeMap::keys) {
                if module == start {
                    return Some(way);
                }
                if reached.insert(module.clone()) {
                    longer.push(way.iter().cloned().chain([module.clone()]).collect());
                }
            }
        }
        ways = longer;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let source =
            |(path, text): &(&str, &str)| (format!("crates/x/src/{path}"), (*text).to_owned());
        let mut found = Vec::new();
        let sources: Vec<_> = files.iter().map(source).collect();
        check(&sources, &mut |root, message| found.push(format!("{root}: {message}")));
        found
    }

    #[test]
    fn two_modules_that_name_each_other_are_a_circle() {
        let found = circles(&[
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "fn b() { crate::a::a() }"),
            ("c.rs", "use crate::b::B;"),
        ]);
        assert_eq!(
            found,
            ["crates/x: circle of modules a -> b: crates/x/src/a.rs names crates/x/src/b.rs, \
              crates/x/src/b.rs names crates/x/src/a.rs"]
        );
    }

    #[test]
    fn what_lies_below_a_module_counts_as_it() {
        let found = circles(&[
            ("a.rs", "mod deep;"),
            ("a/deep.rs", "use crate::b::B;"),
            ("b.rs", "use crate::a::A;"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        let found = circles(&[
            ("a.rs", ""),
            ("a/one.rs", "use super::two::Two;"),
            ("a/two.rs", "use super::one::One;"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn a_re_export_is_followed_to_the_module_that_has_the_name() {
        let found = circles(&[
            ("lib.rs", "mod a;\nmod b;\npub use b::B;"),
            ("a.rs", "use crate::B;"),
            ("b.rs", "use crate::a::A;"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn parents_children_tests_and_other_orders_are_no_circle() {
        let found = circles(&[
            ("a.rs", "mod deep;\nuse deep::D;\n#[cfg(test)]\nmod play;"),
            ("a/deep.rs", "use super::A;\nuse crate::b::B;"),
            ("a/play.rs", "use crate::c::C;"),
            ("b.rs", "struct B;\n\n#[cfg(test)]\nmod tests {\n    use crate::c::C;\n}"),
            ("c.rs", "use crate::{a::A, b::B};"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
