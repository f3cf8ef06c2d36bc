//! What a store cannot do it says, as strictly as what it can.

use threadkeep_core::{Collection, Embedding, IndexEntry, Map, SearchQuery, StoreError};

use super::search::query_for;
use crate::conversation::Conversation;
use crate::given::{ana, assert_error, at};
use crate::run::Stage;

fn embedding() -> Embedding {
    Embedding { model: "a model".to_owned(), vector: vec![0.5, -0.25, 1.0] }
}

pub(super) async fn vectors_are_searched_or_unsupported(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    conversation.say(1..=2, at(1)).await;
    let query = SearchQuery { vector: Some(embedding()), ..query_for("message") };
    let answer = subject.client.search(&ana(), &query, at(2)).await;
    if stage.abilities().vectors {
        answer.expect("the store says that it searches vectors");
    } else {
        assert_error!(answer, StoreError::Unsupported(_));
    }
}

pub(super) async fn named_collections_are_kept_or_unsupported(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let collection = Collection::Named("statutes".to_owned());
    let text = "a walrus".to_owned();
    let entry = IndexEntry { id: "1".to_owned(), text, fields: Map::new(), embedding: None };
    let upserted = subject.client.upsert(&ana(), &collection, std::slice::from_ref(&entry)).await;
    let query = SearchQuery { collection, ..query_for("walrus") };
    let searched = subject.client.search(&ana(), &query, at(2)).await;
    if stage.abilities().named_collections {
        upserted.expect("the store says that it keeps collections");
        searched.expect("the store says that it keeps collections");
    } else {
        assert_error!(upserted, StoreError::Unsupported(_));
        assert_error!(searched, StoreError::Unsupported(_));
    }
    // Messages come from the log and from nowhere else.
    let forged = subject.client.upsert(&ana(), &Collection::Messages, &[entry]).await;
    assert_error!(forged, StoreError::Invalid { .. });
    let found = subject.client.search(&ana(), &query_for("walrus"), at(2)).await.expect("searching works");
    assert_eq!(found.hits, []);
}

pub(super) async fn space_is_given_back_or_unsupported(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    conversation.say(1..=50, at(1)).await;
    let before = conversation.dump(10).await;
    let answer = subject.client.compact().await;
    if stage.abilities().compaction {
        answer.expect("the store says that it compacts");
    } else {
        assert_error!(answer, StoreError::Unsupported(_));
    }
    assert_eq!(conversation.dump(10).await, before);
}
