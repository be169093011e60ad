//! docs/api.md against the program: its examples are replayed, and what it rests on is there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::golden;
use crate::harness::served::Served;
use crate::harness::stores;

fn document() -> String {
    read("api.md")
}

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(path).unwrap()
}

/// A block of JSON, the store that is meant, and its line.
struct Example {
    store: String,
    json: Value,
    line: usize,
}

/// The blocks of JSON, in order. A comment names the store of the next two.
fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut store = "sample".to_owned();
    let mut block: Option<(usize, String)> = None;
    for (line, number) in text.lines().zip(1..) {
        if let Some(name) = line.strip_prefix("<!-- store: ") {
            name.trim_end_matches(" -->").clone_into(&mut store);
        } else if line == "```json" {
            block = Some((number, String::new()));
        } else if line == "```" {
            let Some((line, json)) = block.take() else { continue };
            let json = serde_json::from_str(&json).unwrap_or_else(|error| {
                panic!("docs/api.md:{line}: {error}");
            });
            examples.push(Example { store: store.clone(), json, line });
            if examples.len().is_multiple_of(2) {
                "sample".clone_into(&mut store);
            }
        } else if let Some((_, json)) = &mut block {
            json.push_str(line);
            json.push('\n');
        }
    }
    examples
}

#[test]
fn every_example_of_the_api_document_is_answered_as_it_says() {
    let mut servers: BTreeMap<String, Served> = BTreeMap::new();
    let examples = examples(&document());
    assert!(examples.len() >= 20, "{} blocks of JSON", examples.len());
    for pair in examples.chunks(2) {
        let [request, expected] = pair else { panic!("a request without an answer") };
        assert!(request.json.get("method").is_some(), "docs/api.md:{}", request.line);
        let served = servers
            .entry(request.store.clone())
            .or_insert_with(|| stores::serve(&request.store, &[]));
        let found = served.post(&request.json.to_string()).json();
        assert_eq!(found, expected.json, "docs/api.md:{}", expected.line);
    }
}

#[test]
fn every_golden_file_and_test_that_a_document_names_is_there() {
    for (document, count_min) in [("api.md", 100), ("security.md", 30)] {
        let count = check_names(document);
        assert!(count > count_min, "docs/{document}: {count} names");
    }
}

/// Looks for every golden file and test that a document names, and counts them.
fn check_names(document: &str) -> u32 {
    let names = golden::names();
    let mut count = 0;
    for (line, number) in read(document).lines().zip(1..) {
        for code in line.split('`').skip(1).step_by(2) {
            let is_there = match code.split_once(':') {
                Some(("golden", name)) if name.contains('/') => {
                    names.contains(&format!("{name}.io"))
                }
                Some(("test", place)) if place.contains("::") => golden::is_test(place),
                _ => continue,
            };
            // The first lines say what such names look like.
            let is_there = is_there || ["golden:area/name", "test:path::name"].contains(&code);
            assert!(is_there, "docs/{document}:{number}: there is no {code}");
            count += 1;
        }
    }
    count
}

/// Whatever is left open elsewhere has its heading here.
#[test]
fn the_api_document_has_the_nine_parts_and_every_served_method() {
    let text = document();
    let parts = [
        "1. What the service does",
        "2. Resources and their fields",
        "3. States and transitions",
        "4. Endpoints",
        "5. Authentication",
        "6. Events",
        "7. Errors",
        "8. Limits",
        "9. Versioning",
    ];
    let found: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(found, parts);
    let openrpc = stores::serve("empty", &[]).get("/openrpc.json").json();
    for method in openrpc["methods"].as_array().unwrap() {
        let name = method["name"].as_str().unwrap();
        let is_named = text.contains(&format!("`{name}`")) || text.contains(&format!(" {name}\n"));
        assert!(is_named, "{name} is served and not described");
    }
}
