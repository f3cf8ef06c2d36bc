//! The scopes in which a turn accesses its thread, and reading the turn's records in that thread.

use serde::de::DeserializeOwned;
use threadkeep_context::ContextPolicy;
use threadkeep_core::{Access, Owner, Record, RecordOwner, RecordQuery, Scope, TaggedNumber, Thread, ThreadId};

use super::record::{self, RunRecord};
use super::{Approval, is_alive};
use crate::{Memory, Prefetched, Result};

/// A thread, and the scopes in which a turn reads and writes it.
#[derive(Clone, Debug)]
pub struct ThreadAccess {
    /// The scope of the requester.
    pub scope: Scope,
    /// The scope for writing. In a shared thread, this is the tenant's scope, because users must not write records there.
    pub writer: Scope,
    /// The thread.
    pub thread: ThreadId,
    /// The author of the user's messages; `None` unless the thread is shared.
    pub author: Option<String>,
}

/// A decoded record and its version.
#[derive(Clone, Debug)]
pub struct Versioned<T> {
    /// The decoded value.
    pub value: T,
    /// The version of the record.
    pub version: TaggedNumber,
}

/// The unfinished turns in a thread.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The turn that holds the lock.
    pub active: Option<Versioned<RunRecord>>,
    /// The turns that wait for a person's decision.
    pub waiting: Vec<Versioned<RunRecord>>,
}

impl Runs {
    fn of(records: Vec<Record>) -> Result<Self> {
        let mut runs = Self::default();
        for record in records {
            let run = Versioned { value: record.value.read()?, version: record.tagged() };
            if record::is_active(&record.key) {
                runs.active = Some(run);
            } else {
                runs.waiting.push(run);
            }
        }
        Ok(runs)
    }
}

impl RunRecord {
    /// Whether the driver is considered alive.
    #[must_use]
    pub fn is_alive(&self, memory: &Memory) -> bool {
        is_alive(memory, &self.driver, self.lease_until)
    }
}

impl ThreadAccess {
    /// Determines how a scope accesses a thread.
    ///
    /// # Errors
    /// `NotFound` if the scope cannot read the thread.
    pub async fn find(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<Self> {
        Ok(Self::of(scope, &memory.get_thread(scope, thread).await?))
    }

    /// Determines how a scope accesses a thread, and reads the thread's unfinished turns and the sources of a context with this
    /// `policy`. All data is as of the same instant, and is usually read in one call to the store.
    ///
    /// # Errors
    /// The same as for [`Memory::prefetch`]; `Corrupt` for a run record that cannot be decoded.
    pub async fn read(
        memory: &Memory,
        scope: &Scope,
        thread: ThreadId,
        policy: &ContextPolicy,
    ) -> Result<(Self, Runs, Prefetched)> {
        let query = runs_query(thread);
        let mut prefetched = memory.prefetch(scope, thread, policy, &[], std::slice::from_ref(&query)).await?;
        let access = Self::of(scope, &prefetched.thread);
        let runs = match prefetched.lists.pop() {
            // There are no more pages after one that is not full.
            Some(records) if records.len() < query.limit => Runs::of(records)?,
            _ => access.runs(memory).await?,
        };
        Ok((access, runs, prefetched))
    }

    fn of(scope: &Scope, thread: &Thread) -> Self {
        let writer = match scope.access(&thread.owner) {
            Access::Full => scope.clone(),
            _ => Scope::Tenant(scope.tenant_id().clone()),
        };
        let author = match (scope, &thread.owner) {
            (Scope::User(_, user), Owner::Tenant) => Some(user.as_str().to_owned()),
            _ => None,
        };
        Self { scope: scope.clone(), writer, thread: thread.id, author }
    }

    /// Returns access to the same thread in the scope of the run's requester, so that the answer uses only data that the
    /// requester can read.
    #[must_use]
    pub fn for_requester(&self, run: &RunRecord) -> Self {
        let tenant = self.scope.tenant_id().clone();
        let scope = match &run.requester {
            Some(Owner::User(user)) => Scope::User(tenant, user.clone()),
            Some(Owner::Tenant) => Scope::Tenant(tenant),
            None => self.scope.clone(),
        };
        Self { scope, ..self.clone() }
    }

    fn query(&self) -> RecordQuery {
        RecordQuery::of(RecordOwner::Thread(self.thread))
    }

    /// Reads the unfinished turns.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn runs(&self, memory: &Memory) -> Result<Runs> {
        Runs::of(memory.list_records(&self.writer, runs_query(self.thread)).await?)
    }

    /// Reads all approvals in the thread.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn approvals(&self, memory: &Memory) -> Result<Vec<Versioned<Approval>>> {
        let query = RecordQuery { namespace: Some(record::approval_namespace()), ..self.query() };
        let found = memory.list_records(&self.writer, query).await?;
        let decode = |record: Record| Ok(Versioned { value: record.value.read()?, version: record.tagged() });
        found.into_iter().map(decode).collect()
    }

    /// Reads the approvals of a turn, in the order of their requests.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn approvals_of_turn(&self, memory: &Memory, turn: &str) -> Result<Vec<Versioned<Approval>>> {
        let mut approvals = self.approvals(memory).await?;
        approvals.retain(|approval| approval.value.turn == turn);
        approvals.sort_by_key(|approval| approval.value.request);
        Ok(approvals)
    }

    /// Reads the entries of a run's journal, in order.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn journal<T: DeserializeOwned>(&self, memory: &Memory, turn: &str) -> Result<Vec<T>> {
        let key_prefix = format!("{turn}/");
        let query = RecordQuery { namespace: Some(record::journal_namespace()), key_prefix, ..self.query() };
        let mut entries = Vec::new();
        for record in memory.list_records(&self.writer, query).await? {
            entries.extend(record.value.read::<Vec<T>>()?);
        }
        Ok(entries)
    }
}

fn runs_query(thread: ThreadId) -> RecordQuery {
    RecordQuery { namespace: Some(record::run_namespace()), ..RecordQuery::of(RecordOwner::Thread(thread)) }
}
