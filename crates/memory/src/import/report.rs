use crate::{MemoryError, Result};
use threadkeep_core::StoreError;

/// The result of an import.
#[derive(Debug, Default)]
pub struct ImportReport {
    /// Number of threads that were created, including forks.
    pub threads_created: u64,
    /// Number of threads that already existed, including forks.
    pub threads_found: u64,
    /// Number of conversations that were skipped, because they were imported before and deleted since.
    pub threads_erased: u64,
    /// Number of forks that were created: one per branch of a conversation, except the branch in the main thread.
    pub forks_created: u64,
    /// Number of forks that already existed.
    pub forks_found: u64,
    /// Number of messages that were added. A message with copies in forks counts once.
    pub messages_added: u64,
    /// Number of messages that already existed or had been erased. A message with copies in forks counts once.
    pub messages_already_there: u64,
    /// Number of messages of conversations without branches that already existed, with another text. They keep it.
    pub messages_changed: u64,
    /// Number of records that were written.
    pub records_added: u64,
    /// Number of records that already existed.
    pub records_already_there: u64,
    /// The items that could not be imported, in the order in which they failed.
    pub problems: Vec<Problem>,
}

/// An item that could not be imported.
#[derive(Debug)]
pub struct Problem {
    /// The 1-based number of the item.
    pub item: u64,
    /// The name of the item: the external id or id of a message, the key or id of a thread, or the key of a record. `None` if it
    /// has none.
    pub name: Option<String>,
    /// Why it could not be imported.
    pub error: MemoryError,
}

impl ImportReport {
    pub(super) fn add_problem(&mut self, item: u64, name: Option<String>, error: MemoryError) {
        self.problems.push(Problem { item, name, error });
    }

    /// Adds an error that affects one item to the problems. Returns any other error.
    pub(super) fn add_problem_or_fail(&mut self, item: u64, name: Option<String>, error: MemoryError) -> Result<()> {
        match error {
            MemoryError::Store(
                StoreError::Invalid { .. }
                | StoreError::LimitExceeded { .. }
                | StoreError::Conflict(_)
                | StoreError::Denied(_)
                | StoreError::NotFound(_),
            )
            | MemoryError::Invalid { .. }
            | MemoryError::Context(_)
            | MemoryError::Model(_)
            | MemoryError::Contended { .. } => {
                self.add_problem(item, name, error);
                Ok(())
            }
            MemoryError::Store(_) | MemoryError::Embedder(_) => Err(error),
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.threads_created += other.threads_created;
        self.threads_found += other.threads_found;
        self.threads_erased += other.threads_erased;
        self.forks_created += other.forks_created;
        self.forks_found += other.forks_found;
        self.messages_added += other.messages_added;
        self.messages_already_there += other.messages_already_there;
        self.messages_changed += other.messages_changed;
        self.records_added += other.records_added;
        self.records_already_there += other.records_already_there;
        self.problems.extend(other.problems);
    }
}
