//! What a model gets and why, and what was said before.

use std::sync::Arc;

use threadkeep::core::limits::PAGE;
use threadkeep::memory::PassageOptions;
use threadkeep::{ApproximateCounter, ContextOptions, ContextPolicy, RecallOptions, SearchOptions, ThreadSelection};
use threadkeep_api::analytics::AnalyticsJson;
use threadkeep_api::context::ContextJson;
use threadkeep_api::policy::PolicyJson;
use threadkeep_api::recall::RecalledJson;
use threadkeep_api::search::HitsJson;
use threadkeep_browser::convert::{from_js, to_js};
use threadkeep_browser::error::{ToJs, invalid};
use wasm_bindgen::prelude::*;

use crate::documents::LIBRARY;
use crate::{OfflineEngine, thread_id};

/// The number of hits on a page.
const HITS: usize = 20;

#[wasm_bindgen]
impl OfflineEngine {
    /// Assembles the context for a question; without one, for the newest message.
    ///
    /// # Errors
    /// `not_found` for an unknown thread, `invalid_request` or `invalid_policy` for an invalid policy.
    pub async fn context(&self, thread: &str, question: Option<String>, policy: JsValue) -> Result<JsValue, JsValue> {
        let policy: ContextPolicy = from_js::<PolicyJson>("policy", &policy)?.into();
        let options = ContextOptions { counter: Arc::new(ApproximateCounter), ..ContextOptions::default() };
        let (thread, question) = (thread_id(thread)?, question.as_deref());
        let assembled = self.memory.context_with(&self.scope, thread, question, &policy, &options).await.to_js()?;
        to_js(&ContextJson::of(&assembled))
    }

    /// Returns the stored report of the context of a turn, or null.
    ///
    /// # Errors
    /// `not_found` for an unknown thread.
    #[wasm_bindgen(js_name = contextReport)]
    pub async fn context_report(&self, thread: &str, turn: &str) -> Result<JsValue, JsValue> {
        to_js(&self.memory.context_report(&self.scope, thread_id(thread)?, turn).await.to_js()?)
    }

    /// Recalls messages that may answer a question.
    ///
    /// # Errors
    /// `invalid_request` for an invalid limit.
    pub async fn recall(&self, question: &str, thread: Option<String>, limit: usize) -> Result<JsValue, JsValue> {
        let thread = thread.as_deref().map(thread_id).transpose()?;
        let options = RecallOptions { thread, limit, ..RecallOptions::default() };
        to_js(&RecalledJson::from(&self.memory.recall(&self.scope, question, &options).await.to_js()?))
    }

    /// Searches messages by their words. `after` is the `next` of the previous page.
    ///
    /// # Errors
    /// `invalid_request` for an unknown cursor.
    pub async fn search(&self, query: &str, thread: Option<String>, after: Option<String>) -> Result<JsValue, JsValue> {
        let thread = thread.as_deref().map(thread_id).transpose()?;
        let start = after.as_deref().map_or(Ok(0), str::parse).map_err(|_| invalid("after", "is not a cursor"))?;
        // All hits are ranked together. A page contains the hits after those of the earlier pages.
        let end = usize::min(start + HITS, PAGE);
        let options = SearchOptions { thread, limit: (end + 1).min(PAGE), ..SearchOptions::default() };
        let found = self.memory.search(&self.scope, query, &options).await.to_js()?;
        let next = (found.hits.len() > end).then(|| end.to_string());
        to_js(&HitsJson::page(&found, start..end, next))
    }

    /// Finds passages in documents that may answer a question: an array of `[title, place, text]`.
    ///
    /// # Errors
    /// `invalid_request` for an invalid limit.
    pub async fn passages(&self, question: &str, limit: usize) -> Result<JsValue, JsValue> {
        let options = PassageOptions { limit, ..PassageOptions::default() };
        let found = self.memory.find_passages(&self.scope, LIBRARY, question, &options).await.to_js()?;
        let passages = found.passages.into_iter().map(|passage| (passage.title, passage.place, passage.text));
        to_js(&passages.collect::<Vec<_>>())
    }

    /// Computes the statistics of a thread, or of all threads.
    ///
    /// # Errors
    /// `not_found` for an unknown thread.
    pub async fn analytics(&self, thread: Option<String>) -> Result<JsValue, JsValue> {
        let selection = match thread {
            Some(thread) => ThreadSelection::Thread(thread_id(&thread)?),
            None => ThreadSelection::All,
        };
        to_js(&AnalyticsJson::of(self.memory.analytics(&self.scope, selection).await.to_js()?, None))
    }
}
