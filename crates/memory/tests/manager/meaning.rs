use async_trait::async_trait;
use threadkeep_core::{Embedder, EmbedderError, Embedding};
use threadkeep_memory::{Draft, EmbedderOutcome, RecallOptions};

use super::world::{World, ana, everywhere};

/// Knows that cats are felines, and nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fake {
    Works,
    IsDown,
    GivesTooLittle,
    GivesNothingComparable,
}

#[async_trait]
impl Embedder for Fake {
    fn model(&self) -> &str {
        "fake"
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedderError> {
        let is_cat = |text: &String| text.contains("cat") || text.contains("feline");
        let point = |text: &String| match self {
            Self::GivesNothingComparable => vec![0.0, 0.0],
            _ if is_cat(text) => vec![1.0, 0.1],
            _ => vec![0.1, 1.0],
        };
        let all = texts.iter().map(|text| Embedding { model: "fake".to_owned(), vector: point(text) });
        match self {
            Self::IsDown => Err(EmbedderError::Unavailable(None)),
            Self::GivesTooLittle => Ok(all.skip(1).collect()),
            Self::Works | Self::GivesNothingComparable => Ok(all.collect()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_embedder_joins_the_ranking_and_its_failure_leaves_the_words() {
    everywhere(async |world: World| {
        let (memory, thread) = (&world.memory, world.thread().await);
        for text in ["photos of a feline", "photos of walls"] {
            memory.append(&ana(), thread, Draft::user(text)).await.unwrap();
            world.clock.advance_minutes(24 * 60);
        }
        let options = RecallOptions { limit: 1, ..RecallOptions::default() };
        let by_words = memory.recall(&ana(), "cat photos", &options).await.unwrap();
        assert_eq!((by_words.turns[0].message.seq, by_words.turns[0].similarity), (2, None));
        assert_eq!(by_words.meaning, EmbedderOutcome::NotRequested);

        let joined = memory.recall_with_embedder(&ana(), "cat photos", &options, &Fake::Works).await.unwrap();
        assert_eq!((joined.turns.len(), joined.meaning), (1, EmbedderOutcome::Used));
        assert!(joined.turns[0].similarity.is_some());
        let both = RecallOptions { limit: 2, ..RecallOptions::default() };
        let joined = memory.recall_with_embedder(&ana(), "cat photos", &both, &Fake::Works).await.unwrap();
        let near = |seq: u64| joined.turns.iter().find(|turn| turn.message.seq == seq).and_then(|turn| turn.similarity);
        assert!(near(1) > near(2), "{:?} {:?}", near(1), near(2));

        for broken in [Fake::IsDown, Fake::GivesTooLittle, Fake::GivesNothingComparable] {
            let results = memory.recall_with_embedder(&ana(), "cat photos", &options, &broken).await.unwrap();
            assert_eq!(results.turns, by_words.turns, "{broken:?}");
            assert!(matches!(results.meaning, EmbedderOutcome::Failed(_)), "{broken:?}");
        }
        let none = RecallOptions { limit: 0, ..RecallOptions::default() };
        assert!(memory.recall_with_embedder(&ana(), "cat", &none, &Fake::Works).await.is_err());
    })
    .await;
}
