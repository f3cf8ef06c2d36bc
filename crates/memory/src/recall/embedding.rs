//! Recall with an embedder: combines a ranking by words with a ranking by embedding similarity.

use threadkeep_context::recall::combine_by_rank;
use threadkeep_core::{Embedder, EmbedderError, Scope, limits, similarity};

use super::{RecallOptions, RecallResults, RecalledMessage};
use crate::{Memory, Result};

/// Maximum number of messages to embed. They are sent to the embedder in one call, together with the question.
const MAX_EMBEDDED: usize = 64;
/// Maximum length of an embedded text, in bytes. Models truncate or reject longer texts.
const MAX_TEXT_BYTES: usize = 4_000;

/// Whether an embedder was used for a ranking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EmbedderOutcome {
    /// No embedder was passed.
    #[default]
    NotRequested,
    /// The embedder was used for the ranking.
    Used,
    /// The embedder failed with this message, and the ranking is by words alone.
    Failed(String),
}

impl Memory {
    /// Recalls messages as [`Memory::recall`] does, but combines the ranking of the best messages by words with a ranking by
    /// embedding similarity, using [`combine_by_rank`].
    ///
    /// The embedder is called once, for the question and at most 64 messages. If it fails, the ranking is by words alone, and
    /// [`RecallResults::embedder_outcome`] reports the failure.
    ///
    /// # Errors
    /// The same as for [`Memory::recall`].
    pub async fn recall_with_embedder(
        &self,
        scope: &Scope,
        question: &str,
        options: &RecallOptions,
        embedder: &dyn Embedder,
    ) -> Result<RecallResults> {
        // A limit of 0 is not raised, so that `recall` rejects it.
        let limit = if options.limit == 0 { 0 } else { options.limit.max(MAX_EMBEDDED) };
        limits::check_at_most("limit", options.limit, limits::PAGE)?;
        let mut results = self.recall(scope, question, &RecallOptions { limit, ..options.clone() }).await?;
        if !results.messages.is_empty() {
            match similarities_to(question, &results.messages, embedder).await {
                Ok(similarities) => {
                    results.messages = combine(results.messages, &similarities);
                    results.embedder_outcome = EmbedderOutcome::Used;
                }
                Err(error) => results.embedder_outcome = EmbedderOutcome::Failed(error.to_string()),
            }
        }
        results.messages.truncate(options.limit);
        Ok(results)
    }
}

/// Returns the similarity to the question of each of the first [`MAX_EMBEDDED`] messages.
async fn similarities_to(
    question: &str,
    messages: &[RecalledMessage],
    embedder: &dyn Embedder,
) -> Result<Vec<f64>, EmbedderError> {
    let texts = messages.iter().take(MAX_EMBEDDED).map(|found| truncate(&found.message.plain_text()));
    let texts: Vec<String> = std::iter::once(truncate(question)).chain(texts).collect();
    let embeddings = embedder.embed(&texts).await?;
    let invalid = |what: &str| EmbedderError::InvalidAnswer(what.to_owned());
    if embeddings.len() != texts.len() {
        return Err(invalid("the number of embeddings differs from the number of texts"));
    }
    let (question, messages) = embeddings.split_first().ok_or_else(|| invalid("no embeddings"))?;
    let similarities = messages.iter().map(|message| similarity(&question.vector, &message.vector));
    similarities.collect::<Option<_>>().ok_or_else(|| {
        invalid("the embeddings have different dimensions, or one is zero or contains a number that is not finite")
    })
}

fn truncate(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT_BYTES)].to_owned()
}

/// Combines the given order of messages with the order of their similarities.
fn combine(messages: Vec<RecalledMessage>, similarities: &[f64]) -> Vec<RecalledMessage> {
    let by_words: Vec<usize> = (0..messages.len()).collect();
    let mut by_meaning: Vec<usize> = (0..similarities.len()).collect();
    by_meaning.sort_by(|a, b| similarities[*b].total_cmp(&similarities[*a]));
    let mut messages: Vec<Option<RecalledMessage>> = messages.into_iter().map(Some).collect();
    let combined = combine_by_rank(&[by_words, by_meaning]).into_iter().filter_map(|(index, score)| {
        let found = messages[index].take()?;
        Some(RecalledMessage { score, similarity: similarities.get(index).copied(), ..found })
    });
    combined.collect()
}
