//! The OpenAPI document, which is generated from the descriptions of the routes. Details that apply to many routes are added here.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use threadkeep::Value;
use threadkeep::core::limits;

use crate::app::App;
use crate::door::Door;
use crate::openai::conversation_items::list;
use crate::routes;

/// Returns the OpenAPI document
#[utoipa::path(get, path = "/v1/openapi.json", operation_id = "get_openapi_document", tag = "operations", responses((status = 200, description = "The OpenAPI document.")))]
pub(crate) async fn document(State(app): State<App>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], app.openapi_json().to_owned()).into_response()
}

/// Returns the OpenAPI document of the doors as JSON.
pub(crate) fn openapi_json(doors: &[Door]) -> String {
    let mut document =
        serde_json::to_value(routes::openapi_document(doors)).expect("an OpenAPI document has a JSON form");
    add_common_details(&mut document);
    document.to_string()
}

/// Adds the details that similar routes have in common, unless a route specifies them.
fn add_common_details(document: &mut Value) {
    let schemas = document["components"]["schemas"].clone();
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (path, operations) in paths {
        for (method, operation) in operations.as_object_mut().into_iter().flatten() {
            let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
            parameters.into_iter().flatten().for_each(|parameter| add_constraints(path, method, parameter));
            if let Some(body) = operation.get_mut("requestBody") {
                let name = body["content"]["application/json"]["schema"]["$ref"].as_str();
                let schema = name.and_then(|name| schemas.get(name.rsplit('/').next()?));
                // An empty body is read as an object without fields.
                body["required"] = schema.is_none_or(|schema| schema.get("required").is_some()).into();
            }
            let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { continue };
            // Every route can fail because of its host, credentials, rate limits or body size.
            responses.entry("4XX").or_insert_with(|| {
                let schema = json!({ "$ref": "#/components/schemas/ErrorEnvelope" });
                json!({ "content": { "application/json": { "schema": schema } } })
            });
            for (status, response) in responses.iter_mut() {
                if let Some(stream) =
                    response.get_mut("content").and_then(|content| content.get_mut("text/event-stream"))
                {
                    // This version of OpenAPI cannot describe the events of a stream.
                    *stream = json!({});
                }
                add_description(status, response, &schemas);
            }
        }
    }
}

/// Adds the description that OpenAPI requires of every response: the description of the body, unless the route has its own.
fn add_description(status: &str, response: &mut Value, schemas: &Value) {
    if response["description"].as_str().is_some_and(|description| !description.is_empty()) {
        return;
    }
    let is_error = status.starts_with(['4', '5']);
    let body = response["content"]["application/json"]["schema"]["$ref"].as_str().filter(|_| !is_error);
    let body = body.and_then(|body| schemas[body.rsplit('/').next()?]["description"].as_str());
    let description = match body {
        Some(description) => description,
        None if is_error => "The request was rejected. `error.code` identifies the reason.",
        None => "The request succeeded.",
    };
    response["description"] = description.into();
}

/// Adds the constraints on the values of a parameter.
fn add_constraints(path: &str, method: &str, parameter: &mut Value) {
    let name = parameter["name"].as_str().unwrap_or_default().to_owned();
    let is_header = parameter["in"] == "header";
    let schema = &mut parameter["schema"];
    if is_header && schema["type"] == json!(["string", "null"]) {
        schema["type"] = "string".into();
    }
    match name.as_str() {
        "limit" => {
            let is_openai = ["/v1/conversations", "/v1/responses", "/v1/chat", "/v1/files"]
                .iter()
                .any(|prefix| path.starts_with(prefix));
            schema["minimum"] = 1.into();
            schema["maximum"] = if is_openai { list::MAX_LIMIT } else { limits::PAGE }.into();
        }
        "owner" => schema["enum"] = json!(["user", "tenant"]),
        "order" if path == "/v1/threads" => schema["enum"] = json!(["recent", "created"]),
        "sort" => schema["enum"] = json!(["position", "time"]),
        "order" => schema["enum"] = json!(["asc", "desc"]),
        "Idempotency-Key" => schema["pattern"] = "^[!-~]{1,255}$".into(),
        // Writing a record does not support `*`.
        "If-Match" if method == "put" => schema["pattern"] = r#"^"[0-9]{1,19}(-[0-9a-f]{8})?"$"#.into(),
        "If-Match" => schema["pattern"] = r#"^(\*|"[0-9]{1,19}(-[0-9a-f]{8})?")$"#.into(),
        "If-None-Match" if method == "put" => schema["enum"] = json!(["*"]),
        _ => {}
    }
}
