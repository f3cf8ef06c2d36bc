use async_trait::async_trait;
use threadkeep_core::{Embedder, EmbedderError, Embedding};
use threadkeep_memory::{Draft, EmbedderOutcome, RecallOptions};

use super::test_env::{TestEnv, ana, on_all_stores};

/// An embedder that distinguishes only whether the text is about cats, which it recognises by the words "cat" and "feline".
#[derive(Clone, Copy, Debug)]
pub(crate) enum FakeEmbedder {
    Working,
    Unavailable,
    TooFewVectors,
    ZeroVectors,
}

#[async_trait]
impl Embedder for FakeEmbedder {
    fn model(&self) -> &str {
        "fake"
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedderError> {
        let is_cat = |text: &String| text.contains("cat") || text.contains("feline");
        let vector_of = |text: &String| match self {
            Self::ZeroVectors => vec![0.0, 0.0],
            _ if is_cat(text) => vec![1.0, 0.1],
            _ => vec![0.1, 1.0],
        };
        let embeddings = texts.iter().map(|text| Embedding { model: "fake".to_owned(), vector: vector_of(text) });
        match self {
            Self::Unavailable => Err(EmbedderError::Unavailable(None)),
            Self::TooFewVectors => Ok(embeddings.skip(1).collect()),
            Self::Working | Self::ZeroVectors => Ok(embeddings.collect()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn recall_uses_only_words_if_the_embedder_fails() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        for text in ["photos of a feline", "photos of walls"] {
            memory.append(&ana(), thread, Draft::user(text)).await.unwrap();
            env.clock.advance_minutes(24 * 60);
        }
        let options = RecallOptions { limit: 1, ..RecallOptions::default() };
        let by_words = memory.recall(&ana(), "cat photos", &options).await.unwrap();
        assert_eq!((by_words.messages[0].message.seq, by_words.messages[0].similarity), (2, None));
        assert_eq!(by_words.embedder_outcome, EmbedderOutcome::NotRequested);

        let combined =
            memory.recall_with_embedder(&ana(), "cat photos", &options, &FakeEmbedder::Working).await.unwrap();
        assert_eq!((combined.messages.len(), combined.embedder_outcome), (1, EmbedderOutcome::Used));
        assert!(combined.messages[0].similarity.is_some());
        let two_messages = RecallOptions { limit: 2, ..RecallOptions::default() };
        let combined =
            memory.recall_with_embedder(&ana(), "cat photos", &two_messages, &FakeEmbedder::Working).await.unwrap();
        let similarity_of = |seq: u64| {
            combined.messages.iter().find(|found| found.message.seq == seq).and_then(|found| found.similarity)
        };
        assert!(similarity_of(1) > similarity_of(2), "{:?} {:?}", similarity_of(1), similarity_of(2));

        for broken in [FakeEmbedder::Unavailable, FakeEmbedder::TooFewVectors, FakeEmbedder::ZeroVectors] {
            let results = memory.recall_with_embedder(&ana(), "cat photos", &options, &broken).await.unwrap();
            assert_eq!(results.messages, by_words.messages, "{broken:?}");
            assert!(matches!(results.embedder_outcome, EmbedderOutcome::Failed(_)), "{broken:?}");
        }
        let zero_limit = RecallOptions { limit: 0, ..RecallOptions::default() };
        assert!(memory.recall_with_embedder(&ana(), "cat", &zero_limit, &FakeEmbedder::Working).await.is_err());
    })
    .await;
}
