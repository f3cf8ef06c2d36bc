//! The stored form of threads.

use serde::{Deserialize, Serialize};
use threadkeep_core::{
    Access, DumpedThread, MetadataFilter, Owner, Positions, Result, Scope, StoreError, Thread, ThreadId, Timestamp,
    codec,
};

/// A thread without its messages and records, or what remains of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The number of writes to the thread. Never decreases while anything remains of the thread.
    pub(crate) writes: u64,
    /// Identifies this thread among those that had its id before.
    pub(crate) born: String,
    pub(crate) owner: Owner,
    /// The thread; `None` if it was deleted.
    pub(crate) thread: Option<DumpedThread>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deleted_at: Option<Timestamp>,
    /// The number of messages.
    pub(crate) count: u64,
    /// The lowest position whose row may still exist.
    pub(crate) low: u64,
    /// The oldest change in the log; `log_at` is its time.
    pub(crate) log_from: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log_at: Option<Timestamp>,
    /// No record expires before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) records_expire_at: Option<Timestamp>,
    /// Lost positions, as inclusive ranges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) gaps: Vec<(u64, u64)>,
    /// The lowest position whose indexed text is out of date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edited: Option<u64>,
    /// Whether the thread has a driver.
    #[serde(default)]
    pub(crate) is_driven: bool,
    /// The last restored position, while the thread is still being restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) restored_to: Option<u64>,
    /// The incarnations of this id whose remains have to be swept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) graves: Vec<Grave>,
}

/// What remains of a thread that was deleted or replaced, until a sweep removes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Grave {
    pub(crate) born: String,
    pub(crate) owner: Owner,
}

impl Row {
    pub(crate) fn new(thread: DumpedThread, born: String) -> Self {
        let positions = thread.positions;
        Self {
            writes: first_write(),
            born,
            owner: thread.owner.clone(),
            thread: Some(thread),
            deleted_at: None,
            count: 0,
            low: positions.first_seq,
            log_from: positions.change + 1,
            log_at: None,
            records_expire_at: None,
            gaps: Vec::new(),
            edited: None,
            is_driven: false,
            restored_to: None,
            graves: Vec::new(),
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| StoreError::corrupt("thread", error.to_string()))
    }

    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the thread if it exists and has not expired.
    pub(crate) fn live(&self, now: Timestamp) -> Option<&DumpedThread> {
        self.thread.as_ref().filter(|thread| !has_expired(thread.expires_at, now))
    }

    /// Returns the thread and the scope's access to it; `None` if it does not exist in the scope.
    pub(crate) fn accessible(&self, scope: &Scope, now: Timestamp) -> Option<(&DumpedThread, Access)> {
        let thread = self.live(now)?;
        match scope.access(&thread.owner) {
            Access::None => None,
            access => Some((thread, access)),
        }
    }

    /// The state of the thread in the lists of its tenant.
    pub(crate) fn state(&self) -> &'static str {
        match (&self.thread, self.deleted_at) {
            (Some(_), _) => "live",
            (None, Some(_)) => "gone",
            (None, None) => "expired",
        }
    }

    pub(crate) fn positions(&self) -> Positions {
        self.thread.as_ref().map_or(Positions::BEGINNING, |thread| thread.positions)
    }

    /// Whether the thread's metadata passes a filter. A thread that cannot be decoded passes only the empty filter.
    pub(crate) fn has_metadata(&self, filter: &MetadataFilter) -> bool {
        let body = self.thread.as_ref().map(|thread| thread.body.as_str());
        filter.is_empty()
            || body.is_some_and(|body| {
                codec::decode_thread(body).is_ok_and(|attributes| filter.matches(&attributes.metadata))
            })
    }

    pub(crate) fn to_thread(&self, id: ThreadId) -> Result<Thread> {
        let thread = self.thread.as_ref().ok_or_else(|| StoreError::corrupt("thread", "deleted"))?;
        let attributes = codec::decode_thread(&thread.body)?;
        Ok(Thread {
            id,
            owner: thread.owner.clone(),
            key: thread.key.clone(),
            title: attributes.title,
            metadata: attributes.metadata,
            state: attributes.state,
            positions: thread.positions,
            message_count: self.count,
            created_at: thread.created_at,
            updated_at: thread.updated_at,
            expires_at: thread.expires_at,
        })
    }

    /// Returns the time from which a sweep has something to do.
    pub(crate) fn sweep_at(&self) -> Option<Timestamp> {
        if !self.graves.is_empty() || self.edited.is_some() || self.low < self.positions().first_seq {
            return Timestamp::from_micros(0).ok();
        }
        let window = threadkeep_core::IDEMPOTENCY_WINDOW_MS;
        let expiry = self.thread.as_ref().and_then(|thread| thread.expires_at);
        let log = self.log_at.map(|at| at.plus_ms(window));
        let deletion = self.deleted_at.map(|at| at.plus_ms(window));
        [expiry, log, deletion, self.records_expire_at].into_iter().flatten().min()
    }
}

/// The number of the first write to a thread. It is higher than the numbers of earlier threads with the same id, of which no trace remains.
fn first_write() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(0)
}

pub(crate) fn has_expired(expires_at: Option<Timestamp>, now: Timestamp) -> bool {
    expires_at.is_some_and(|expires_at| expires_at <= now)
}

/// Whether `at` is before the start of the idempotency window.
pub(crate) fn is_beyond_window(at: Timestamp, now: Timestamp) -> bool {
    at.plus_ms(threadkeep_core::IDEMPOTENCY_WINDOW_MS) < now
}
