use threadkeep_context::recall::{Question, Statistics, bm25, by_rank};
use threadkeep_core::text::TermCounts;
use threadkeep_core::{Embedder, EmbedderError, Embedding, EntryHit, Scope, SearchQuery, Source, Value, limits};

use super::collection;
use crate::recall::EmbedderOutcome;
use crate::retry::retry;
use crate::{Memory, MemoryError, Result};

/// Number of candidates requested from the index.
const CANDIDATES: usize = 200;

/// Options for finding passages.
#[derive(Clone, Copy, Debug)]
pub struct PassageOptions<'a> {
    /// Maximum number of passages (1 to 100). Default: 5.
    pub limit: usize,
    /// Also finds passages by embedding similarity, among those that the same model embedded.
    pub embedder: Option<&'a dyn Embedder>,
}

impl Default for PassageOptions<'_> {
    fn default() -> Self {
        Self { limit: 5, embedder: None }
    }
}

/// A passage that may answer a question.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPassage {
    /// Its id in the library.
    pub id: String,
    /// The id of its document.
    pub document: String,
    /// The title of the document.
    pub title: String,
    /// Its location in the document.
    pub place: String,
    /// Its text.
    pub text: String,
    /// Its relevance: larger is better. Comparable within one search.
    pub score: f64,
    /// The similarity of its embedding to the question's; `None` without an embedder.
    pub similarity: Option<f64>,
}

impl FoundPassage {
    /// The passage as a source that an answer cites.
    #[must_use]
    pub fn source(&self) -> Source {
        let title = if self.place.is_empty() { self.title.clone() } else { format!("{}, {}", self.title, self.place) };
        Source {
            kind: "document".to_owned(),
            id: self.id.clone(),
            title: Some(title),
            score: Some(self.score),
            distance: self.similarity.map(|similarity| 1.0 - similarity),
            fields: [("document".to_owned(), Value::from(self.document.as_str()))].into_iter().collect(),
        }
    }
}

/// The results of a search in a library.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundPassages {
    /// The best first.
    pub passages: Vec<FoundPassage>,
    /// Whether an embedder took part in the ranking. If it failed, the ranking is by words alone.
    pub meaning: EmbedderOutcome,
}

impl Memory {
    /// Finds passages that may answer a question, in the scope's own part of a library and in its tenant's.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for the limit, and those of the store.
    pub async fn find_passages(
        &self,
        scope: &Scope,
        library: &str,
        question: &str,
        options: &PassageOptions<'_>,
    ) -> Result<FoundPassages> {
        if options.limit == 0 {
            return Err(MemoryError::invalid("limit", "must be at least 1"));
        }
        limits::check_bytes("limit", options.limit, 100)?;
        let terms = Question::new(question, self.now());
        let (vector, meaning) = match options.embedder {
            Some(embedder) => match embed(embedder, question).await {
                Ok(vector) => (Some(vector), EmbedderOutcome::Used),
                Err(error) => (None, EmbedderOutcome::Failed(error.to_string())),
            },
            None => (None, EmbedderOutcome::NotRequested),
        };
        if terms.is_empty() && vector.is_none() {
            return Ok(FoundPassages { passages: Vec::new(), meaning });
        }
        let query = SearchQuery {
            collection: collection(library),
            terms: terms.terms(),
            vector,
            thread: None,
            limit: CANDIDATES,
        };
        let now = self.now();
        let answer = retry(self.runtime(), || self.search_index().search(scope, &query, now)).await?;
        let frequencies = terms.frequencies_of_words(&answer.frequencies);
        let statistics = Statistics { documents: answer.documents, frequencies };
        let mut passages = rank(&terms, answer.entries, &statistics);
        passages.truncate(options.limit);
        Ok(FoundPassages { passages, meaning })
    }
}

async fn embed(embedder: &dyn Embedder, question: &str) -> Result<Embedding, EmbedderError> {
    let mut embeddings = embedder.embed(&[question.to_owned()]).await?;
    match (embeddings.pop(), embeddings.is_empty()) {
        (Some(embedding), true) => Ok(embedding),
        _ => Err(EmbedderError::InvalidAnswer("the number of embeddings differs from the number of texts".to_owned())),
    }
}

/// Ranks passages by words, or by the ranks of words and similarity if there are similarities. The best first.
fn rank(question: &Question, entries: Vec<EntryHit>, statistics: &Statistics) -> Vec<FoundPassage> {
    let counts: Vec<TermCounts> = entries.iter().map(|entry| question.count(&titled(entry))).collect();
    let words = bm25(&counts, statistics);
    let sorted_by = |score: &dyn Fn(usize) -> Option<f64>| {
        let mut indexes: Vec<usize> = (0..entries.len()).filter(|index| score(*index).is_some()).collect();
        indexes.sort_by(|one, other| score(*other).unwrap_or(0.0).total_cmp(&score(*one).unwrap_or(0.0)));
        indexes
    };
    let by_words = sorted_by(&|index| (words[index] > 0.0).then_some(words[index]));
    let by_meaning = sorted_by(&|index| entries[index].similarity);
    let ranked = match by_meaning.is_empty() {
        true => by_words.into_iter().map(|index| (index, words[index])).collect(),
        false => by_rank(&[by_words, by_meaning]),
    };
    let mut entries: Vec<Option<EntryHit>> = entries.into_iter().map(Some).collect();
    ranked.into_iter().filter_map(|(index, score)| Some(found(entries[index].take()?, score))).collect()
}

/// The text of a passage, with its document's title and its location, which match a question's words too.
fn titled(entry: &EntryHit) -> String {
    format!("{}\n{}\n{}", field(entry, "title"), field(entry, "place"), entry.text)
}

fn field<'a>(entry: &'a EntryHit, name: &str) -> &'a str {
    entry.fields.get(name).and_then(Value::as_str).unwrap_or("")
}

fn found(entry: EntryHit, score: f64) -> FoundPassage {
    let [document, title, place] = ["document", "title", "place"].map(|name| field(&entry, name).to_owned());
    let EntryHit { id, text, similarity, .. } = entry;
    FoundPassage { id, document, title, place, text, score, similarity }
}
