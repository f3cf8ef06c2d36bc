//! What every scenario plays in.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use tempfile::TempDir;
use threadkeep_core::{Backend, Clock, Scope, ThreadId, Timestamp, UserId};
use threadkeep_memory::{Memory, MemoryOptions};
use threadkeep_store_conformance::Weak;
use threadkeep_store_memory::MemoryStore;
use threadkeep_store_sqlite::{Durability, SqliteOptions, SqliteStore};

const SEEDS: [u64; 5] = [1, 2, 3, 42, 2026];

/// A manager over a fresh store, with a clock that stands still until it is moved.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) memory: Memory,
    pub(crate) clock: Arc<FakeClock>,
    /// The store below, without its weaknesses.
    pub(crate) backend: Backend,
    /// Where a store on disk has its file.
    _folder: Option<Arc<TempDir>>,
}

impl World {
    pub(crate) fn plain() -> Self {
        let backend = MemoryStore::open();
        Self::over(backend.clone(), backend)
    }

    pub(crate) fn weak(seed: u64) -> Self {
        let backend = MemoryStore::open();
        Self::over(backend.clone(), Weak::over(backend, seed))
    }

    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions { durability: Durability::Process, background: false, ..SqliteOptions::default() };
        let backend = SqliteStore::open(folder.path().join("conversations.db"), options).unwrap().backend();
        Self { _folder: Some(Arc::new(folder)), ..Self::over(backend.clone(), backend) }
    }

    /// A manager over `seen`, which stands over `backend`.
    pub(crate) fn over(backend: Backend, seen: Backend) -> Self {
        let clock = Arc::new(FakeClock::default());
        Self { memory: Memory::with_clock(seen, clock.clone()), clock, backend, _folder: None }
    }

    pub(crate) fn with_options(self, options: MemoryOptions) -> Self {
        Self { memory: self.memory.with_options(options).unwrap(), ..self }
    }

    /// Opens a thread of the user Ana.
    pub(crate) async fn thread(&self) -> ThreadId {
        self.memory.open(&ana()).await.unwrap().thread.id
    }

    /// Another process with the same store.
    pub(crate) fn another_process(&self) -> Memory {
        Memory::with_clock(self.memory.backend().clone(), self.clock.clone())
    }
}

/// Plays a scenario over a file, over the reference store, and over weak stores.
pub(crate) async fn everywhere<F: Future<Output = ()>>(scenario: impl Fn(World) -> F) {
    println!("sqlite");
    scenario(World::sqlite()).await;
    over_the_reference(scenario).await;
}

/// Plays a scenario over the reference store, then over weak ones.
pub(crate) async fn over_the_reference<F: Future<Output = ()>>(scenario: impl Fn(World) -> F) {
    println!("plain");
    scenario(World::plain()).await;
    for seed in SEEDS {
        println!("weak, seed {seed}");
        scenario(World::weak(seed)).await;
    }
}

pub(crate) fn ana() -> Scope {
    Scope::user("acme", "ana").unwrap()
}

pub(crate) fn ben() -> Scope {
    Scope::user("acme", "ben").unwrap()
}

pub(crate) fn acme() -> Scope {
    Scope::tenant("acme").unwrap()
}

pub(crate) fn user_id(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

/// A clock that stands still, and randomness that counts.
pub(crate) struct FakeClock {
    now_ms: AtomicI64,
    drawn: AtomicU64,
}

impl Default for FakeClock {
    fn default() -> Self {
        Self { now_ms: AtomicI64::new(1_767_225_600_000), drawn: AtomicU64::new(0) }
    }
}

impl FakeClock {
    pub(crate) fn advance_ms(&self, ms: i64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }

    pub(crate) fn advance_minutes(&self, minutes: i64) {
        self.advance_ms(minutes * 60_000);
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_ms.load(Ordering::Relaxed)).unwrap()
    }

    fn random(&self) -> [u8; 10] {
        let mut random = [0; 10];
        random[2..].copy_from_slice(&self.drawn.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        random
    }
}
