//! The engine behind the page when it runs without a server.
//!
//! `web/src/api/offline.ts` calls it instead of the server's HTTP API, and receives objects of the same form ([`threadkeep_api`]).
//! Conversations are in the IndexedDB of the browser, and its assistants answer without a language model.

mod assistants;
mod conversations;
mod documents;
mod exchange;
mod finding;
mod turns;

use threadkeep::agent::AgentError;
use threadkeep::{Agent, Memory, Scope, ThreadId};
use threadkeep_api::agent::{AgentDetailJson, AgentJson};
use threadkeep_browser::Threadkeep;
use threadkeep_browser::convert::to_js;
use threadkeep_browser::error::{error_with_code, invalid};
use wasm_bindgen::prelude::*;

/// The engine. Each call of the page is a method.
#[wasm_bindgen]
#[derive(Debug)]
pub struct OfflineEngine {
    memory: Memory,
    scope: Scope,
    agents: Vec<Agent>,
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
        Ok(Self { agents: assistants::create(&memory)?, memory, scope })
    }

    /// Lists the assistants.
    ///
    /// # Errors
    /// None that are expected.
    pub fn agents(&self) -> Result<JsValue, JsValue> {
        let agents = self.agents.iter().map(|agent| AgentJson::of(agent.assistant().definition(), false));
        to_js(&agents.collect::<Vec<_>>())
    }

    /// Returns an assistant with its graph and its context policy.
    ///
    /// # Errors
    /// `not_found` for an unknown assistant.
    pub fn agent(&self, name: &str) -> Result<JsValue, JsValue> {
        to_js(&AgentDetailJson::of(self.find_agent(name)?.assistant().definition(), false))
    }

    fn find_agent(&self, name: &str) -> Result<&Agent, JsValue> {
        let found = self.agents.iter().find(|agent| agent.assistant().definition().name == name);
        found.ok_or_else(|| not_found("agent"))
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
