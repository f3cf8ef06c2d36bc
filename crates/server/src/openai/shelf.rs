//! Answers that are kept outside of any thread, for 30 days: documents of the caller.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use threadkeep::core::{DocumentQuery, DocumentWrite};
use threadkeep::{Document, DocumentOwner, JsonText, Namespace, Scope};

use super::turn::KEPT_MS;
use crate::app::App;
use crate::error::ApiError;

/// Bytes of an answer that lie in one document. As a text within JSON they are twice as many at most.
const PIECE_BYTES: usize = threadkeep::core::limits::DOCUMENT_BYTES / 2 - 1024;
/// Stands between an answer's key and the number of a piece.
const PIECE: char = '.';

/// What answers of one kind are kept on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shelf {
    namespace: &'static str,
}

/// What is kept in place of an answer that one document does not hold: in how many it lies.
#[derive(Serialize, Deserialize)]
struct Pieces {
    #[serde(default)]
    pieces: usize,
}

impl Shelf {
    pub(super) const fn new(namespace: &'static str) -> Self {
        Self { namespace }
    }

    /// Keeps an answer.
    pub(super) async fn write<T: Serialize + Sync>(
        self,
        app: &App,
        scope: &Scope,
        key: &str,
        answer: &T,
    ) -> Result<(), ApiError> {
        let whole = JsonText::of(answer)?;
        if whole.as_str().len() <= PIECE_BYTES {
            return self.put(app, scope, key.to_owned(), Some(whole)).await;
        }
        let (mut rest, mut pieces) = (whole.as_str(), 0);
        while !rest.is_empty() {
            let (text, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
            pieces += 1;
            self.put(app, scope, piece(key, pieces), Some(JsonText::of(text)?)).await?;
            rest = after;
        }
        // Last, so that an answer is there as a whole or not at all.
        self.put(app, scope, key.to_owned(), Some(JsonText::of(&Pieces { pieces })?)).await
    }

    /// Forgets an answer.
    pub(super) async fn delete(self, app: &App, scope: &Scope, key: &str) -> Result<(), ApiError> {
        // All that there are: an answer that was written anew may have had more of them before.
        for number in 1.. {
            let piece = piece(key, number);
            if self.get(app, scope, &piece).await?.is_none() {
                break;
            }
            self.put(app, scope, piece, None).await?;
        }
        self.put(app, scope, key.to_owned(), None).await
    }

    pub(super) async fn find<T: DeserializeOwned>(
        self,
        app: &App,
        scope: &Scope,
        key: &str,
    ) -> Result<Option<T>, ApiError> {
        match self.get(app, scope, key).await? {
            Some(kept) => self.whole(app, scope, key, &kept).await,
            None => Ok(None),
        }
    }

    /// The next answers by their keys, in byte order, and after which key there may be more.
    pub(super) async fn list<T: DeserializeOwned>(
        self,
        app: &App,
        scope: &Scope,
        after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<(String, T)>, Option<String>), ApiError> {
        let (memory, namespace) = (app.memory(), self.namespace());
        let after = after.map(|key| (namespace.clone(), key));
        let query = DocumentQuery { namespace: Some(namespace), after, limit, ..DocumentQuery::of(owner(scope)) };
        let documents = memory.backend().store.list_documents(scope, &query, memory.now()).await?;
        let next = documents.last().filter(|_| documents.len() == limit).map(|last| last.key.clone());
        let mut answers = Vec::with_capacity(documents.len());
        for Document { key, value, .. } in documents {
            if key.contains(PIECE) {
                continue;
            }
            if let Some(answer) = self.whole(app, scope, &key, &value).await? {
                answers.push((key, answer));
            }
        }
        Ok((answers, next))
    }

    async fn whole<T: DeserializeOwned>(
        self,
        app: &App,
        scope: &Scope,
        key: &str,
        kept: &JsonText,
    ) -> Result<Option<T>, ApiError> {
        let Pieces { pieces } = kept.read()?;
        if pieces == 0 {
            return Ok(Some(kept.read()?));
        }
        let mut whole = String::new();
        for number in 1..=pieces {
            let Some(text) = self.get(app, scope, &piece(key, number)).await? else { return Ok(None) };
            whole.push_str(&text.read::<String>()?);
        }
        Ok(Some(JsonText::new(whole)?.read()?))
    }

    async fn get(self, app: &App, scope: &Scope, key: &str) -> Result<Option<JsonText>, ApiError> {
        let (memory, owner) = (app.memory(), owner(scope));
        let store = &memory.backend().store;
        let found = store.find_document(scope, &owner, &self.namespace(), key, memory.now()).await?;
        Ok(found.map(|document| document.value))
    }

    async fn put(self, app: &App, scope: &Scope, key: String, value: Option<JsonText>) -> Result<(), ApiError> {
        let memory = app.memory();
        let write = DocumentWrite {
            owner: owner(scope),
            namespace: self.namespace(),
            key,
            expected: None,
            value,
            expires_at: Some(memory.now().plus_ms(KEPT_MS)),
        };
        memory.backend().store.write_document(scope, write, memory.now()).await?;
        Ok(())
    }

    fn namespace(self) -> Namespace {
        Namespace::System(self.namespace.to_owned())
    }
}

fn piece(key: &str, number: usize) -> String {
    format!("{key}{PIECE}{number}")
}

/// Whose documents a caller's answers are.
pub(super) fn owner(scope: &Scope) -> DocumentOwner {
    match scope {
        Scope::User(_, user) => DocumentOwner::User(user.clone()),
        Scope::Tenant(_) => DocumentOwner::Tenant,
    }
}
