//! Where a turn takes place, and what lies there.

use serde::de::DeserializeOwned;
use threadkeep_core::{Access, Document, DocumentOwner, DocumentQuery, Owner, Scope, ThreadId, Timestamp};

use super::record::{self, RunRecord};
use super::{Approval, is_alive};
use crate::{Memory, Result};

/// A thread, and on whose behalf it is read and written.
#[derive(Clone, Debug)]
pub struct Place {
    /// Who asks.
    pub scope: Scope,
    /// Who writes: a user may add messages to a shared thread, and the turn's own documents are the application's.
    pub writer: Scope,
    /// The thread.
    pub thread: ThreadId,
    /// The user who asks in a shared thread.
    pub author: Option<String>,
}

/// A document of a thread with its version.
#[derive(Clone, Debug)]
pub struct Versioned<T> {
    /// What it says.
    pub value: T,
    /// Its version.
    pub version: u64,
}

/// The turns of a thread that are not over.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The one that holds the thread.
    pub active: Option<Versioned<RunRecord>>,
    /// Those that wait for a person.
    pub waiting: Vec<Versioned<RunRecord>>,
}

impl RunRecord {
    /// Whether somebody is believed to drive it.
    #[must_use]
    pub fn is_alive(&self, now: Timestamp) -> bool {
        is_alive(&self.driver, self.lease_until, now)
    }
}

impl Place {
    /// Looks at the thread.
    ///
    /// # Errors
    /// `NotFound` where the scope does not reach it.
    pub async fn find(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<Self> {
        let owner = memory.get_thread(scope, thread).await?.owner;
        let writer = match scope.access(&owner) {
            Access::Full => scope.clone(),
            _ => Scope::Tenant(scope.tenant_id().clone()),
        };
        let author = match (scope, &owner) {
            (Scope::User(_, user), Owner::Tenant) => Some(user.as_str().to_owned()),
            _ => None,
        };
        Ok(Self { scope: scope.clone(), writer, thread, author })
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

    fn query(&self) -> DocumentQuery {
        DocumentQuery::of(DocumentOwner::Thread(self.thread))
    }

    /// The turns that are not over, by one call.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn runs(&self, memory: &Memory) -> Result<Runs> {
        let query = DocumentQuery { namespace: Some(record::runs()), ..self.query() };
        let mut runs = Runs::default();
        for document in memory.list_documents(&self.writer, query).await? {
            let run = Versioned { value: document.value.read()?, version: document.version };
            if record::is_active(&document.key) {
                runs.active = Some(run);
            } else {
                runs.waiting.push(run);
            }
        }
        Ok(runs)
    }

    /// All approvals that are kept.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn approvals(&self, memory: &Memory) -> Result<Vec<Versioned<Approval>>> {
        let query = DocumentQuery { namespace: Some(record::approvals()), ..self.query() };
        let found = memory.list_documents(&self.writer, query).await?;
        let read = |document: Document| Ok(Versioned { value: document.value.read()?, version: document.version });
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
        let query = DocumentQuery { namespace: Some(record::journals()), key_prefix, ..self.query() };
        let mut recorded = Vec::new();
        for document in memory.list_documents(&self.writer, query).await? {
            recorded.extend(document.value.read::<Vec<T>>()?);
        }
        Ok(recorded)
    }
}
