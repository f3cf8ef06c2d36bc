//! Reports the result of an import as text and as JSON.

use anyhow::Result;
use serde::Serialize;
use threadkeep::ImportReport;
use threadkeep_formats::ConversationName;

use super::intake::Origin;
use super::threads_and_messages;
use crate::commands::Status;
use crate::output::Output;
use crate::table::{counted, number};

/// The maximum number of problems in the JSON report. All problems are counted, and printed to standard error.
const PROBLEMS_LISTED: usize = 1_000;

/// The result of an import.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(super) files: Vec<FileReport>,
    pub(super) problems: Vec<ProblemJson>,
    problem_count: u64,
    files_skipped: u64,
    /// The files of folders of programs that contain no conversations in a known format.
    pub(super) unrecognised_files: Vec<String>,
    /// The number of files that have not changed since they were last imported.
    pub(super) files_unchanged: u64,
    /// The numbers of documents in exports that are new in the library, and that it already contains.
    pub(super) documents_added: u64,
    pub(super) documents_unchanged: u64,
    pub(super) secrets_masked: u64,
    pub(super) conversations_excluded: u64,
    pub(super) indexed: u64,
    /// Whether Ctrl-C stopped the import before it was complete.
    pub(super) interrupted: bool,
    /// Whether Ctrl-C stopped the update of the search index after all items were imported.
    pub(super) indexing_interrupted: bool,
}

/// The result for one file.
#[derive(Debug, Serialize)]
pub(super) struct FileReport {
    file: String,
    format: &'static str,
    #[serde(flatten)]
    pub(super) counts: Counts,
}

/// Counts of new and existing items.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Counts {
    /// Including forks.
    threads: NewAndKnown,
    forks: NewAndKnown,
    messages: NewAndKnown,
    #[serde(rename = "documents")]
    records: NewAndKnown,
    /// Conversations that were imported before and erased since.
    erased: u64,
    /// Messages that already existed, with another text.
    changed: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct NewAndKnown {
    new: u64,
    known: u64,
}

/// A skipped record.
#[derive(Debug, Serialize)]
pub(super) struct ProblemJson {
    file: String,
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<ConversationJson>,
    reason: String,
    #[serde(skip)]
    is_whole_file: bool,
}

/// The conversation with a problem.
#[derive(Debug, Serialize)]
struct ConversationJson {
    title: Option<String>,
    id: Option<String>,
}

#[derive(Serialize)]
struct ReportJson<'a> {
    #[serde(flatten)]
    counts: Counts,
    files: &'a [FileReport],
    files_unchanged: u64,
    unrecognised_files: &'a [String],
    documents_added: u64,
    documents_unchanged: u64,
    problem_count: u64,
    problems: &'a [ProblemJson],
    secrets_masked: u64,
    conversations_excluded: u64,
    indexed: u64,
    interrupted: bool,
    indexing_interrupted: bool,
}

impl ProblemJson {
    pub(super) fn new(file: &str, origin: &Origin, reason: &str) -> Self {
        let ConversationName { title, id } = origin.conversation.clone();
        let conversation = (title.is_some() || id.is_some()).then_some(ConversationJson { title, id });
        Self { conversation, line: Some(origin.line), ..Self::without_line(file, reason) }
    }

    /// Returns a problem without a line.
    pub(super) fn without_line(file: &str, reason: &str) -> Self {
        let (file, reason) = (file.to_owned(), reason.to_owned());
        Self { file, line: None, conversation: None, reason, is_whole_file: false }
    }

    /// Returns the problem of an unreadable file.
    pub(super) fn unreadable_file(file: &str, reason: &str) -> Self {
        Self { is_whole_file: true, ..Self::without_line(file, reason) }
    }
}

impl FileReport {
    pub(super) fn new(file: String, format: &'static str) -> Self {
        Self { file, format, counts: Counts::default() }
    }
}

impl From<&ImportReport> for Counts {
    fn from(done: &ImportReport) -> Self {
        Self {
            threads: NewAndKnown { new: done.threads_created, known: done.threads_found },
            forks: NewAndKnown { new: done.forks_created, known: done.forks_found },
            messages: NewAndKnown { new: done.messages_added, known: done.messages_already_there },
            records: NewAndKnown { new: done.records_added, known: done.records_already_there },
            erased: done.threads_erased,
            changed: done.messages_changed,
        }
    }
}

impl NewAndKnown {
    fn total(self) -> u64 {
        self.new + self.known
    }

    fn add(&mut self, other: Self) {
        self.new += other.new;
        self.known += other.known;
    }
}

impl Counts {
    pub(super) fn threads(&self) -> u64 {
        self.threads.total()
    }

    pub(super) fn messages(&self) -> u64 {
        self.messages.total()
    }

    fn is_empty(&self) -> bool {
        self.threads.total() + self.messages.total() + self.records.total() == 0
    }

    fn has_nothing_new(&self) -> bool {
        self.threads.new + self.messages.new + self.records.new == 0
    }
}

impl Report {
    pub(super) fn add_problem(&mut self, problem: ProblemJson) {
        self.problem_count += 1;
        self.files_skipped += u64::from(problem.is_whole_file);
        if self.problems.len() < PROBLEMS_LISTED {
            self.problems.push(problem);
        }
    }

    /// Returns the number of new threads and messages.
    pub(super) fn added(&self) -> (u64, u64) {
        let counts = self.counts();
        (counts.threads.new, counts.messages.new)
    }

    /// Whether no file with conversations was found.
    pub(super) fn is_without_files(&self) -> bool {
        self.files.is_empty() && self.problems.is_empty() && self.files_unchanged == 0
    }

    pub(super) fn problem_count(&self) -> u64 {
        self.problem_count
    }

    pub(super) fn messages_added(&self) -> u64 {
        self.counts().messages.new
    }

    pub(crate) fn status(&self) -> Status {
        if self.interrupted || self.indexing_interrupted {
            Status::Interrupted
        } else if self.problem_count > 0 {
            Status::Findings
        } else {
            Status::Done
        }
    }

    /// Describes what Ctrl-C prevented.
    fn interruption(&self) -> Option<&'static str> {
        if self.interrupted {
            return Some("interrupted: imported conversations are complete; run the same import again for the rest");
        }
        let text = "interrupted while indexing: everything is imported and can be searched; indexing continues later";
        self.indexing_interrupted.then_some(text)
    }

    fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for FileReport { counts, .. } in &self.files {
            sum.threads.add(counts.threads);
            sum.forks.add(counts.forks);
            sum.messages.add(counts.messages);
            sum.records.add(counts.records);
            sum.erased += counts.erased;
            sum.changed += counts.changed;
        }
        sum
    }

    pub(crate) fn print(&self, output: &Output) -> Result<()> {
        let Self { files, files_unchanged, problems, problem_count, files_skipped, indexed, .. } = self;
        let (secrets_masked, conversations_excluded) = (self.secrets_masked, self.conversations_excluded);
        let (counts, problem_count, indexed) = (self.counts(), *problem_count, *indexed);
        let (interrupted, indexing_interrupted) = (self.interrupted, self.indexing_interrupted);
        if output.is_json() {
            return output.json(&ReportJson {
                counts,
                files,
                files_unchanged: *files_unchanged,
                unrecognised_files: &self.unrecognised_files,
                documents_added: self.documents_added,
                documents_unchanged: self.documents_unchanged,
                problem_count,
                problems,
                secrets_masked,
                conversations_excluded,
                indexed,
                interrupted,
                indexing_interrupted,
            });
        }
        let has_documents = self.documents_added + self.documents_unchanged > 0;
        if !files.is_empty() || *files_unchanged > 0 {
            if !has_documents || !counts.is_empty() {
                output.line(summary(&counts, *files_unchanged))?;
            }
            if has_documents {
                let added = counted(self.documents_added, "document");
                let unchanged = number(self.documents_unchanged);
                output.line(format_args!("added {added} to the library, {unchanged} unchanged"))?;
            }
        }
        let skipped = [(problem_count - files_skipped, "record"), (*files_skipped, "file")];
        for (count, noun) in skipped.into_iter().filter(|(count, _)| *count > 0) {
            output.note(format_args!("{} skipped, listed above", counted(count, noun)));
        }
        if secrets_masked > 0 && !counts.has_nothing_new() {
            let count = counted(secrets_masked, "possible secret");
            output.note(format_args!("{count} masked; --keep-secrets imports texts as they are"));
        }
        if let [first, others @ ..] = self.unrecognised_files.as_slice() {
            let count = counted(self.unrecognised_files.len() as u64, "file");
            let more = if others.is_empty() { "" } else { ", …" };
            output.note(format_args!(
                "{count} without conversations in a known format skipped ({first}{more}); import a file by its name to see why"
            ));
        }
        if counts.changed > 0 {
            let count = counted(counts.changed, "message");
            output
                .note(format_args!("{count} changed since the first import; the text that was imported first is kept"));
        }
        if counts.erased > 0 {
            let count = counted(counts.erased, "conversation");
            output.note(format_args!("{count} erased before, not imported again; --erased imports such conversations"));
        }
        if conversations_excluded > 0 {
            output.note(format_args!("{} excluded", counted(conversations_excluded, "conversation")));
        }
        if let Some(interruption) = self.interruption() {
            output.note(interruption);
        }
        Ok(())
    }
}

fn summary(counts: &Counts, files_unchanged: u64) -> String {
    let Counts { threads, forks, messages, records, .. } = counts;
    let files = counted(files_unchanged, "file");
    let unchanged = match files_unchanged {
        0 => String::new(),
        1 => format!("{files} has not changed since the last import"),
        _ => format!("{files} have not changed since the last import"),
    };
    if counts.has_nothing_new() {
        let known = threads_and_messages(threads.known, messages.known);
        let existed =
            if counts.is_empty() && files_unchanged > 0 { String::new() } else { format!("{known} already existed") };
        let reasons: Vec<_> = [existed, unchanged].into_iter().filter(|reason| !reason.is_empty()).collect();
        return format!("nothing new: {}", reasons.join("; "));
    }
    let mut text = format!("imported {}", threads_and_messages(threads.new, messages.new));
    if forks.new > 0 {
        let are = if forks.new == 1 { "is a fork" } else { "are forks" };
        text = format!("{text} ({} of the threads {are})", number(forks.new));
    }
    if records.new > 0 {
        text = format!("{text}, {}", counted(records.new, "record"));
    }
    if threads.known + messages.known > 0 {
        text = format!("{text}; {} already existed", threads_and_messages(threads.known, messages.known));
    }
    if !unchanged.is_empty() {
        text = format!("{text}; {unchanged}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruption_explains_what_is_missing() {
        let interruption = |interrupted, indexing_interrupted| {
            let report = Report { interrupted, indexing_interrupted, ..Report::default() };
            (report.interruption().unwrap_or_default(), report.status() == Status::Interrupted)
        };
        assert_eq!(interruption(false, false), ("", false));
        let (importing, is_interrupted) = interruption(true, false);
        assert!(importing.contains("for the rest") && is_interrupted);
        let (indexing, is_interrupted) = interruption(false, true);
        assert!(indexing.contains("everything is imported") && !indexing.contains("the rest") && is_interrupted);
    }
}
