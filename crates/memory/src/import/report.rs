use crate::{MemoryError, Result};
use threadkeep_core::StoreError;

/// What an import did.
#[derive(Debug, Default)]
pub struct ImportReport {
    /// Threads that it made, forks among them.
    pub threads_created: u64,
    /// Threads that were there already, forks among them.
    pub threads_found: u64,
    /// Forks that it made: branches of a conversation beside its first thread.
    pub forks_created: u64,
    /// Forks that were there already.
    pub forks_found: u64,
    /// Messages that it added. One that forks share counts once.
    pub messages_added: u64,
    /// Messages that were there already (those erased since count as there). One that forks share counts once.
    pub messages_already_there: u64,
    /// Records that it wrote.
    pub records_added: u64,
    /// Records that were there already.
    pub records_already_there: u64,
    /// Records that could not be kept, in the order in which they were found out.
    pub problems: Vec<Problem>,
}

/// A record that could not be kept.
#[derive(Debug)]
pub struct Problem {
    /// Its place among the items that were given: 1 is the first.
    pub item: u64,
    /// What it is called: a message's external id or id, a thread's key or id, a record's key.
    pub name: Option<String>,
    /// Why.
    pub error: MemoryError,
}

impl ImportReport {
    pub(super) fn problem(&mut self, item: u64, name: Option<String>, error: MemoryError) {
        self.problems.push(Problem { item, name, error });
    }

    /// Notes what is wrong with one record; hands back what is wrong with the store.
    pub(super) fn problem_or_end(&mut self, item: u64, name: Option<String>, error: MemoryError) -> Result<()> {
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
                self.problem(item, name, error);
                Ok(())
            }
            MemoryError::Store(_) | MemoryError::Embedder(_) => Err(error),
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.threads_created += other.threads_created;
        self.threads_found += other.threads_found;
        self.forks_created += other.forks_created;
        self.forks_found += other.forks_found;
        self.messages_added += other.messages_added;
        self.messages_already_there += other.messages_already_there;
        self.records_added += other.records_added;
        self.records_already_there += other.records_already_there;
        self.problems.extend(other.problems);
    }
}
