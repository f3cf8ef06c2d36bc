//! Encodes updates for clients. An update that several subscriptions receive is encoded once.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use axum::extract::ws::Utf8Bytes;
use bytes::Bytes;
use threadkeep::agent::approval_id;
use threadkeep::core::{TaggedNumber, json_line};
use threadkeep::{Scope, ThreadEvent, ThreadId, ThreadUpdate};

use super::json::UpdateJson;
use crate::app::App;

/// The maximum size of a cached update, in bytes. Larger updates are encoded for each subscription, so that they do not stay in
/// memory until the next update.
const MAX_SHARED_BYTES: usize = 64 * 1024;
/// Once the cache has this many threads, threads without a subscription are removed from it.
const CLEANUP_THREADS: usize = 1_024;

/// An update, encoded as a server-sent event and as a WebSocket message.
#[derive(Debug)]
pub(super) struct EncodedUpdate {
    /// The update, if other subscriptions may receive the same update.
    update: Option<Arc<ThreadUpdate>>,
    change: Option<TaggedNumber>,
    is_end: bool,
    /// The encoded server-sent event.
    event: Bytes,
    /// The range of the data in the event.
    data: Range<usize>,
    /// The text of the WebSocket message, which is encoded on first use.
    text: OnceLock<Utf8Bytes>,
}

impl EncodedUpdate {
    pub(super) fn of(json: &UpdateJson<'_>) -> Self {
        let id = json.change().map(|change| format!("id: {change}\n")).unwrap_or_default();
        let mut event = format!("{id}event: {}\ndata: ", json.name());
        let start = event.len();
        event.push_str(&json_line(json).unwrap_or_default());
        let data = start..event.len();
        event.push_str("\n\n");
        let is_end = matches!(json, UpdateJson::End(_));
        Self { update: None, change: json.change(), is_end, event: event.into(), data, text: OnceLock::new() }
    }

    /// Whether this is the last update of its stream.
    pub(super) const fn is_end(&self) -> bool {
        self.is_end
    }

    /// Whether other subscriptions may receive the same update.
    pub(super) const fn is_shared(&self) -> bool {
        self.update.is_some()
    }

    /// Returns the client's position after this update: the number of the last change that the client has received.
    pub(super) const fn change(&self) -> Option<TaggedNumber> {
        self.change
    }

    /// Returns the update as a server-sent event.
    pub(super) fn event(&self) -> Bytes {
        self.event.clone()
    }

    /// Returns the update as the text of a WebSocket message, with the thread and the event's id as additional fields.
    pub(super) fn text(&self, thread: ThreadId) -> Utf8Bytes {
        let encode = || {
            let data = std::str::from_utf8(&self.event[self.data.clone()]).unwrap_or_default();
            let members = data.strip_prefix('{').unwrap_or_default();
            let id = self.change.map(|change| format!(r#""id":"{change}","#)).unwrap_or_default();
            format!(r#"{{"thread":"{thread}",{id}{members}"#).into()
        };
        self.text.get_or_init(encode).clone()
    }
}

/// Caches the last update of each thread for as long as a subscription that has sent the update waits for the next one.
///
/// Erased content therefore does not remain in the cache, because its erasure is the next update.
#[derive(Debug, Default)]
pub(crate) struct UpdateCache {
    last: Mutex<LastUpdates>,
}

#[derive(Debug, Default)]
struct LastUpdates {
    by_thread: HashMap<ThreadId, Weak<EncodedUpdate>>,
    /// The number of threads that remained after the last cleanup.
    remaining: usize,
}

impl UpdateCache {
    /// Encodes an update, or returns the cached encoding. Returns `None` if the update has no events that clients may see.
    pub(super) async fn encode(
        app: &App,
        scope: &Scope,
        thread: ThreadId,
        update: Arc<ThreadUpdate>,
    ) -> Option<Arc<EncodedUpdate>> {
        if !is_shareable(&update) {
            return Some(Arc::new(EncodedUpdate::of(&UpdateJson::of(app.memory(), scope, thread, &update).await?)));
        }
        let cache = app.update_cache();
        if let Some(encoded) = cache.find(thread, &update) {
            return Some(encoded);
        }
        let encoded = EncodedUpdate::of(&UpdateJson::of(app.memory(), scope, thread, &update).await?);
        if encoded.event.len() > MAX_SHARED_BYTES {
            return Some(Arc::new(encoded));
        }
        let encoded = Arc::new(EncodedUpdate { update: Some(update), ..encoded });
        cache.insert(thread, &encoded);
        Some(encoded)
    }

    fn find(&self, thread: ThreadId, update: &Arc<ThreadUpdate>) -> Option<Arc<EncodedUpdate>> {
        let last = self.lock().by_thread.get(&thread).and_then(Weak::upgrade);
        // The updates for one change can differ: a subscription to some roles receives fewer messages, and a message may have been
        // replaced or erased in the meantime.
        last.filter(|last| {
            last.update.as_ref().is_some_and(|cached| Arc::ptr_eq(cached, update) || **cached == **update)
        })
    }

    fn insert(&self, thread: ThreadId, encoded: &Arc<EncodedUpdate>) {
        let mut last = self.lock();
        // Cleans up only when the number of threads has doubled, so that the amortised cost of an insertion is constant.
        if last.by_thread.len() >= CLEANUP_THREADS.max(last.remaining * 2) {
            last.by_thread.retain(|_, encoded| encoded.strong_count() > 0);
            last.remaining = last.by_thread.len();
        }
        last.by_thread.insert(thread, Arc::downgrade(encoded));
    }

    fn lock(&self) -> MutexGuard<'_, LastUpdates> {
        // A poisoned lock is harmless, because a cached update is compared before it is used.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether all subscriptions receive the same update. They do not for a commit with approvals, because the current state of an
/// approval is read when the update is encoded. Updates other than commits depend on the subscription.
fn is_shareable(update: &ThreadUpdate) -> bool {
    let ThreadUpdate::Commit { events, .. } = update else { return false };
    let is_approval =
        |event: &ThreadEvent| matches!(event, ThreadEvent::Record { name, .. } if approval_id(name).is_some());
    !events.iter().any(is_approval)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use threadkeep::Timestamp;
    use threadkeep::core::ChangeTag;

    use super::*;
    use threadkeep_api::event::EventJson;

    fn encoded_update(change: u64) -> EncodedUpdate {
        let tag = Some(ChangeTag::from_stored(0x0a1b_2c3d));
        EncodedUpdate::of(&UpdateJson::Commit { change, tag, at: Timestamp::MIN, events: vec![EventJson::Patched] })
    }

    fn update(change: u64) -> Arc<ThreadUpdate> {
        Arc::new(ThreadUpdate::Commit { change, tag: None, at: Timestamp::MIN, events: vec![ThreadEvent::Patched] })
    }

    #[test]
    fn an_update_is_cached_while_a_subscription_references_it() {
        let (cache, thread) = (UpdateCache::default(), ThreadId::from_name(b"thread"));
        let first = Arc::new(EncodedUpdate { update: Some(update(1)), ..encoded_update(1) });
        cache.insert(thread, &first);
        assert!(Arc::ptr_eq(&cache.find(thread, &update(1)).unwrap(), &first));
        assert!(cache.find(thread, &update(2)).is_none());
        assert!(cache.find(ThreadId::from_name(b"another"), &update(1)).is_none());
        drop(first);
        assert!(cache.find(thread, &update(1)).is_none());
    }

    #[test]
    fn threads_without_a_subscription_are_removed() {
        let cache = UpdateCache::default();
        let subscribed = Arc::new(encoded_update(1));
        cache.insert(ThreadId::from_name(b"subscribed"), &subscribed);
        for number in 0..CLEANUP_THREADS * 4 {
            cache.insert(ThreadId::from_name(number.to_string().as_bytes()), &Arc::new(encoded_update(1)));
        }
        let last = cache.lock();
        assert!(
            last.by_thread.len() <= CLEANUP_THREADS && last.by_thread.contains_key(&ThreadId::from_name(b"subscribed"))
        );
    }

    #[test]
    fn server_sent_events_and_websocket_messages_have_the_same_data() {
        let (encoded, thread) = (encoded_update(7), ThreadId::from_name(b"thread"));
        let event = String::from_utf8(encoded.event().to_vec()).unwrap();
        let data = event.strip_prefix("id: 7-0a1b2c3d\nevent: commit\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
        let mut expected: Value = serde_json::from_str(data).unwrap();
        expected["thread"] = json!(thread);
        expected["id"] = json!("7-0a1b2c3d");
        assert_eq!(serde_json::from_str::<Value>(encoded.text(thread).as_str()).unwrap(), expected);
    }
}
