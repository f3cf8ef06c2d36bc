//! Entities and relations: their stored form, their form in arguments and results, and their limits.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use threadkeep::core::limits;
use threadkeep::{JsonText, Map, Record};

use crate::ToolFailure;
use crate::tools::check_text;

/// The maximum length of the name of an entity, in bytes. The name is the key of the entity's record.
pub(crate) const NAME_BYTES: usize = limits::KEY_BYTES;
/// The maximum length of the type of an entity or relation, in characters.
pub(crate) const TYPE_CHARS: usize = 200;
/// The maximum length of an observation, in characters.
pub(crate) const OBSERVATION_CHARS: usize = 4_000;
/// The maximum size of a stored entity, with its observations and the relations that start at it.
const ENTITY_BYTES: usize = 64 * 1024;

/// The value of an entity's record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entity {
    entity_type: String,
    pub(super) observations: Vec<String>,
    /// The relations that start at the entity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) relations: Vec<OutgoingRelation>,
    /// Fields that a later version wrote.
    #[serde(flatten)]
    further: Map,
}

/// A relation in the record of the entity at which it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutgoingRelation {
    pub(super) to: String,
    pub(super) relation_type: String,
}

/// A relation in arguments and results.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Relation {
    pub(super) from: String,
    pub(super) to: String,
    relation_type: String,
}

impl Entity {
    /// Creates an entity without relations.
    pub(super) fn new(entity_type: String, observations: &[String]) -> Self {
        let mut entity = Self { entity_type, observations: Vec::new(), relations: Vec::new(), further: Map::new() };
        entity.add_observations(observations);
        entity
    }

    /// Reads a record; `None` if another program stored something else in it.
    pub(super) fn read(record: &Record) -> Option<Self> {
        (record.value.as_str().len() <= ENTITY_BYTES).then(|| record.value.read().ok()).flatten()
    }

    /// Returns the value to store. `argument` names the entity in the error for one that is too large.
    pub(super) fn to_stored(&self, argument: &str) -> Result<JsonText, ToolFailure> {
        let value = JsonText::of(self)?;
        let bytes = value.as_str().len();
        if bytes > ENTITY_BYTES {
            let reason = format!(
                "the entity would have {bytes} bytes with its observations and relations; the maximum is {ENTITY_BYTES}"
            );
            return Err(ToolFailure::argument(argument, reason));
        }
        Ok(value)
    }

    /// Adds those observations that the entity does not have, and returns them.
    pub(super) fn add_observations(&mut self, contents: &[String]) -> Vec<String> {
        let mut added = Vec::new();
        for content in contents {
            if !self.observations.contains(content) {
                self.observations.push(content.clone());
                added.push(content.clone());
            }
        }
        added
    }

    /// Returns the name, type and observations, in which a search looks for words.
    pub(super) fn texts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        [name, self.entity_type.as_str()].into_iter().chain(self.observations.iter().map(String::as_str))
    }

    pub(super) fn to_result(&self, name: &str) -> Value {
        json!({ "name": name, "entityType": self.entity_type, "observations": self.observations })
    }
}

impl Relation {
    pub(super) fn new(from: &str, relation: &OutgoingRelation) -> Self {
        let OutgoingRelation { to, relation_type } = relation.clone();
        Self { from: from.to_owned(), to, relation_type }
    }

    /// Returns the relation as the record of its start contains it.
    pub(super) fn outgoing(&self) -> OutgoingRelation {
        OutgoingRelation { to: self.to.clone(), relation_type: self.relation_type.clone() }
    }

    pub(super) fn check(&self, argument: &str) -> Result<(), ToolFailure> {
        check_name(&format!("{argument}.from"), &self.from)?;
        check_name(&format!("{argument}.to"), &self.to)?;
        check_type(&format!("{argument}.relationType"), &self.relation_type)
    }

    /// The length of its texts, in bytes.
    pub(super) fn text_bytes(&self) -> usize {
        self.from.len() + self.to.len() + self.relation_type.len()
    }
}

/// Checks the name of an entity. A name that fails this check cannot exist.
pub(super) fn check_name(argument: &str, name: &str) -> Result<(), ToolFailure> {
    check_text(argument, name, NAME_BYTES)?;
    if name.len() > NAME_BYTES {
        let reason = format!("has {} bytes; the maximum is {NAME_BYTES}", name.len());
        return Err(ToolFailure::argument(argument, reason));
    }
    if name.chars().any(char::is_control) {
        return Err(ToolFailure::argument(argument, "contains a control character"));
    }
    Ok(())
}

pub(super) fn check_type(argument: &str, text: &str) -> Result<(), ToolFailure> {
    check_text(argument, text, TYPE_CHARS)
}

pub(super) fn check_observations(argument: &str, observations: &[String]) -> Result<(), ToolFailure> {
    super::check_count(argument, observations.len())?;
    for (index, observation) in observations.iter().enumerate() {
        check_text(&format!("{argument}[{index}]"), observation, OBSERVATION_CHARS)?;
    }
    Ok(())
}
