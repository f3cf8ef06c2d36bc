//! Strict tools. Like OpenAI's API, this API treats a tool without `strict` as strict if its schema allows that: every object is
//! closed, and all its properties are required. A model then cannot invent or omit arguments.

use serde_json::{Map, Value};

/// The keywords of JSON Schema that a strict schema may contain.
const ALLOWED: [&str; 22] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "default",
    "definitions",
    "description",
    "enum",
    "examples",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];
/// The maximum depth of a schema that can be closed. Tools with deeper schemas are not strict.
const MAX_DEPTH: usize = 10;

/// Returns a tool with `strict` set. Tools that already set it, and tools that are not functions, are returned unchanged.
pub(super) fn with_strictness(tool: &Value) -> Value {
    let mut tool = tool.clone();
    let Some(members) =
        tool.as_object_mut().filter(|members| members.get("type").is_some_and(|kind| kind == "function"))
    else {
        return tool;
    };
    // The function is in a separate field if the client uses the format of chat completions.
    if members.get("strict").is_some_and(|strict| !strict.is_null()) || members.contains_key("function") {
        return tool;
    }
    let parameters = members.get("parameters").filter(|parameters| !parameters.is_null());
    let closed = match parameters {
        Some(parameters) => close(parameters, 0),
        None => Some(serde_json::json!({
            "type": "object", "properties": {}, "required": [], "additionalProperties": false
        })),
    };
    members.insert("strict".to_owned(), closed.is_some().into());
    if let Some(closed) = closed {
        members.insert("parameters".to_owned(), closed);
    }
    tool
}

/// Returns a schema in which every object is closed; `None` if that would reject values that the schema describes.
fn close(schema: &Value, depth: usize) -> Option<Value> {
    let members = schema.as_object().filter(|_| depth <= MAX_DEPTH)?;
    if members.keys().any(|keyword| !ALLOWED.contains(&keyword.as_str())) {
        return None;
    }
    let mut closed = members.clone();
    for (keyword, value) in &mut closed {
        match keyword.as_str() {
            "properties" | "$defs" | "definitions" => *value = Value::Object(close_each(value.as_object()?, depth)?),
            "items" => *value = close(value, depth + 1)?,
            "anyOf" => {
                let schemas = value.as_array()?.iter().map(|schema| close(schema, depth + 1));
                *value = schemas.collect::<Option<Vec<_>>>()?.into();
            }
            "additionalProperties" if *value != false => return None,
            _ => {}
        }
    }
    let is_object = closed.get("type").is_some_and(|kind| {
        *kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
    });
    if is_object {
        let names = closed.get("properties").and_then(Value::as_object).map(|properties| properties.keys().cloned());
        // An object without `properties` may contain anything, except at the top level, where it means that there are no
        // arguments.
        let names: Vec<Value> = match names {
            Some(names) => names.map(Value::String).collect(),
            None if depth == 0 => Vec::new(),
            None => return None,
        };
        closed.entry("properties").or_insert_with(|| Map::new().into());
        closed.insert("required".to_owned(), names.into());
        closed.insert("additionalProperties".to_owned(), false.into());
    }
    Some(Value::Object(closed))
}

fn close_each(schemas: &Map<String, Value>, depth: usize) -> Option<Map<String, Value>> {
    schemas.iter().map(|(name, schema)| Some((name.clone(), close(schema, depth + 1)?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn strictness(parameters: Value) -> (Value, Value) {
        let tool = with_strictness(&json!({ "type": "function", "name": "look", "parameters": parameters }));
        (tool["strict"].clone(), tool["parameters"].clone())
    }

    #[test]
    fn schemas_are_closed_if_their_meaning_stays_the_same() {
        let inner = json!({ "type": "object", "properties": { "line": { "enum": ["A", "C"] } } });
        let open = json!({ "type": "object", "properties": { "at": { "type": "string" }, "via": { "items": inner } } });
        let (strict, closed) = strictness(open);
        assert_eq!((&strict, &closed["additionalProperties"]), (&json!(true), &json!(false)));
        assert_eq!(closed["required"], json!(["at", "via"]));
        assert_eq!(closed["properties"]["via"]["items"]["required"], json!(["line"]));
        assert_eq!(strictness(json!({ "type": "object" })).0, json!(true));
        for unclosable in [
            json!({ "type": "object", "properties": {}, "additionalProperties": true }),
            json!({ "type": "object", "properties": { "any": { "type": "object" } } }),
            json!({ "type": "object", "properties": { "a": { "oneOf": [] } } }),
            json!({ "type": "object", "patternProperties": {} }),
        ] {
            assert_eq!(strictness(unclosable.clone()), (json!(false), unclosable));
        }
        let own = json!({ "type": "function", "name": "look", "strict": false, "parameters": { "type": "object" } });
        assert_eq!(with_strictness(&own), own);
    }
}
