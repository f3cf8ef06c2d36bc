//! The engine behind the page when it runs without a server.
//!
//! `web/src/api/offline.ts` calls it instead of the server's HTTP API, and receives objects of the same form ([`threadkeep_api`]).
//! Conversations are in the IndexedDB of the browser, and the general assistant answers without a language model.

mod conversations;
mod documents;
mod exchange;
mod finding;
mod turns;

use js_sys::Error;
use threadkeep::agent::AgentError;
use threadkeep::{Agent, Memory, Scope, ThreadId};
use threadkeep_api::agent::{AgentDetailJson, AgentJson};
use threadkeep_browser::Threadkeep;
use threadkeep_browser::convert::to_js;
use threadkeep_browser::error::{error_with_code, invalid};
use threadkeep_general::{General, GeneralOptions};
use wasm_bindgen::prelude::*;

/// The engine. Each call of the page is a method.
#[wasm_bindgen]
#[derive(Debug)]
pub struct OfflineEngine {
    memory: Memory,
    scope: Scope,
    agent: Agent,
}

#[wasm_bindgen]
impl OfflineEngine {
    /// Creates the engine on an open database.
    ///
    /// # Errors
    /// The assistant cannot be created.
    #[wasm_bindgen(constructor)]
    pub fn new(store: &Threadkeep) -> Result<Self, JsValue> {
        let (memory, scope) = (store.memory().clone(), store.scope().clone());
        let general = General::new(&memory, GeneralOptions::default());
        let general = general.map_err(|error| JsValue::from(Error::new(&error.to_string())))?;
        Ok(Self { agent: Agent::new(memory.clone(), general), memory, scope })
    }

    /// Lists the assistants.
    ///
    /// # Errors
    /// None that are expected.
    pub fn agents(&self) -> Result<JsValue, JsValue> {
        to_js(&[AgentJson::of(self.agent.assistant().definition(), false)])
    }

    /// Returns an assistant with its graph and its context policy.
    ///
    /// # Errors
    /// `not_found` for an unknown assistant.
    pub fn agent(&self, name: &str) -> Result<JsValue, JsValue> {
        to_js(&AgentDetailJson::of(self.find_agent(name)?.assistant().definition(), false))
    }

    fn find_agent(&self, name: &str) -> Result<&Agent, JsValue> {
        let is_known = self.agent.assistant().definition().name == name;
        is_known.then_some(&self.agent).ok_or_else(|| not_found("agent"))
    }
}

fn thread_id(text: &str) -> Result<ThreadId, JsValue> {
    text.parse().map_err(|_| invalid("thread", "must be the id of a thread"))
}

fn not_found(resource: &str) -> JsValue {
    error_with_code("not_found", &format!("{resource} not found"))
}

fn agent_error(error: AgentError) -> JsValue {
    match error {
        AgentError::Memory(error) => error_with_code(error.code(), &error.to_string()),
        error => error_with_code(error.code(), &error.to_string()),
    }
}
