//! What listeners are told, written once for all who are told the same.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use axum::extract::ws::Utf8Bytes;
use bytes::Bytes;
use threadkeep::agent::approval_id;
use threadkeep::core::{Tagged, json_line};
use threadkeep::{Scope, ThreadEvent, ThreadId, ThreadUpdate};

use super::json::UpdateJson;
use crate::app::App;

/// Longer texts are written for each listener, so that nobody who waits for the next one holds them.
const SHARED_BYTES: usize = 64 * 1024;
/// Threads that are remembered before those that nobody listens to any more are looked for.
const REMEMBERED: usize = 1_024;

/// An update in its written forms.
#[derive(Debug)]
pub(super) struct Telling {
    /// What is told, where others may be told the same.
    update: Option<Arc<ThreadUpdate>>,
    change: Option<Tagged>,
    is_end: bool,
    /// As a server-sent event.
    event: Bytes,
    /// Where in the event its data stands.
    data: Range<usize>,
    /// As a WebSocket's text, once it was asked for.
    text: OnceLock<Utf8Bytes>,
}

impl Telling {
    pub(super) fn of(json: &UpdateJson<'_>) -> Self {
        let id = json.change().map(|change| format!("id: {change}\n")).unwrap_or_default();
        let mut event = format!("{id}event: {}\ndata: ", json.name());
        let begin = event.len();
        event.push_str(&json_line(json).unwrap_or_default());
        let data = begin..event.len();
        event.push_str("\n\n");
        let is_end = matches!(json, UpdateJson::End(_));
        Self { update: None, change: json.change(), is_end, event: event.into(), data, text: OnceLock::new() }
    }

    /// Whether nothing follows it.
    pub(super) const fn is_end(&self) -> bool {
        self.is_end
    }

    /// Whether others may be told the same.
    pub(super) const fn is_shared(&self) -> bool {
        self.update.is_some()
    }

    /// The position that a listener who has heard this is at.
    pub(super) const fn change(&self) -> Option<Tagged> {
        self.change
    }

    /// As a server-sent event.
    pub(super) fn event(&self) -> Bytes {
        self.event.clone()
    }

    /// As a WebSocket's text, which names the thread and the event's id first.
    pub(super) fn text(&self, thread: ThreadId) -> Utf8Bytes {
        let written = || {
            let data = std::str::from_utf8(&self.event[self.data.clone()]).unwrap_or_default();
            let members = data.strip_prefix('{').unwrap_or_default();
            let id = self.change.map(|change| format!(r#""id":"{change}","#)).unwrap_or_default();
            format!(r#"{{"thread":"{thread}",{id}{members}"#).into()
        };
        self.text.get_or_init(written).clone()
    }
}

/// What was told last in each thread, for as long as a listener who heard it waits for the next.
///
/// Words that are erased are held no longer than that: the erasure is told to the same listeners.
#[derive(Debug, Default)]
pub(crate) struct Tellings {
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    by_thread: HashMap<ThreadId, Weak<Telling>>,
    /// How many were left when those without a listener were dropped.
    left: usize,
}

impl Tellings {
    /// The update as a listener is told it; `None` where there is nothing that a door may show.
    pub(super) async fn tell(
        app: &App,
        scope: &Scope,
        thread: ThreadId,
        update: Arc<ThreadUpdate>,
    ) -> Option<Arc<Telling>> {
        if !is_same_for_all(&update) {
            return Some(Arc::new(Telling::of(&UpdateJson::of(app, scope, thread, &update).await?)));
        }
        let tellings = app.tellings();
        if let Some(told) = tellings.find(thread, &update) {
            return Some(told);
        }
        let told = Telling::of(&UpdateJson::of(app, scope, thread, &update).await?);
        if told.event.len() > SHARED_BYTES {
            return Some(Arc::new(told));
        }
        let told = Arc::new(Telling { update: Some(update), ..told });
        tellings.keep(thread, &told);
        Some(told)
    }

    fn find(&self, thread: ThreadId, update: &Arc<ThreadUpdate>) -> Option<Arc<Telling>> {
        let last = self.lock().by_thread.get(&thread).and_then(Weak::upgrade);
        // Listeners to some roles only hear less of a commit, and a message may have changed since.
        last.filter(|last| last.update.as_ref().is_some_and(|known| Arc::ptr_eq(known, update) || **known == **update))
    }

    fn keep(&self, thread: ThreadId, told: &Arc<Telling>) {
        let mut last = self.lock();
        // Twice as many as were left: then looking at all of them is paid by those that came.
        if last.by_thread.len() >= REMEMBERED.max(last.left * 2) {
            last.by_thread.retain(|_, told| told.strong_count() > 0);
            last.left = last.by_thread.len();
        }
        last.by_thread.insert(thread, Arc::downgrade(told));
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        // What is kept is compared before it is told.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An approval is told as it stands, which is looked up; a history is one listener's own.
fn is_same_for_all(update: &ThreadUpdate) -> bool {
    let ThreadUpdate::Commit { events, .. } = update else { return false };
    let is_approval =
        |event: &ThreadEvent| matches!(event, ThreadEvent::Document { name, .. } if approval_id(name).is_some());
    !events.iter().any(is_approval)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use threadkeep::Timestamp;
    use threadkeep::core::ChangeTag;

    use super::*;
    use crate::live::json::EventJson;

    fn telling(change: u64) -> Telling {
        let tag = Some(ChangeTag::from_stored(0x0a1b_2c3d));
        Telling::of(&UpdateJson::Commit { change, tag, at: Timestamp::MIN, events: vec![EventJson::Patched] })
    }

    fn update(change: u64) -> Arc<ThreadUpdate> {
        Arc::new(ThreadUpdate::Commit { change, tag: None, at: Timestamp::MIN, events: vec![ThreadEvent::Patched] })
    }

    #[test]
    fn an_update_is_written_once_for_as_long_as_a_listener_holds_it() {
        let (tellings, thread) = (Tellings::default(), ThreadId::from_name(b"thread"));
        let told = Arc::new(Telling { update: Some(update(1)), ..telling(1) });
        tellings.keep(thread, &told);
        assert!(Arc::ptr_eq(&tellings.find(thread, &update(1)).unwrap(), &told));
        assert!(tellings.find(thread, &update(2)).is_none());
        assert!(tellings.find(ThreadId::from_name(b"another"), &update(1)).is_none());
        drop(told);
        assert!(tellings.find(thread, &update(1)).is_none());
    }

    #[test]
    fn threads_without_a_listener_are_forgotten() {
        let tellings = Tellings::default();
        let held = Arc::new(telling(1));
        tellings.keep(ThreadId::from_name(b"held"), &held);
        for number in 0..REMEMBERED * 4 {
            tellings.keep(ThreadId::from_name(number.to_string().as_bytes()), &Arc::new(telling(1)));
        }
        let last = tellings.lock();
        assert!(last.by_thread.len() <= REMEMBERED && last.by_thread.contains_key(&ThreadId::from_name(b"held")));
    }

    #[test]
    fn both_wires_say_the_same() {
        let (told, thread) = (telling(7), ThreadId::from_name(b"thread"));
        let event = String::from_utf8(told.event().to_vec()).unwrap();
        let data = event.strip_prefix("id: 7-0a1b2c3d\nevent: commit\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
        let mut expected: Value = serde_json::from_str(data).unwrap();
        expected["thread"] = json!(thread);
        expected["id"] = json!("7-0a1b2c3d");
        assert_eq!(serde_json::from_str::<Value>(told.text(thread).as_str()).unwrap(), expected);
    }
}
