//! Reads and writes the records of webhooks.
//!
//! They are records of the webhook's owner, a user or the tenant, so that erasing the user also removes them. A record of the internal
//! tenant lists the webhook, so that the dispatcher finds it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use threadkeep::core::{RecordQuery, RecordWrite, limits};
use threadkeep::{Conflict, JsonText, Memory, Namespace, Record, RecordOwner, Scope, StoreError, TenantId, Timestamp};

use crate::error::Result;

/// The kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The configuration of a webhook, by its id.
    Webhook,
    /// How far a webhook has read the list of changed threads, by its id.
    Cursor,
    /// How far a webhook has read the changes of a thread, by the ids of both.
    Position,
    /// The deliveries that still have to be sent.
    Queue,
    /// The deliveries that have ended.
    History,
    /// The scopes of all webhooks, in the internal tenant.
    Registry,
    /// The instance that sends webhooks, in the internal tenant.
    Dispatcher,
}

impl Kind {
    fn namespace(self) -> Namespace {
        let name = match self {
            Self::Webhook => "webhook",
            Self::Cursor => "webhook_cursor",
            Self::Position => "webhook_position",
            Self::Queue => "webhook_queue",
            Self::History => "webhook_delivery",
            Self::Registry => "server.webhooks",
            Self::Dispatcher => "server.webhook_dispatcher",
        };
        Namespace::System(name.to_owned())
    }
}

/// A decoded record.
#[derive(Debug)]
pub(super) struct Stored<T> {
    pub(super) key: String,
    pub(super) value: T,
    pub(super) version: u64,
}

/// The records of one owner.
#[derive(Clone, Debug)]
pub(super) struct Records {
    memory: Memory,
    scope: Scope,
    owner: RecordOwner,
}

impl Records {
    /// Returns the records of a user or of a tenant.
    pub(super) fn of(memory: &Memory, scope: &Scope) -> Self {
        let owner = match scope {
            Scope::Tenant(_) => RecordOwner::Tenant,
            Scope::User(_, user) => RecordOwner::User(user.clone()),
        };
        Self { memory: memory.clone(), scope: scope.clone(), owner }
    }

    /// Returns the records of the internal tenant.
    pub(super) fn internal(memory: &Memory) -> Self {
        Self::of(memory, &Scope::Tenant(TenantId::internal()))
    }

    pub(super) async fn find<T: DeserializeOwned>(&self, kind: Kind, key: &str) -> Result<Option<Stored<T>>> {
        let store = &self.memory.backend().store;
        let found = store.find_record(&self.scope, &self.owner, &kind.namespace(), key, self.memory.now()).await?;
        Ok(found.map(decode).transpose()?)
    }

    /// Lists at most `limit` records whose keys begin with `prefix`, after the key `after`.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        kind: Kind,
        prefix: &str,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<Stored<T>>> {
        let query = RecordQuery {
            namespace: Some(kind.namespace()),
            key_prefix: prefix.to_owned(),
            after: after.map(|key| (kind.namespace(), key)),
            limit,
            ..RecordQuery::of(self.owner.clone())
        };
        let found = self.memory.backend().store.list_records(&self.scope, &query, self.memory.now()).await?;
        Ok(found.into_iter().map(decode).collect::<Result<_, StoreError>>()?)
    }

    /// Writes a record if it has the version `expected` (0: it does not exist; `None`: any). Returns the new version, or `None` if the
    /// record has another version.
    pub(super) async fn write<T: Serialize>(
        &self,
        kind: Kind,
        key: &str,
        expected: Option<u64>,
        value: &T,
        expires_at: Option<Timestamp>,
    ) -> Result<Option<u64>> {
        self.put(kind, key, expected, Some(JsonText::of(value)?), expires_at).await
    }

    pub(super) async fn delete(&self, kind: Kind, key: &str) -> Result<()> {
        self.put(kind, key, None, None, None).await.map(drop)
    }

    /// Deletes all records whose keys begin with `prefix`.
    pub(super) async fn delete_all(&self, kind: Kind, prefix: &str) -> Result<()> {
        loop {
            let found = self.list::<serde_json::Value>(kind, prefix, None, limits::PAGE).await?;
            for record in &found {
                self.delete(kind, &record.key).await?;
            }
            if found.len() < limits::PAGE {
                return Ok(());
            }
        }
    }

    async fn put(
        &self,
        kind: Kind,
        key: &str,
        expected: Option<u64>,
        value: Option<JsonText>,
        expires_at: Option<Timestamp>,
    ) -> Result<Option<u64>> {
        let is_deletion = value.is_none();
        let write = RecordWrite {
            owner: self.owner.clone(),
            namespace: kind.namespace(),
            key: key.to_owned(),
            expected,
            value,
            expires_at,
        };
        match self.memory.backend().store.write_record(&self.scope, write, self.memory.now()).await {
            Ok(outcome) => Ok(Some(outcome.version)),
            Err(StoreError::Conflict(Conflict::Record { .. })) => Ok(None),
            Err(StoreError::NotFound(_)) if is_deletion => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn decode<T: DeserializeOwned>(record: Record) -> Result<Stored<T>, StoreError> {
    Ok(Stored { value: record.value.read()?, key: record.key, version: record.version })
}
