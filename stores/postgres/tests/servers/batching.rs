//! Batches of commits and of reads need fewer transactions, and their calls do not affect each other.

use futures::future::join_all;
use threadkeep_core::{Batch, Kind, Scope, StoreError, SyncPolicy};
use threadkeep_postgres_server::Server;
use threadkeep_store_postgres::PostgresStore;
use tokio::time::timeout;

use super::support::{TIMEOUT, ana, append_batch, client, ids_in, now, open_thread, thread_id};

#[tokio::test]
async fn concurrent_commits_share_transactions() {
    let Some(server) = Server::shared() else { return };
    let database = server.create_database().await;
    let url = format!("{}?background=off&pool_size=2", database.url());
    let backend = PostgresStore::open(&url).await.unwrap().backend();
    for number in 0..40 {
        open_thread(&backend, &ana(), number).await;
    }
    let ana = ana();
    let committing = (0..40).map(|number| backend.store.commit(&ana, thread_id(number), append_batch(number), now()));
    for outcome in join_all(committing).await {
        assert_eq!(outcome.unwrap().change, 1);
    }
    for number in 0..40 {
        assert_eq!(ids_in(&backend, thread_id(number)).await, [2 * number, 2 * number + 1]);
    }
    let client = client(&database).await;
    let sql = "SELECT count(DISTINCT xmin::text) FROM threadkeep.commits";
    let transactions: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
    assert!(transactions < 40, "{transactions} transactions");
}

#[tokio::test]
async fn locked_thread_does_not_block_commits_to_other_threads() {
    let Some(server) = Server::shared() else { return };
    let database = server.create_database().await;
    let url = format!("{}?background=off&pool_size=4", database.url());
    let backend = PostgresStore::open(&url).await.unwrap().backend();
    for number in 0..20 {
        open_thread(&backend, &ana(), number).await;
    }
    let holder = client(&database).await;
    let lock = "BEGIN; SELECT 1 FROM threadkeep.threads WHERE id = '00000000-0000-0000-0000-000000000003' FOR UPDATE";
    holder.batch_execute(lock).await.unwrap();
    let blocked = tokio::spawn({
        let backend = backend.clone();
        async move { backend.store.commit(&ana(), thread_id(3), append_batch(3), now()).await }
    });
    let others = (0..20).filter(|number| *number != 3);
    let ana = ana();
    let committing = others.map(|number| backend.store.commit(&ana, thread_id(number), append_batch(number), now()));
    for outcome in timeout(TIMEOUT, join_all(committing)).await.expect("the other commits do not wait") {
        assert_eq!(outcome.unwrap().change, 1);
    }
    assert!(!blocked.is_finished(), "the commit to the locked thread does not wait");
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(
        timeout(TIMEOUT, blocked).await.expect("the commit ends after the rollback").unwrap().unwrap().change,
        1
    );
}

// A deferred commit waits for the disk only in a batch with a commit that is not deferred.
#[tokio::test]
async fn deferred_commits_do_not_wait_for_the_disk() {
    let Some(server) = Server::shared() else { return };
    let database = server.create_database().await;
    let url = format!("{}?background=off&pool_size=2", database.url());
    let backend = PostgresStore::open(&url).await.unwrap().backend();
    for number in 0..5 {
        open_thread(&backend, &ana(), number).await;
    }
    let client = client(&database).await;
    client
        .batch_execute(
            "CREATE TABLE public.seen (change bigint GENERATED ALWAYS AS IDENTITY, setting text);
             CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
               INSERT INTO public.seen (setting) VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$;
             CREATE TRIGGER note AFTER INSERT ON threadkeep.commits FOR EACH ROW EXECUTE FUNCTION public.note()",
        )
        .await
        .unwrap();
    let deferred = |number| Batch { sync_policy: SyncPolicy::Deferred, ..append_batch(number) };
    let ana = ana();
    let commit = |number, batch| backend.store.commit(&ana, thread_id(number), batch, now());
    commit(0, deferred(0)).await.unwrap();
    commit(0, append_batch(1)).await.unwrap();
    // The first commit is executed alone, the others in one batch.
    let together = [commit(1, deferred(2)), commit(2, deferred(3)), commit(3, append_batch(4)), commit(4, deferred(5))];
    assert!(join_all(together).await.iter().all(Result::is_ok));
    let rows = client.query("SELECT setting FROM public.seen ORDER BY change", &[]).await.unwrap();
    let seen: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(seen, ["off", "on", "off", "on", "on", "on"]);
}

// S0.14
#[tokio::test]
async fn concurrent_reads_share_calls_and_respect_scopes() {
    let Some(server) = Server::shared() else { return };
    let database = server.create_database().await;
    let url = format!("{}?background=off&pool_size=16", database.url());
    let writing = PostgresStore::open(&url).await.unwrap().backend();
    let ben = Scope::user("acme", "ben").unwrap();
    for number in 0..40 {
        let scope = if number % 2 == 0 { ana() } else { ben.clone() };
        open_thread(&writing, &scope, number).await;
        writing.store.commit(&scope, thread_id(number), append_batch(number), now()).await.unwrap();
    }
    drop(writing);
    let backend = PostgresStore::open(&url).await.unwrap().backend();
    let client = client(&database).await;
    let ana = ana();
    // Every second thread belongs to another user, and the last ten do not exist.
    let reading =
        (0..50).map(|number| backend.store.list_changes_with_messages(&ana, thread_id(number), 0.into(), 10, now()));
    for (number, read) in (0..).zip(timeout(TIMEOUT, join_all(reading)).await.unwrap()) {
        if number % 2 == 1 || number >= 40 {
            assert!(matches!(read, Err(StoreError::NotFound(Kind::Thread))), "{number}: {read:?}");
            continue;
        }
        let read = read.unwrap();
        let ids: Vec<_> = read.messages.iter().map(|message| message.id.0.as_u128()).collect();
        assert_eq!(ids, [2 * number, 2 * number + 1]);
    }
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
               AND query LIKE '%list_followed%'";
    let connections: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
    assert!((1..=2).contains(&connections), "{connections} connections");
}
