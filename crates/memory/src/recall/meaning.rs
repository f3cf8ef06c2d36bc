//! Letting an embedder join the ranking.

use threadkeep_context::recall::by_rank;
use threadkeep_core::{Embedder, EmbedderError, Scope, limits, similarity};

use super::{RecallOptions, RecallResults, Recalled};
use crate::{Memory, Result};

/// Turns whose meaning is looked at: one call of an embedder takes as many texts, and the question.
const TURNS: usize = 64;
/// Bytes of a text that are shown to an embedder; models cut or refuse longer ones.
const TEXT_BYTES: usize = 4_000;

/// What an embedder had to do with a recall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Meaning {
    /// None was asked.
    #[default]
    Absent,
    /// It joined the ranking.
    Used,
    /// It was asked and failed, with what it said. The ranking is that of the words alone.
    Failed(String),
}

impl Memory {
    /// Recalls as [`Memory::recall`] does, and joins that ranking of the best turns with one by meaning, by their ranks
    /// ([`by_rank`]).
    ///
    /// The embedder is asked once, for the question and at most 64 turns. Where it fails, what the words alone recall is
    /// the answer, and the answer says so.
    ///
    /// # Errors
    /// As [`Memory::recall`].
    pub async fn recall_by_meaning(
        &self,
        scope: &Scope,
        question: &str,
        options: &RecallOptions,
        embedder: &dyn Embedder,
    ) -> Result<RecallResults> {
        // A limit that is refused stays one that is refused.
        let limit = if options.limit == 0 { 0 } else { options.limit.max(TURNS) };
        limits::check_bytes("limit", options.limit, limits::PAGE)?;
        let mut results = self.recall(scope, question, &RecallOptions { limit, ..options.clone() }).await?;
        if !results.turns.is_empty() {
            match similarities(question, &results.turns, embedder).await {
                Ok(similarities) => {
                    results.turns = joined(results.turns, &similarities);
                    results.meaning = Meaning::Used;
                }
                Err(error) => results.meaning = Meaning::Failed(error.to_string()),
            }
        }
        results.turns.truncate(options.limit);
        Ok(results)
    }
}

/// How near the first turns are to the question.
async fn similarities(question: &str, turns: &[Recalled], embedder: &dyn Embedder) -> Result<Vec<f64>, EmbedderError> {
    let texts = turns.iter().take(TURNS).map(|turn| shown(&turn.message.plain_text()));
    let texts: Vec<String> = std::iter::once(shown(question)).chain(texts).collect();
    let embeddings = embedder.embed(&texts).await?;
    let invalid = |what: &str| EmbedderError::InvalidAnswer(what.to_owned());
    if embeddings.len() != texts.len() {
        return Err(invalid("not one point per text"));
    }
    let (asked, said) = embeddings.split_first().ok_or_else(|| invalid("no point"))?;
    let similarities = said.iter().map(|said| similarity(&asked.vector, &said.vector));
    similarities.collect::<Option<_>>().ok_or_else(|| invalid("points that cannot be compared"))
}

fn shown(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_BYTES)].to_owned()
}

fn joined(turns: Vec<Recalled>, similarities: &[f64]) -> Vec<Recalled> {
    let by_words: Vec<usize> = (0..turns.len()).collect();
    let mut by_meaning: Vec<usize> = (0..similarities.len()).collect();
    by_meaning.sort_by(|one, other| similarities[*other].total_cmp(&similarities[*one]));
    let mut turns: Vec<Option<Recalled>> = turns.into_iter().map(Some).collect();
    let joined = by_rank(&[by_words, by_meaning]).into_iter().filter_map(|(place, score)| {
        let turn = turns[place].take()?;
        Some(Recalled { score, similarity: similarities.get(place).copied(), ..turn })
    });
    joined.collect()
}
