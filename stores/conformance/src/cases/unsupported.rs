//! What a store cannot do it says, as strictly as what it can.

use threadkeep_core::{Collection, Embedding, IndexEntry, Map, SearchQuery, StoreError};

use super::search::query_for;
use crate::conversation::Conversation;
use crate::given::{ana, assert_error, at};
use crate::run::Stage;

pub(super) async fn vectors_are_not_for_messages(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    conversation.say(1..=2, at(1)).await;
    let vector = Embedding { model: "a model".to_owned(), vector: vec![0.5, -0.25, 1.0] };
    let query = SearchQuery { vector: Some(vector), ..query_for("message") };
    assert_error!(subject.client.search(&ana(), &query, at(2)).await, StoreError::Unsupported(_));
}

pub(super) async fn messages_come_from_the_log_alone(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let text = "a walrus".to_owned();
    let entry = IndexEntry { id: "1".to_owned(), text, fields: Map::new(), embedding: None };
    let forged = subject.client.upsert(&ana(), &Collection::Messages, &[entry]).await;
    assert_error!(forged, StoreError::Invalid { .. });
    let removed = subject.client.remove(&ana(), &Collection::Messages, &["1".to_owned()]).await;
    assert_error!(removed, StoreError::Invalid { .. });
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
