use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use threadkeep_core::{
    Backend, IdempotencyKey, Maintenance, MessageId, Processes, Runtime, SearchIndex, Store, ThreadId, Timestamp,
};
use uuid::Uuid;

use crate::erasures::{ErasureLog, RecordingStore};
use crate::subscribe::Feeds;
use crate::tails::Tails;
use crate::title::SettledTitles;
use crate::{Platform, Result, Retention};

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
    platform: Platform,
    options: MemoryOptions,
    settled_titles: SettledTitles,
    tails: Option<Tails>,
    feeds: Arc<Feeds>,
    erasure_log: Option<Arc<dyn ErasureLog>>,
}

impl Memory {
    /// Makes a manager with the system's clock, in the caller's tokio runtime.
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn new(backend: Backend) -> Self {
        Self::with_platform(backend, Platform::default())
    }

    /// Makes a manager whose date and randomness come from `clock`.
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn with_clock(backend: Backend, clock: Arc<dyn threadkeep_core::Clock>) -> Self {
        Self::with_platform(backend, Platform { clock, ..Platform::default() })
    }

    /// Makes a manager on a platform of one's own.
    #[must_use]
    pub fn with_platform(backend: Backend, platform: Platform) -> Self {
        Self::made(backend, platform, MemoryOptions::default(), None)
    }

    /// The same manager with a log that is told of every erasure before it is carried out: also of those made through
    /// [`Memory::backend`]'s store.
    #[must_use]
    pub fn with_erasure_log(&self, log: Arc<dyn ErasureLog>) -> Self {
        let backend = RecordingStore::over(&self.inner.backend, Arc::clone(&log));
        Self::made(backend, self.inner.platform.clone(), self.inner.options.clone(), Some(log))
    }

    /// The same backend and platform with other options.
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
        let (backend, platform) = (self.inner.backend.clone(), self.inner.platform.clone());
        Ok(Self::made(backend, platform, options, self.inner.erasure_log.clone()))
    }

    fn made(
        backend: Backend,
        platform: Platform,
        options: MemoryOptions,
        erasure_log: Option<Arc<dyn ErasureLog>>,
    ) -> Self {
        let tails = (options.tail_bytes > 0).then(|| Tails::new(options.tail_bytes));
        let settled_titles = SettledTitles::default();
        let feeds = Arc::new(Feeds::new(Arc::clone(&platform.runtime)));
        Self { inner: Arc::new(Inner { backend, platform, options, settled_titles, tails, feeds, erasure_log }) }
    }

    /// The backend below.
    #[must_use]
    pub fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    /// What this manager runs on.
    #[must_use]
    pub fn platform(&self) -> &Platform {
        &self.inner.platform
    }

    /// What this manager waits with and runs its tasks on.
    #[must_use]
    pub fn runtime(&self) -> &dyn Runtime {
        &*self.inner.platform.runtime
    }

    /// How this manager behaves.
    #[must_use]
    pub fn options(&self) -> &MemoryOptions {
        &self.inner.options
    }

    /// The instant now, by the manager's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.platform.clock.now()
    }

    /// Makes an id for a thread.
    #[must_use]
    pub fn mint_thread_id(&self) -> ThreadId {
        ThreadId::v7(self.inner.platform.clock.now(), self.inner.platform.clock.random())
    }

    /// Makes an id for a message.
    #[must_use]
    pub fn mint_message_id(&self) -> MessageId {
        self.mint_message_id_at(self.inner.platform.clock.now())
    }

    pub(crate) fn mint_message_id_at(&self, now: Timestamp) -> MessageId {
        MessageId::v7(now, self.inner.platform.clock.random())
    }

    pub(crate) fn mint_key(&self, now: Timestamp) -> IdempotencyKey {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        let random = self.inner.platform.clock.random();
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

    pub(crate) fn processes(&self) -> Option<&dyn Processes> {
        self.inner.platform.processes.as_deref()
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
