use threadkeep_context::recall::{Question, Statistics, bm25, by_rank};
use threadkeep_core::text::TermCounts;
use threadkeep_core::{Embedder, EmbedderError, Embedding, EntryHit, Scope, SearchQuery, Source, Value, limits};

use super::collection;
use crate::recall::Meaning;
use crate::retry::repeat_simply;
use crate::{Memory, MemoryError, Result};

/// Candidates that the index is asked for.
const CANDIDATES: usize = 200;

/// How to look for passages.
#[derive(Clone, Copy, Debug)]
pub struct PassageOptions<'a> {
    /// At most so many (1 to 100). Default: 5.
    pub limit: usize,
    /// Lets passages be found by meaning too, among those that the same model embedded.
    pub embedder: Option<&'a dyn Embedder>,
}

impl Default for PassageOptions<'_> {
    fn default() -> Self {
        Self { limit: 5, embedder: None }
    }
}

/// A passage that may answer.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPassage {
    /// Its id in the library.
    pub id: String,
    /// The id of its document.
    pub document: String,
    /// What a reader calls the document.
    pub title: String,
    /// Where in the document it stands.
    pub place: String,
    /// What it says.
    pub text: String,
    /// How well it answers: larger is better. Comparable within one search.
    pub score: f64,
    /// How near its meaning is to the question's, where an embedder was asked.
    pub similarity: Option<f64>,
}

impl FoundPassage {
    /// The passage as what an answer stands on.
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

/// What was found in a library.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundPassages {
    /// The best first.
    pub passages: Vec<FoundPassage>,
    /// Whether meaning had a part in the ranking. Where the embedder failed, the words alone ranked.
    pub meaning: Meaning,
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
            return Err(MemoryError::invalid("limit", "0; ask for at least 1"));
        }
        limits::check_bytes("limit", options.limit, 100)?;
        let asked = Question::new(question, self.now());
        let (vector, meaning) = match options.embedder {
            Some(embedder) => match embed(embedder, question).await {
                Ok(vector) => (Some(vector), Meaning::Used),
                Err(error) => (None, Meaning::Failed(error.to_string())),
            },
            None => (None, Meaning::Absent),
        };
        if asked.is_empty() && vector.is_none() {
            return Ok(FoundPassages { passages: Vec::new(), meaning });
        }
        let query = SearchQuery {
            collection: collection(library),
            terms: asked.terms(),
            vector,
            thread: None,
            limit: CANDIDATES,
        };
        let now = self.now();
        let answer = repeat_simply(self.runtime(), || self.search_index().search(scope, &query, now)).await?;
        let frequencies = asked.frequencies_of_words(&answer.frequencies);
        let statistics = Statistics { documents: answer.documents, frequencies };
        let mut passages = rank(&asked, answer.entries, &statistics);
        passages.truncate(options.limit);
        Ok(FoundPassages { passages, meaning })
    }
}

async fn embed(embedder: &dyn Embedder, question: &str) -> Result<Embedding, EmbedderError> {
    let mut points = embedder.embed(&[question.to_owned()]).await?;
    match (points.pop(), points.is_empty()) {
        (Some(point), true) => Ok(point),
        _ => Err(EmbedderError::InvalidAnswer("not one point per text".to_owned())),
    }
}

/// The best first: by words, and where points were compared, by the ranks of both.
fn rank(question: &Question, entries: Vec<EntryHit>, statistics: &Statistics) -> Vec<FoundPassage> {
    let counts: Vec<TermCounts> = entries.iter().map(|entry| question.count(&titled(entry))).collect();
    let words = bm25(&counts, statistics);
    let place_by = |score: &dyn Fn(usize) -> Option<f64>| {
        let mut places: Vec<usize> = (0..entries.len()).filter(|place| score(*place).is_some()).collect();
        places.sort_by(|one, other| score(*other).unwrap_or(0.0).total_cmp(&score(*one).unwrap_or(0.0)));
        places
    };
    let by_words = place_by(&|place| (words[place] > 0.0).then_some(words[place]));
    let by_meaning = place_by(&|place| entries[place].similarity);
    let ranked = match by_meaning.is_empty() {
        true => by_words.into_iter().map(|place| (place, words[place])).collect(),
        false => by_rank(&[by_words, by_meaning]),
    };
    let mut entries: Vec<Option<EntryHit>> = entries.into_iter().map(Some).collect();
    ranked.into_iter().filter_map(|(place, score)| Some(found(entries[place].take()?, score))).collect()
}

/// A passage under its document's title and its place, whose words answer too.
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
