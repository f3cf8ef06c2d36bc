//! Searches the corpus: ranks candidates from the index by relevance, and puts the relevant tesis in their legal order.

mod related;

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use threadkeep::context::recall::{Question, Statistics, bm25};
use threadkeep::core::text::{TermCounts, content_terms};
use threadkeep::core::{Embedding, FieldFilter, StoreError};
use threadkeep::{Scope, Source, Value};

use crate::clave::fold_text;
use crate::corpus::{Candidates, Corpus, Hit, Item};
use crate::epoca;
use crate::filters::Filters;
use crate::intent::words;
use crate::record::{Tesis, Tipo, court_slug};
use crate::thesaurus;
use related::{Items, Related, RelatedMatch};

/// The maximum number of candidates that are requested from the index.
const MAX_CANDIDATES: usize = 400;
/// The maximum number of tesis that are put in legal order.
const MAX_RELEVANT: usize = 15;
/// The minimum relevance of a result, as a share of the best relevance.
const RELEVANT_SHARE: f64 = 0.5;
/// How many times as relevant as every tesis an article or passage must be to come before them.
const MORE_RELEVANT: f64 = 1.25;
/// The minimum share of a question's words, weighted by rarity, that a relevant item contains.
const MIN_COVERAGE: f64 = 0.3;
/// The minimum share for an item that contains at least two words of the question.
const MIN_COVERAGE_WITH_TWO_WORDS: f64 = 0.2;
/// The share of its weight that a word keeps if the corpus does not contain it. Such a word does not distinguish items.
const UNKNOWN_SHARE: f64 = 0.8;
/// A minimum number of matched words and a minimum coverage. An item that reaches both is relevant.
const MIN_MATCH: (usize, f64) = (4, 0.1);
/// The number of words from which a question counts as very long, and the minimum number of matched words that then
/// replaces the one in [`MIN_MATCH`].
const VERY_LONG_QUESTION: (usize, usize) = (7, 3);
/// The number of words from which a question counts as long.
const MIN_LONG_QUESTION_WORDS: usize = 5;
/// The minimum coverage of a long question or a story, counting only the words that the corpus contains in some form.
const MIN_KNOWN_COVERAGE: f64 = 0.45;
/// Words that occur in questions about any legal topic, and the share of their weight that they keep.
pub(crate) const GENERIC: [&str; 12] = [
    "acto",
    "actos",
    "reclamado",
    "reclamados",
    "autoridad",
    "autoridades",
    "juicio",
    "juicios",
    "procedimiento",
    "ley",
    "persona",
    "proceso",
];
const GENERIC_SHARE: f64 = 0.4;
/// The maximum number of words of a query that are checked one by one.
const MAX_CHECKED_WORDS: usize = 12;
/// The weight of words in the title.
const TITLE_WEIGHT: f64 = 0.6;
/// The number of words at the start of an article that name its subject.
const SUBJECT_WORDS: usize = 16;
/// The share of its relevance that a document from another country keeps.
const FOREIGN_SHARE: f64 = 0.6;
/// The minimum similarity of vectors for an item to be relevant without containing a word of the question.
const MIN_SIMILARITY: f64 = 0.5;

/// A search of the corpus.
#[derive(Clone, Debug, Default)]
pub struct SearchRequest {
    /// The words to search for.
    pub query: String,
    /// Conditions on tesis.
    pub filters: Filters,
    /// The keys of items to exclude.
    pub exclude: BTreeSet<String>,
    /// The embedding of the query, to also search by meaning.
    pub vector: Option<Embedding>,
    /// Whether an item that contains any word of the query is relevant, as for a list of the words of a branch of law.
    pub any_word: bool,
    /// The maximum number of items.
    pub limit: usize,
}

/// An item that a search or a look-up returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundItem {
    /// The item.
    pub item: Item,
    /// The relevance, from 0 to 1: the share of the best score.
    pub relevance: f64,
    /// The legal rank: época, type, court, year and up to 50 points for relevance.
    pub rank_score: f64,
    /// The distance of the vectors of item and query.
    pub distance: Option<f64>,
    /// Whether the item was cited before in the conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_known: bool,
}

impl FoundItem {
    /// Creates the result for an item that was looked up.
    #[must_use]
    pub fn exact(item: Item) -> Self {
        let rank_score = item.tesis().map_or(0.0, |tesis| rank_score(tesis, 1.0));
        Self { item, relevance: 1.0, rank_score, distance: None, is_known: false }
    }

    /// Creates the source by which an answer cites the item.
    #[must_use]
    pub fn source(&self) -> Source {
        let (kind, id) = match &self.item {
            Item::Tesis(tesis) => ("tesis", tesis.id_tesis.to_string()),
            Item::Article(_) => ("articulo", self.item.key()),
            Item::Passage(_) => ("documento", self.item.key()),
        };
        let mut fields = threadkeep::Map::new();
        if let Item::Tesis(tesis) = &self.item {
            fields.insert("tipo_tesis".to_owned(), tesis.tipo.map(Tipo::name).into());
            fields.insert("epoca".to_owned(), tesis.epoca.map(epoca::name).into());
            fields.insert("anio".to_owned(), tesis.anio.into());
            fields.insert("clave".to_owned(), tesis.clave.clone().into());
        }
        Source {
            kind: kind.to_owned(),
            id,
            title: Some(cut(&self.item.title(), 900)),
            score: Some(self.rank_score),
            distance: self.distance,
            fields,
        }
    }

    /// Returns the seven fields with which a tesis is stored as a source; `None` for other items.
    #[must_use]
    pub fn stored(&self) -> Option<Value> {
        let tesis = self.item.tesis()?;
        Some(serde_json::json!({
            "id_tesis": tesis.id_tesis,
            "rubro": tesis.rubro,
            "tipo_tesis": tesis.tipo.map(Tipo::name),
            "epoca": tesis.epoca.map(epoca::name),
            "anio": tesis.anio,
            "rank_score": self.rank_score,
            "distance": self.distance,
        }))
    }
}

fn cut(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

impl Corpus {
    /// Finds the items that match a query: first the relevant tesis in their legal order, then articles and passages by relevance.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn search(&self, scope: &Scope, request: &SearchRequest) -> Result<Vec<FoundItem>, StoreError> {
        let question = Question::of_all_words(&content_words(&request.query));
        let related = Related::of(&request.query, &question);
        let terms = [question.terms(), related.terms().to_vec()].concat();
        let mut filters = request.filters.to_query();
        if terms.is_empty() && request.vector.is_none() && filters.is_empty() && !request.filters.is_empty() {
            // The index finds nothing by an exclusion alone.
            filters.push(FieldFilter::any("epoca", 1..=12));
        }
        let candidates = self.candidates(scope, terms, request.vector.clone(), filters, MAX_CANDIDATES).await?;
        let mut ranked = rank(&question, &related, candidates, request);
        ranked.truncate(request.limit);
        Ok(ranked)
    }
}

impl Corpus {
    /// Returns the content words of a query, and whether the corpus contains each.
    pub(crate) async fn known_words(&self, scope: &Scope, query: &str) -> Result<Vec<(String, bool)>, StoreError> {
        let words: Vec<String> = content_words(query).split_whitespace().map(str::to_owned).collect();
        let mut known = Vec::with_capacity(words.len());
        for word in words.into_iter().take(MAX_CHECKED_WORDS) {
            let terms = Question::of_all_words(&word).terms();
            let candidates = self.candidates(scope, terms, None, Vec::new(), 1).await?;
            known.push((word, candidates.frequencies.iter().any(|frequency| *frequency > 0)));
        }
        Ok(known)
    }
}

/// Returns the content words of a query, which can be searched for, separated by spaces.
pub(crate) fn content_words(query: &str) -> String {
    let words = content_terms(query).into_iter().map(|(word, _)| word);
    words.filter(|word| !thesaurus::is_stop_word(word)).collect::<Vec<_>>().join(" ")
}

/// A candidate with its score.
struct ScoredHit {
    hit: Hit,
    score: f64,
    is_relevant: bool,
}

fn rank(question: &Question, related: &Related, candidates: Candidates, request: &SearchRequest) -> Vec<FoundItem> {
    let Candidates { hits, documents, frequencies } = candidates;
    let is_excluded = |item: &Item| {
        request.exclude.contains(&item.key())
            || item.tesis().is_some_and(|tesis| request.filters.without.matches(tesis))
    };
    let hits: Vec<Hit> = hits.into_iter().filter(|hit| !is_excluded(&hit.item)).collect();
    let (own, others) = frequencies.split_at(question.terms().len().min(frequencies.len()));
    let statistics = Statistics { documents, frequencies: question.frequencies_of_words(own) };
    let related_statistics = Statistics { documents, frequencies: others.to_vec() };
    let scores = lexical_scores(question, related, &hits, &statistics, &related_statistics, is_story(&request.query));
    let has_words = !(request.any_word || question.is_empty() && related.is_empty());
    let mut scored: Vec<ScoredHit> = hits
        .into_iter()
        .zip(scores)
        .map(|(hit, (score, is_relevant))| ScoredHit { hit, score, is_relevant: is_relevant || !has_words })
        .collect();
    // A legal term names its topic, so without any item that contains it, nothing is about that topic.
    let is_term =
        |word: &str| content_terms(word).iter().flat_map(|(_, stems)| stems).any(|stem| words::is_legal_stem(stem));
    let names_topic = question.words().any(|word| !GENERIC.contains(&word) && is_term(word));
    fuse_similarity(&mut scored, names_topic);
    scored.retain(|scored| scored.is_relevant);
    scored.sort_by(|a, b| b.score.total_cmp(&a.score));
    in_legal_order(scored, has_words)
}

/// Returns the score of each item by words, and whether it contains enough of the question.
fn lexical_scores(
    question: &Question,
    related: &Related,
    hits: &[Hit],
    statistics: &Statistics,
    related_statistics: &Statistics,
    is_story: bool,
) -> Vec<(f64, bool)> {
    let mut words = question.caching_matcher();
    let texts: Vec<String> = hits.iter().map(|hit| format!("{}\n{}", hit.item.title(), hit.item.text())).collect();
    let subjects: Vec<String> = hits.iter().map(|hit| subject(&hit.item)).collect();
    let counts: Vec<TermCounts> = texts.iter().map(|text| words.count(text)).collect();
    let titles: Vec<TermCounts> = subjects.iter().map(|subject| words.count(subject)).collect();
    let text_scores = bm25(&counts, statistics);
    let references: Vec<&TermCounts> = counts.iter().collect();
    let mut weights = threadkeep::context::recall::weights(&references, statistics);
    for (word, weight) in weights.iter_mut().enumerate() {
        let is_known = statistics.frequencies.get(word).is_some_and(|frequency| *frequency > 0);
        if !is_known && counts.iter().all(|counts| counts.counts[word] == 0) {
            *weight *= UNKNOWN_SHARE;
        }
    }
    for (weight, _) in weights.iter_mut().zip(question.words()).filter(|(_, word)| GENERIC.contains(word)) {
        *weight *= GENERIC_SHARE;
    }
    let items = Items {
        texts: &texts,
        subjects: &subjects,
        word_counts: &counts,
        subject_counts: &titles,
        word_weights: &weights,
    };
    let indirect: Vec<RelatedMatch> = related.matches(&items, related_statistics);
    let is_known = |word: &usize| {
        counts.iter().any(|counts| counts.counts[*word] > 0) || indirect.iter().any(|found| found.words.contains(word))
    };
    let known: f64 = (0..weights.len()).filter(is_known).map(|word| weights[word]).sum::<f64>().max(f64::MIN_POSITIVE);
    let is_long = weights.len() >= MIN_LONG_QUESTION_WORDS;
    // A question can consist of an everyday expression alone.
    let total: f64 = weights.iter().sum::<f64>().max(1.0);
    let enough = if weights.len() >= VERY_LONG_QUESTION.0 { VERY_LONG_QUESTION.1 } else { MIN_MATCH.0 };
    let is_law: Vec<bool> = question.words().map(is_legal_word).collect();
    let has_law =
        |index: usize| (0..weights.len()).any(|word| is_law.get(word) == Some(&true) && counts[index].counts[word] > 0);
    let score = |index: usize| {
        let matched = |counts: &TermCounts| -> f64 {
            counts.counts.iter().zip(&weights).filter(|(count, _)| **count > 0).map(|(_, weight)| *weight).sum::<f64>()
                / total
        };
        let by_related = &indirect[index];
        let coverage = matched(&counts[index]) + by_related.covered / total;
        let words = counts[index].counts.iter().filter(|count| **count > 0).count() + by_related.words.len();
        let score = (text_scores[index] + by_related.score) * (0.5 + coverage)
            + TITLE_WEIGHT * (matched(&titles[index]) * total + by_related.in_subject);
        let is_foreign = matches!(&hits[index].item, Item::Passage(passage) if passage.country.is_some());
        let score = if is_foreign { score * FOREIGN_SHARE } else { score };
        let is_relevant = coverage >= MIN_COVERAGE
            || words >= 2 && coverage >= MIN_COVERAGE_WITH_TWO_WORDS
            || words >= enough && coverage >= MIN_MATCH.1
            // A tesis does not contain most of the words of a story.
            || is_long && words >= 2 && coverage * total / known >= MIN_KNOWN_COVERAGE
            // The words around a legal term say what happened: `hackearon mi cuenta y se llevaron el dinero por transferencia`.
            || (is_long || is_story) && has_law(index) && coverage * total / known >= MIN_KNOWN_COVERAGE;
        (score, is_relevant || is_about(question, &hits[index].item))
    };
    (0..hits.len()).map(score).collect()
}

/// Returns the words that name an item's subject: its title, or the first words of an article, which is titled only by its number.
fn subject(item: &Item) -> String {
    let Item::Article(article) = item else { return item.title() };
    if article.part > 1 {
        return String::new();
    }
    let text = article.text.trim_start_matches(article.number.as_str()).trim_start_matches(['.', '-', ' ', 'o', 'º']);
    text.split_whitespace().take(SUBJECT_WORDS).collect::<Vec<_>>().join(" ")
}

/// Whether a question says what happened to the user: `mi ex no quiere dar dinero`.
fn is_story(question: &str) -> bool {
    fold_text(question).split_whitespace().any(|word| ["mi", "mis", "me", "nos"].contains(&word))
}

/// Whether a word is a legal term, or has related words.
fn is_legal_word(word: &str) -> bool {
    let mut stems = content_terms(word).into_iter().flat_map(|(_, stems)| stems);
    !GENERIC.contains(&word)
        && stems
            .any(|stem| words::is_legal_stem(&stem) || words::is_weak_legal_stem(&stem) || thesaurus::has_stem(&stem))
}

/// Whether a question names the topic of a tesis, which is the first sentence of its rubro: `USUCAPIÓN. JUSTO TÍTULO.`
pub(crate) fn is_about(question: &Question, item: &Item) -> bool {
    let Some(tesis) = item.tesis() else { return false };
    let topic = tesis.rubro.split('.').next().unwrap_or_default();
    let terms = question.terms();
    let words: Vec<(String, Vec<String>)> =
        content_terms(topic).into_iter().filter(|(word, _)| !thesaurus::is_stop_word(word)).collect();
    !words.is_empty() && words.iter().all(|(_, stems)| stems.iter().any(|stem| terms.contains(stem)))
}

/// Combines the scores by words with the similarity of vectors, if there are any.
fn fuse_similarity(scored: &mut [ScoredHit], names_topic: bool) {
    let best = scored.iter().filter(|scored| scored.is_relevant).map(|scored| scored.score).fold(0.0, f64::max);
    let best_similarity = scored.iter().filter_map(|scored| scored.hit.similarity).fold(0.0, f64::max);
    if best_similarity <= 0.0 {
        return;
    }
    for scored in scored {
        let words = if best > 0.0 { (scored.score / best).min(1.0) } else { 0.0 };
        let similarity = scored.hit.similarity.unwrap_or(0.0).max(0.0) / best_similarity;
        let is_near =
            scored.hit.similarity.is_some_and(|similarity| similarity >= MIN_SIMILARITY) && similarity >= 0.95;
        scored.is_relevant = scored.is_relevant && scored.hit.has_terms || is_near && best <= 0.0 && !names_topic;
        scored.score = 0.7 * words + 0.3 * similarity;
    }
}

/// Puts the relevant tesis into their legal order, followed by other items by relevance.
fn in_legal_order(scored: Vec<ScoredHit>, has_words: bool) -> Vec<FoundItem> {
    let best = scored.first().map_or(0.0, |first| first.score);
    let relevance = |score: f64| if best > 0.0 { score / best } else { 1.0 };
    let found = scored.into_iter().map(|scored| {
        let relevance = relevance(scored.score);
        let similarity = scored.hit.similarity.unwrap_or(relevance);
        let rank_score = scored.hit.item.tesis().map_or(50.0 * relevance, |tesis| rank_score(tesis, similarity));
        let distance = scored.hit.similarity.map(|similarity| 1.0 - similarity);
        FoundItem { item: scored.hit.item, relevance, rank_score, distance, is_known: false }
    });
    let relevant = found.filter(|found| !has_words || found.relevance >= RELEVANT_SHARE);
    let (mut tesis, others): (Vec<FoundItem>, Vec<FoundItem>) =
        relevant.partition(|found| found.item.tesis().is_some());
    tesis.truncate(MAX_RELEVANT);
    tesis.sort_by(|a, b| b.rank_score.total_cmp(&a.rank_score));
    // Articles and passages that are more relevant than every tesis come first.
    let best_tesis = tesis.iter().map(|found| found.relevance).fold(0.0, f64::max);
    let (mut all, rest): (Vec<FoundItem>, Vec<FoundItem>) = others
        .into_iter()
        .partition(|found| best_tesis < RELEVANT_SHARE || found.relevance > MORE_RELEVANT * best_tesis);
    all.extend(tesis);
    all.extend(rest);
    all
}

/// Returns the legal rank of a tesis: newer épocas first, jurisprudencia before aislada, higher courts, newer years, relevance.
#[must_use]
pub fn rank_score(tesis: &Tesis, similarity: f64) -> f64 {
    let epoca = tesis.epoca.map_or(0.0, |epoca| match epoca {
        9..=12 => f64::from(epoca) * 100.0 - 100.0,
        older => f64::from(older) * 100.0 - 100.0,
    });
    let tipo = match tesis.tipo {
        Some(Tipo::Jurisprudencia) => 100.0,
        Some(Tipo::Aislada) => 50.0,
        None => 0.0,
    };
    let court = match tesis.instancia.as_deref().map(court_slug).as_deref() {
        Some("primera_sala" | "segunda_sala" | "pleno") => 30.0,
        Some("plenos_regionales" | "plenos_de_circuito") => 20.0,
        Some(_) => 10.0,
        None => 0.0,
    };
    let year = tesis.anio.map_or(0.0, |year| ((year - 2000) as f64 / 25.0 * 10.0).clamp(0.0, 10.0));
    let sum = epoca + tipo + court + year + 50.0 * similarity.clamp(0.0, 1.0);
    (sum * 100.0).round() / 100.0
}

/// Returns how many of the distinct content words of a question each text contains.
pub(crate) fn matches(question: &str, texts: &[String]) -> Vec<usize> {
    let content = content_words(question);
    let specific: Vec<&str> = content.split_whitespace().filter(|word| !GENERIC.contains(word)).collect();
    let question = Question::of_all_words(&if specific.is_empty() { content.clone() } else { specific.join(" ") });
    let count = |text: &String| question.count(text).counts.iter().filter(|count| **count > 0).count();
    texts.iter().map(count).collect()
}

/// Keeps only the first item with each key.
pub(crate) fn distinct(found: Vec<FoundItem>) -> Vec<FoundItem> {
    let mut seen: HashMap<String, ()> = HashMap::new();
    found.into_iter().filter(|found| seen.insert(found.item.key(), ()).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tesis(epoca: u8, tipo: Tipo, instancia: &str, anio: i64) -> Tesis {
        Tesis {
            epoca: Some(epoca),
            tipo: Some(tipo),
            instancia: Some(instancia.to_owned()),
            anio: Some(anio),
            ..Tesis::default()
        }
    }

    // S3.53
    #[test]
    fn newer_epocas_and_jurisprudencia_rank_first() {
        let scores: Vec<f64> = [
            tesis(12, Tipo::Aislada, "Tribunales Colegiados de Circuito", 2025),
            tesis(11, Tipo::Jurisprudencia, "Primera Sala", 2024),
            tesis(11, Tipo::Jurisprudencia, "Plenos Regionales", 2024),
            tesis(11, Tipo::Aislada, "Primera Sala", 2024),
            tesis(10, Tipo::Jurisprudencia, "Pleno", 2016),
            tesis(9, Tipo::Jurisprudencia, "Pleno", 2005),
            tesis(5, Tipo::Aislada, "Pleno", 1950),
        ]
        .iter()
        .map(|tesis| rank_score(tesis, 0.5))
        .collect();
        assert!(scores.is_sorted_by(|a, b| a > b), "{scores:?}");
        assert_eq!(rank_score(&tesis(11, Tipo::Jurisprudencia, "Primera Sala", 2025), 1.0), 1190.0);
    }
}
