//! The audit log: who did what needs the role of an administrator or approver, and when.
//!
//! It lies in the store, as messages of threads of the tenant that keeps the keys, one thread a month: every instance
//! writes the same one, it can only grow, and no door reaches it. An act is written before it is done, and again with how
//! it ended; one that cannot be written is not done. Bodies, words and secrets are not in it.

use axum::extract::MatchedPath;
use axum::http::Method;
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};
use threadkeep::{
    Content, Draft, Memory, MemoryError, MessageQuery, Role, Scope, TenantId, ThreadKey, ThreadOrder, ThreadQuery,
    Timestamp,
};

use super::Caller;
use super::keys::{KeyRole, REGISTRY};
use crate::edge::RequestId;

/// Bytes of what an act is done to.
const TARGET_BYTES: usize = 200;
/// Threads that are looked at, a month each.
const MONTHS: usize = 1_000;
const PAGE: usize = 500;

/// Something that was done, or was going to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// When.
    pub at: Timestamp,
    /// By whom: `key ID`, `token`, `this machine`, or `command line`.
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
}

/// The audit log of a store.
#[derive(Clone, Debug)]
pub struct AuditLog {
    memory: Memory,
    scope: Scope,
}

impl AuditLog {
    /// Opens the log that lies in a memory's store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self { memory: memory.clone(), scope: Scope::tenant(REGISTRY).expect("it is a name") }
    }

    /// Writes down what somebody does at the command line.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn record_command(&self, tenant: &TenantId, act: &str, target: &str) -> Result<(), MemoryError> {
        let record = AuditRecord {
            at: self.memory.now(),
            by: "command line".to_owned(),
            tenant: tenant.as_str().to_owned(),
            user: None,
            act: act.to_owned(),
            target: Some(cut(target)),
            outcome: "done".to_owned(),
            request_id: None,
        };
        self.write(&record).await
    }

    /// Lists what was done in a tenant, oldest first: the newest `limit` records.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list(&self, tenant: &TenantId, limit: usize) -> Result<Vec<AuditRecord>, MemoryError> {
        let page = self.memory.list_threads(&self.scope, &ThreadQuery::new(ThreadOrder::Created, MONTHS)).await?;
        let is_month = |key: Option<&ThreadKey>| key.is_some_and(|key| key.as_str().starts_with("audit:"));
        let months = page.threads.into_iter().rev().filter(|thread| is_month(thread.key.as_ref()));
        let mut newest_first = Vec::new();
        for month in months {
            let mut before = None;
            while newest_first.len() < limit {
                let query = MessageQuery { before, ..MessageQuery::newest(PAGE) };
                let page = self.memory.messages(&self.scope, month.id, &query).await?;
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

    pub(super) async fn write(&self, record: &AuditRecord) -> Result<(), MemoryError> {
        let month: String = record.at.to_string().chars().take("2026-11".len()).collect();
        let thread = self.memory.open_by_key(&self.scope, format!("audit:{month}")).await?.thread.id;
        let text = serde_json::to_string(record)
            .map_err(|_| MemoryError::Invalid { field: "audit", reason: "it has no JSON form" })?;
        let draft = Draft::new(Content::text(Role::System, text));
        self.memory.append(&self.scope, thread, draft).await?;
        Ok(())
    }
}

/// What a request is going to do, where that is written down.
pub(super) fn act(
    request: &Parts,
    role: KeyRole,
    caller: &Caller,
    id: RequestId,
    now: Timestamp,
) -> Option<AuditRecord> {
    let route = request.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    // Everyone may erase their own, which is an act as well.
    let is_act = matches!(role, KeyRole::Admin | KeyRole::Approve) || route == "/v1/erase";
    if !is_act || matches!(request.method, Method::GET | Method::HEAD) {
        return None;
    }
    let (tenant, user) = match &caller.scope {
        Scope::Tenant(tenant) => (tenant, None),
        Scope::User(tenant, user) => (tenant, Some(user.as_str().to_owned())),
    };
    let path = request.uri.path();
    Some(AuditRecord {
        at: now,
        by: match (&caller.key_id, caller.until_seconds) {
            (Some(key), _) => format!("key {key}"),
            (None, Some(_)) => "token".to_owned(),
            (None, None) => "this machine".to_owned(),
        },
        tenant: tenant.as_str().to_owned(),
        user,
        act: format!("{} {route}", request.method),
        target: (path != route).then(|| cut(&named_by_id(path, route))),
        outcome: "begun".to_owned(),
        request_id: Some(id.as_str().to_owned()),
    })
}

/// A path without what callers name as they like: of what varies in its route ids alone are kept.
fn named_by_id(path: &str, route: &str) -> String {
    let is_kept = |part: &str, of_route: &str| part == of_route || part.parse::<threadkeep::ThreadId>().is_ok();
    let parts = path.split('/').zip(route.split('/'));
    let parts = parts.map(|(part, of_route)| if is_kept(part, of_route) { part } else { of_route });
    parts.collect::<Vec<_>>().join("/")
}

fn cut(text: &str) -> String {
    text.char_indices().take_while(|(start, _)| *start < TARGET_BYTES).map(|(_, char)| char).collect()
}
