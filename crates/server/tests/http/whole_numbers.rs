//! Whole numbers in bodies may be written with a fraction, as in `7.0`. Tested for every request schema in the OpenAPI document.

use serde_json::{Value, json};
use threadkeep_server::{KeyRole, Server};

use crate::server::TestServer;

/// Resolves a schema's reference. A nullable schema contains its reference in a list of alternatives.
fn resolved<'a>(schemas: &'a Value, schema: &'a Value) -> &'a Value {
    let options = ["oneOf", "anyOf", "allOf"].into_iter().find_map(|name| schema[name].as_array());
    if let Some(options) = options {
        return options.iter().map(|option| resolved(schemas, option)).find(|option| option["type"] != "null").unwrap();
    }
    let name = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next());
    name.map_or(schema, |name| resolved(schemas, &schemas[name]))
}

fn has_type(schema: &Value, name: &str) -> bool {
    schema["type"] == name || schema["type"].as_array().is_some_and(|types| types.iter().any(|kind| kind == name))
}

/// Returns each integer in a schema: its path, and a minimal value that contains only this integer, written with a fraction.
fn integers(schemas: &Value, schema: &Value, depth: usize) -> Vec<(String, Value)> {
    let schema = resolved(schemas, schema);
    if has_type(schema, "integer") {
        let number = schema["minimum"].as_f64().unwrap_or_default().max(1.0);
        return vec![(String::new(), json!(number))];
    }
    if depth == 0 {
        return Vec::new();
    }
    if has_type(schema, "array") {
        let items = integers(schemas, &schema["items"], depth - 1);
        return items.into_iter().map(|(path, value)| (format!("[0]{path}"), json!([value]))).collect();
    }
    let members = schema["properties"].as_object().into_iter().flatten();
    let nested = members.flat_map(|(name, member)| {
        let values = integers(schemas, member, depth - 1);
        values.into_iter().map(move |(path, value)| (format!(".{name}{path}"), json!({ name: value })))
    });
    nested.collect()
}

#[tokio::test]
async fn whole_numbers_of_all_requests_may_have_a_fraction() {
    let document: Value = serde_json::from_str(&Server::openapi()).unwrap();
    let schemas = &document["components"]["schemas"];
    let server = TestServer::start().await;
    let client = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await;
    let (mut checked, mut refused) = (0, Vec::new());
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            if body.is_null() {
                continue;
            }
            // The names in the path do not exist, but the body is read before they are looked up.
            let parts = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
            let path = parts.collect::<Vec<_>>().join("/");
            for (member, body) in integers(schemas, body, 6) {
                let answer = client.send(&method.to_uppercase(), &path, body.clone()).await;
                let is_about_member = answer.text.contains(member.rsplit('.').next().unwrap());
                if is_about_member && (answer.text.contains("invalid type") || answer.text.contains("invalid value")) {
                    refused.push(format!("{method} {path}: {body}: {}", answer.text));
                }
                checked += 1;
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(checked >= 40, "only {checked} integers were found");
}
