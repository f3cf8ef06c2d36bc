//! Schemas of the arguments of the knowledge graph's tools. The names are those of the MCP reference server for memory.

use serde_json::{Value, json};

use super::object_schema;
use crate::tools::knowledge_graph::{ITEMS, NAME_BYTES, OBSERVATION_CHARS, TYPE_CHARS};

pub(super) fn entities() -> Value {
    let properties = json!({ "name": name(), "entityType": kind(), "observations": observations() });
    list(object_schema(properties, json!(["name", "entityType", "observations"])))
}

pub(super) fn relations() -> Value {
    let properties = json!({ "from": name(), "to": name(), "relationType": kind() });
    list(object_schema(properties, json!(["from", "to", "relationType"])))
}

/// Returns the schema of observations to add.
pub(super) fn additions() -> Value {
    let properties = json!({ "entityName": name(), "contents": observations() });
    list(object_schema(properties, json!(["entityName", "contents"])))
}

/// Returns the schema of observations to delete.
pub(super) fn deletions() -> Value {
    let properties = json!({ "entityName": name(), "observations": observations() });
    list(object_schema(properties, json!(["entityName", "observations"])))
}

/// Returns the schema of a list of names of entities.
pub(super) fn names() -> Value {
    list(name())
}

fn observations() -> Value {
    list(json!({ "type": "string", "maxLength": OBSERVATION_CHARS }))
}

fn name() -> Value {
    json!({ "type": "string", "maxLength": NAME_BYTES })
}

fn kind() -> Value {
    json!({ "type": "string", "maxLength": TYPE_CHARS })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items, "maxItems": ITEMS })
}
