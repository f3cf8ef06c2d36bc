//! Every commit among a caller's threads, for a listener who names none of them.
//!
//! Which threads changed is told by the store; what happened in one is read from where this listener was in it. Nothing
//! is kept but one number a thread, and a thread whose number is not known is told as `reset`, not guessed.

use std::collections::HashMap;
use std::time::Duration;

use axum::http::StatusCode;
use threadkeep::core::{ChangedThread, Tagged, ThreadOrder, ThreadQuery, limits};
use threadkeep::{Role, Scope, ThreadId, ThreadUpdate, Timestamp};

use super::json::{EndJson, UpdateJson};
use super::telling::Telling;
use crate::app::App;
use crate::error::Result;

/// Threads whose place is remembered at most; any other changed thread is told as `reset`.
const REMEMBERED: usize = 10_000;
/// Threads whose place is looked up when the listener comes: those that changed last.
const LOOKED_UP: usize = 1_000;
/// Between two attempts while the store cannot be reached.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Following {
    app: App,
    scope: Scope,
    roles: Vec<Role>,
    /// The last change of each thread that was told, or skipped for saying nothing to these roles.
    places: HashMap<ThreadId, Tagged>,
    since: Timestamp,
}

impl Following {
    /// Begins where the threads stand now. A listener who resumes passes `is_new` as false: where it was in each thread is
    /// not known here.
    pub(super) async fn begin(app: &App, scope: &Scope, roles: Vec<Role>, is_new: bool) -> Result<Self> {
        let since = app.memory().now();
        let mut places = HashMap::new();
        let mut query = ThreadQuery::new(ThreadOrder::Recent, limits::PAGE.min(LOOKED_UP));
        while is_new && places.len() < LOOKED_UP {
            let page = app.memory().list_threads(scope, &query).await?;
            places.extend(page.threads.iter().map(|thread| (thread.id, thread.positions.tagged())));
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        Ok(Self { app: app.clone(), scope: scope.clone(), roles, places, since })
    }

    /// What happened in a thread that is said to have changed, some of it at a time; nothing once all is told. While the
    /// store cannot be reached it waits.
    pub(super) async fn read(&mut self, changed: &ChangedThread) -> Option<Vec<Telling>> {
        loop {
            match self.read_once(changed).await {
                Ok(told) => return told,
                // It was deleted since, and that will be told next.
                Err(error) if error.status == StatusCode::NOT_FOUND => return None,
                Err(error) if error.status == StatusCode::SERVICE_UNAVAILABLE => tokio::time::sleep(PAUSE).await,
                Err(error) => {
                    tracing::warn!(error = error.message, "a thread that is followed could not be read");
                    let heard = self.places.get(&changed.id).copied();
                    self.remember(changed.id, changed.positions.unwrap_or_default().tagged());
                    return Some(vec![Telling::of(&UpdateJson::End(EndJson::new("failed", heard)))]);
                }
            }
        }
    }

    async fn read_once(&mut self, changed: &ChangedThread) -> Result<Option<Vec<Telling>>> {
        let thread = changed.id;
        let Some(positions) = changed.positions else {
            return Ok(self.places.remove(&thread).map(|_| vec![Telling::of(&UpdateJson::Deleted)]));
        };
        let Some(place) = self.place(thread).await? else {
            self.remember(thread, positions.tagged());
            return Ok(Some(self.told(thread, vec![ThreadUpdate::Reset { positions }]).await));
        };
        let Some(page) = self.app.memory().updates_after(&self.scope, thread, place, &self.roles).await? else {
            return Ok(None);
        };
        self.remember(thread, page.change);
        Ok(Some(self.told(thread, page.updates).await))
    }

    /// Where this listener is in a thread: at its beginning, where it was made since.
    async fn place(&self, thread: ThreadId) -> Result<Option<Tagged>> {
        if let Some(place) = self.places.get(&thread) {
            return Ok(Some(*place));
        }
        let is_made_since = self.app.memory().get_thread(&self.scope, thread).await?.created_at >= self.since;
        Ok(is_made_since.then(Tagged::default))
    }

    fn remember(&mut self, thread: ThreadId, change: Tagged) {
        if self.places.len() >= REMEMBERED && !self.places.contains_key(&thread) {
            let forgotten = self.places.keys().next().copied();
            forgotten.and_then(|forgotten| self.places.remove(&forgotten));
            // The forgotten one may have been made since, and must not be told from its beginning again.
            self.since = self.app.memory().now();
        }
        self.places.insert(thread, change);
    }

    async fn told(&self, thread: ThreadId, updates: Vec<ThreadUpdate>) -> Vec<Telling> {
        let mut told = Vec::with_capacity(updates.len());
        for update in &updates {
            let update = UpdateJson::of(&self.app, &self.scope, thread, update).await;
            told.extend(update.as_ref().map(Telling::of));
        }
        told
    }
}
