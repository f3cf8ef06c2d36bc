//! Imports one file: tracks its items, their positions in the file, and the problems.

use std::cell::RefCell;

use indicatif::ProgressBar;
use threadkeep::core::exchange::ImportItem;
use threadkeep::{ImportReport, Problem};
use threadkeep_formats::{ConversationName, Format, Reader, RecordError, SecretMask};

use super::exclusions::Exclusions;
use super::files::File;
use super::report::{Counts, FileReport, ProblemJson, Report};
use super::tfl_sqlite::RowResult;
use super::threads_and_messages;
use crate::failure::{join, sentence};
use crate::interrupt::Interrupt;
use crate::output::{Output, printable_line};

/// The reason why a thread cannot be created with its id.
const UNREACHABLE: &str = "a thread with this id was erased within the last seven days, or belongs to another user";

/// The state of the import of one file.
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
    /// The first item of each record and conversation, with the item's position in the file.
    origins: Vec<(u64, Origin)>,
    problems_reported: usize,
}

/// The position of an item in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) line: u64,
    /// The 0-based index of the record in the file.
    record: u64,
    pub(super) conversation: ConversationName,
}

impl Origin {
    /// Returns the line as `LINE:`. Returns an empty string if the file is one long line, where a line number does not help.
    fn line_prefix(&self) -> String {
        if self.is_in_long_line() { String::new() } else { format!("{}:", self.line) }
    }

    fn is_in_long_line(&self) -> bool {
        self.line == 1 && self.record > 0
    }

    /// Returns the title and id of the conversation as `conversation "TITLE" (ID): `, or its number, or an empty string.
    fn conversation_prefix(&self) -> String {
        let ConversationName { title, id } = &self.conversation;
        match (title.as_deref().map(printable_line), id.as_deref().map(printable_line)) {
            (Some(title), Some(id)) => format!("conversation \"{title}\" ({id}): "),
            (Some(title), None) => format!("conversation \"{title}\": "),
            (None, Some(id)) => format!("conversation {id}: "),
            (None, None) if self.is_in_long_line() => format!("conversation {}: ", self.record + 1),
            (None, None) => String::new(),
        }
    }
}

impl<'a> Intake<'a> {
    pub(super) fn new(file: &File, bar: &'a ProgressBar, output: &'a Output, report: &'a mut Report) -> Self {
        let name = file.to_string();
        bar.set_message(name.clone());
        let state = State { report, file: None, items: 0, origins: Vec::new(), problems_reported: 0 };
        Self { name, bar, bytes_before: bar.position(), output, state: RefCell::new(state) }
    }

    pub(super) fn begin(&mut self, format: &'static str) {
        self.state.get_mut().file = Some(FileReport::new(self.name.clone(), format));
    }

    /// Reports a skipped record.
    pub(super) fn problem(&self, origin: &Origin, reason: &str) {
        self.state.borrow_mut().report.add_problem(ProblemJson::new(&self.name, origin, reason));
        let (line, conversation) = (origin.line_prefix(), origin.conversation_prefix());
        self.bar.suspend(|| self.output.note(format_args!("{}:{line} {conversation}{reason}", self.name)));
    }

    /// Reports a record that cannot be read.
    pub(super) fn record_problem(&self, error: RecordError) {
        let RecordError { line, record, conversation, fault } = error;
        self.problem(&Origin { line, record, conversation }, &sentence(&fault.into()));
    }

    /// Reports a row that is skipped, or imported in part.
    pub(super) fn row_problem(&self, reason: &str) {
        self.state.borrow_mut().report.add_problem(ProblemJson::without_line(&self.name, reason));
        self.bar.suspend(|| self.output.note(format_args!("{}: {}", self.name, printable_line(reason))));
    }

    /// Reports an unreadable file, which is skipped.
    pub(super) fn report_unreadable_file(&self, reason: &str) {
        self.state.borrow_mut().report.add_problem(ProblemJson::unreadable_file(&self.name, reason));
        self.bar.suspend(|| self.output.note(format_args!("{}: {reason}", self.name)));
    }

    /// Counts a document of the file.
    pub(super) fn count_document(&self, is_new: bool) {
        let report = &mut *self.state.borrow_mut().report;
        report.documents_added += u64::from(is_new);
        report.documents_unchanged += u64::from(!is_new);
    }

    /// Counts the file as one without conversations in a known format.
    pub(super) fn count_unrecognised_file(&self) {
        self.state.borrow_mut().report.unrecognised_files.push(self.name.clone());
    }

    /// Counts masked secrets and excluded conversations.
    pub(super) fn count(&self, masked: u64, excluded: u64) {
        let report = &mut *self.state.borrow_mut().report;
        report.secrets_masked += masked;
        report.conversations_excluded += excluded;
    }

    /// Updates the counts and reports new problems.
    pub(super) fn on_progress(&self, done: &ImportReport) {
        let mut state = self.state.borrow_mut();
        let counts = Counts::from(done);
        let message = format!("{} · {}", self.name, threads_and_messages(counts.threads(), counts.messages()));
        self.bar.set_message(message);
        if let Some(file) = &mut state.file {
            file.counts = counts;
        }
        let unreported = &done.problems[state.problems_reported.min(done.problems.len())..];
        state.problems_reported = done.problems.len();
        let problems: Vec<_> =
            unreported.iter().map(|problem| (state.origin_of(problem.item), reason(problem))).collect();
        drop(state);
        problems.iter().for_each(|(origin, reason)| self.problem(origin, reason));
    }

    fn read(&self, item: &ImportItem, reader: &Reader) {
        let mut state = self.state.borrow_mut();
        state.items += 1;
        let number = state.items;
        // Progress is measured in bytes, because a record may be one item with a whole conversation, and a file may be a
        // single line.
        self.bar.set_position(self.bytes_before + reader.bytes_read());
        let last = state.origins.last().map(|(_, origin)| origin);
        let (line, record) = (reader.line(), reader.record());
        let new_conversation = starting_conversation(item);
        if new_conversation.is_none() && last.is_some_and(|last| last.record == record) {
            return;
        }
        let conversation = new_conversation.or_else(|| last.map(|last| last.conversation.clone())).unwrap_or_default();
        state.origins.push((number, Origin { line, record, conversation }));
    }
}

/// Returns the conversation that starts with an item, or `None` if none does.
fn starting_conversation(item: &ImportItem) -> Option<ConversationName> {
    let thread = match item {
        ImportItem::Thread(thread) => thread,
        ImportItem::Tree(tree) => &tree.thread,
        ImportItem::Message(_) | ImportItem::Record { .. } => return None,
    };
    let key = thread.key.as_ref().and_then(|key| key.as_str().strip_prefix("import:")?.split_once(':'));
    // The key of a conversation without an id contains its index and a hash, which are meaningless to the user.
    let is_generated =
        |id: &str| id.split_once(':').is_some_and(|(place, _)| place.bytes().all(|byte| byte.is_ascii_digit()));
    let source_id = key.map(|(_, id)| id.to_owned()).filter(|id| !is_generated(id));
    let id = thread.id.map(|id| id.to_string()).or(source_id);
    Some(ConversationName { title: thread.title.clone(), id })
}

impl Drop for Intake<'_> {
    /// Adds the file to the report, even after an error: items that were imported before the error stay imported.
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if let Some(file) = state.file.take() {
            state.report.files.push(file);
        }
    }
}

impl State<'_> {
    fn origin_of(&self, item: u64) -> Origin {
        let after = self.origins.partition_point(|(first, _)| *first <= item);
        let origin = after.checked_sub(1).and_then(|at| self.origins.get(at));
        let unknown = || Origin { line: 1, record: 0, conversation: ConversationName::default() };
        origin.map_or_else(unknown, |(_, origin)| origin.clone())
    }
}

fn reason(problem: &Problem) -> String {
    let first: &(dyn std::error::Error + 'static) = &problem.error;
    let reason = match problem.error.is_not_found() {
        true => UNREACHABLE.to_owned(),
        false => join(std::iter::successors(Some(first), |error| error.source())),
    };
    match &problem.name {
        Some(name) => format!("{}: {reason}", printable_line(name)),
        None => reason,
    }
}

/// The maximum number of items that are read after Ctrl-C to complete a conversation. A longer conversation is completed
/// when the file is imported again.
const AFTER_INTERRUPT: usize = 500;

/// Decides which items are imported, and masks secrets in them.
#[derive(Debug)]
pub(super) struct Filter<'a> {
    exclusions: &'a Exclusions,
    mask: Option<SecretMask>,
    /// Whether the current conversation is left out.
    is_excluded: bool,
}

impl<'a> Filter<'a> {
    pub(super) fn new(exclusions: &'a Exclusions, masks_secrets: bool) -> Self {
        Self { exclusions, mask: masks_secrets.then(SecretMask::default), is_excluded: false }
    }

    /// Returns the item to import, or `None` if its conversation is left out.
    fn pass(&mut self, mut item: ImportItem, intake: &Intake<'_>) -> Option<ImportItem> {
        if let Some(is_excluded) = self.exclusions.excludes(&item) {
            self.is_excluded = is_excluded;
            intake.count(0, u64::from(is_excluded));
        }
        if self.is_excluded {
            return None;
        }
        if let Some(mask) = &mut self.mask {
            let before = mask.masked();
            mask.mask(&mut item);
            intake.count(mask.masked() - before, 0);
        }
        Some(item)
    }
}

/// Iterates over the valid items of a file and reports invalid records. After Ctrl-C, ends with the current conversation.
pub(super) struct Items<'a, 'b> {
    reader: Reader,
    intake: &'a Intake<'b>,
    interrupt: &'a Interrupt,
    filter: Filter<'a>,
    /// The number of items read after Ctrl-C.
    late: usize,
}

impl<'a, 'b> Items<'a, 'b> {
    pub(super) fn new(
        reader: Reader,
        intake: &'a Intake<'b>,
        interrupt: &'a Interrupt,
        mut filter: Filter<'a>,
    ) -> Self {
        // Data that this program exported was masked when it was first imported, unless the user chose to keep secrets.
        filter.mask = filter.mask.filter(|_| reader.format() != Format::Threadkeep);
        Self { reader, intake, interrupt, filter, late: 0 }
    }
}

impl Iterator for Items<'_, '_> {
    type Item = ImportItem;

    fn next(&mut self) -> Option<ImportItem> {
        loop {
            let is_late = self.interrupt.is_stop_requested();
            self.late += usize::from(is_late);
            if self.late > AFTER_INTERRUPT {
                return None;
            }
            match self.reader.next()? {
                Ok(ImportItem::Thread(_) | ImportItem::Tree(_)) if is_late => return None,
                Ok(item) => {
                    if let Some(item) = self.filter.pass(item, self.intake) {
                        self.intake.read(&item, &self.reader);
                        return Some(item);
                    }
                }
                Err(error) => self.intake.record_problem(error),
            }
        }
    }
}

/// Iterates over the items of a database and reports rows that cannot be read. After Ctrl-C it ends with the current thread.
pub(super) struct RowItems<'a, 'b, D> {
    database: D,
    intake: &'a Intake<'b>,
    interrupt: &'a Interrupt,
    filter: Filter<'a>,
}

impl<'a, 'b, D> RowItems<'a, 'b, D> {
    pub(super) fn new(database: D, intake: &'a Intake<'b>, interrupt: &'a Interrupt, filter: Filter<'a>) -> Self {
        Self { database, intake, interrupt, filter }
    }
}

impl<D: Iterator<Item = RowResult>> Iterator for RowItems<'_, '_, D> {
    type Item = ImportItem;

    fn next(&mut self) -> Option<ImportItem> {
        loop {
            match self.database.next()? {
                Ok(ImportItem::Thread(_)) if self.interrupt.is_stop_requested() => return None,
                Ok(item) => {
                    if let Some(item) = self.filter.pass(item, self.intake) {
                        return Some(item);
                    }
                }
                Err(reason) => self.intake.row_problem(&reason),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns two conversations of `messages` messages each.
    fn conversations(messages: usize) -> &'static str {
        let line =
            format!("{{\"messages\":[{}]}}\n", [r#"{"role":"user","content":"Yes."}"#].repeat(messages).join(","));
        Box::leak(line.repeat(2).into_boxed_str())
    }

    /// Presses Ctrl-C after `before` items. Returns the number of items read after that.
    fn after_interrupt(text: &'static str, before: usize) -> usize {
        let (bar, output, interrupt) = (ProgressBar::hidden(), Output::of_columns(80), Interrupt::default());
        let (file, mut report, exclusions) = (File::built_in(text), Report::default(), Exclusions::default());
        let intake = Intake::new(&file, &bar, &output, &mut report);
        let mut items = Items::new(file.open(None).unwrap(), &intake, &interrupt, Filter::new(&exclusions, true));
        assert_eq!(items.by_ref().take(before).count(), before);
        interrupt.request_stop();
        items.count()
    }

    #[test]
    fn interrupt_completes_the_current_conversation() {
        let text = conversations(10);
        let counts: Vec<usize> = (0..=22).map(|before| after_interrupt(text, before)).collect();
        assert_eq!(counts[..12], [0, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(counts[12..], [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    }

    #[test]
    fn progress_bar_advances_in_a_file_of_one_line() {
        let text = "word ".repeat(2_000);
        let conversation = |number: usize| {
            format!(r#"{{"uuid":"c{number}","chat_messages":[{{"uuid":"m","sender":"human","text":"{text}"}}]}}"#)
        };
        let text = format!("[{}]", (0..100).map(conversation).collect::<Vec<_>>().join(","));
        let text: &'static str = Box::leak(text.into_boxed_str());
        let (bar, output, interrupt) = (ProgressBar::hidden(), Output::of_columns(80), Interrupt::default());
        let (file, mut report, exclusions) = (File::built_in(text), Report::default(), Exclusions::default());
        let intake = Intake::new(&file, &bar, &output, &mut report);
        let mut positions: Vec<u64> =
            Items::new(file.open(None).unwrap(), &intake, &interrupt, Filter::new(&exclusions, true))
                .map(|_| bar.position())
                .collect();
        assert_eq!(positions.last(), Some(&(text.len() as u64)));
        assert!(positions.is_sorted());
        positions.dedup();
        assert!(positions.len() > 10, "{positions:?}");
    }

    #[test]
    fn problems_name_line_and_conversation() {
        let origin = |line, record, title: Option<&str>, id: Option<&str>| {
            let conversation = ConversationName { title: title.map(str::to_owned), id: id.map(str::to_owned) };
            let origin = Origin { line, record, conversation };
            format!("{} {}", origin.line_prefix(), origin.conversation_prefix())
        };
        assert_eq!(origin(1, 3, Some("Boats"), Some("c-1")), " conversation \"Boats\" (c-1): ");
        assert_eq!(origin(1, 3, None, None), " conversation 4: ");
        assert_eq!(origin(7, 3, None, Some("c-1")), "7: conversation c-1: ");
        assert_eq!(origin(7, 3, None, None), "7: ");
    }

    #[test]
    fn interrupt_stops_within_a_long_conversation() {
        assert_eq!(after_interrupt(conversations(2_000), 5), AFTER_INTERRUPT);
    }
}
