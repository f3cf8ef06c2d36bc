use threadkeep_context::recall::{Question, Statistics, bm25, combine_by_rank};
use threadkeep_core::text::TermCounts;
use threadkeep_core::{
    Embedder, EmbedderError, Embedding, EntryHit, MetadataFilter, Scope, SearchQuery, Source, Value, limits,
};

use super::collection;
use crate::recall::EmbedderOutcome;
use crate::retry::retry;
use crate::{Memory, MemoryError, Result};

/// Maximum number of candidates requested from the index.
const MAX_CANDIDATES: usize = 200;

/// Options for finding passages.
#[derive(Clone, Copy, Debug)]
pub struct PassageOptions<'a> {
    /// Maximum number of passages (1 to 100). Default: 5.
    pub limit: usize,
    /// Also finds passages by embedding similarity, among the passages that the same model embedded. Default: only by words.
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
    /// The id of the passage in the library.
    pub id: String,
    /// The id of the document.
    pub document: String,
    /// The title of the document.
    pub title: String,
    /// The location of the passage in the document.
    pub place: String,
    /// The text of the passage.
    pub text: String,
    /// The relevance: larger is better. Only comparable within one search.
    pub score: f64,
    /// The similarity of the embeddings of passage and question; `None` without an embedder.
    pub similarity: Option<f64>,
}

impl FoundPassage {
    /// Creates a source with which an answer can cite the passage.
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
    /// The passages, best first.
    pub passages: Vec<FoundPassage>,
    /// Whether passages were also ranked by an embedder. If the embedder failed, they are ranked by words alone.
    pub embedder_outcome: EmbedderOutcome,
}

impl Memory {
    /// Finds passages that may answer a question, in the scope's own part of a library and in the tenant's part.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for an invalid limit, and errors from the store.
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
        limits::check_at_most("limit", options.limit, 100)?;
        let terms = Question::new(question, self.now());
        let (vector, embedder_outcome) = match options.embedder {
            Some(embedder) => match embed(embedder, question).await {
                Ok(vector) => (Some(vector), EmbedderOutcome::Used),
                Err(error) => (None, EmbedderOutcome::Failed(error.to_string())),
            },
            None => (None, EmbedderOutcome::NotRequested),
        };
        if terms.is_empty() && vector.is_none() {
            return Ok(FoundPassages { passages: Vec::new(), embedder_outcome });
        }
        let query = SearchQuery {
            collection: collection(library),
            terms: terms.terms(),
            alternatives: Vec::new(),
            vector,
            filters: Vec::new(),
            metadata: MetadataFilter::default(),
            thread: None,
            limit: MAX_CANDIDATES,
            reads_messages: false,
        };
        let now = self.now();
        let answer = retry(self.runtime(), || self.search_index().search(scope, &query, now)).await?;
        let frequencies = terms.frequencies_of_words(&answer.frequencies);
        let statistics = Statistics { documents: answer.documents, frequencies };
        let mut passages = rank(&terms, answer.entries, &statistics);
        passages.truncate(options.limit);
        Ok(FoundPassages { passages, embedder_outcome })
    }
}

async fn embed(embedder: &dyn Embedder, question: &str) -> Result<Embedding, EmbedderError> {
    let mut embeddings = embedder.embed(&[question.to_owned()]).await?;
    match (embeddings.pop(), embeddings.is_empty()) {
        (Some(embedding), true) => Ok(embedding),
        _ => Err(EmbedderError::InvalidAnswer("the number of embeddings differs from the number of texts".to_owned())),
    }
}

/// Ranks passages, best first: by words, or if there are similarities, by combining the ranks by words and by similarity.
fn rank(question: &Question, entries: Vec<EntryHit>, statistics: &Statistics) -> Vec<FoundPassage> {
    let counts: Vec<TermCounts> = entries.iter().map(|entry| question.count(&searchable_text(entry))).collect();
    let words = bm25(&counts, statistics);
    let sorted_by = |score: &dyn Fn(usize) -> Option<f64>| {
        let mut indexes: Vec<usize> = (0..entries.len()).filter(|index| score(*index).is_some()).collect();
        indexes.sort_by(|a, b| score(*b).unwrap_or(0.0).total_cmp(&score(*a).unwrap_or(0.0)));
        indexes
    };
    let by_words = sorted_by(&|index| (words[index] > 0.0).then_some(words[index]));
    let by_meaning = sorted_by(&|index| entries[index].similarity);
    let ranked = match by_meaning.is_empty() {
        true => by_words.into_iter().map(|index| (index, words[index])).collect(),
        false => combine_by_rank(&[by_words, by_meaning]),
    };
    let mut entries: Vec<Option<EntryHit>> = entries.into_iter().map(Some).collect();
    ranked.into_iter().filter_map(|(index, score)| Some(found_passage(entries[index].take()?, score))).collect()
}

/// The text in which the words of a question are counted: the title of the document, the location and the text of the passage.
fn searchable_text(entry: &EntryHit) -> String {
    format!("{}\n{}\n{}", field(entry, "title"), field(entry, "place"), entry.text)
}

fn field<'a>(entry: &'a EntryHit, name: &str) -> &'a str {
    entry.fields.get(name).and_then(Value::as_str).unwrap_or("")
}

fn found_passage(entry: EntryHit, score: f64) -> FoundPassage {
    let [document, title, place] = ["document", "title", "place"].map(|name| field(&entry, name).to_owned());
    let EntryHit { id, text, similarity, .. } = entry;
    FoundPassage { id, document, title, place, text, score, similarity }
}
