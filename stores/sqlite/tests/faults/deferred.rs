//! Deferred commits, which are not synced individually.

use threadkeep_core::{Batch, SyncPolicy};

use super::{append, batch, now, open, open_thread, scope, texts, thread};

#[tokio::test]
async fn deferred_commit_is_immediately_visible_to_other_processes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).unwrap();
    open_thread(&store).await;
    append(&store, "first").await.unwrap();
    let deferred = Batch { sync_policy: SyncPolicy::Deferred, ..batch("deferred", "deferred") };
    store.backend().store.commit(&scope(), thread(), deferred, now()).await.unwrap();
    append(&store, "last").await.unwrap();
    let other = open(&path).unwrap();
    let texts: Vec<String> = texts(&other).await.unwrap().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["first", "deferred", "last"]);
}
