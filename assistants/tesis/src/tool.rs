//! The tools of the graph: search, and the comparison of topics.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadkeep::context::recall::Question;
use threadkeep::core::{Embedding, StoreError, ToolContext, ToolError, ToolOutput};
use threadkeep::{Embedder, EmbedderError, FnTool, JsonText, Scope};
use tokio::sync::Mutex;

use crate::clave::{ClaveKey, References};
use crate::corpus::{Corpus, Item};
use crate::filters::Filters;
use crate::plan::MAX_ANSWER_SOURCES;
use crate::search::{FoundItem, SearchRequest, content_words, distinct, is_about};
use crate::spelling;

/// The name of the search tool.
pub(crate) const SEARCH: &str = "buscar_tesis";
/// The name of the tool that compares topics.
pub(crate) const COMPARE: &str = "comparar_temas";
/// The minimum relevance of a new source, as a share of that of a known one, for the new source to be preferred.
const MIN_NEW_SHARE: f64 = 0.5;
/// How many of the items nearest to a query are compared with the sources at hand.
const NEAREST: usize = 5;

/// The arguments of the search tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct SearchArguments {
    /// What to search for, in words.
    pub(crate) consulta: String,
    /// Conditions: épocas, type, subjects, courts, years.
    #[schemars(with = "serde_json::Value")]
    pub(crate) filtros: Filters,
    /// The conditions that the message itself states, without those of the topic.
    #[schemars(with = "serde_json::Value")]
    pub(crate) filtros_propios: Filters,
    /// Words of a branch of law that is only part of a subject.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) rama: String,
    /// Registros to look up exactly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) registros: Vec<i64>,
    /// Claves to look up exactly: the key and the época.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) claves: Vec<(String, Option<u8>)>,
    /// Keys of sources that were shown before.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) citadas: BTreeSet<String>,
    /// Whether only sources that were not shown before are wanted.
    pub(crate) solo_nuevas: bool,
    /// Whether the question is more than a filter.
    pub(crate) con_palabras: bool,
    /// Whether sources that pass the filter but are about another topic do not answer: `¿ni siquiera aisladas?`
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) solo_del_tema: bool,
}

/// The result of the search tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SearchResult {
    pub(crate) found: Vec<FoundItem>,
    /// The registros and claves that the corpus does not contain, described in Spanish.
    pub(crate) missing: Vec<String>,
    /// Whether registros or claves were looked up.
    pub(crate) is_look_up: bool,
    /// Whether only sources that were shown before match.
    pub(crate) only_known: bool,
    /// Whether the embedder failed, so only words were searched.
    pub(crate) embedder_failed: bool,
    /// Whether the filters for subjects were dropped because nothing passed them.
    pub(crate) without_filters: bool,
    /// Whether the sources pass the filters, but are not about the topic of the conversation.
    pub(crate) without_topic: bool,
    /// The query after misspelt words were corrected; empty if none were.
    pub(crate) corrected: String,
    /// Whether the corpus contains none of the question's words.
    pub(crate) is_unknown: bool,
}

/// Creates the search tool.
pub(crate) fn search(searcher: &Searcher) -> FnTool {
    let description = "Busca tesis, artículos y sentencias en el corpus, por palabras, registro digital o clave.";
    let searcher = searcher.clone();
    FnTool::new(SEARCH, description, move |context: ToolContext, arguments: SearchArguments| {
        let search = Search { searcher: searcher.clone(), scope: context.scope, arguments };
        async move {
            let (result, embedding_calls) =
                search.run().await.map_err(|error| ToolError::Unavailable(error.to_string()))?;
            let titles: Vec<String> = result.found.iter().map(|found| found.item.title()).collect();
            let sources = result.found.iter().map(FoundItem::source).collect();
            let value = JsonText::of(&result).map_err(|error| ToolError::Unavailable(error.to_string()))?;
            Ok(ToolOutput {
                value: Some(value),
                embedding_calls,
                ..ToolOutput::text(titles.join("\n")).with_sources(sources)
            })
        }
    })
}

/// Creates the tool that compares a query with the sources at hand.
pub(crate) fn compare(searcher: &Searcher) -> FnTool {
    let description = "Compara el tema de una consulta con el de las fuentes de la respuesta anterior.";
    let searcher = searcher.clone();
    FnTool::new(COMPARE, description, move |context: ToolContext, arguments: CompareArguments| {
        let searcher = searcher.clone();
        async move {
            let failed = |error: &dyn std::fmt::Display| ToolError::Unavailable(error.to_string());
            let Some((vector, embedding_calls)) = searcher.embed(&arguments.consulta).await else {
                return Err(ToolError::Unavailable("no hay búsqueda por significado".to_owned()));
            };
            let vector = vector.map_err(|error| failed(&error))?;
            *searcher.embedded.lock().await = Some((arguments.consulta.clone(), vector.clone()));
            let nearest =
                searcher.corpus.nearest(&context.scope, vector, NEAREST).await.map_err(|error| failed(&error))?;
            let value = JsonText::of(&nearness(&nearest, &arguments.fuentes)).map_err(|error| failed(&error))?;
            Ok(ToolOutput { embedding_calls, ..ToolOutput::json(value) })
        }
    })
}

/// Decides whether a query is about the sources at hand: yes if the nearest item of the corpus is one of them, no if none of them
/// is among the nearest items.
fn nearness(nearest: &[String], sources: &[String]) -> Nearness {
    let position = nearest.iter().position(|key| sources.contains(key));
    match position {
        Some(0) => Nearness::SameTopic,
        Some(_) => Nearness::Undecided,
        None if nearest.is_empty() => Nearness::Undecided,
        None => Nearness::OtherTopic,
    }
}

/// The arguments of the comparison tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct CompareArguments {
    /// The query that a search would use.
    pub(crate) consulta: String,
    /// The keys of the sources at hand.
    pub(crate) fuentes: Vec<String>,
}

/// Whether a query is about the sources at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Nearness {
    SameTopic,
    OtherTopic,
    Undecided,
}

/// The corpus and the embedder.
#[derive(Clone, Debug)]
pub(crate) struct Searcher {
    corpus: Corpus,
    embedder: Option<Arc<dyn Embedder>>,
    /// The query that was compared last, with its embedding, so that its search does not embed it again.
    embedded: Arc<Mutex<Option<(String, Embedding)>>>,
}

impl Searcher {
    pub(crate) fn new(corpus: Corpus, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { corpus, embedder, embedded: Arc::default() }
    }

    /// Returns the embedding of a query, and the number of embedder calls; `None` without an embedder.
    async fn embed(&self, query: &str) -> Option<(Result<Embedding, EmbedderError>, u64)> {
        let embedder = self.embedder.as_ref()?;
        if let Some((_, vector)) = self.embedded.lock().await.take_if(|(embedded, _)| embedded == query) {
            return Some((Ok(vector), 0));
        }
        let embedded = embedder.embed(std::slice::from_ref(&query.to_owned())).await;
        let missing = || EmbedderError::InvalidAnswer("no vector".to_owned());
        Some((embedded.and_then(|mut vectors| vectors.pop().ok_or_else(missing)), 1))
    }
}

struct Search {
    searcher: Searcher,
    scope: Scope,
    arguments: SearchArguments,
}

impl Search {
    async fn run(&self) -> Result<(SearchResult, u64), StoreError> {
        let mut result = SearchResult::default();
        let mut embedding_calls = 0;
        let mut vector = None;
        if let Some((embedded, calls)) = self.searcher.embed(&self.arguments.consulta).await {
            embedding_calls = calls;
            match embedded {
                Ok(embedding) => vector = Some(embedding),
                Err(_) => result.embedder_failed = true,
            }
        }
        self.look_up(&mut result, vector.as_ref()).await?;
        if !result.is_look_up {
            self.search(&mut result, &self.arguments.consulta, vector).await?;
        } else if result.found.is_empty() {
            // The rest of the message may ask about something other than the missing number.
            let rest = without_references(&self.arguments.consulta);
            if !content_words(&rest).is_empty() {
                self.search(&mut result, &rest, vector).await?;
            }
        }
        Ok((result, embedding_calls))
    }

    /// Looks up the numbers and claves of the question.
    async fn look_up(&self, result: &mut SearchResult, vector: Option<&Embedding>) -> Result<(), StoreError> {
        let SearchArguments { registros, claves, .. } = &self.arguments;
        if registros.is_empty() && claves.is_empty() {
            return Ok(());
        }
        result.is_look_up = true;
        let claves: Vec<ClaveKey> =
            claves.iter().map(|(key, epoca)| ClaveKey { key: key.clone(), epoca: *epoca }).collect();
        let mut items = self.searcher.corpus.by_registro(&self.scope, registros).await?;
        items.extend(self.searcher.corpus.by_clave(&self.scope, &claves).await?);
        let numbers: Vec<i64> = items.iter().filter_map(Item::tesis).map(|tesis| tesis.id_tesis).collect();
        let is_found = |clave: &ClaveKey| {
            let mut known = items.iter().filter_map(|item| item.tesis()?.clave.as_deref()).map(ClaveKey::of);
            known.any(|known| clave.refers_to(&known))
        };
        let missing =
            registros.iter().filter(|number| !numbers.contains(number)).map(|number| format!("el registro {number}"));
        result.missing = missing.collect();
        if claves.iter().any(|clave| !is_found(clave)) {
            result.missing.push("la clave que citas".to_owned());
        }
        result.found = distinct(items.into_iter().map(FoundItem::exact).collect());
        result.found.truncate(MAX_ANSWER_SOURCES);
        if let Some(vector) = vector {
            self.add_distances(result, vector).await?;
        }
        Ok(())
    }

    /// Adds the distances of items that were looked up.
    async fn add_distances(&self, result: &mut SearchResult, vector: &Embedding) -> Result<(), StoreError> {
        let keys = result.found.iter().map(|found| found.item.key());
        let filter = threadkeep::core::FieldFilter::any("key", keys);
        let near =
            self.searcher.corpus.candidates(&self.scope, Vec::new(), Some(vector.clone()), vec![filter], 50).await?;
        for found in &mut result.found {
            let hit = near.hits.iter().find(|hit| hit.item.key() == found.item.key());
            found.distance = hit.and_then(|hit| hit.similarity).map(|similarity| 1.0 - similarity);
        }
        Ok(())
    }

    /// Searches for the words of the question, within its filters.
    async fn search(
        &self,
        result: &mut SearchResult,
        query: &str,
        vector: Option<Embedding>,
    ) -> Result<(), StoreError> {
        let SearchArguments { filtros, citadas, solo_nuevas, con_palabras, .. } = &self.arguments;
        let is_filter_only = !con_palabras && !filtros.is_empty();
        let request = SearchRequest {
            query: query.to_owned(),
            filters: filtros.clone(),
            // A filter narrows the sources at hand, so they may be shown again.
            exclude: if is_filter_only && !solo_nuevas { BTreeSet::new() } else { citadas.clone() },
            // A request that consists only of filters has no meaning by which vectors could rank.
            vector: vector.filter(|_| !content_words(query).is_empty()),
            any_word: !self.arguments.rama.is_empty() && self.arguments.rama == query,
            limit: MAX_ANSWER_SOURCES,
        };
        result.found = self.searcher.corpus.search(&self.scope, &request).await?;
        self.prefer_known_topic(result, &request).await?;
        if result.found.is_empty() && !filtros.is_empty() && !solo_nuevas {
            self.find_known(result, &request).await?;
        }
        if result.found.is_empty() && is_filter_only && !self.arguments.solo_del_tema {
            // Finds tesis that pass the filters but are about another topic.
            let filters = self.arguments.filtros_propios.clone();
            let (query, any_word) = (self.arguments.rama.clone(), true);
            let request = SearchRequest { query, filters, vector: None, any_word, ..request.clone() };
            result.found = self.searcher.corpus.search(&self.scope, &request).await?;
            result.without_topic = !result.found.is_empty() && !solo_nuevas;
        }
        if result.found.is_empty() && !filtros.materias.is_empty() && !self.has_materia(filtros).await? {
            // Many records do not state their subject.
            let query = format!("{query} {}", filtros.materias.join(" "));
            let filters = Filters { materias: Vec::new(), ..filtros.clone() };
            result.found =
                self.searcher.corpus.search(&self.scope, &SearchRequest { query, filters, ..request.clone() }).await?;
            result.without_filters = !result.found.is_empty();
        }
        if result.found.is_empty() {
            self.find_known(result, &request).await?;
        }
        if result.found.is_empty() && !result.only_known {
            self.search_corrected(result, &request).await?;
        }
        Ok(())
    }

    /// Searches again, with corrections for the words that the corpus does not contain.
    async fn search_corrected(&self, result: &mut SearchResult, request: &SearchRequest) -> Result<(), StoreError> {
        let words = self.searcher.corpus.known_words(&self.scope, &request.query).await?;
        result.is_unknown = !words.is_empty() && words.iter().all(|(_, is_known)| !is_known);
        let correct = |(word, is_known): &(String, bool)| match spelling::legal_correction(word).filter(|_| !is_known) {
            Some(corrected) => corrected.to_owned(),
            None => word.clone(),
        };
        let query = words.iter().map(correct).collect::<Vec<_>>().join(" ");
        if words.iter().any(|(word, is_known)| !is_known && spelling::legal_correction(word).is_some()) {
            result.is_unknown = false;
            result.found = self
                .searcher
                .corpus
                .search(&self.scope, &SearchRequest { query: query.clone(), ..request.clone() })
                .await?;
            result.corrected = query;
        }
        Ok(())
    }

    /// Finds sources that were cited before, unless only new ones are wanted.
    async fn find_known(&self, result: &mut SearchResult, request: &SearchRequest) -> Result<(), StoreError> {
        if request.exclude.is_empty() {
            return Ok(());
        }
        let request = SearchRequest { exclude: BTreeSet::new(), ..request.clone() };
        let known = self.searcher.corpus.search(&self.scope, &request).await?;
        result.only_known = !known.is_empty();
        if !self.arguments.solo_nuevas {
            result.found = known.into_iter().map(|found| FoundItem { is_known: true, ..found }).collect();
        }
        Ok(())
    }

    /// Replaces the sources that were found with ones that were cited before, if these are far more relevant: either
    /// the question names their topic and not that of any new source, or no new source is half as relevant.
    async fn prefer_known_topic(&self, result: &mut SearchResult, request: &SearchRequest) -> Result<(), StoreError> {
        let question = Question::of_all_words(&content_words(&request.query));
        if self.arguments.solo_nuevas || request.exclude.is_empty() || question.is_empty() || result.found.is_empty() {
            return Ok(());
        }
        let request = SearchRequest { exclude: BTreeSet::new(), ..request.clone() };
        let all = self.searcher.corpus.search(&self.scope, &request).await?;
        let (known, new): (Vec<FoundItem>, Vec<FoundItem>) =
            all.into_iter().partition(|found| self.arguments.citadas.contains(&found.item.key()));
        let names_new = result.found.iter().any(|found| is_about(&question, &found.item));
        let best = new.iter().map(|found| found.relevance).fold(0.0, f64::max);
        let is_better = |found: &FoundItem| {
            !names_new && is_about(&question, &found.item) || found.relevance >= 1.0 && best < MIN_NEW_SHARE
        };
        let better: Vec<FoundItem> = known.into_iter().filter(is_better).collect();
        if !better.is_empty() {
            result.found = better.into_iter().map(|found| FoundItem { is_known: true, ..found }).collect();
        }
        Ok(())
    }

    /// Whether any record of the corpus has one of the subjects.
    async fn has_materia(&self, filters: &Filters) -> Result<bool, StoreError> {
        let filters = Filters { materias: filters.materias.clone(), ..Filters::default() };
        let request = SearchRequest { filters, limit: 1, ..SearchRequest::default() };
        Ok(!self.searcher.corpus.search(&self.scope, &request).await?.is_empty())
    }
}

/// Returns the sentences of a message that contain no registro or clave.
fn without_references(message: &str) -> String {
    let mut sentences = Vec::new();
    let mut start = 0;
    // The points in a clave end no sentence: `2a./J. 123/2020`.
    let begins_sentence = |rest: &str| {
        let word = rest.trim_start_matches([' ', '¿', '¡']);
        rest.starts_with(' ') && word.chars().take_while(|c| c.is_alphabetic()).count() > 1
    };
    for (at, c) in message.char_indices() {
        let ends = matches!(c, '?' | '!' | '[' | ']' | '<' | '>' | '\n' | ';')
            || c == '.' && begins_sentence(&message[at + 1..]);
        if ends {
            sentences.push(&message[start..at]);
            start = at + c.len_utf8();
        }
    }
    sentences.push(&message[start..]);
    let free = sentences.into_iter().filter(|sentence| References::of(sentence).is_empty());
    free.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    // S3.44
    #[test]
    fn the_nearest_items_decide_about_the_topic() {
        let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        let sources = keys(&["a", "b"]);
        for (nearest, expected) in [
            (&["b", "x", "y"][..], Nearness::SameTopic),
            (&["x", "a", "y"], Nearness::Undecided),
            (&["x", "y", "z"], Nearness::OtherTopic),
            (&[], Nearness::Undecided),
        ] {
            assert_eq!(nearness(&keys(nearest), &sources), expected, "{nearest:?}");
        }
    }
}
