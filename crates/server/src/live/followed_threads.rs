//! Reads the commits to all threads of a caller, for a client that follows all its threads without naming them.
//!
//! The store reports which threads have changed. The changes to each thread are then read from the client's position in the thread,
//! which is the number of the last change that the client has received. Only these positions are kept in memory. A thread whose
//! position is not known is reported as `reset`.

use std::collections::HashMap;
use std::time::Duration;

use axum::http::StatusCode;
use threadkeep::core::{ChangedThread, TaggedNumber, ThreadOrder, ThreadQuery, limits};
use threadkeep::{Role, Scope, ThreadId, ThreadUpdate, Timestamp};

use super::encoding::EncodedUpdate;
use super::json::{EndJson, UpdateJson};
use crate::app::App;
use crate::error::Result;

/// The maximum number of threads whose positions are kept. Other changed threads are reported as `reset`.
const MAX_POSITIONS: usize = 10_000;
/// The number of positions that are read when the subscription starts, from the most recently changed threads.
const INITIAL_POSITIONS: usize = 1_000;
/// The delay between attempts while the store is unavailable.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The state of a subscription to all threads of a caller.
pub(super) struct FollowedThreads {
    app: App,
    scope: Scope,
    roles: Vec<Role>,
    /// For each thread, the number and tag of the last change that was reported, or skipped because it has no messages with these
    /// roles.
    client_positions: HashMap<ThreadId, TaggedNumber>,
    /// Threads that were created at this instant or later are read from their first change.
    since: Timestamp,
}

impl FollowedThreads {
    /// Starts at the last change to each thread. `is_new` is false if the client resumes, in which case its positions are not known.
    pub(super) async fn start(app: &App, scope: &Scope, roles: Vec<Role>, is_new: bool) -> Result<Self> {
        let since = app.memory().now();
        let mut client_positions = HashMap::new();
        let mut query = ThreadQuery::new(ThreadOrder::Recent, limits::PAGE.min(INITIAL_POSITIONS));
        while is_new && client_positions.len() < INITIAL_POSITIONS {
            let page = app.memory().list_threads(scope, &query).await?;
            client_positions.extend(page.threads.iter().map(|thread| (thread.id, thread.positions.tagged())));
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        Ok(Self { app: app.clone(), scope: scope.clone(), roles, client_positions, since })
    }

    /// Reads the next updates of a thread that was reported as changed. Returns `None` when there are no more updates. Waits while
    /// the store is unavailable.
    pub(super) async fn read(&mut self, changed: &ChangedThread) -> Option<Vec<EncodedUpdate>> {
        loop {
            match self.read_once(changed).await {
                Ok(updates) => return updates,
                // The thread has been deleted. The next update reports the deletion.
                Err(error) if error.status == StatusCode::NOT_FOUND => return None,
                Err(error) if error.status == StatusCode::SERVICE_UNAVAILABLE => tokio::time::sleep(RETRY_DELAY).await,
                Err(error) => {
                    tracing::warn!(error = error.message, "failed to read a followed thread");
                    let last_change = self.client_positions.get(&changed.id).copied();
                    self.set_position(changed.id, changed.positions.unwrap_or_default().tagged());
                    return Some(vec![EncodedUpdate::of(&UpdateJson::End(EndJson::new("failed", last_change)))]);
                }
            }
        }
    }

    async fn read_once(&mut self, changed: &ChangedThread) -> Result<Option<Vec<EncodedUpdate>>> {
        let thread = changed.id;
        let Some(positions) = changed.positions else {
            return Ok(self.client_positions.remove(&thread).map(|_| vec![EncodedUpdate::of(&UpdateJson::Deleted)]));
        };
        let Some(position) = self.find_position(thread).await? else {
            self.set_position(thread, positions.tagged());
            return Ok(Some(self.encode(thread, vec![ThreadUpdate::Reset { positions }]).await));
        };
        let Some(page) = self.app.memory().updates_after(&self.scope, thread, position, &self.roles).await? else {
            return Ok(None);
        };
        self.set_position(thread, page.change);
        Ok(Some(self.encode(thread, page.updates).await))
    }

    /// Returns the client's position in a thread. For a thread that was created after the subscription started, this is the start
    /// of the thread. Returns `None` if the position is not known.
    async fn find_position(&self, thread: ThreadId) -> Result<Option<TaggedNumber>> {
        if let Some(position) = self.client_positions.get(&thread) {
            return Ok(Some(*position));
        }
        let was_created_since = self.app.memory().get_thread(&self.scope, thread).await?.created_at >= self.since;
        Ok(was_created_since.then(TaggedNumber::default))
    }

    fn set_position(&mut self, thread: ThreadId, change: TaggedNumber) {
        if self.client_positions.len() >= MAX_POSITIONS && !self.client_positions.contains_key(&thread) {
            let evicted = self.client_positions.keys().next().copied();
            evicted.and_then(|evicted| self.client_positions.remove(&evicted));
            // The evicted thread may have been created after `since`, and must not be reported from its first change again.
            self.since = self.app.memory().now();
        }
        self.client_positions.insert(thread, change);
    }

    async fn encode(&self, thread: ThreadId, updates: Vec<ThreadUpdate>) -> Vec<EncodedUpdate> {
        let mut encoded = Vec::with_capacity(updates.len());
        for update in &updates {
            let update = UpdateJson::of(self.app.memory(), &self.scope, thread, update).await;
            encoded.extend(update.as_ref().map(EncodedUpdate::of));
        }
        encoded
    }
}
