//! The audit log, which records actions that require the role `admin` or `approve`: who performed them, and when.
//!
//! The log is stored as messages in a thread of the internal tenant, which no API can access. All instances write to the same
//! thread, and each record contains the hash of the previous record ([`chain`]). One record is written before an action, and
//! another one with the outcome after the action. If the first record cannot be written, the action is not performed. Records
//! contain ids, but no request bodies, no message content and no secrets.

mod chain;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use threadkeep::{
    Memory, MemoryError, MemoryOptions, MessageQuery, Scope, TenantId, Thread, ThreadOrder, ThreadQuery, Timestamp,
};
use tokio::sync::Mutex;

pub use chain::{AuditFinding, AuditVerification};

use crate::caller::{Caller, Credential};

/// The maximum length of the target of an action, in bytes.
const TARGET_BYTES: usize = 200;
/// The maximum number of threads to read. The chain is one thread; earlier versions used a separate thread for each month.
const THREADS: usize = 1_000;
/// The number of messages to read at once.
const PAGE: usize = 500;

/// An action that was performed or was about to be performed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// The time.
    pub at: Timestamp,
    /// The actor: `key ID`, `token`, `this machine`, `command line`, or the name of a [`Sender`](crate::Sender), such as
    /// `shared key`.
    pub by: String,
    /// The tenant.
    pub tenant: String,
    /// The user on whose behalf the action was performed; `None` if it was performed for the whole tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The action: a method and a route, or a command such as `keys create`.
    pub act: String,
    /// The target: the id of a key, or the path of the request. Parts of the path that are not ids are replaced by their
    /// placeholders in the route: `/v1/preferences/{key}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The outcome: `begun` in the record before the action, which has started; in the record after it, the status of the response,
    /// `done` or `failed`.
    pub outcome: String,
    /// The request id, which also appears in the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The SHA-256 of the previous record, as lower-case hexadecimal digits; `None` in records written by earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
}

/// An action that a caller is about to perform.
#[derive(Clone, Debug)]
pub struct AuditAction {
    /// The action: a method and a route, or the name that a door, one of the server's APIs, gives to it: `approve in Slack`.
    pub act: String,
    /// The target: an id, or a path whose parts that are not ids are replaced by their placeholders in the route.
    pub target: Option<String>,
    /// The request id, which also appears in the server's log.
    pub request_id: Option<String>,
}

impl AuditRecord {
    /// Creates the record to be written before an action.
    pub(crate) fn started(caller: &Caller, action: AuditAction, at: Timestamp) -> Self {
        let (tenant, user) = tenant_and_user(&caller.scope);
        let AuditAction { act, target, request_id } = action;
        // A token for a browser acts for the caller that created it.
        let credential = match &caller.credential {
            Credential::Browser { issuer } => &**issuer,
            credential => credential,
        };
        let by = match credential {
            Credential::Key(id) => format!("key {id}"),
            Credential::Token { .. } => "token".to_owned(),
            Credential::Local { .. } => "this machine".to_owned(),
            Credential::Door(name) => name.clone(),
            Credential::Browser { .. } => "token".to_owned(),
        };
        let (target, outcome) = (target.as_deref().map(truncate_target), "begun".to_owned());
        Self { at, by, tenant, user, act, target, outcome, request_id, previous: None }
    }
}

/// The audit log of a store.
#[derive(Clone, Debug)]
pub struct AuditLog {
    memory: Memory,
    scope: Scope,
    write_lock: Arc<Mutex<()>>,
}

impl AuditLog {
    /// Opens the log in the store that `memory` uses.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        // The retention policy for conversations does not apply to the audit log.
        let options = MemoryOptions { retention: None, thread_cache_bytes: 0, ..memory.options().clone() };
        let memory = memory.with_options(options).expect("options without retention are valid");
        Self { memory, scope: Scope::Tenant(TenantId::internal()), write_lock: Arc::default() }
    }

    /// Records an action that was performed on the command line.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn record_command(&self, tenant: &TenantId, act: &str, target: &str) -> Result<(), MemoryError> {
        let record = self.command_record(&Scope::Tenant(tenant.clone()), act, target);
        self.write(&AuditRecord { outcome: "done".to_owned(), ..record }).await
    }

    /// Performs an action for the command line. Writes a record before the action, and another with the outcome after it. If the
    /// first record cannot be written, the action is not performed. `target` is an id.
    ///
    /// # Errors
    /// Errors from the action and from the store.
    pub async fn audited_command<T, E: From<MemoryError>>(
        &self,
        scope: &Scope,
        act: &str,
        target: &str,
        action: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let started = self.command_record(scope, act, target);
        self.write(&started).await?;
        let result = action.await;
        let outcome = if result.is_ok() { "done" } else { "failed" }.to_owned();
        let written = self.write(&AuditRecord { at: self.memory.now(), outcome, ..started }).await;
        // An error from the action takes precedence over an error from writing the second record.
        let value = result?;
        written?;
        Ok(value)
    }

    /// Creates the record to be written before an action on the command line.
    fn command_record(&self, scope: &Scope, act: &str, target: &str) -> AuditRecord {
        let (tenant, user) = tenant_and_user(scope);
        AuditRecord {
            at: self.memory.now(),
            by: "command line".to_owned(),
            tenant,
            user,
            act: act.to_owned(),
            target: Some(truncate_target(target)),
            outcome: "begun".to_owned(),
            request_id: None,
            previous: None,
        }
    }

    /// Lists the newest `limit` records of a tenant, oldest first.
    ///
    /// # Errors
    /// Errors from the store.
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

    /// Returns the threads that contain records, newest first.
    async fn threads(&self) -> Result<Vec<Thread>, MemoryError> {
        let page = self.memory.list_threads(&self.scope, &ThreadQuery::new(ThreadOrder::Created, THREADS)).await?;
        let is_log = |thread: &Thread| thread.key.as_ref().is_some_and(|key| key.as_str().starts_with("audit:"));
        Ok(page.threads.into_iter().rev().filter(is_log).collect())
    }
}

/// Returns the tenant and the user of a scope.
fn tenant_and_user(scope: &Scope) -> (String, Option<String>) {
    match scope {
        Scope::Tenant(tenant) => (tenant.as_str().to_owned(), None),
        Scope::User(tenant, user) => (tenant.as_str().to_owned(), Some(user.as_str().to_owned())),
    }
}

fn truncate_target(text: &str) -> String {
    text.char_indices().take_while(|(start, _)| *start < TARGET_BYTES).map(|(_, char)| char).collect()
}
