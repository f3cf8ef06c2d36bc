use std::time::Duration;

use threadkeep_core::{OpenThread, Reason, StoreError, SweepReport};
use threadkeep_memory::{Memory, MemoryError};

use super::faulty_maintenance::{FaultyMaintenance, Outcome};
use super::test_env::{TestEnv, ana, on_all_stores};

const SWEEP_PERIOD: Duration = Duration::from_secs(600);

#[tokio::test(start_paused = true)]
async fn only_one_instance_sweeps_in_each_period() {
    on_all_stores(async |env: TestEnv| {
        let expiring = OpenThread {
            expires_at: Some(env.memory.now().plus_ms(1)),
            ..OpenThread::new(&ana(), env.memory.generate_thread_id())
        };
        env.memory.open_thread(&ana(), expiring).await.unwrap();
        env.open_thread().await;
        env.clock.advance_ms(1);
        for (minutes, expired_threads) in [(10, 1), (10, 0)] {
            let instances = (0..6).map(|_| {
                let memory = env.another_process();
                tokio::spawn(async move { memory.sweep_if_due(SWEEP_PERIOD).await.unwrap() })
            });
            let swept = futures::future::try_join_all(instances).await.unwrap();
            let reports: Vec<SweepReport> = swept.into_iter().flatten().collect();
            assert_eq!(reports.iter().map(|report| report.expired_threads).collect::<Vec<_>>(), [expired_threads]);
            env.clock.advance_ms(minutes * 60_000 - 1);
            assert_eq!(env.memory.sweep_if_due(SWEEP_PERIOD).await.unwrap(), None);
            env.clock.advance_ms(1);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_store_can_be_swept_but_a_zero_period_is_rejected() {
    let env = TestEnv::plain();
    assert_eq!(env.memory.sweep_if_due(SWEEP_PERIOD).await.unwrap(), Some(SweepReport::default()));
    let error = env.memory.sweep_if_due(Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, MemoryError::Invalid { field: "every", .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_sweep_can_be_repeated_immediately() {
    let env = TestEnv::plain();
    env.open_thread().await;
    let memory = Memory::with_clock(FaultyMaintenance::wrap(&env.backend, [Outcome::DiskFull]), env.clock.clone());
    let error = memory.sweep_if_due(SWEEP_PERIOD).await.unwrap_err();
    assert!(matches!(error, MemoryError::Store(StoreError::Unavailable { reason: Reason::Full, .. })), "{error}");
    assert!(env.memory.sweep_if_due(SWEEP_PERIOD).await.unwrap().is_some());
}
