use std::time::Duration;

use threadkeep_core::{OpenThread, Reason, StoreError, SweepReport};
use threadkeep_memory::{Memory, MemoryError};

use super::maintenance::{Failing, Fate};
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
                tokio::spawn(async move { memory.sweep_if_due(EVERY).await.unwrap() })
            });
            let swept = futures::future::try_join_all(instances).await.unwrap();
            let reports: Vec<SweepReport> = swept.into_iter().flatten().collect();
            assert_eq!(reports.iter().map(|report| report.expired_threads).collect::<Vec<_>>(), [expired_threads]);
            world.clock.advance_ms(minutes * 60_000 - 1);
            assert_eq!(world.memory.sweep_if_due(EVERY).await.unwrap(), None);
            world.clock.advance_ms(1);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_store_and_no_period() {
    let world = World::plain();
    assert_eq!(world.memory.sweep_if_due(EVERY).await.unwrap(), Some(SweepReport::default()));
    let error = world.memory.sweep_if_due(Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, MemoryError::Invalid { field: "every", .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_sweep_that_fails_gives_its_turn_back() {
    let world = World::plain();
    world.thread().await;
    let memory = Memory::with_clock(Failing::over(&world.backend, [Fate::Full]), world.clock.clone());
    let error = memory.sweep_if_due(EVERY).await.unwrap_err();
    assert!(matches!(error, MemoryError::Store(StoreError::Unavailable { reason: Reason::Full, .. })), "{error}");
    assert!(world.memory.sweep_if_due(EVERY).await.unwrap().is_some());
}
