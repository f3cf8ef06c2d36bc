//! The environment of a test: a `Memory`, its store and a fake clock.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tempfile::TempDir;
use threadkeep_core::{Backend, Clock, Scope, ThreadId, Timestamp, UserId};
use threadkeep_memory::{Memory, MemoryOptions};
use threadkeep_postgres_server::{Database, Pooler, Server};
use threadkeep_redis_server::Cluster;
use threadkeep_store_conformance::FaultyStore;
use threadkeep_store_memory::MemoryStore;
use threadkeep_store_postgres::PostgresStore;
use threadkeep_store_redis::RedisStore;
use threadkeep_store_sqlite::{Durability, SqliteOptions, SqliteStore};

use super::separate_runtime::{on_separate_runtime, run};

/// The seeds of the injected faults.
const SEEDS: [u64; 5] = [1, 2, 3, 42, 2026];

/// A [`Memory`] with an empty store and a fake clock.
#[derive(Clone)]
pub(crate) struct TestEnv {
    pub(crate) memory: Memory,
    pub(crate) clock: Arc<FakeClock>,
    /// The store without injected faults.
    pub(crate) backend: Backend,
    /// The folder of a store on disk.
    _folder: Option<Arc<TempDir>>,
    /// The database of a store on a server.
    _database: Option<Arc<Database>>,
}

impl TestEnv {
    pub(crate) fn plain() -> Self {
        let backend = MemoryStore::open();
        Self::with_backends(backend.clone(), backend)
    }

    pub(crate) fn faulty(seed: u64) -> Self {
        let backend = MemoryStore::open();
        Self::with_backends(backend.clone(), FaultyStore::wrap(backend, seed))
    }

    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions { durability: Durability::Process, background: false, ..SqliteOptions::default() };
        let backend = SqliteStore::open(folder.path().join("conversations.db"), options).unwrap().backend();
        // Waiting for the write lock must not advance the paused clock: see `separate_runtime`.
        let backend = on_separate_runtime(backend);
        Self { _folder: Some(Arc::new(folder)), ..Self::with_backends(backend.clone(), backend) }
    }

    /// Creates environments on PostgreSQL (directly and through a pooler) and on Redis (one server and a cluster), except those that
    /// are skipped.
    pub(crate) fn on_servers() -> Vec<(&'static str, Self)> {
        let mut envs = Self::on_postgres();
        if let Some(server) = threadkeep_redis_server::Server::shared() {
            envs.push(("redis", Self::redis(&format!("redis://{}", server.address()))));
        }
        if let Some(cluster) = Cluster::shared() {
            envs.push(("redis cluster", Self::redis(&format!("redis-cluster://{}", cluster.addresses()))));
        }
        envs
    }

    fn on_postgres() -> Vec<(&'static str, Self)> {
        let Some(server) = Server::shared() else { return Vec::new() };
        static POOLER: OnceLock<Option<Pooler>> = OnceLock::new();
        let pooler = POOLER.get_or_init(|| run(Pooler::start(server)));
        let direct = |name: &str| format!("{}?background=off&pool_size=4", server.url(name));
        let mut envs = vec![("postgres", Self::postgres(server, direct))];
        envs.extend(pooler.as_ref().map(|pooler| {
            let url = |name: &str| {
                format!("{}?background=off&pool_size=4&prepare=off&direct={}", pooler.url(name), server.url(name))
            };
            ("postgres behind a pooler", Self::postgres(server, url))
        }));
        envs
    }

    fn postgres(server: &Server, url: impl Fn(&str) -> String + Send + Sync) -> Self {
        let (store, database) = run(async {
            let prepare = async |url: String| drop(PostgresStore::open(&url).await.unwrap());
            let database = server.lend_database(prepare, PostgresStore::EMPTY).await;
            (PostgresStore::open(&url(database.name())).await.unwrap(), database)
        });
        let backend = on_separate_runtime(store.backend());
        Self { _database: Some(Arc::new(database)), ..Self::with_backends(backend.clone(), backend) }
    }

    /// Creates an environment with its own keys on a server that other tests share.
    fn redis(servers: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let url = format!("{servers}?prefix=test-{number}&background=off&connect_timeout=30");
        let backend = on_separate_runtime(run(RedisStore::open(&url)).unwrap().backend());
        Self::with_backends(backend.clone(), backend)
    }

    /// Creates an environment whose `Memory` uses `wrapped`, which wraps `backend`.
    pub(crate) fn with_backends(backend: Backend, wrapped: Backend) -> Self {
        let clock = Arc::new(FakeClock::default());
        Self { memory: Memory::with_clock(wrapped, clock.clone()), clock, backend, _folder: None, _database: None }
    }

    pub(crate) fn with_options(self, options: MemoryOptions) -> Self {
        Self { memory: self.memory.with_options(options).unwrap(), ..self }
    }

    /// Opens a new thread of the user Ana.
    pub(crate) async fn open_thread(&self) -> ThreadId {
        self.memory.open(&ana()).await.unwrap().thread.id
    }

    /// Creates a `Memory` with the same store, as in another process.
    pub(crate) fn another_process(&self) -> Memory {
        Memory::with_clock(self.memory.backend().clone(), self.clock.clone())
    }
}

/// Runs a test on SQLite, on PostgreSQL, on Redis, on the in-memory store, and on the in-memory store with faults.
pub(crate) async fn on_all_stores<F: Future<Output = ()>>(scenario: impl Fn(TestEnv) -> F) {
    on_database_stores(&scenario).await;
    on_memory_stores(scenario).await;
}

/// Runs a test on all stores but the in-memory one.
pub(crate) async fn on_database_stores<F: Future<Output = ()>>(scenario: impl Fn(TestEnv) -> F) {
    println!("sqlite");
    scenario(TestEnv::sqlite()).await;
    for (name, env) in TestEnv::on_servers() {
        println!("{name}");
        scenario(env).await;
    }
}

/// Runs a test on the in-memory store, without and with faults.
pub(crate) async fn on_memory_stores<F: Future<Output = ()>>(scenario: impl Fn(TestEnv) -> F) {
    println!("plain");
    scenario(TestEnv::plain()).await;
    for seed in SEEDS {
        println!("faulty, seed {seed}");
        scenario(TestEnv::faulty(seed)).await;
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

/// A clock that only tests advance. It returns the values of a counter instead of random bytes.
pub(crate) struct FakeClock {
    now_ms: AtomicI64,
    random_counter: AtomicU64,
}

impl Default for FakeClock {
    fn default() -> Self {
        Self { now_ms: AtomicI64::new(1_767_225_600_000), random_counter: AtomicU64::new(0) }
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
        random[2..].copy_from_slice(&self.random_counter.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        random
    }
}
