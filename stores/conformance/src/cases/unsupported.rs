//! Unsupported operations return errors.

use threadkeep_core::{Collection, Embedding, IndexEntry, Map, SearchQuery, StoreError};

use super::search::query_for;
use crate::conversation::Conversation;
use crate::fixtures::{ana, assert_error, at};
use crate::run::TestEnv;

pub(super) async fn messages_do_not_support_vectors(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    conversation.append(1..=2, at(1)).await;
    let vector = Embedding { model: "a model".to_owned(), vector: vec![0.5, -0.25, 1.0] };
    let query = SearchQuery { vector: Some(vector), ..query_for("message") };
    assert_error!(store.client.search(&ana(), &query, at(2)).await, StoreError::Unsupported(_));
}

pub(super) async fn named_collections_do_not_support_alternatives(env: &TestEnv<'_>) {
    let store = env.open().await;
    let alternatives = vec![vec!["walrus".to_owned()]];
    let collection = Collection::Named("statutes".to_owned());
    let query = SearchQuery { collection, alternatives, ..query_for("yak") };
    assert_error!(store.client.search(&ana(), &query, at(2)).await, StoreError::Unsupported(_));
}

pub(super) async fn messages_cannot_be_upserted(env: &TestEnv<'_>) {
    let store = env.open().await;
    let text = "a walrus".to_owned();
    let entry = IndexEntry { id: "1".to_owned(), text, fields: Map::new(), embedding: None };
    let forged = store.client.upsert(&ana(), &Collection::Messages, &[entry]).await;
    assert_error!(forged, StoreError::Invalid { .. });
    let removed = store.client.remove(&ana(), &Collection::Messages, &["1".to_owned()]).await;
    assert_error!(removed, StoreError::Invalid { .. });
    let found = store.client.search(&ana(), &query_for("walrus"), at(2)).await.expect("searching works");
    assert_eq!(found.hits, []);
}

pub(super) async fn compaction_succeeds_or_is_unsupported(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    conversation.append(1..=50, at(1)).await;
    let before = conversation.dump(10).await;
    let answer = store.client.compact().await;
    if env.capabilities().compaction {
        answer.expect("the store supports compaction");
    } else {
        assert_error!(answer, StoreError::Unsupported(_));
    }
    assert_eq!(conversation.dump(10).await, before);
}
