//! Recall with an embedder: a ranking by words, combined with one by embedding similarity.

use threadkeep_context::recall::by_rank;
use threadkeep_core::{Embedder, EmbedderError, Scope, limits, similarity};

use super::{RecallOptions, RecallResults, Recalled};
use crate::{Memory, Result};

/// Maximum number of messages that are embedded; one call of an embedder takes that many texts and the question.
const MAX_EMBEDDED: usize = 64;
/// Maximum length of an embedded text, in bytes; models cut or reject longer texts.
const TEXT_BYTES: usize = 4_000;

/// Whether an embedder took part in a ranking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EmbedderOutcome {
    /// No embedder was passed.
    #[default]
    NotRequested,
    /// It took part in the ranking.
    Used,
    /// It failed with this message, and the ranking is by words alone.
    Failed(String),
}

impl Memory {
    /// Recalls as [`Memory::recall`] does, and combines that ranking of the best messages with one by embedding similarity
    /// ([`by_rank`]).
    ///
    /// The embedder is called once, for the question and at most 64 messages. If it fails, the ranking is by words alone, and
    /// [`RecallResults::meaning`] reports the failure.
    ///
    /// # Errors
    /// As [`Memory::recall`].
    pub async fn recall_with_embedder(
        &self,
        scope: &Scope,
        question: &str,
        options: &RecallOptions,
        embedder: &dyn Embedder,
    ) -> Result<RecallResults> {
        // An invalid limit stays invalid.
        let limit = if options.limit == 0 { 0 } else { options.limit.max(MAX_EMBEDDED) };
        limits::check_bytes("limit", options.limit, limits::PAGE)?;
        let mut results = self.recall(scope, question, &RecallOptions { limit, ..options.clone() }).await?;
        if !results.turns.is_empty() {
            match similarities(question, &results.turns, embedder).await {
                Ok(similarities) => {
                    results.turns = combined(results.turns, &similarities);
                    results.embedder_outcome = EmbedderOutcome::Used;
                }
                Err(error) => results.embedder_outcome = EmbedderOutcome::Failed(error.to_string()),
            }
        }
        results.turns.truncate(options.limit);
        Ok(results)
    }
}

/// The similarity of the first messages to the question.
async fn similarities(question: &str, turns: &[Recalled], embedder: &dyn Embedder) -> Result<Vec<f64>, EmbedderError> {
    let texts = turns.iter().take(MAX_EMBEDDED).map(|turn| shortened(&turn.message.plain_text()));
    let texts: Vec<String> = std::iter::once(shortened(question)).chain(texts).collect();
    let embeddings = embedder.embed(&texts).await?;
    let invalid = |what: &str| EmbedderError::InvalidAnswer(what.to_owned());
    if embeddings.len() != texts.len() {
        return Err(invalid("the number of embeddings differs from the number of texts"));
    }
    let (question, messages) = embeddings.split_first().ok_or_else(|| invalid("no embeddings"))?;
    let similarities = messages.iter().map(|message| similarity(&question.vector, &message.vector));
    similarities.collect::<Option<_>>().ok_or_else(|| invalid("the embeddings cannot be compared"))
}

fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_BYTES)].to_owned()
}

fn combined(turns: Vec<Recalled>, similarities: &[f64]) -> Vec<Recalled> {
    let by_words: Vec<usize> = (0..turns.len()).collect();
    let mut by_meaning: Vec<usize> = (0..similarities.len()).collect();
    by_meaning.sort_by(|one, other| similarities[*other].total_cmp(&similarities[*one]));
    let mut turns: Vec<Option<Recalled>> = turns.into_iter().map(Some).collect();
    let combined = by_rank(&[by_words, by_meaning]).into_iter().filter_map(|(index, score)| {
        let turn = turns[index].take()?;
        Some(Recalled { score, similarity: similarities.get(index).copied(), ..turn })
    });
    combined.collect()
}
