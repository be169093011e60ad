//! `quipu doctor`: what is here, what is wrong, what to do next. Looks quickly, and changes nothing.

mod folder;
mod node;

use crate::Failure;
use crate::args::doctor::DoctorArgs;
use crate::output::print_lines;

use self::node::examine_nodes;
use folder::{FolderExam, examine_folder};

pub(crate) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let FolderExam { mut findings, spec, tip, path, writer } = examine_folder(args)?;
    findings.extend(examine_nodes(args, spec.as_ref(), tip)?);
    let is_ill = findings.iter().any(DoctorFinding::is_fix);
    let width = findings.iter().map(|finding| finding.subject.len()).max().unwrap_or_default();
    let mut lines: Vec<String> = findings.iter().map(|finding| finding.line(width)).collect();
    let mut todo: Vec<String> =
        findings.iter().filter_map(|finding| finding.todo.clone()).collect();
    todo.dedup();
    let place = path.display();
    if let (false, Some(writer)) = (is_ill, writer) {
        todo.push(format!("{writer} is at work; quipu stat --data-dir {place} tells what is held"));
    } else if !is_ill && tip.is_some() {
        let follow = match args.upstream.upstreams.first() {
            Some(_) => " --upstream URL",
            None => "",
        };
        todo.push(format!("quipu serve --data-dir {place}{follow}"));
    }
    lines.extend(todo.iter().map(|todo| format!("next: {todo}")));
    print_lines(&lines)?;
    if is_ill { Err(Failure::Told) } else { Ok(()) }
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FindingLevel {
    /// As it should be.
    Well,
    /// Worth knowing, and for the operator to judge.
    Note,
    /// Something must be done.
    Fix,
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub(super) struct DoctorFinding {
    level: FindingLevel,
    subject: String,
    said: String,
    /// What to do about it.
    todo: Option<String>,
}

impl DoctorFinding {
    pub(super) fn well(subject: &str, said: impl Into<String>) -> Self {
        Self {
            level: FindingLevel::Well,
            subject: subject.to_owned(),
            said: said.into(),
            todo: None,
        }
    }

    pub(super) fn note(subject: &str, said: impl Into<String>) -> Self {
        Self { level: FindingLevel::Note, ..Self::well(subject, said) }
    }

    pub(super) fn fix(subject: &str, said: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { level: FindingLevel::Fix, todo: Some(todo.into()), ..Self::well(subject, said) }
    }

    /// The same with a thing that may be done.
    pub(super) fn with_todo(self, todo: impl Into<String>) -> Self {
        Self { todo: Some(todo.into()), ..self }
    }

    /// Whether something must be done.
    pub(super) fn is_fix(&self) -> bool {
        self.level == FindingLevel::Fix
    }

    fn line(&self, width: usize) -> String {
        let word = match self.level {
            FindingLevel::Well => "ok  ",
            FindingLevel::Note => "note",
            FindingLevel::Fix => "FIX ",
        };
        // What to do is said below.
        let said = self.said.lines().next().unwrap_or_default();
        format!("{word}  {:width$}  {said}", self.subject)
    }
}
