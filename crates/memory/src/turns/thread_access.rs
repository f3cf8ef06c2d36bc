//! Where a turn takes place, and what lies there.

use serde::de::DeserializeOwned;
use threadkeep_context::ContextPolicy;
use threadkeep_core::{Access, Owner, Record, RecordOwner, RecordQuery, Scope, Tagged, Thread, ThreadId};

use super::record::{self, RunRecord};
use super::{Approval, is_alive};
use crate::{Memory, Prefetched, Result};

/// A thread, and on whose behalf it is read and written.
#[derive(Clone, Debug)]
pub struct ThreadAccess {
    /// Who asks.
    pub scope: Scope,
    /// Who writes: a user may add messages to a shared thread, and the turn's own records are the application's.
    pub writer: Scope,
    /// The thread.
    pub thread: ThreadId,
    /// The user who asks in a shared thread.
    pub author: Option<String>,
}

/// A record of a thread with its version.
#[derive(Clone, Debug)]
pub struct Versioned<T> {
    /// What it says.
    pub value: T,
    /// Its version.
    pub version: Tagged,
}

/// The turns of a thread that are not over.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The one that holds the thread.
    pub active: Option<Versioned<RunRecord>>,
    /// Those that wait for a person.
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
    /// Whether somebody is believed to drive it.
    #[must_use]
    pub fn is_alive(&self, memory: &Memory) -> bool {
        is_alive(memory, &self.driver, self.lease_until)
    }
}

impl ThreadAccess {
    /// Looks at the thread.
    ///
    /// # Errors
    /// `NotFound` where the scope does not reach it.
    pub async fn find(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<Self> {
        Ok(Self::of(scope, &memory.get_thread(scope, thread).await?))
    }

    /// Looks at the thread, the turns in it that are not over, and what a context of it by `policy` is made of: all of it as of one
    /// instant, by one call of the store.
    ///
    /// # Errors
    /// As [`Memory::prefetch`]; `Corrupt` for a turn that does not decode.
    pub async fn read(
        memory: &Memory,
        scope: &Scope,
        thread: ThreadId,
        policy: &ContextPolicy,
    ) -> Result<(Self, Runs, Prefetched)> {
        let query = runs_of(thread);
        let mut prefetched = memory.prefetch(scope, thread, policy, &[], std::slice::from_ref(&query)).await?;
        let access = Self::of(scope, &prefetched.thread);
        let runs = match prefetched.lists.pop() {
            // Fewer than there is room for are all that there are.
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

    /// The same place for whoever asked a run's question: what others may read has no part in its answer.
    #[must_use]
    pub fn of_asker(&self, run: &RunRecord) -> Self {
        let tenant = self.scope.tenant_id().clone();
        let scope = match &run.asker {
            Some(Owner::User(user)) => Scope::User(tenant, user.clone()),
            Some(Owner::Tenant) => Scope::Tenant(tenant),
            None => self.scope.clone(),
        };
        Self { scope, ..self.clone() }
    }

    fn query(&self) -> RecordQuery {
        RecordQuery::of(RecordOwner::Thread(self.thread))
    }

    /// The turns that are not over, by one call.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn runs(&self, memory: &Memory) -> Result<Runs> {
        Runs::of(memory.list_records(&self.writer, runs_of(self.thread)).await?)
    }

    /// All approvals that are kept.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn approvals(&self, memory: &Memory) -> Result<Vec<Versioned<Approval>>> {
        let query = RecordQuery { namespace: Some(record::approvals()), ..self.query() };
        let found = memory.list_records(&self.writer, query).await?;
        let read = |record: Record| Ok(Versioned { value: record.value.read()?, version: record.tagged() });
        found.into_iter().map(read).collect()
    }

    /// The approvals of a turn, in the order of their requests.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn approvals_of(&self, memory: &Memory, turn: &str) -> Result<Vec<Versioned<Approval>>> {
        let mut approvals = self.approvals(memory).await?;
        approvals.retain(|approval| approval.value.turn == turn);
        approvals.sort_by_key(|approval| approval.value.request);
        Ok(approvals)
    }

    /// The journal of a run, in order, as whoever asks reads its entries.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn journal<T: DeserializeOwned>(&self, memory: &Memory, turn: &str) -> Result<Vec<T>> {
        let key_prefix = format!("{turn}/");
        let query = RecordQuery { namespace: Some(record::journals()), key_prefix, ..self.query() };
        let mut recorded = Vec::new();
        for record in memory.list_records(&self.writer, query).await? {
            recorded.extend(record.value.read::<Vec<T>>()?);
        }
        Ok(recorded)
    }
}

fn runs_of(thread: ThreadId) -> RecordQuery {
    RecordQuery { namespace: Some(record::runs()), ..RecordQuery::of(RecordOwner::Thread(thread)) }
}
