use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use threadkeep_core::{
    Backend, Document, DocumentOwner, Dump, Maintenance, OpenThread, Owner, Reason, Result, StoreError, SweepReport,
    TenantId, ThreadId, Timestamp, VerifyReport,
};
use threadkeep_memory::{Memory, MemoryError};

use super::world::{World, ana, everywhere};

const EVERY: Duration = Duration::from_secs(600);

#[tokio::test(start_paused = true)]
async fn of_many_instances_one_sweeps_in_a_period() {
    everywhere(async |world: World| {
        let expiring = OpenThread {
            expires_at: Some(world.memory.now().plus_ms(1)),
            ..OpenThread::new(&ana(), world.memory.mint_thread_id())
        };
        world.memory.open_thread(&ana(), expiring).await.unwrap();
        world.thread().await;
        world.clock.advance_ms(1);
        for (minutes, expired_threads) in [(10, 1), (10, 0)] {
            let instances = (0..6).map(|_| {
                let memory = world.another_process();
                tokio::spawn(async move { memory.sweep_in_turn(EVERY).await.unwrap() })
            });
            let swept = futures::future::try_join_all(instances).await.unwrap();
            let reports: Vec<SweepReport> = swept.into_iter().flatten().collect();
            assert_eq!(reports.iter().map(|report| report.expired_threads).collect::<Vec<_>>(), [expired_threads]);
            world.clock.advance_ms(minutes * 60_000 - 1);
            assert_eq!(world.memory.sweep_in_turn(EVERY).await.unwrap(), None);
            world.clock.advance_ms(1);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_store_and_no_period() {
    let world = World::plain();
    assert_eq!(world.memory.sweep_in_turn(EVERY).await.unwrap(), Some(SweepReport::default()));
    let error = world.memory.sweep_in_turn(Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, MemoryError::Invalid { field: "every", .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_sweep_that_fails_gives_its_turn_back() {
    let world = World::plain();
    world.thread().await;
    let failing = Arc::new(Failing { inner: world.backend.clone(), sweeps: AtomicUsize::new(0) });
    let backend = Backend { maintenance: failing.clone(), ..world.backend.clone() };
    let memory = Memory::with_clock(backend, world.clock.clone());
    let error = memory.sweep_in_turn(EVERY).await.unwrap_err();
    assert!(matches!(error, MemoryError::Store(StoreError::Unavailable { reason: Reason::Full, .. })), "{error}");
    assert_eq!(failing.sweeps.load(Ordering::Relaxed), 1);
    assert!(world.memory.sweep_in_turn(EVERY).await.unwrap().is_some());
}

/// A store whose disk is full when it sweeps.
#[derive(Debug)]
struct Failing {
    inner: Backend,
    sweeps: AtomicUsize,
}

#[async_trait]
impl Maintenance for Failing {
    async fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>> {
        self.inner.maintenance.list_tenants(after, limit).await
    }
    async fn list_owners(&self, tenant: &TenantId, after: Option<&Owner>, limit: usize) -> Result<Vec<Owner>> {
        self.inner.maintenance.list_owners(tenant, after, limit).await
    }
    async fn dump_thread(&self, tenant: &TenantId, thread: ThreadId, after: Option<u64>, limit: usize) -> Result<Dump> {
        self.inner.maintenance.dump_thread(tenant, thread, after, limit).await
    }
    async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()> {
        self.inner.maintenance.restore_thread(tenant, thread, chunk).await
    }
    async fn restore_document(&self, tenant: &TenantId, owner: &DocumentOwner, document: Document) -> Result<()> {
        self.inner.maintenance.restore_document(tenant, owner, document).await
    }
    async fn sweep(&self, _: Timestamp) -> Result<SweepReport> {
        self.sweeps.fetch_add(1, Ordering::Relaxed);
        Err(StoreError::unavailable(Reason::Full))
    }
    async fn verify(&self) -> Result<VerifyReport> {
        self.inner.maintenance.verify().await
    }
    async fn repair(&self, now: Timestamp) -> Result<()> {
        self.inner.maintenance.repair(now).await
    }
    async fn compact(&self) -> Result<()> {
        self.inner.maintenance.compact().await
    }
}
