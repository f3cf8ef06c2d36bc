//! The search tool of the graph.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadkeep::context::recall::Question;
use threadkeep::core::{Embedding, StoreError, ToolContext, ToolError, ToolOutput};
use threadkeep::{Embedder, FnTool, JsonText, Scope};

use crate::clave::{ClaveKey, References};
use crate::corpus::{Corpus, Item};
use crate::filters::Filters;
use crate::plan::MAX_ANSWER_SOURCES;
use crate::search::{Found, SearchRequest, content_of, distinct, is_about};

/// The name of the tool.
pub(crate) const SEARCH: &str = "buscar_tesis";

/// The arguments of the tool.
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
    /// Numbers to look up exactly.
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
}

/// The result of the tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SearchResult {
    pub(crate) found: Vec<Found>,
    /// Numbers that the corpus does not contain.
    pub(crate) missing: Vec<String>,
    /// Whether a look-up was made.
    pub(crate) is_look_up: bool,
    /// Whether only sources that were shown before match.
    pub(crate) only_known: bool,
    /// Whether the embedder failed, so that only words were searched.
    pub(crate) embedder_failed: bool,
    /// The filters that were dropped because nothing passed them.
    pub(crate) without_filters: bool,
    /// Whether the sources pass the filters, but are not about the topic of the conversation.
    pub(crate) without_topic: bool,
}

/// Creates the tool.
pub(crate) fn search(corpus: Corpus, embedder: Option<Arc<dyn Embedder>>) -> FnTool {
    let description = "Busca tesis, artículos y sentencias en el corpus, por palabras, registro digital o clave.";
    FnTool::new(SEARCH, description, move |context: ToolContext, arguments: SearchArguments| {
        let search = Search { corpus: corpus.clone(), embedder: embedder.clone(), scope: context.scope, arguments };
        async move {
            let (result, embedding_calls) =
                search.run().await.map_err(|error| ToolError::Unavailable(error.to_string()))?;
            let titles: Vec<String> = result.found.iter().map(|found| found.item.title()).collect();
            let sources = result.found.iter().map(Found::source).collect();
            let value = JsonText::of(&result).map_err(|error| ToolError::Unavailable(error.to_string()))?;
            Ok(ToolOutput {
                value: Some(value),
                embedding_calls,
                ..ToolOutput::text(titles.join("\n")).with_sources(sources)
            })
        }
    })
}

struct Search {
    corpus: Corpus,
    embedder: Option<Arc<dyn Embedder>>,
    scope: Scope,
    arguments: SearchArguments,
}

impl Search {
    async fn run(&self) -> Result<(SearchResult, u64), StoreError> {
        let mut result = SearchResult::default();
        let mut embedding_calls = 0;
        let mut vector = None;
        if let Some(embedder) = &self.embedder {
            embedding_calls = 1;
            match embedder.embed(std::slice::from_ref(&self.arguments.consulta)).await {
                Ok(mut embeddings) => vector = embeddings.pop(),
                Err(_) => result.embedder_failed = true,
            }
        }
        self.look_up(&mut result, vector.as_ref()).await?;
        if !result.is_look_up {
            self.search(&mut result, &self.arguments.consulta, vector).await?;
        } else if result.found.is_empty() {
            // The rest of the message may ask about something else than the number that the corpus does not contain.
            let rest = without_references(&self.arguments.consulta);
            if !content_of(&rest).is_empty() {
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
        let mut items = self.corpus.by_registro(&self.scope, registros).await?;
        items.extend(self.corpus.by_clave(&self.scope, &claves).await?);
        let numbers: Vec<i64> = items.iter().filter_map(Item::tesis).map(|tesis| tesis.id_tesis).collect();
        let own = |clave: &ClaveKey| {
            let mut known = items.iter().filter_map(|item| item.tesis()?.clave.as_deref()).map(ClaveKey::of);
            known.any(|known| known.key == clave.key)
        };
        let missing =
            registros.iter().filter(|number| !numbers.contains(number)).map(|number| format!("el registro {number}"));
        result.missing = missing.collect();
        if claves.iter().any(|clave| !own(clave)) {
            result.missing.push("la clave que citas".to_owned());
        }
        result.found = distinct(items.into_iter().map(Found::exact).collect());
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
        let near = self.corpus.candidates(&self.scope, Vec::new(), Some(vector.clone()), vec![filter], 50).await?;
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
            // Vectors rank by meaning; a request that consists of filters has none.
            vector: vector.filter(|_| !content_of(query).is_empty()),
            limit: MAX_ANSWER_SOURCES,
        };
        result.found = self.corpus.search(&self.scope, &request).await?;
        self.add_known_topic(result, &request).await?;
        if result.found.is_empty() && !filtros.is_empty() && !solo_nuevas {
            self.find_known(result, &request).await?;
        }
        if result.found.is_empty() && is_filter_only {
            // Tesis that pass the filters, about another topic.
            let filters = self.arguments.filtros_propios.clone();
            let request = SearchRequest { query: String::new(), filters, vector: None, ..request.clone() };
            result.found = self.corpus.search(&self.scope, &request).await?;
            result.without_topic = !result.found.is_empty() && !solo_nuevas;
        }
        if result.found.is_empty() && !filtros.materias.is_empty() && !self.has_materia(filtros).await? {
            // Many records do not name their subject.
            let query = format!("{query} {}", filtros.materias.join(" "));
            let filters = Filters { materias: Vec::new(), ..filtros.clone() };
            result.found =
                self.corpus.search(&self.scope, &SearchRequest { query, filters, ..request.clone() }).await?;
            result.without_filters = !result.found.is_empty();
        }
        if result.found.is_empty() {
            self.find_known(result, &request).await?;
        }
        Ok(())
    }

    /// Finds sources that were cited before, unless only new ones are wanted.
    async fn find_known(&self, result: &mut SearchResult, request: &SearchRequest) -> Result<(), StoreError> {
        if request.exclude.is_empty() {
            return Ok(());
        }
        let request = SearchRequest { exclude: BTreeSet::new(), ..request.clone() };
        let known = self.corpus.search(&self.scope, &request).await?;
        result.only_known = !known.is_empty();
        if !self.arguments.solo_nuevas {
            result.found = known.into_iter().map(|found| Found { is_known: true, ..found }).collect();
        }
        Ok(())
    }

    /// Adds sources that were cited before if the question names their topic, and the topic of no other source that was found.
    async fn add_known_topic(&self, result: &mut SearchResult, request: &SearchRequest) -> Result<(), StoreError> {
        let question = Question::of_all_words(&content_of(&request.query));
        if self.arguments.solo_nuevas
            || request.exclude.is_empty()
            || question.is_empty()
            || result.found.is_empty()
            || result.found.iter().any(|found| is_about(&question, &found.item))
        {
            return Ok(());
        }
        let request = SearchRequest { exclude: BTreeSet::new(), ..request.clone() };
        let mut known = self.corpus.search(&self.scope, &request).await?;
        known.retain(|found| self.arguments.citadas.contains(&found.item.key()) && is_about(&question, &found.item));
        if !known.is_empty() {
            result.found = known.into_iter().map(|found| Found { is_known: true, ..found }).collect();
        }
        Ok(())
    }

    /// Whether a record of the corpus names one of the subjects.
    async fn has_materia(&self, filters: &Filters) -> Result<bool, StoreError> {
        let filters = Filters { materias: filters.materias.clone(), ..Filters::default() };
        let request = SearchRequest { filters, limit: 1, ..SearchRequest::default() };
        Ok(!self.corpus.search(&self.scope, &request).await?.is_empty())
    }
}

/// Returns the sentences of a message that cite no registro or clave.
fn without_references(message: &str) -> String {
    let sentences = message.split(['.', '?', '!', '[', ']', '<', '>', '\n', ';']);
    let free = sentences.filter(|sentence| References::of(sentence).is_empty());
    free.collect::<Vec<_>>().join(" ")
}
