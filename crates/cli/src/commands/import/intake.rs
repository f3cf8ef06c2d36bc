//! One file on its way in: its items, the lines they stand on, and the problems as they show.

use std::cell::RefCell;

use indicatif::ProgressBar;
use threadkeep::core::exchange::ImportItem;
use threadkeep::{ImportReport, Problem};
use threadkeep_formats::{Format, Reader};

use super::files::File;
use super::report::{Counts, FileReport, ProblemJson, Report};
use super::threads_and_messages;
use crate::failure::{join, sentence};
use crate::interrupt::Interrupt;
use crate::output::Output;

/// What is known of the file that is being imported.
pub(super) struct Intake<'a> {
    name: String,
    bar: &'a ProgressBar,
    bytes_before: u64,
    output: &'a Output,
    state: RefCell<State<'a>>,
}

struct State<'a> {
    report: &'a mut Report,
    file: Option<FileReport>,
    items: u64,
    /// Items that start on another line than the one before, with that line.
    lines: Vec<(u64, u64)>,
    problems_heard: usize,
}

impl<'a> Intake<'a> {
    pub(super) fn new(file: &File, bar: &'a ProgressBar, output: &'a Output, report: &'a mut Report) -> Self {
        let name = file.to_string();
        bar.set_message(name.clone());
        let state = State { report, file: None, items: 0, lines: Vec::new(), problems_heard: 0 };
        Self { name, bar, bytes_before: bar.position(), output, state: RefCell::new(state) }
    }

    pub(super) fn begin(&mut self, format: Format) {
        self.state.get_mut().file = Some(FileReport::new(self.name.clone(), format));
    }

    /// Tells of a bad record, and goes on.
    pub(super) fn problem(&self, line: Option<u64>, reason: &str) {
        self.state.borrow_mut().report.add_problem(ProblemJson::new(&self.name, line, reason));
        let place = line.map_or_else(String::new, |line| format!("{line}:"));
        self.bar.suspend(|| self.output.note(format_args!("{}:{place} {reason}", self.name)));
    }

    /// Tells of a file that cannot be read at all, and goes on with the next.
    pub(super) fn refuse(&self, reason: &str) {
        self.state.borrow_mut().report.add_problem(ProblemJson::of_file(&self.name, reason));
        self.bar.suspend(|| self.output.note(format_args!("{}: {reason}", self.name)));
    }

    /// Takes in what the import has done so far.
    pub(super) fn heard(&self, done: &ImportReport) {
        let mut state = self.state.borrow_mut();
        let counts = Counts::from(done);
        let message = format!("{} · {}", self.name, threads_and_messages(counts.threads(), counts.messages()));
        self.bar.set_message(message);
        if let Some(file) = &mut state.file {
            file.counts = counts;
        }
        let unheard = &done.problems[state.problems_heard.min(done.problems.len())..];
        state.problems_heard = done.problems.len();
        let told: Vec<_> = unheard.iter().map(|problem| (state.line_of(problem.item), reason(problem))).collect();
        drop(state);
        told.iter().for_each(|(line, reason)| self.problem(*line, reason));
    }

    fn read(&self, line: u64, bytes_read: u64) {
        let mut state = self.state.borrow_mut();
        state.items += 1;
        if state.lines.last().is_none_or(|(_, last)| *last != line) {
            let item = state.items;
            state.lines.push((item, line));
            self.bar.set_position(self.bytes_before + bytes_read);
        }
    }
}

impl Drop for Intake<'_> {
    /// What was imported stays imported, however the import ends: it belongs in the report.
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if let Some(file) = state.file.take() {
            state.report.files.push(file);
        }
    }
}

impl State<'_> {
    fn line_of(&self, item: u64) -> Option<u64> {
        let after = self.lines.partition_point(|(first, _)| *first <= item);
        self.lines.get(after.checked_sub(1)?).map(|(_, line)| *line)
    }
}

fn reason(problem: &Problem) -> String {
    let first: &(dyn std::error::Error + 'static) = &problem.error;
    let reason = join(std::iter::successors(Some(first), |error| error.source()));
    match &problem.name {
        Some(name) => format!("{}: {reason}", crate::output::printable_line(name)),
        None => reason,
    }
}

/// The good items of a file. Bad records are told on the way; Ctrl-C ends them.
pub(super) struct Items<'a, 'b> {
    reader: Reader,
    intake: &'a Intake<'b>,
    interrupt: &'a Interrupt,
}

impl<'a, 'b> Items<'a, 'b> {
    pub(super) fn new(reader: Reader, intake: &'a Intake<'b>, interrupt: &'a Interrupt) -> Self {
        Self { reader, intake, interrupt }
    }
}

impl Iterator for Items<'_, '_> {
    type Item = ImportItem;

    fn next(&mut self) -> Option<ImportItem> {
        loop {
            if self.interrupt.is_asked_to_stop() {
                return None;
            }
            match self.reader.next()? {
                Ok(item) => {
                    self.intake.read(self.reader.line(), self.reader.bytes_read());
                    return Some(item);
                }
                Err(error) => self.intake.problem(Some(error.line), &sentence(&error.fault.into())),
            }
        }
    }
}
