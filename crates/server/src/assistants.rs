//! The assistants that can be asked, by name.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use threadkeep::Agent;
use threadkeep::core::Embedder;

use crate::telemetry::Watch;

/// Assistants by name, each over the server's store. Cheap to clone; all clones are the same, so that whoever holds one
/// can add to a server that runs already. One server has them.
#[derive(Clone, Debug, Default)]
pub struct Assistants {
    by_name: Arc<RwLock<BTreeMap<String, Agent>>>,
    watch: Watch,
}

impl Assistants {
    /// Puts an assistant in, in place of one that has its name. Turns that have begun end with the one that began them.
    ///
    /// The server counts and traces what its definition names: the model, the tools and the embedder.
    pub fn put(&self, agent: Agent) {
        let agent = self.watch.agent(&agent);
        let name = agent.assistant().definition().name.clone();
        self.by_name.write().unwrap_or_else(PoisonError::into_inner).insert(name, agent);
    }

    /// Takes an assistant out. Turns that have begun end as they would have.
    pub fn remove(&self, name: &str) {
        self.by_name.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// The same embedder, its calls counted and traced by the server: for an assistant that holds one elsewhere than in its
    /// definition.
    #[must_use]
    pub fn watched(&self, embedder: Arc<dyn Embedder>) -> Arc<dyn Embedder> {
        self.watch.embedder(embedder)
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Finds one by its name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Agent> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Agent> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

impl FromIterator<Agent> for Assistants {
    fn from_iter<T: IntoIterator<Item = Agent>>(agents: T) -> Self {
        let assistants = Self::default();
        agents.into_iter().for_each(|agent| assistants.put(agent));
        assistants
    }
}
