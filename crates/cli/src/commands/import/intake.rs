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

/// Why a thread cannot be opened under the id that it brings.
const UNREACHABLE: &str = "a thread of this id was erased within the last seven days, or is somebody else's";

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
    let reason = match problem.error.is_not_found() {
        true => UNREACHABLE.to_owned(),
        false => join(std::iter::successors(Some(first), |error| error.source())),
    };
    match &problem.name {
        Some(name) => format!("{}: {reason}", crate::output::printable_line(name)),
        None => reason,
    }
}

/// Items that may still come of a conversation after Ctrl-C, so that it is whole. A longer one is made whole by the same
/// import again.
const AFTER_INTERRUPT: usize = 500;

/// The good items of a file. Bad records are told on the way; Ctrl-C ends them where a conversation does.
pub(super) struct Items<'a, 'b> {
    reader: Reader,
    intake: &'a Intake<'b>,
    interrupt: &'a Interrupt,
    /// How many came after Ctrl-C.
    late: usize,
}

impl<'a, 'b> Items<'a, 'b> {
    pub(super) fn new(reader: Reader, intake: &'a Intake<'b>, interrupt: &'a Interrupt) -> Self {
        Self { reader, intake, interrupt, late: 0 }
    }
}

impl Iterator for Items<'_, '_> {
    type Item = ImportItem;

    fn next(&mut self) -> Option<ImportItem> {
        loop {
            let is_late = self.interrupt.is_asked_to_stop();
            self.late += usize::from(is_late);
            if self.late > AFTER_INTERRUPT {
                return None;
            }
            match self.reader.next()? {
                Ok(ImportItem::Thread(_)) if is_late => return None,
                Ok(item) => {
                    self.intake.read(self.reader.line(), self.reader.bytes_read());
                    return Some(item);
                }
                Err(error) => self.intake.problem(Some(error.line), &sentence(&error.fault.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two conversations of so many messages.
    fn conversations(messages: usize) -> &'static str {
        let line =
            format!("{{\"messages\":[{}]}}\n", [r#"{"role":"user","content":"Yes."}"#].repeat(messages).join(","));
        Box::leak(line.repeat(2).into_boxed_str())
    }

    /// How many items come after Ctrl-C, which comes after so many.
    fn after_interrupt(text: &'static str, before: usize) -> usize {
        let (bar, output, interrupt) = (ProgressBar::hidden(), Output::of_columns(80), Interrupt::default());
        let (file, mut report) = (File::built_in(text), Report::default());
        let intake = Intake::new(&file, &bar, &output, &mut report);
        let mut items = Items::new(file.open(None).unwrap(), &intake, &interrupt);
        assert_eq!(items.by_ref().take(before).count(), before);
        interrupt.ask_to_stop();
        items.count()
    }

    #[test]
    fn an_interrupt_leaves_a_conversation_whole() {
        let text = conversations(10);
        let counts: Vec<usize> = (0..=22).map(|before| after_interrupt(text, before)).collect();
        assert_eq!(counts[..12], [0, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(counts[12..], [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    }

    #[test]
    fn a_long_conversation_does_not_put_an_interrupt_off() {
        assert_eq!(after_interrupt(conversations(2_000), 5), AFTER_INTERRUPT);
    }
}
