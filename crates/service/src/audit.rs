//! The audit log: who did what needs the role of an administrator or approver, and when.
//!
//! It lies in the store, as messages of a thread of the internal tenant, which nobody can name: every instance writes the
//! same one, and each record names the hash of the one before ([`chain`]). An act is written before it is done, and again
//! with how it ended; one that cannot be written is not done. It holds ids; bodies, words and secrets are not in it.

mod chain;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use threadkeep::{
    Memory, MemoryError, MemoryOptions, MessageQuery, Scope, TenantId, Thread, ThreadOrder, ThreadQuery, Timestamp,
};
use tokio::sync::Mutex;

pub use chain::{AuditFinding, AuditVerification};

use crate::caller::{Caller, Credential};

/// Bytes of what an act is done to.
const TARGET_BYTES: usize = 200;
/// Threads that are looked at: the chain, and one for each month in which an earlier version wrote.
const THREADS: usize = 1_000;
const PAGE: usize = 500;

/// Something that was done, or was going to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// When.
    pub at: Timestamp,
    /// By whom: `key ID`, `token`, `this machine`, `command line`, or whom a door knows by itself, such as `shared key`.
    pub by: String,
    /// In which tenant.
    pub tenant: String,
    /// On behalf of which user; none for the tenant itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What: a method and a route, or `keys create`.
    pub act: String,
    /// To what: the path, with names that are no ids left out, or a key's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// `begun`, then the status of the answer, or `done`.
    pub outcome: String,
    /// The request, as the server's log names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The hash of the record before this one, as a lower-case hexadecimal SHA-256; none in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
}

/// What a caller is going to do.
#[derive(Clone, Debug)]
pub struct Act {
    /// What: a method and a route, or what a door calls it.
    pub act: String,
    /// To what: an id, or a path in which names that are no ids are left out.
    pub target: Option<String>,
    /// The request, as the log names it.
    pub request_id: Option<String>,
}

impl AuditRecord {
    /// What a caller is going to do.
    pub(crate) fn begun(caller: &Caller, act: Act, at: Timestamp) -> Self {
        let (tenant, user) = names(&caller.scope);
        let Act { act, target, request_id } = act;
        let by = match &caller.credential {
            Credential::Key(id) => format!("key {id}"),
            Credential::Token { .. } => "token".to_owned(),
            Credential::Local { .. } => "this machine".to_owned(),
            Credential::Door(name) => name.clone(),
        };
        let (target, outcome) = (target.as_deref().map(cut), "begun".to_owned());
        Self { at, by, tenant, user, act, target, outcome, request_id, previous: None }
    }
}

/// The audit log of a store.
#[derive(Clone, Debug)]
pub struct AuditLog {
    memory: Memory,
    scope: Scope,
    writing: Arc<Mutex<()>>,
}

impl AuditLog {
    /// Opens the log that lies in a memory's store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        // All of it is kept and read, whatever is kept of conversations.
        let options = MemoryOptions { retention: None, thread_cache_bytes: 0, ..memory.options().clone() };
        let memory = memory.with_options(options).expect("options without a retention are as sound as those with it");
        Self { memory, scope: Scope::Tenant(TenantId::internal()), writing: Arc::default() }
    }

    /// Writes down what somebody has done at the command line.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn record_command(&self, tenant: &TenantId, act: &str, target: &str) -> Result<(), MemoryError> {
        let record = self.command(&Scope::Tenant(tenant.clone()), act, target);
        self.write(&AuditRecord { outcome: "done".to_owned(), ..record }).await
    }

    /// Writes down what somebody is going to do at the command line, does it, and writes down how it ended. What cannot be
    /// written down is not done. `target` is an id.
    ///
    /// # Errors
    /// Those of what is done, and of the store.
    pub async fn around_command<T, E: From<MemoryError>>(
        &self,
        scope: &Scope,
        act: &str,
        target: &str,
        doing: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let begun = self.command(scope, act, target);
        self.write(&begun).await?;
        let done = doing.await;
        let outcome = if done.is_ok() { "done" } else { "failed" }.to_owned();
        let ended = self.write(&AuditRecord { at: self.memory.now(), outcome, ..begun }).await;
        // Why it failed says more than that this could not be written either.
        let done = done?;
        ended?;
        Ok(done)
    }

    fn command(&self, scope: &Scope, act: &str, target: &str) -> AuditRecord {
        let (tenant, user) = names(scope);
        AuditRecord {
            at: self.memory.now(),
            by: "command line".to_owned(),
            tenant,
            user,
            act: act.to_owned(),
            target: Some(cut(target)),
            outcome: "begun".to_owned(),
            request_id: None,
            previous: None,
        }
    }

    /// Lists what was done in a tenant, oldest first: the newest `limit` records.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list(&self, tenant: &TenantId, limit: usize) -> Result<Vec<AuditRecord>, MemoryError> {
        let mut newest_first = Vec::new();
        for thread in self.threads().await? {
            let mut before = None;
            while newest_first.len() < limit {
                let query = MessageQuery { before, ..MessageQuery::newest(PAGE) };
                let page = self.memory.messages(&self.scope, thread.id, &query).await?;
                let records = page
                    .messages
                    .iter()
                    .rev()
                    .filter_map(|message| serde_json::from_str::<AuditRecord>(&message.plain_text()).ok());
                newest_first.extend(records.filter(|record| record.tenant == tenant.as_str()));
                before = page.messages.first().map(|message| threadkeep::Bound::Seq(message.seq));
                if !page.more {
                    break;
                }
            }
        }
        newest_first.truncate(limit);
        newest_first.reverse();
        Ok(newest_first)
    }

    /// The threads that hold records, newest first.
    async fn threads(&self) -> Result<Vec<Thread>, MemoryError> {
        let page = self.memory.list_threads(&self.scope, &ThreadQuery::new(ThreadOrder::Created, THREADS)).await?;
        let is_log = |thread: &Thread| thread.key.as_ref().is_some_and(|key| key.as_str().starts_with("audit:"));
        Ok(page.threads.into_iter().rev().filter(is_log).collect())
    }
}

/// A scope's tenant, and its user.
fn names(scope: &Scope) -> (String, Option<String>) {
    match scope {
        Scope::Tenant(tenant) => (tenant.as_str().to_owned(), None),
        Scope::User(tenant, user) => (tenant.as_str().to_owned(), Some(user.as_str().to_owned())),
    }
}

fn cut(text: &str) -> String {
    text.char_indices().take_while(|(start, _)| *start < TARGET_BYTES).map(|(_, char)| char).collect()
}
