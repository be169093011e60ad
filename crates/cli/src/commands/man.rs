//! `quipu man`: a manual page for each command, made from the flags and their help.

use std::fs;
use std::io;

use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use roff::{Roff, bold, roman};

use crate::Failure;
use crate::args::Args;
use crate::args::man::ManArgs;
use crate::config::settings::map_settings;
use crate::output::{counted, print_lines};
use crate::version::COMMIT_DATE;

const EXAMPLES: &str = "Examples:";

pub(crate) fn run(args: &ManArgs) -> Result<(), Failure> {
    fs::create_dir_all(&args.to).with_context(|| args.to.display().to_string())?;
    let pages = pages()?;
    for (name, text) in &pages {
        let path = args.to.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    let count = counted(u64::try_from(pages.len()).unwrap_or(u64::MAX), "page");
    Ok(print_lines(&[format!("{count} in {}", args.to.display())])?)
}

/// The file name and the text of each page.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    // The page of a command has its flags, so that of `help` would say nothing.
    let root = Args::command().disable_help_subcommand(true);
    // Help on a terminal shows a few variables; here is room for all of them.
    let mut root =
        map_settings(root, |setting, arg| arg.env(setting.variable.clone()).hide_env_values(true));
    root.build();
    let mut pages = Vec::new();
    push_pages(&root, &mut pages)?;
    Ok(pages)
}

fn push_pages(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let title = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    // Without this all flags would stand in the synopsis, of which a server has very many.
    let man = Man::new(command.clone().override_usage(usage))
        .title(title.as_str())
        .date(COMMIT_DATE)
        .source(concat!("quipu ", env!("CARGO_PKG_VERSION")))
        .manual("Quipu");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    if let Some(after) = command.get_after_help() {
        examples(&after.to_string()).to_writer(&mut text)?;
    }
    if title != "quipu" {
        let mut also = Roff::new();
        also.control("SH", ["SEE ALSO"]).text([bold("quipu"), roman("(1)")]);
        also.to_writer(&mut text)?;
    }
    pages.push((man.get_filename(), text));
    command.get_subcommands().try_for_each(|it| push_pages(it, pages))
}

/// What stands below the flags: indented lines are examples and stay as they are, others are prose.
fn examples(text: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [if text.starts_with(EXAMPLES) { "EXAMPLES" } else { "NOTES" }]);
    let mut is_example = false;
    for line in text.lines().filter(|line| *line != EXAMPLES) {
        if line.starts_with("  ") != is_example {
            is_example = !is_example;
            roff.control(if is_example { "nf" } else { "fi" }, []);
        }
        if line.is_empty() {
            roff.control("PP", []);
        } else {
            roff.text([roman(line.trim_start())]);
        }
    }
    if is_example {
        roff.control("fi", []);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::settings;

    fn page(pages: &[(String, Vec<u8>)], name: &str) -> String {
        let found = pages.iter().find(|(it, _)| it == name);
        let (_, text) = found.unwrap_or_else(|| panic!("there is no page {name}"));
        String::from_utf8(text.clone()).unwrap()
    }

    /// Every command with its path, such as `quipu-serve`.
    fn commands(command: &Command, path: &str, into: &mut Vec<String>) {
        into.push(path.to_owned());
        for inner in command.get_subcommands() {
            commands(inner, &format!("{path}-{}", inner.get_name()), into);
        }
    }

    #[test]
    fn every_command_has_a_page_that_begins_with_its_name_and_there_is_no_other() {
        let pages = pages().unwrap();
        let mut expected = Vec::new();
        commands(&Args::command(), "quipu", &mut expected);
        for name in &expected {
            let text = page(&pages, &format!("{name}.1"));
            let name = name.replace('-', "\\-");
            assert!(text.contains(&format!("\n.SH NAME\n{name} \\- ")), "{name}: {text}");
        }
        assert_eq!(pages.len(), expected.len());
    }

    #[test]
    fn every_flag_stands_on_its_page_with_its_variable() {
        let pages = pages().unwrap();
        for setting in settings(&Args::command()) {
            let name = setting.command.map_or("quipu.1".to_owned(), |it| format!("quipu-{it}.1"));
            let text = page(&pages, &name).replace('\\', "");
            for wanted in [format!("--{}", setting.flag), setting.variable] {
                assert!(text.contains(&wanted), "{name}: there is no {wanted}");
            }
        }
    }

    #[test]
    fn examples_keep_their_lines_and_prose_is_filled() {
        let text = examples("Examples:\n  quipu a\n  .quipu b\n\nProse\nin two lines.").render();
        let (_, body) = text.split_once(".SH EXAMPLES\n").unwrap();
        let expected = ".nf\nquipu a\n\\&.quipu b\n.fi\n.PP\nProse\nin two lines.\n";
        assert_eq!(body, expected);
    }
}
