use serde::Serialize;
use threadkeep::{EraseReport, ImportReport};
use utoipa::ToSchema;

/// The maximum number of listed problems.
const MAX_PROBLEMS: usize = 1_000;

/// The result of an import.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportedJson {
    /// The format that was detected or requested.
    format: String,
    /// The threads, including forks.
    threads: CountsJson,
    /// The forks: threads for additional branches of conversations.
    forks: CountsJson,
    /// The messages. A message that forks share is counted once.
    messages: CountsJson,
    #[serde(rename = "documents")]
    records: CountsJson,
    /// How many conversations were imported before and deleted since. They are not imported again.
    erased: u64,
    /// How many items could not be imported.
    problem_count: usize,
    /// The first 1,000 problems.
    problems: Vec<String>,
}

/// The number of items that were added, and the number that existed already.
#[derive(Debug, Serialize, ToSchema)]
pub struct CountsJson {
    new: u64,
    known: u64,
}

/// The amounts of erased data.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErasedJson {
    threads: u64,
    messages: u64,
    #[serde(rename = "documents")]
    records: u64,
    /// Entries of the user's named collections, such as passages of documents in a library.
    passages: u64,
    shared_messages: u64,
    /// Whether the data is already removed from the store's files; otherwise a later sweep removes it.
    swept: bool,
}

impl ImportedJson {
    /// Converts the report of an import. `problems` are those that the report does not know.
    pub fn of(format: String, report: &ImportReport, problems: impl IntoIterator<Item = String>) -> Self {
        let rejected = report.problems.iter().map(|problem| match &problem.name {
            Some(name) => format!("{name}: {}", problem.error),
            None => format!("item {}: {}", problem.item, problem.error),
        });
        let problems: Vec<String> = problems.into_iter().chain(rejected).collect();
        Self {
            format,
            threads: CountsJson { new: report.threads_created, known: report.threads_found },
            forks: CountsJson { new: report.forks_created, known: report.forks_found },
            messages: CountsJson { new: report.messages_added, known: report.messages_already_there },
            records: CountsJson { new: report.records_added, known: report.records_already_there },
            erased: report.threads_erased,
            problem_count: problems.len(),
            problems: problems.into_iter().take(MAX_PROBLEMS).collect(),
        }
    }
}

impl ErasedJson {
    /// Converts the report of an erasure. `swept` says whether the data is already removed from the store's files.
    pub fn of(report: &EraseReport, swept: bool) -> Self {
        Self {
            threads: report.threads,
            messages: report.messages,
            records: report.records,
            passages: report.passages,
            shared_messages: report.shared_messages,
            swept,
        }
    }
}
