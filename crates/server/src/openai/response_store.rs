//! Stores responses and chat completions that belong to no thread. They are stored for 30 days as records of the caller's user or
//! tenant.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use threadkeep::core::{RecordQuery, RecordWrite};
use threadkeep::{JsonText, Namespace, Record, RecordOwner, Scope};

use super::turn::RETENTION_MS;
use crate::app::App;
use crate::error::ApiError;

/// The maximum number of bytes of a response in one record. Encoding a piece as a JSON string at most doubles its length.
const PIECE_BYTES: usize = threadkeep::core::limits::RECORD_BYTES / 2 - 1024;
/// Separates the key of a response from the number of a piece.
const PIECE_SEPARATOR: char = '.';

/// A store for one kind of response. Each response is stored under a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseStore {
    namespace: &'static str,
}

/// The value of a response's own record if the response is too large for one record and is therefore divided into pieces.
#[derive(Serialize, Deserialize)]
struct Pieces {
    /// The number of records that contain the pieces.
    #[serde(default)]
    pieces: usize,
}

impl ResponseStore {
    pub(super) const fn new(namespace: &'static str) -> Self {
        Self { namespace }
    }

    /// Stores a response. Replaces any response with the same key.
    pub(super) async fn write<T: Serialize + Sync>(
        self,
        app: &App,
        scope: &Scope,
        key: &str,
        response: &T,
    ) -> Result<(), ApiError> {
        let whole = JsonText::of(response)?;
        if whole.as_str().len() <= PIECE_BYTES {
            return self.put(app, scope, key.to_owned(), Some(whole)).await;
        }
        let (mut rest, mut pieces) = (whole.as_str(), 0);
        while !rest.is_empty() {
            let (text, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
            pieces += 1;
            self.put(app, scope, piece_key(key, pieces), Some(JsonText::of(text)?)).await?;
            rest = after;
        }
        // This record is written last, so that a response is either complete or missing, but never partial.
        self.put(app, scope, key.to_owned(), Some(JsonText::of(&Pieces { pieces })?)).await
    }

    /// Deletes a response.
    pub(super) async fn delete(self, app: &App, scope: &Scope, key: &str) -> Result<(), ApiError> {
        // The stored number of pieces is not used, because a response that was replaced may have had more pieces.
        for number in 1.. {
            let piece = piece_key(key, number);
            if self.get(app, scope, &piece).await?.is_none() {
                break;
            }
            self.put(app, scope, piece, None).await?;
        }
        self.put(app, scope, key.to_owned(), None).await
    }

    /// Finds a response.
    pub(super) async fn find<T: DeserializeOwned>(
        self,
        app: &App,
        scope: &Scope,
        key: &str,
    ) -> Result<Option<T>, ApiError> {
        match self.get(app, scope, key).await? {
            Some(stored) => self.read(app, scope, key, &stored).await,
            None => Ok(None),
        }
    }

    /// Lists the responses after a key, in byte order of their keys. Also returns the value of `after` for the next page, if
    /// there may be more responses.
    pub(super) async fn list<T: DeserializeOwned>(
        self,
        app: &App,
        scope: &Scope,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<(String, T)>, Option<String>), ApiError> {
        let (memory, namespace) = (app.memory(), self.namespace());
        let after = after.map(|key| (namespace.clone(), key));
        let query = RecordQuery { namespace: Some(namespace), after, limit, ..RecordQuery::of(owner(scope)) };
        let records = memory.backend().store.list_records(scope, &query, memory.now()).await?;
        let next = records.last().filter(|_| records.len() == limit).map(|last| last.key.clone());
        let mut responses = Vec::with_capacity(records.len());
        for Record { key, value, .. } in records {
            if key.contains(PIECE_SEPARATOR) {
                continue;
            }
            if let Some(response) = self.read(app, scope, &key, &value).await? {
                responses.push((key, response));
            }
        }
        Ok((responses, next))
    }

    /// Reads a response from its record, or from the records of its pieces. Returns `None` if a piece is missing.
    async fn read<T: DeserializeOwned>(
        self,
        app: &App,
        scope: &Scope,
        key: &str,
        stored: &JsonText,
    ) -> Result<Option<T>, ApiError> {
        let Pieces { pieces } = stored.read()?;
        if pieces == 0 {
            return Ok(Some(stored.read()?));
        }
        let mut whole = String::new();
        for number in 1..=pieces {
            let Some(text) = self.get(app, scope, &piece_key(key, number)).await? else { return Ok(None) };
            whole.push_str(&text.read::<String>()?);
        }
        Ok(Some(JsonText::new(whole)?.read()?))
    }

    async fn get(self, app: &App, scope: &Scope, key: &str) -> Result<Option<JsonText>, ApiError> {
        let (memory, owner) = (app.memory(), owner(scope));
        let store = &memory.backend().store;
        let found = store.find_record(scope, &owner, &self.namespace(), key, memory.now()).await?;
        Ok(found.map(|record| record.value))
    }

    async fn put(self, app: &App, scope: &Scope, key: String, value: Option<JsonText>) -> Result<(), ApiError> {
        let memory = app.memory();
        let write = RecordWrite {
            owner: owner(scope),
            namespace: self.namespace(),
            key,
            expected: None,
            value,
            expires_at: Some(memory.now().plus_ms(RETENTION_MS)),
        };
        memory.backend().store.write_record(scope, write, memory.now()).await?;
        Ok(())
    }

    fn namespace(self) -> Namespace {
        Namespace::System(self.namespace.to_owned())
    }
}

fn piece_key(key: &str, number: usize) -> String {
    format!("{key}{PIECE_SEPARATOR}{number}")
}

/// Returns the owner of the records that a caller stores.
pub(super) fn owner(scope: &Scope) -> RecordOwner {
    match scope {
        Scope::User(_, user) => RecordOwner::User(user.clone()),
        Scope::Tenant(_) => RecordOwner::Tenant,
    }
}
