//! The registry of assistants, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use threadkeep::agent::plugin::{Lookup, MapOf};
use threadkeep::core::Embedder;
use threadkeep::{Agent, AssistantPlugin};

use crate::telemetry::Instrumentation;

/// The maximum length of an assistant's name, in bytes.
const NAME_BYTES: usize = 64;

/// An invalid assistant name. Names are part of paths, model names (`threadkeep/NAME`), metrics and HTML pages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssistantNameError {
    /// The name is empty or too long, or contains an invalid character.
    #[error(
        "invalid assistant name `{name}`: use 1 to {NAME_BYTES} ASCII letters, digits, `-`, `_` and `.`, beginning with a \
         letter or a digit"
    )]
    Characters {
        /// The name, truncated and without control characters.
        name: String,
    },
    /// Paths of the server begin with the name, or it is reserved for a version of an API.
    #[error("invalid assistant name `{name}`: the server has paths under /{name}")]
    Reserved {
        /// The name.
        name: String,
    },
}

/// Checks the name of an assistant. `is_reserved` returns whether paths of the server begin with a name. Names such as `v1` are
/// always reserved.
///
/// # Errors
/// [`AssistantNameError`] for an invalid name.
pub fn check_assistant_name(name: &str, is_reserved: impl FnOnce(&str) -> bool) -> Result<(), AssistantNameError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let has_valid_start = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !has_valid_start || name.len() > NAME_BYTES || !name.bytes().all(is_allowed) {
        let printable = name.chars().filter(|c| !c.is_control()).take(NAME_BYTES).collect();
        return Err(AssistantNameError::Characters { name: printable });
    }
    let number = name.strip_prefix('v').filter(|number| !number.is_empty());
    let is_version = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    if is_version || is_reserved(name) {
        return Err(AssistantNameError::Reserved { name: name.to_owned() });
    }
    Ok(())
}

/// The assistants of one server, by name. Cheap to clone. Clones share their state, so that assistants can be added while the
/// server runs.
#[derive(Clone, Debug, Default)]
pub struct Assistants {
    by_name: Arc<RwLock<BTreeMap<String, Entry>>>,
    reserved: Arc<RwLock<BTreeSet<String>>>,
    instrumentation: Instrumentation,
}

#[derive(Clone, Debug)]
struct Entry {
    agent: Agent,
    lookups: &'static [Lookup],
    network_map: Option<MapOf>,
}

impl Assistants {
    /// Reserves names for the paths of doors.
    ///
    /// # Errors
    /// [`AssistantNameError`] if a registered assistant has a reserved name.
    pub fn reserve(&self, names: impl IntoIterator<Item = String>) -> Result<(), AssistantNameError> {
        self.reserved.write().unwrap_or_else(PoisonError::into_inner).extend(names);
        self.all().iter().try_for_each(|agent| self.check(&agent.assistant().definition().name))
    }

    fn check(&self, name: &str) -> Result<(), AssistantNameError> {
        let reserved = self.reserved.read().unwrap_or_else(PoisonError::into_inner);
        check_assistant_name(name, |name| reserved.contains(name))
    }

    /// Registers an assistant, replacing any assistant with the same name. Running turns continue with the assistant that started
    /// them.
    ///
    /// Calls to the model, the tools and the embedder in the assistant's definition are counted and traced.
    ///
    /// # Errors
    /// [`AssistantNameError`] for an invalid name.
    pub fn put(&self, agent: Agent) -> Result<(), AssistantNameError> {
        self.insert(agent, &[], None)
    }

    /// Like [`Assistants::put`], but also offers what the assistant's plugin has for a server: its lookups as HTTP endpoints, and
    /// its map.
    ///
    /// # Errors
    /// The same as [`Assistants::put`].
    pub fn put_with_plugin(&self, agent: Agent, plugin: &AssistantPlugin) -> Result<(), AssistantNameError> {
        self.insert(agent, plugin.lookups, plugin.network_map)
    }

    fn insert(
        &self,
        agent: Agent,
        lookups: &'static [Lookup],
        network_map: Option<MapOf>,
    ) -> Result<(), AssistantNameError> {
        let agent = self.instrumentation.wrap_agent(&agent);
        let name = agent.assistant().definition().name.clone();
        self.check(&name)?;
        let entry = Entry { agent, lookups, network_map };
        self.by_name.write().unwrap_or_else(PoisonError::into_inner).insert(name, entry);
        Ok(())
    }

    /// Removes an assistant. Running turns continue.
    pub fn remove(&self, name: &str) {
        self.by_name.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Wraps an embedder so that calls to it are counted and traced. This is for assistants that use an embedder outside their
    /// definition.
    #[must_use]
    pub fn instrumented(&self, embedder: Arc<dyn Embedder>) -> Arc<dyn Embedder> {
        self.instrumentation.wrap_embedder(embedder)
    }

    pub(crate) fn instrumentation(&self) -> &Instrumentation {
        &self.instrumentation
    }

    /// Finds an assistant by name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Agent> {
        self.entry(name).map(|entry| entry.agent)
    }

    /// Returns the tools of an assistant that are exposed as HTTP endpoints.
    pub fn lookups(&self, name: &str) -> &'static [Lookup] {
        self.entry(name).map_or(&[], |entry| entry.lookups)
    }

    /// Returns the function that returns an assistant's map; `None` if the assistant has no map.
    pub fn network_map(&self, name: &str) -> Option<MapOf> {
        self.entry(name)?.network_map
    }

    /// Returns all assistants, ordered by name.
    #[must_use]
    pub fn all(&self) -> Vec<Agent> {
        let by_name = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        by_name.values().map(|entry| entry.agent.clone()).collect()
    }

    fn entry(&self, name: &str) -> Option<Entry> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_in_paths_and_not_reserved() {
        let is_reserved = |name: &str| ["docs", "chat"].contains(&name);
        for name in ["general", "subway", "keeper", "k8s-agent", "my_bot.2", "0", "vera", "documents", &"x".repeat(64)]
        {
            assert_eq!(check_assistant_name(name, is_reserved), Ok(()), "{name}");
        }
        let long = "x".repeat(65);
        for name in
            ["", "a b", "a/b", "../a", ".", "..", ".hidden", "-x", "<b>", "a%2fb", "a?b", "a#b", "é", "a\nb", &long]
        {
            assert!(
                matches!(check_assistant_name(name, is_reserved), Err(AssistantNameError::Characters { .. })),
                "{name}"
            );
        }
        for name in ["v1", "v2", "docs", "chat"] {
            assert!(
                matches!(check_assistant_name(name, is_reserved), Err(AssistantNameError::Reserved { .. })),
                "{name}"
            );
        }
    }

    #[test]
    fn errors_contain_no_control_characters() {
        let error = check_assistant_name("\u{1b}[31mred", |_| false).unwrap_err().to_string();
        assert!(error.contains("`[31mred`") && !error.contains('\u{1b}'), "{error}");
    }
}
