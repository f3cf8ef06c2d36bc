use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use threadkeep_core::{
    Backend, Clock, IdempotencyKey, Maintenance, MessageId, SearchIndex, Store, ThreadId, Timestamp,
};
use uuid::Uuid;

use crate::erasures::{ErasureLog, RecordingStore};
use crate::subscribe::Feeds;
use crate::tails::Tails;
use crate::title::SettledTitles;
use crate::{Result, Retention, SystemClock};

/// The conversation manager over one backend. Cheap to clone; all clones are the same one.
///
/// Every call takes the [`threadkeep_core::Scope`] on whose behalf it is made. Calls repeat what failed in passing, with
/// the same idempotency key, so that a lost reply neither loses nor doubles a message.
#[derive(Clone)]
pub struct Memory {
    inner: Arc<Inner>,
}

/// How a [`Memory`] behaves.
#[derive(Clone, Debug)]
pub struct MemoryOptions {
    /// What is kept of every thread, unless an append says otherwise. Default: everything, for ever.
    pub retention: Option<Retention>,
    /// Whether threads get titles by themselves. Default: from the first user message.
    pub titles: Titles,
    /// How long a subscription waits for a wake-up before it looks by itself. Default: one second.
    pub backstop: Duration,
    /// How many bytes of the ends of threads are kept in this process, with their contexts and what these carry on, so that
    /// reading the same end again asks the store only where the thread stands. Default: 0, which keeps none. What is kept is never shown once it is no longer so, and
    /// what this manager erases leaves at once; what another instance erases leaves with the next read of the thread, or
    /// after ten minutes without one.
    pub tail_bytes: usize,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self { retention: None, titles: Titles::FromFirstUserMessage, backstop: Duration::from_secs(1), tail_bytes: 0 }
    }
}

/// Whether threads get titles by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Titles {
    /// A thread without a title gets one with its next user message ([`crate::make_title`]).
    FromFirstUserMessage,
    /// Only those that someone gives.
    Given,
}

struct Inner {
    backend: Backend,
    clock: Arc<dyn Clock>,
    options: MemoryOptions,
    settled_titles: SettledTitles,
    tails: Option<Tails>,
    feeds: Arc<Feeds>,
    erasure_log: Option<Arc<dyn ErasureLog>>,
}

impl Memory {
    /// Makes a manager with the system's clock.
    #[must_use]
    pub fn new(backend: Backend) -> Self {
        Self::with_clock(backend, Arc::new(SystemClock))
    }

    /// Makes a manager whose time and randomness come from `clock`.
    #[must_use]
    pub fn with_clock(backend: Backend, clock: Arc<dyn Clock>) -> Self {
        Self::made(backend, clock, MemoryOptions::default(), None)
    }

    /// The same manager with a log that is told of every erasure before it is carried out: also of those made through
    /// [`Memory::backend`]'s store.
    #[must_use]
    pub fn with_erasure_log(&self, log: Arc<dyn ErasureLog>) -> Self {
        let backend = RecordingStore::over(&self.inner.backend, Arc::clone(&log));
        let (clock, options) = (Arc::clone(&self.inner.clock), self.inner.options.clone());
        Self::made(backend, clock, options, Some(log))
    }

    /// The same backend and clock with other options.
    ///
    /// # Errors
    /// `Invalid` for a retention or a backstop of 0.
    pub fn with_options(&self, options: MemoryOptions) -> Result<Self> {
        if let Some(retention) = &options.retention {
            retention.check()?;
        }
        if options.backstop.is_zero() {
            return Err(crate::MemoryError::invalid("backstop", "0; wait for at least a moment"));
        }
        let (backend, clock) = (self.inner.backend.clone(), Arc::clone(&self.inner.clock));
        Ok(Self::made(backend, clock, options, self.inner.erasure_log.clone()))
    }

    fn made(
        backend: Backend,
        clock: Arc<dyn Clock>,
        options: MemoryOptions,
        erasure_log: Option<Arc<dyn ErasureLog>>,
    ) -> Self {
        let tails = (options.tail_bytes > 0).then(|| Tails::new(options.tail_bytes));
        let settled_titles = SettledTitles::default();
        let feeds = Arc::default();
        Self { inner: Arc::new(Inner { backend, clock, options, settled_titles, tails, feeds, erasure_log }) }
    }

    /// The backend below.
    #[must_use]
    pub fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    /// How this manager behaves.
    #[must_use]
    pub fn options(&self) -> &MemoryOptions {
        &self.inner.options
    }

    /// The instant now, by the manager's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Makes an id for a thread.
    #[must_use]
    pub fn mint_thread_id(&self) -> ThreadId {
        ThreadId::v7(self.inner.clock.now(), self.inner.clock.random())
    }

    /// Makes an id for a message.
    #[must_use]
    pub fn mint_message_id(&self) -> MessageId {
        self.mint_message_id_at(self.inner.clock.now())
    }

    pub(crate) fn mint_message_id_at(&self, now: Timestamp) -> MessageId {
        MessageId::v7(now, self.inner.clock.random())
    }

    pub(crate) fn mint_key(&self, now: Timestamp) -> IdempotencyKey {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        let random = self.inner.clock.random();
        IdempotencyKey::Minted(uuid_v7(millis, &random))
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.inner.backend.store
    }

    pub(crate) fn search_index(&self) -> &dyn SearchIndex {
        &*self.inner.backend.search
    }

    pub(crate) fn maintenance(&self) -> &dyn Maintenance {
        &*self.inner.backend.maintenance
    }

    pub(crate) fn erasure_log(&self) -> Option<&dyn ErasureLog> {
        self.inner.erasure_log.as_deref()
    }

    pub(crate) fn tails(&self) -> Option<&Tails> {
        self.inner.tails.as_ref()
    }

    pub(crate) fn feeds(&self) -> &Arc<Feeds> {
        &self.inner.feeds
    }

    pub(crate) fn settled_titles(&self) -> &SettledTitles {
        &self.inner.settled_titles
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("backend", &self.inner.backend)
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}

fn uuid_v7(millis: u64, random: &[u8; 10]) -> Uuid {
    uuid::Builder::from_unix_timestamp_millis(millis, random).into_uuid()
}
