//! What is made from the command line itself: manual pages, completions, and the version.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::harness::run::{command, quipu, quipu_unread, ran, text};

/// The commands that `quipu --help` lists.
fn commands() -> Vec<String> {
    let help = quipu(&["--help"]).ends_with(0).out;
    let (_, listed) = help.split_once("\nCommands:\n").unwrap();
    let (listed, _) = listed.split_once("\n\n").unwrap();
    let names = listed.lines().filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with(' ')).filter_map(|it| it.split(' ').next());
    names.filter(|name| *name != "help").map(ToOwned::to_owned).collect()
}

#[test]
fn every_command_has_a_manual_page() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("share/man/man1");
    let said = quipu(&["man", "--to", text(&folder)]).ends_with(0).out;
    let commands = commands();
    assert!(commands.len() > 15, "{commands:?}");
    for name in &commands {
        let page = fs::read_to_string(folder.join(format!("quipu-{name}.1"))).unwrap();
        // There a hyphen that is no word break is written so.
        assert!(page.replace("\\-", "-").contains(&format!("quipu {name}")), "{page}");
    }
    let count = fs::read_dir(&folder).unwrap().count();
    assert!(count > commands.len() && folder.join("quipu.1").is_file());
    assert_eq!(said, format!("{count} pages in {}\n", folder.display()));
    // Another time it writes the same.
    let serve = fs::read(folder.join("quipu-serve.1")).unwrap();
    quipu(&["man", "--to", text(&folder)]).ends_with(0);
    assert_eq!(fs::read(folder.join("quipu-serve.1")).unwrap(), serve);
}

#[test]
fn every_shell_gets_completions_of_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = quipu(&["completions", shell]).ends_with(0).out;
        for name in commands() {
            assert!(script.contains(&name), "{shell}: there is no {name}");
        }
        assert!(script.contains("pass-through-to"), "{shell}");
    }
    quipu(&["completions", "cmd"]).ends_with(2);
    assert_eq!(quipu_unread(&["completions", "zsh"]), Some(0));
}

/// A shell that starts must not fail for a mistake in a file that it does not care about.
#[test]
fn completions_do_not_depend_on_a_file_with_settings() {
    let mut with_mistake = command(&["completions", "bash"]);
    with_mistake.env("QUIPU_CONFIG", "/nonexistent/quipu.toml");
    ran(&mut with_mistake).ends_with(0);
}

#[test]
fn bash_reads_its_completions_and_completes_a_command() {
    let script = quipu(&["completions", "bash"]).ends_with(0).out;
    let ask =
        "\nCOMP_WORDS=(quipu ser) COMP_CWORD=1\n_quipu quipu ser quipu\necho \"${COMPREPLY[@]}\"\n";
    let bash = Command::new("bash").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut bash) = bash else {
        println!("skipped: there is no bash");
        return;
    };
    bash.stdin.take().unwrap().write_all((script + ask).as_bytes()).unwrap();
    let output = bash.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "serve\n");
}

#[test]
fn the_version_tells_a_commit_and_its_day() {
    let said = quipu(&["--version"]).ends_with(0).out;
    let begin = format!("quipu {}", env!("CARGO_PKG_VERSION"));
    assert!(said.starts_with(&begin), "{said}");
    let told = said[begin.len()..].trim();
    if let Some(built) = option_env!("QUIPU_COMMIT").filter(|it| !it.trim().is_empty()) {
        assert!(told.starts_with(&format!("({}", built.split_whitespace().next().unwrap())));
    } else if !told.is_empty() {
        // Which one it is depends on when the program was built: there may be newer ones.
        let inner = told.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
        let (commit, day) = inner.and_then(|it| it.split_once(' ')).unwrap_or_default();
        let is_commit = commit.len() >= 12 && commit.bytes().all(|it| it.is_ascii_hexdigit());
        let parts: Vec<usize> = day.split('-').map(str::len).collect();
        assert!(is_commit && parts == [4, 2, 2], "{said}");
    }
}
