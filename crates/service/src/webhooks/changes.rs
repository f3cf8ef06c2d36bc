//! Reads the changes of threads that a webhook has not read yet, from the change logs of the threads.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use threadkeep::agent::approval_id;
use threadkeep::core::{Change, ChangePage, ChangedThread, Effect, TaggedNumber};
use threadkeep::memory::turns::ended_turn_id;
use threadkeep::{Memory, Namespace, Positions, RecordName, Scope, ThreadId, Timestamp};

use super::Webhook;
use super::deliveries::{EventKind, RETENTION_MS, WebhookEvent};
use super::records::{Kind, Records};
use crate::error::{ErrorKind, Result};

/// The number of changes that are read at once.
const PAGE: usize = 100;
/// A deleted thread that is younger than this, and of which no event was read, is assumed to have been created for a single
/// question.
const EPHEMERAL_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// How far a webhook has read a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Position {
    /// Up to and including this change.
    Change(String),
    /// The thread was deleted.
    Deleted(Timestamp),
    /// The thread was created for a single question. Its events are not sent.
    Ephemeral,
}

/// The next events of a thread.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) events: Vec<WebhookEvent>,
    /// How far the thread has been read; `None` if that is not stored.
    pub(super) position: Option<Position>,
    /// Whether there are more changes.
    pub(super) more: bool,
}

impl Step {
    const NOTHING: Self = Self { events: Vec::new(), position: None, more: false };
}

/// Reads changes on behalf of a webhook.
#[derive(Clone, Debug)]
pub(super) struct ChangeReader {
    pub(super) memory: Memory,
    pub(super) scope: Scope,
    pub(super) records: Records,
}

impl ChangeReader {
    /// Reads the next events of a thread that has changed.
    pub(super) async fn read(&self, webhook: &Webhook, changed: &ChangedThread) -> Result<Step> {
        let key = position_key(webhook, changed.id);
        let position = self.records.find::<Position>(Kind::Position, &key).await?.map(|stored| stored.value);
        let Some(positions) = changed.positions else { return Ok(self.read_deletion(webhook, changed.id, position)) };
        let result = match position {
            Some(Position::Ephemeral) => return Ok(Step::NOTHING),
            Some(Position::Change(change)) => {
                let after = change.parse().unwrap_or_default();
                self.read_after(webhook, changed.id, after, Vec::new()).await
            }
            Some(Position::Deleted(_)) | None => self.read_first(webhook, changed.id, positions).await,
        };
        match result {
            // The thread has been deleted. The next update reports the deletion.
            Err(error) if error.kind == ErrorKind::NotFound => Ok(Step::NOTHING),
            result => result,
        }
    }

    /// Stores how far a thread has been read.
    pub(super) async fn save(&self, webhook: &Webhook, thread: ThreadId, position: &Position) -> Result<()> {
        let expires_at = self.memory.now().plus_ms(2 * RETENTION_MS);
        self.records.write(Kind::Position, &position_key(webhook, thread), None, position, Some(expires_at)).await?;
        Ok(())
    }

    fn read_deletion(&self, webhook: &Webhook, thread: ThreadId, position: Option<Position>) -> Step {
        let now = self.memory.now();
        let at = match position {
            Some(Position::Ephemeral) => return Step::NOTHING,
            // No event of the thread was sent before, and most threads that are deleted soon after their creation were created
            // for a single question. So its deletion is not reported.
            None if created_since(thread, webhook.created_at, now) => return Step::NOTHING,
            // The event has the same time, and so the same id, when it is read again after a crash.
            Some(Position::Deleted(at)) => at,
            Some(Position::Change(_)) | None => now,
        };
        let event = WebhookEvent { thread, at, kind: EventKind::Deleted };
        let events = if webhook.wants("deleted") { vec![event] } else { Vec::new() };
        Step { events, position: Some(Position::Deleted(at)), more: false }
    }

    /// Reads a thread for the first time.
    async fn read_first(&self, webhook: &Webhook, id: ThreadId, positions: Positions) -> Result<Step> {
        let thread = self.memory.get_thread(&self.scope, id).await?;
        if thread.is_ephemeral() {
            return Ok(Step { position: Some(Position::Ephemeral), ..Step::NOTHING });
        }
        if thread.created_at >= webhook.created_at {
            let event = WebhookEvent { thread: id, at: thread.created_at, kind: EventKind::Created };
            let events = if webhook.wants("created") { vec![event] } else { Vec::new() };
            return self.read_after(webhook, id, TaggedNumber::default(), events).await;
        }
        // Older changes are not retained.
        let since = webhook.created_at.max(self.memory.now().plus_ms(-RETENTION_MS));
        let start = self.find_start(id, positions.change, since).await?;
        self.read_after(webhook, id, start.into(), Vec::new()).await
    }

    /// Returns the last change of a thread before `since`, by binary search.
    async fn find_start(&self, thread: ThreadId, last: u64, since: Timestamp) -> Result<u64> {
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = low + (high - low) / 2;
            let is_since = match self.list_changes(thread, middle.into(), 1).await? {
                ChangePage::Changes { changes, .. } => changes.first().is_some_and(|change| change.at >= since),
                // The changes after this one are not retained.
                ChangePage::Reset { .. } => false,
            };
            if is_since {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    async fn read_after(
        &self,
        webhook: &Webhook,
        thread: ThreadId,
        after: TaggedNumber,
        mut events: Vec<WebhookEvent>,
    ) -> Result<Step> {
        let (last, more) = match self.list_changes(thread, after, PAGE).await? {
            ChangePage::Reset { positions } => {
                let kind = EventKind::Reset(positions.tagged());
                events.push(WebhookEvent { thread, at: self.memory.now(), kind });
                (positions.tagged(), false)
            }
            ChangePage::Changes { changes, positions } => {
                let last = changes.last().map_or(after, Change::tagged);
                let wanted = changes.iter().filter(|change| is_wanted(webhook, change));
                events.extend(wanted.map(|change| WebhookEvent {
                    thread,
                    at: change.at,
                    kind: EventKind::Commit(change.tagged()),
                }));
                (last, last.number < positions.change && !changes.is_empty())
            }
        };
        Ok(Step { events, position: Some(Position::Change(last.to_string())), more })
    }

    async fn list_changes(&self, thread: ThreadId, after: TaggedNumber, limit: usize) -> Result<ChangePage> {
        let store = &self.memory.backend().store;
        Ok(store.list_changes(&self.scope, thread, after, limit, self.memory.now()).await?)
    }
}

fn position_key(webhook: &Webhook, thread: ThreadId) -> String {
    format!("{}.{thread}", webhook.id)
}

fn is_wanted(webhook: &Webhook, change: &Change) -> bool {
    change.effects.iter().filter_map(event_name).any(|name| webhook.wants(name))
}

/// Returns the name of the event that reports an effect; `None` for effects that are not reported.
fn event_name(effect: &Effect) -> Option<&'static str> {
    match effect {
        Effect::Appended { .. } => Some("appended"),
        Effect::Replaced { .. } => Some("replaced"),
        Effect::Erased { .. } => Some("erased"),
        Effect::Trimmed { .. } => Some("trimmed"),
        Effect::Patched => Some("patched"),
        Effect::RecordPut { name, .. } if ended_turn_id(name).is_some() => Some("turn"),
        Effect::RecordPut { name, .. } | Effect::RecordDeleted { name } => record_event_name(name),
    }
}

fn record_event_name(name: &RecordName) -> Option<&'static str> {
    match &name.namespace {
        Namespace::App(_) => Some("document"),
        Namespace::System(_) => approval_id(name).map(|_| "approval"),
    }
}

/// Whether a thread was created after the webhook and within the last day, according to the time in its id. `false` if the id does not
/// contain a time.
fn created_since(thread: ThreadId, since: Timestamp, now: Timestamp) -> bool {
    let id = thread.to_string().replace('-', "");
    let Some(millis) = id.get(..12).filter(|_| id.get(12..13) == Some("7")) else { return false };
    let Ok(millis) = i64::from_str_radix(millis, 16) else { return false };
    let oldest = now.as_millis() - i64::try_from(EPHEMERAL_AGE.as_millis()).unwrap_or(i64::MAX);
    millis >= since.as_millis().max(oldest)
}
