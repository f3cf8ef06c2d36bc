//! Deliveries: the events that a webhook sends, with their states.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use threadkeep::core::{IDEMPOTENCY_WINDOW_MS, TaggedNumber, limits};
use threadkeep::{ThreadId, Timestamp};

use super::records::{Kind, Records, Stored};
use crate::error::{Error, Result};

/// How long a delivery is retained after it has ended: as long as a store retains the changes of a thread.
pub(super) const RETENTION_MS: i64 = IDEMPOTENCY_WINDOW_MS;
/// The largest time of an event, in milliseconds: 48 bits.
const MAX_MILLIS: i64 = (1 << 48) - 1;
/// The maximum number of pages of ended deliveries that are read for a page of deliveries in one state.
const MAX_PAGES: usize = 10;

/// What happened to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A commit.
    Commit(TaggedNumber),
    /// The thread was created.
    Created,
    /// The thread was deleted.
    Deleted,
    /// The changes before this one are not available, so the receiver must read the thread again.
    Reset(TaggedNumber),
}

impl EventKind {
    /// Returns the name of the event.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Commit(_) => "commit",
            Self::Created => "created",
            Self::Deleted => "deleted",
            Self::Reset(_) => "reset",
        }
    }
}

/// An event of a thread. Its text form is the id by which receivers recognise repeated deliveries (`webhook-id`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookEvent {
    /// The thread.
    pub thread: ThreadId,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub kind: EventKind,
}

impl WebhookEvent {
    /// Returns the time in milliseconds, in the range that ids can express.
    fn millis(&self) -> i64 {
        self.at.as_millis().clamp(0, MAX_MILLIS)
    }

    fn suffix(&self) -> String {
        let thread = self.thread.to_string().replace('-', "");
        match self.kind {
            EventKind::Commit(change) => format!("{thread}_{change}"),
            EventKind::Created => format!("{thread}_created"),
            EventKind::Deleted => format!("{thread}_deleted"),
            EventKind::Reset(change) => format!("{thread}_reset_{change}"),
        }
    }

    /// Returns the key of the event's record. Newer events come first.
    pub(super) fn key(&self, webhook: &str) -> String {
        format!("{webhook}.{:012x}_{}", MAX_MILLIS - self.millis(), self.suffix())
    }
}

impl fmt::Display for WebhookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "evt_{:012x}_{}", self.millis(), self.suffix())
    }
}

impl FromStr for WebhookEvent {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = || Error::not_found("event");
        let rest = text.strip_prefix("evt_").ok_or_else(unknown)?;
        let (millis, rest) = rest.split_once('_').filter(|(millis, _)| millis.len() == 12).ok_or_else(unknown)?;
        let (thread, kind) = rest.split_once('_').ok_or_else(unknown)?;
        let change = |text: &str| text.parse::<TaggedNumber>().map_err(|_| unknown());
        let kind = match (kind, kind.strip_prefix("reset_")) {
            ("created", _) => EventKind::Created,
            ("deleted", _) => EventKind::Deleted,
            (_, Some(number)) => EventKind::Reset(change(number)?),
            (number, None) => EventKind::Commit(change(number)?),
        };
        let millis = i64::from_str_radix(millis, 16).map_err(|_| unknown())?;
        let at = Timestamp::from_millis(millis).map_err(|_| unknown())?;
        Ok(Self { thread: thread.parse().map_err(|_| unknown())?, at, kind })
    }
}

/// The state of a delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeliveryState {
    /// It has not been sent, or will be sent again.
    #[default]
    Pending,
    /// The endpoint accepted it.
    Delivered,
    /// It will not be sent again.
    Failed,
}

/// An event that a webhook sends. It contains no content of the thread: the content is read when the event is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The id of the event.
    pub event: String,
    /// The state.
    pub state: DeliveryState,
    /// The number of attempts.
    pub attempts: u32,
    /// When the next attempt is made; `None` if there is none.
    pub next_attempt_at: Option<Timestamp>,
    /// When the last attempt was made.
    pub last_attempt_at: Option<Timestamp>,
    /// The status of the last response.
    pub last_status: Option<u16>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
}

impl Delivery {
    /// Creates a delivery whose first attempt is due.
    pub(super) fn new(event: &WebhookEvent, now: Timestamp) -> Self {
        Self {
            event: event.to_string(),
            state: DeliveryState::Pending,
            attempts: 0,
            next_attempt_at: Some(now),
            last_attempt_at: None,
            last_status: None,
            last_error: None,
        }
    }
}

/// Selects deliveries of a webhook.
#[derive(Clone, Debug, Default)]
pub struct DeliveryQuery {
    /// Only deliveries in this state.
    pub state: Option<DeliveryState>,
    /// The `next` of the previous page.
    pub after: Option<String>,
    /// The maximum number of deliveries.
    pub limit: usize,
}

/// A page of deliveries.
#[derive(Clone, Debug, Default)]
pub struct DeliveryPage {
    /// The deliveries: first the pending ones, then those that have ended, each newest first.
    pub deliveries: Vec<Delivery>,
    /// The `after` of the next page; `None` in the last page.
    pub next: Option<String>,
}

/// Lists the deliveries of a webhook. A page may have fewer deliveries than requested, even if it is not the last one.
pub(super) async fn list(records: &Records, webhook: &str, query: &DeliveryQuery) -> Result<DeliveryPage> {
    limits::check_page(query.limit)?;
    let (mut kind, mut after) = match query.after.as_deref().and_then(|after| after.split_once(':')) {
        None => (Kind::Queue, None),
        Some(("queue", key)) => (Kind::Queue, Some(key.to_owned())),
        Some((_, key)) => (Kind::History, Some(key.to_owned()).filter(|key| !key.is_empty())),
    };
    if matches!(query.state, Some(DeliveryState::Delivered | DeliveryState::Failed)) && kind == Kind::Queue {
        (kind, after) = (Kind::History, None);
    }
    let mut page = DeliveryPage::default();
    for _ in 0..MAX_PAGES {
        let wanted = query.limit - page.deliveries.len();
        let found: Vec<Stored<Delivery>> = records.list(kind, &format!("{webhook}."), after, wanted).await?;
        let last = found.last().filter(|_| found.len() == wanted).map(|last| last.key.clone());
        let selected = found.into_iter().map(|record| record.value);
        page.deliveries.extend(selected.filter(|delivery| query.state.is_none_or(|state| delivery.state == state)));
        (kind, after) = match (last, kind) {
            (Some(key), kind) => (kind, Some(key)),
            (None, Kind::Queue) if query.state.is_none() => (Kind::History, None),
            (None, _) => {
                page.next = None;
                return Ok(page);
            }
        };
        let name = if kind == Kind::Queue { "queue" } else { "history" };
        page.next = Some(format!("{name}:{}", after.as_deref().unwrap_or_default()));
        if page.deliveries.len() == query.limit {
            break;
        }
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_events_contain_the_event() {
        let (thread, at) = (ThreadId::from_name(b"thread"), Timestamp::from_millis(1_700_000_000_123).unwrap());
        let change: TaggedNumber = "7-0a1b2c3d".parse().unwrap();
        let kinds = [EventKind::Commit(change), EventKind::Created, EventKind::Deleted, EventKind::Reset(9.into())];
        for kind in kinds {
            let event = WebhookEvent { thread, at, kind };
            assert_eq!(event.to_string().parse::<WebhookEvent>().unwrap(), event);
            // The id is part of a signed text whose parts are separated by full stops.
            assert!(!event.to_string().contains('.'));
        }
        let event = WebhookEvent { thread, at, kind: EventKind::Created };
        let later = WebhookEvent { at: at.plus_ms(1), ..event };
        assert!(later.key("wh_1") < event.key("wh_1"));
        for wrong in
            ["", "evt_", "evt_018bcfe5687b", "evt_018bcfe5687b_x_created", "msg_1", "evt_zzzzzzzzzzzz_0_created"]
        {
            assert!(wrong.parse::<WebhookEvent>().is_err(), "{wrong}");
        }
    }
}
