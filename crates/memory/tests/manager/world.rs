//! What every scenario plays in.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tempfile::TempDir;
use threadkeep_core::{Backend, Clock, Scope, ThreadId, Timestamp, UserId};
use threadkeep_memory::{Memory, MemoryOptions};
use threadkeep_postgres_server::{Database, Pooler, Server};
use threadkeep_store_conformance::FaultyStore;
use threadkeep_store_memory::MemoryStore;
use threadkeep_store_postgres::PostgresStore;
use threadkeep_store_sqlite::{Durability, SqliteOptions, SqliteStore};

use super::elsewhere::{elsewhere, run};

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
    /// Where a store on a server has its tables.
    _database: Option<Arc<Database>>,
}

impl World {
    pub(crate) fn plain() -> Self {
        let backend = MemoryStore::open();
        Self::over(backend.clone(), backend)
    }

    pub(crate) fn weak(seed: u64) -> Self {
        let backend = MemoryStore::open();
        Self::over(backend.clone(), FaultyStore::wrap(backend, seed))
    }

    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions { durability: Durability::Process, background: false, ..SqliteOptions::default() };
        let backend = SqliteStore::open(folder.path().join("conversations.db"), options).unwrap().backend();
        // What waits for its turn to write must not look like having nothing to do: see `elsewhere`.
        let backend = elsewhere(backend);
        Self { _folder: Some(Arc::new(folder)), ..Self::over(backend.clone(), backend) }
    }

    /// Over a server, directly and behind a pooler; fewer where these are left out.
    pub(crate) fn on_servers() -> Vec<(&'static str, Self)> {
        let Some(server) = Server::shared() else { return Vec::new() };
        static POOLER: OnceLock<Option<Pooler>> = OnceLock::new();
        let pooler = POOLER.get_or_init(|| run(Pooler::start(server)));
        let direct = |name: &str| format!("{}?background=off&pool_size=4", server.url(name));
        let mut worlds = vec![("postgres", Self::postgres(server, direct))];
        worlds.extend(pooler.as_ref().map(|pooler| {
            let url = |name: &str| {
                format!("{}?background=off&pool_size=4&prepare=off&direct={}", pooler.url(name), server.url(name))
            };
            ("postgres behind a pooler", Self::postgres(server, url))
        }));
        worlds
    }

    fn postgres(server: &Server, url: impl Fn(&str) -> String + Send + Sync) -> Self {
        let (store, database) = run(async {
            let prepare = async |url: String| drop(PostgresStore::open(&url).await.unwrap());
            let database = server.lend_database(prepare, PostgresStore::EMPTY).await;
            (PostgresStore::open(&url(database.name())).await.unwrap(), database)
        });
        let backend = elsewhere(store.backend());
        Self { _database: Some(Arc::new(database)), ..Self::over(backend.clone(), backend) }
    }

    /// A manager over `seen`, which stands over `backend`.
    pub(crate) fn over(backend: Backend, seen: Backend) -> Self {
        let clock = Arc::new(FakeClock::default());
        Self { memory: Memory::with_clock(seen, clock.clone()), clock, backend, _folder: None, _database: None }
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

/// Plays a scenario over a file, over a server, over the reference store, and over weak stores.
pub(crate) async fn everywhere<F: Future<Output = ()>>(scenario: impl Fn(World) -> F) {
    println!("sqlite");
    scenario(World::sqlite()).await;
    for (name, world) in World::on_servers() {
        println!("{name}");
        scenario(world).await;
    }
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
