use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use threadkeep_core::{
    Backend, IdempotencyKey, Maintenance, MessageId, Processes, Runtime, SearchIndex, Store, ThreadId, Timestamp,
};
use uuid::Uuid;

use crate::erasures::{ErasureLog, RecordingStore};
use crate::search::VocabularyCache;
use crate::subscribe::Feeds;
use crate::thread_cache::ThreadCache;
use crate::title::ThreadsWithFinalTitle;
use crate::{Platform, Result, Retention};

/// Conversation memory that uses one backend. Cheap to clone; all clones share their state.
///
/// Every call takes the [`threadkeep_core::Scope`] on whose behalf it is made. Calls retry transient failures with the same
/// idempotency key, so that a lost reply neither loses nor duplicates a message.
#[derive(Clone)]
pub struct Memory {
    inner: Arc<Inner>,
}

/// Options of a [`Memory`].
#[derive(Clone, Debug)]
pub struct MemoryOptions {
    /// The retention policy of every thread, unless an append sets another one. Default: everything is retained.
    pub retention: Option<Retention>,
    /// Whether threads get titles automatically. Default: from the first user message.
    pub titles: Titles,
    /// How long a subscription waits for a wake-up before it polls the store. Default: one second.
    pub poll_interval: Duration,
    /// The capacity of the thread cache in bytes. The cache contains the newest messages, contexts and context state of threads,
    /// so that reading them again needs only a short query on the store. Default: 0, no cache.
    ///
    /// Outdated data is never returned from the cache. Data that this `Memory` erases is evicted immediately. Data that another
    /// instance erases is evicted when the thread is next read, or after ten minutes without a read.
    pub thread_cache_bytes: usize,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            retention: None,
            titles: Titles::FromFirstUserMessage,
            poll_interval: Duration::from_secs(1),
            thread_cache_bytes: 0,
        }
    }
}

/// Whether threads get titles automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Titles {
    /// A thread without a title gets one with its next user message ([`crate::make_title`]).
    FromFirstUserMessage,
    /// Threads have only the titles that callers set.
    Manual,
}

struct Inner {
    backend: Backend,
    platform: Platform,
    options: MemoryOptions,
    threads_with_final_title: ThreadsWithFinalTitle,
    thread_cache: Option<ThreadCache>,
    vocabularies: VocabularyCache,
    feeds: Arc<Feeds>,
    erasure_log: Option<Arc<dyn ErasureLog>>,
}

impl Memory {
    /// Creates a `Memory` on the default platform: the system's clock and the caller's tokio runtime.
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn new(backend: Backend) -> Self {
        Self::with_platform(backend, Platform::default())
    }

    /// Creates a `Memory` that takes the time and randomness from `clock`.
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn with_clock(backend: Backend, clock: Arc<dyn threadkeep_core::Clock>) -> Self {
        Self::with_platform(backend, Platform { clock, ..Platform::default() })
    }

    /// Creates a `Memory` on the given platform.
    #[must_use]
    pub fn with_platform(backend: Backend, platform: Platform) -> Self {
        Self::create(backend, platform, MemoryOptions::default(), None)
    }

    /// Creates a `Memory` with the same backend that records every erasure in `log` before carrying it out. This includes
    /// erasures made directly through the store in its [`Memory::backend`]. Shares neither caches nor subscriptions with `self`.
    #[must_use]
    pub fn with_erasure_log(&self, log: Arc<dyn ErasureLog>) -> Self {
        let backend = RecordingStore::wrap(&self.inner.backend, Arc::clone(&log));
        Self::create(backend, self.inner.platform.clone(), self.inner.options.clone(), Some(log))
    }

    /// Creates a `Memory` with the same backend and platform but other options.
    ///
    /// # Errors
    /// `Invalid` for a poll interval of 0 or a retention policy with a limit of 0.
    pub fn with_options(&self, options: MemoryOptions) -> Result<Self> {
        if let Some(retention) = &options.retention {
            retention.check()?;
        }
        if options.poll_interval.is_zero() {
            return Err(crate::MemoryError::invalid("poll_interval", "must be greater than 0"));
        }
        let (backend, platform) = (self.inner.backend.clone(), self.inner.platform.clone());
        Ok(Self::create(backend, platform, options, self.inner.erasure_log.clone()))
    }

    fn create(
        backend: Backend,
        platform: Platform,
        options: MemoryOptions,
        erasure_log: Option<Arc<dyn ErasureLog>>,
    ) -> Self {
        let thread_cache = (options.thread_cache_bytes > 0).then(|| ThreadCache::new(options.thread_cache_bytes));
        let threads_with_final_title = ThreadsWithFinalTitle::default();
        let feeds = Arc::new(Feeds::new(Arc::clone(&platform.runtime)));
        Self {
            inner: Arc::new(Inner {
                backend,
                platform,
                options,
                threads_with_final_title,
                thread_cache,
                vocabularies: VocabularyCache::default(),
                feeds,
                erasure_log,
            }),
        }
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    /// The platform.
    #[must_use]
    pub fn platform(&self) -> &Platform {
        &self.inner.platform
    }

    /// The runtime of the platform.
    #[must_use]
    pub fn runtime(&self) -> &dyn Runtime {
        &*self.inner.platform.runtime
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &MemoryOptions {
        &self.inner.options
    }

    /// The current time according to the platform's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.platform.clock.now()
    }

    /// Creates a new thread id.
    #[must_use]
    pub fn generate_thread_id(&self) -> ThreadId {
        ThreadId::v7(self.inner.platform.clock.now(), self.inner.platform.clock.random())
    }

    /// Creates a new message id.
    #[must_use]
    pub fn generate_message_id(&self) -> MessageId {
        self.generate_message_id_at(self.inner.platform.clock.now())
    }

    pub(crate) fn generate_message_id_at(&self, now: Timestamp) -> MessageId {
        MessageId::v7(now, self.inner.platform.clock.random())
    }

    pub(crate) fn generate_key(&self, now: Timestamp) -> IdempotencyKey {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        let random = self.inner.platform.clock.random();
        IdempotencyKey::Generated(uuid_v7(millis, &random))
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

    pub(crate) fn thread_cache(&self) -> Option<&ThreadCache> {
        self.inner.thread_cache.as_ref()
    }

    pub(crate) fn vocabularies(&self) -> &VocabularyCache {
        &self.inner.vocabularies
    }

    pub(crate) fn feeds(&self) -> &Arc<Feeds> {
        &self.inner.feeds
    }

    pub(crate) fn threads_with_final_title(&self) -> &ThreadsWithFinalTitle {
        &self.inner.threads_with_final_title
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
