//! The assistants that can be asked, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use threadkeep::Agent;
use threadkeep::agent::plugin::Lookup;
use threadkeep::core::Embedder;

use crate::telemetry::Watch;

/// Bytes of an assistant's name.
const NAME_BYTES: usize = 64;

/// Why an assistant cannot be called so. Its name stands in paths, in the names of models (`threadkeep/NAME`), in figures
/// and on a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssistantNameError {
    /// It has other characters, or too many.
    #[error(
        "`{name}` cannot be an assistant's name: use 1 to {NAME_BYTES} ASCII letters, digits, `-`, `_` and `.`, beginning \
         with a letter or a digit"
    )]
    Characters {
        /// The name, cut and without control characters.
        name: String,
    },
    /// A route of the server begins so.
    #[error("`{name}` cannot be an assistant's name: the server's own paths begin with /{name}")]
    Reserved {
        /// The name.
        name: String,
    },
}

/// Checks that an assistant can be called so, where a name is reserved by the paths of doors or not.
///
/// # Errors
/// What keeps it from that.
pub fn check_assistant_name(name: &str, is_reserved: impl FnOnce(&str) -> bool) -> Result<(), AssistantNameError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !begins_well || name.len() > NAME_BYTES || !name.bytes().all(is_plain) {
        let shown = name.chars().filter(|c| !c.is_control()).take(NAME_BYTES).collect();
        return Err(AssistantNameError::Characters { name: shown });
    }
    let number = name.strip_prefix('v').filter(|number| !number.is_empty());
    let is_version = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    if is_version || is_reserved(name) {
        return Err(AssistantNameError::Reserved { name: name.to_owned() });
    }
    Ok(())
}

/// Assistants by name, each over the server's store. Cheap to clone; all clones are the same, so that whoever holds one
/// can add to a server that runs already. One server has them.
#[derive(Clone, Debug, Default)]
pub struct Assistants {
    by_name: Arc<RwLock<BTreeMap<String, Entry>>>,
    reserved: Arc<RwLock<BTreeSet<String>>>,
    watch: Watch,
}

#[derive(Clone, Debug)]
struct Entry {
    agent: Agent,
    lookups: &'static [Lookup],
}

impl Assistants {
    /// Keeps names from assistants, as the paths of doors begin so.
    ///
    /// # Errors
    /// As [`check_assistant_name`], for an assistant that has such a name.
    pub fn reserve(&self, names: impl IntoIterator<Item = String>) -> Result<(), AssistantNameError> {
        self.reserved.write().unwrap_or_else(PoisonError::into_inner).extend(names);
        self.all().iter().try_for_each(|agent| self.check(&agent.assistant().definition().name))
    }

    fn check(&self, name: &str) -> Result<(), AssistantNameError> {
        let reserved = self.reserved.read().unwrap_or_else(PoisonError::into_inner);
        check_assistant_name(name, |name| reserved.contains(name))
    }

    /// Puts an assistant in, in place of one that has its name. Turns that have begun end with the one that began them.
    ///
    /// The server counts and traces what its definition names: the model, the tools and the embedder.
    ///
    /// # Errors
    /// As [`check_assistant_name`].
    pub fn put(&self, agent: Agent) -> Result<(), AssistantNameError> {
        self.put_with_lookups(agent, &[])
    }

    /// As [`Assistants::put`], with the tools that answer the records' endpoints. Without any those endpoints are unknown
    /// routes for this assistant.
    ///
    /// # Errors
    /// As [`Assistants::put`].
    pub fn put_with_lookups(&self, agent: Agent, lookups: &'static [Lookup]) -> Result<(), AssistantNameError> {
        let agent = self.watch.agent(&agent);
        let name = agent.assistant().definition().name.clone();
        self.check(&name)?;
        self.by_name.write().unwrap_or_else(PoisonError::into_inner).insert(name, Entry { agent, lookups });
        Ok(())
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
        self.entry(name).map(|entry| entry.agent)
    }

    /// The tools that answer the records' endpoints for an assistant.
    pub fn lookups(&self, name: &str) -> &'static [Lookup] {
        self.entry(name).map_or(&[], |entry| entry.lookups)
    }

    /// All of them, by name.
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
    fn names_fit_into_paths_and_collide_with_no_route() {
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
    fn no_text_is_repeated_that_could_act_on_a_terminal() {
        let error = check_assistant_name("\u{1b}[31mred", |_| false).unwrap_err().to_string();
        assert!(error.contains("`[31mred`") && !error.contains('\u{1b}'), "{error}");
    }
}
