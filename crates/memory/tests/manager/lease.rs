use std::sync::Arc;
use std::time::Duration;

use threadkeep_core::{Clock, Conflict, OpenThread, StoreError};
use threadkeep_memory::{Draft, Lease, Memory, MemoryError};
use threadkeep_store_sqlite::{Durability, SqliteOptions, SqliteStore};

use super::world::{FakeClock, World, acme, ana, everywhere};

const LENGTH: Duration = Duration::from_secs(30);
const LENGTH_MS: i64 = 30_000;

fn assert_lost(result: Result<impl std::fmt::Debug, MemoryError>) {
    let error = result.unwrap_err();
    assert!(error.is_lease_lost() && !error.is_retryable(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn of_two_drivers_one_gets_the_lease() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        let (one, two) = (world.memory.clone(), world.another_process());
        let lease = one.acquire_lease(&ana(), thread, "run", "one", LENGTH).await.unwrap();
        assert_eq!((lease.thread(), lease.holder()), (thread, "one"));
        assert_eq!(lease.expires_at(), world.clock.now().plus_ms(LENGTH_MS));
        for holder in ["two", "one"] {
            let error = two.acquire_lease(&ana(), thread, "run", holder, LENGTH).await.unwrap_err();
            let MemoryError::LeaseHeld { holder, until } = &error else { panic!("{error}") };
            assert_eq!((holder.as_str(), *until, error.is_retryable()), ("one", lease.expires_at(), true));
        }
        // Neither another lease nor a commit that demands none is in its way.
        two.acquire_lease(&ana(), thread, "titles", "two", LENGTH).await.unwrap();
        two.append(&ana(), thread, Draft::user("Is anybody there?")).await.unwrap();
        one.batch().under(&lease).append(Draft::assistant("Yes.")).commit(&ana(), thread).await.unwrap();
        one.release_lease(&ana(), lease).await.unwrap();
        two.acquire_lease(&ana(), thread, "run", "two", LENGTH).await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn many_who_try_at_once_get_one_lease() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        let drivers = (0..16).map(|number| {
            let memory = world.memory.clone();
            let holder = format!("driver {number}");
            tokio::spawn(async move { memory.acquire_lease(&ana(), thread, "run", &holder, LENGTH).await })
        });
        let answers = futures::future::try_join_all(drivers).await.unwrap();
        let (held, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        assert_eq!((held.len(), refused.len()), (1, 15));
        let winner = held.into_iter().next().unwrap().unwrap();
        for error in refused.into_iter().map(Result::unwrap_err) {
            assert!(matches!(&error, MemoryError::LeaseHeld { holder, .. } if holder == winner.holder()), "{error}");
        }
    })
    .await;
}

/// A driver that slept through the end of its lease, and whose own clock may not know of it, changes nothing.
#[tokio::test(start_paused = true)]
async fn a_dead_drivers_lease_passes_on_and_its_commits_are_refused() {
    for sleeper_lags in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("conversations.db");
        let (slow, fast) = (Arc::new(FakeClock::default()), Arc::new(FakeClock::default()));
        let (sleeper, other) = (instance(&file, &slow), instance(&file, &fast));
        let thread = sleeper.open(&ana()).await.unwrap().thread.id;
        let mut lease = sleeper.acquire_lease(&ana(), thread, "run", "sleeper", LENGTH).await.unwrap();

        fast.advance_ms(LENGTH_MS - 1);
        let held = other.acquire_lease(&ana(), thread, "run", "other", LENGTH).await.unwrap_err();
        assert!(matches!(held, MemoryError::LeaseHeld { .. }), "{held}");
        fast.advance_ms(1);
        let next = other.acquire_lease(&ana(), thread, "run", "other", LENGTH).await.unwrap();
        assert!(next.token() > lease.token());
        if !sleeper_lags {
            slow.advance_ms(2 * LENGTH_MS);
        }

        let before = other.get_thread(&ana(), thread).await.unwrap().positions;
        assert_lost(sleeper.batch().under(&lease).append(Draft::assistant("Too late.")).commit(&ana(), thread).await);
        assert_lost(sleeper.renew_lease(&ana(), &mut lease, LENGTH).await);
        assert_lost(sleeper.release_lease(&ana(), lease).await);
        assert_eq!(other.get_thread(&ana(), thread).await.unwrap().positions, before);
        other.batch().under(&next).append(Draft::assistant("In time.")).commit(&ana(), thread).await.unwrap();
        let said = sleeper.newest(&ana(), thread, 10).await.unwrap();
        assert_eq!(said.iter().map(threadkeep_core::Message::plain_text).collect::<Vec<_>>(), ["In time."]);
    }
}

fn instance(file: &std::path::Path, clock: &Arc<FakeClock>) -> Memory {
    let options = SqliteOptions { durability: Durability::Process, background: false, ..SqliteOptions::default() };
    Memory::with_clock(SqliteStore::open(file, options).unwrap().backend(), clock.clone())
}

#[tokio::test(start_paused = true)]
async fn a_renewed_lease_lasts_and_has_another_token() {
    everywhere(async |world: World| {
        let (thread, memory) = (world.thread().await, &world.memory);
        let mut lease = memory.acquire_lease(&ana(), thread, "run", "one", LENGTH).await.unwrap();
        let old = lease.clone();
        world.clock.advance_ms(LENGTH_MS - 1);
        memory.renew_lease(&ana(), &mut lease, LENGTH).await.unwrap();
        world.clock.advance_ms(LENGTH_MS - 1);
        assert!(lease.token() > old.token());
        assert_lost(memory.batch().under(&old).append(Draft::user("old")).commit(&ana(), thread).await);
        memory.batch().under(&lease).append(Draft::user("renewed")).commit(&ana(), thread).await.unwrap();
        world.clock.advance_ms(1);
        // It is over although nobody else took it: it cannot be revived.
        assert_lost(memory.batch().under(&lease).append(Draft::user("over")).commit(&ana(), thread).await);
        assert_lost(memory.renew_lease(&ana(), &mut lease, LENGTH).await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_ends_its_lease_counts_once() {
    everywhere(async |world: World| {
        let (thread, memory) = (world.thread().await, &world.memory);
        let finish = async |lease: &Lease| {
            let batch = memory.batch().idempotency_key("turn-7").releasing(lease);
            batch.append(Draft::assistant("Done.")).commit(&ana(), thread).await
        };
        let lease = memory.acquire_lease(&ana(), thread, "run", "one", LENGTH).await.unwrap();
        let first = finish(&lease).await.unwrap();
        // The next driver has it at once; the first one's repetition still gets its answer.
        let next = memory.acquire_lease(&ana(), thread, "run", "two", LENGTH).await.unwrap();
        for lease in [&lease, &next] {
            let again = finish(lease).await.unwrap();
            assert_eq!((again.change, again.messages), (first.change, first.messages.clone()));
        }
        assert_eq!(memory.newest(&ana(), thread, 10).await.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_needs_a_thread_that_may_be_changed() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        let shared =
            memory.open_thread(&acme(), OpenThread::new(&acme(), memory.mint_thread_id())).await.unwrap().thread;
        let error = memory.acquire_lease(&ana(), shared.id, "run", "one", LENGTH).await.unwrap_err();
        assert!(matches!(error, MemoryError::Store(StoreError::Denied(_))), "{error}");
        memory.acquire_lease(&acme(), shared.id, "run", "one", LENGTH).await.unwrap();
        let error = memory.acquire_lease(&ana(), memory.mint_thread_id(), "run", "one", LENGTH).await.unwrap_err();
        assert!(error.is_not_found(), "{error}");
        let error = memory.acquire_lease(&acme(), shared.id, "run", "one", Duration::ZERO).await.unwrap_err();
        assert!(matches!(error, MemoryError::Invalid { field: "lease", .. }), "{error}");
        // Another document's conflict is not about a lease.
        let other = MemoryError::from(StoreError::Conflict(Conflict::Thread));
        assert!(!other.is_lease_lost());
    })
    .await;
}
