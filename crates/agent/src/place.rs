//! Where a turn takes place, and what lies there.

use threadkeep_core::{Access, Document, DocumentOwner, DocumentQuery, Owner, Scope, ThreadId};
use threadkeep_memory::Memory;

use crate::record::{self, Recorded, RunRecord};
use crate::{Approval, Result};

/// A thread, and on whose behalf it is read and written.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Who asks.
    pub(crate) scope: Scope,
    /// Who writes: a user may add messages to a shared thread, and the run's own documents are the application's.
    pub(crate) writer: Scope,
    pub(crate) thread: ThreadId,
    /// The user who asks in a shared thread.
    pub(crate) author: Option<String>,
}

/// A document of a thread with its version.
#[derive(Clone, Debug)]
pub(crate) struct Versioned<T> {
    pub(crate) value: T,
    pub(crate) version: u64,
}

/// The runs of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    pub(crate) active: Option<Versioned<RunRecord>>,
    pub(crate) waiting: Vec<Versioned<RunRecord>>,
}

impl Place {
    /// Looks at the thread.
    ///
    /// # Errors
    /// `NotFound` where the scope does not reach it.
    pub(crate) async fn find(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<Self> {
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
    pub(crate) fn of_asker(&self, run: &RunRecord) -> Self {
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

    pub(crate) async fn runs(&self, memory: &Memory) -> Result<Runs> {
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

    pub(crate) async fn approvals(&self, memory: &Memory) -> Result<Vec<Versioned<Approval>>> {
        let query = DocumentQuery { namespace: Some(record::approvals()), ..self.query() };
        let found = memory.list_documents(&self.writer, query).await?;
        let read = |document: Document| Ok(Versioned { value: document.value.read()?, version: document.version });
        found.into_iter().map(read).collect()
    }

    pub(crate) async fn approvals_of(&self, memory: &Memory, turn: &str) -> Result<Vec<Versioned<Approval>>> {
        let mut approvals = self.approvals(memory).await?;
        approvals.retain(|approval| approval.value.turn == turn);
        approvals.sort_by_key(|approval| approval.value.request);
        Ok(approvals)
    }

    /// The journal of a run, in order.
    pub(crate) async fn journal(&self, memory: &Memory, turn: &str) -> Result<Vec<Recorded>> {
        let key_prefix = format!("{turn}/");
        let query = DocumentQuery { namespace: Some(record::journals()), key_prefix, ..self.query() };
        let mut recorded = Vec::new();
        for document in memory.list_documents(&self.writer, query).await? {
            recorded.extend(document.value.read::<Vec<Recorded>>()?);
        }
        Ok(recorded)
    }
}
