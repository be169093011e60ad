//! Configuration: limits that are set reach the server.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use serde_json::json;

use crate::harness::run::{command, ran, text};
use crate::harness::served::Served;
use crate::harness::stores::data_folder;

const ASKED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;

#[test]
fn limits_of_the_file_and_of_flags_are_those_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quipu.toml");
    fs::write(&file, "[limits]\nbatch_items_max = 2\nbody_bytes_max = \"1KiB\"\n").unwrap();
    let batch = |count: usize| format!("[{}]", vec![ASKED; count].join(","));
    let served = Served::start(&data_folder("sample"), &["--config", text(&file)]);
    assert_eq!(served.post(&batch(2)).json().as_array().unwrap().len(), 2);
    let refused = served.post(&batch(3)).json();
    assert!(refused.to_string().contains("-32"), "{refused}");
    let long = format!("{}{}", " ".repeat(1100), ASKED);
    assert_eq!(served.post(&long).status, 413);
    // A flag is stronger.
    let args = ["--config", text(&file), "--batch-items-max", "3", "--body-bytes-max", "2KiB"];
    let served = Served::start(&data_folder("sample"), &args);
    assert_eq!(served.post(&batch(3)).json().as_array().unwrap().len(), 3);
    assert_eq!(served.post(&long).json()["result"], json!("0x3ff"));
}

/// A file that is not read would leave a server without keys, rates and TLS.
#[test]
fn no_word_on_the_command_line_keeps_the_file_from_being_read() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = "[server]\nzebra = 1\n";
    for name in ["help", "completions"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("quipu.toml"), wrong).unwrap();
    }
    fs::write(folder.path().join("demo"), wrong).unwrap();
    for args in [
        &["serve", "--data-dir", "help"][..],
        &["serve", "--data-dir", "help", "--cache-dir", "help"],
        &["serve", "--data-dir", "help", "--allowed-host", "completions"],
        &["import", "--data-dir", "help", "help"],
        &["stat", "--data-dir", "completions"],
        &["--config", "help/quipu.toml", "stat"],
        &["--config=completions/quipu.toml", "serve"],
        &["--config", "demo", "serve"],
        &["config", "check", "--data-dir", "help"],
        &["config", "dump", "--data-dir", "help"],
    ] {
        let ran = ran(command(args).current_dir(folder.path())).ends_with(2);
        assert!(ran.err.contains("there is no key server.zebra"), "{args:?}: {}", ran.err);
    }
    // Help is shown whatever the file says.
    for args in [&["help", "serve"][..], &["serve", "--data-dir", "help", "-h"]] {
        ran(command(args).current_dir(folder.path())).ends_with(0);
    }
}

#[test]
fn what_has_the_name_of_the_file_is_read_or_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quipu.toml");
    let check = |expected: &str| {
        for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["stat"], &["config", "check"]] {
            let mut command = command(args);
            let ran = ran(command.env("QUIPU_DATA_DIR", folder.path())).ends_with(2);
            assert!(ran.err.contains(expected), "{args:?}: {}", ran.err);
            assert!(ran.err.contains(text(&path)), "{args:?}: {}", ran.err);
        }
    };
    symlink(folder.path().join("nowhere"), &path).unwrap();
    check("a symbolic link to a file that cannot be found");
    fs::remove_file(&path).unwrap();
    symlink(&path, &path).unwrap();
    check("a symbolic link to a file that cannot be found");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    check("not a regular file");
    fs::remove_dir(&path).unwrap();
    let _socket = UnixListener::bind(&path).unwrap();
    check("not a regular file");
}

/// A folder that is not mounted, or a wrong name, was one without settings: no keys, no TLS.
#[test]
fn a_data_folder_that_cannot_be_looked_into_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    symlink(at("nowhere"), at("dangling")).unwrap();
    fs::write(at("file"), "").unwrap();
    for (name, expected) in [
        ("dangling", "dangling is a symbolic link to nothing"),
        ("dangling/data", "dangling is a symbolic link to nothing"),
        ("file", "this is not a folder"),
    ] {
        for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["stat"], &["config", "check"]] {
            let mut command = command(args);
            let ran = ran(command.env("QUIPU_DATA_DIR", at(name))).ends_with(2);
            assert!(ran.err.contains(expected), "{args:?}: {}", ran.err);
            assert!(ran.err.contains(text(&at(name))), "{args:?}: {}", ran.err);
        }
    }
    // One that is not there has none, and a link to a folder is as good as the folder.
    symlink(folder.path(), at("link")).unwrap();
    for name in ["nowhere", "nowhere/data", "link"] {
        ran(command(&["config", "check"]).env("QUIPU_DATA_DIR", at(name))).ends_with(0);
    }
}

/// They kept others out, and were passed over without a word.
#[test]
fn variables_that_are_no_settings_any_more_are_refused_and_unknown_ones_told() {
    for (name, expected) in [
        ("QUIPU_HOST", "QUIPU_HOST does nothing: QUIPU_ALLOWED_HOST takes its place"),
        ("QUIPU_JWT_SECRET_FILE", "API keys of quipu.toml"),
        ("QUIPU_JWT_PUBLIC_KEY_FILE", "API keys of quipu.toml"),
    ] {
        for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["config", "check"]] {
            let ran = ran(command(args).env(name, "a")).ends_with(2);
            assert!(ran.err.contains(expected), "{args:?}: {}", ran.err);
        }
        ran(command(&["completions", "bash"]).env(name, "a")).ends_with(0);
    }
    // It ends because there is no data folder.
    let mut serve = command(&["serve", "--listen", "127.0.0.1:0", "--data-dir", "/nonexistent"]);
    let ran = ran(serve.env("QUIPU_REQUIRE_KY", "always").env("QUIPU_HOST", "")).ends_with(1);
    let expected =
        "QUIPU_REQUIRE_KY is no setting and does nothing; did you mean QUIPU_REQUIRE_KEY?";
    assert!(ran.err.contains(expected), "{}", ran.err);
    assert!(!ran.err.contains("QUIPU_HOST"), "{}", ran.err);
}
