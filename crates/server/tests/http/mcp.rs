//! The Model Context Protocol over HTTP: keys, scopes, limits and origins. The tests of the command line call it with official clients.

use serde_json::{Value, json};
use threadkeep_server::{KeyRole, ServerOptions};

use crate::Client;
use crate::server::{Answer, TestConfig, TestServer, send};

const READ_TOOLS: [&str; 3] = ["search_memory", "recall", "read_thread"];

fn call(tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })
}

/// Calls a tool and returns its result.
async fn result(client: &Client, tool: &str, arguments: &Value) -> Value {
    let answer = client.post("/mcp?tools=all", call(tool, arguments)).await.expect(200);
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)));
    answer["result"].clone()
}

async fn tool_names(client: &Client, path: &str) -> Vec<String> {
    let answer = client.post(path, json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await.expect(200);
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn read_keys_get_only_read_only_tools() {
    let server = TestServer::start().await;
    let writer = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let reader = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Read]).await;
    let stored = result(&writer, "add_memory", &json!({ "text": "The stove burns paraffin." })).await;
    let id = stored["structuredContent"]["id"].clone();
    assert_eq!(tool_names(&writer, "/mcp").await.len(), 6);
    assert_eq!(tool_names(&writer, "/mcp?read_only=true").await, READ_TOOLS);
    for path in ["/mcp", "/mcp?read_only=false"] {
        assert_eq!(tool_names(&reader, path).await, READ_TOOLS, "{path}");
    }
    assert_eq!(tool_names(&writer, "/mcp?tools=recall,list_threads").await, ["recall", "list_threads"]);
    for (tool, arguments) in [
        ("add_memory", json!({ "text": "x1" })),
        ("update_memory", json!({ "id": id, "text": "x1" })),
        ("delete_memory", json!({ "id": id })),
    ] {
        let refused = reader.post("/mcp?tools=all", call(tool, &arguments)).await.expect(200);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("unknown tool `{tool}`")), "{refused}");
    }
    let found = result(&reader, "search_memory", &json!({ "query": "stove" })).await;
    assert_eq!(found["structuredContent"]["hits"][0]["text"], json!("The stove burns paraffin."));
    let anonymous = server.anonymous_client().post("/mcp", call("recall", &json!({ "question": "stove" }))).await;
    assert_eq!(anonymous.status, 401);
}

#[tokio::test]
async fn tools_act_for_the_user_whom_the_tenants_key_names() {
    let server = TestServer::start().await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let (ana, ben) = (tenant.as_user("ana"), tenant.as_user("ben"));
    let stored = result(&ana, "add_memory", &json!({ "text": "The stove burns paraffin." })).await;
    let id = stored["structuredContent"]["id"].clone();
    let query = json!({ "query": "stove" });
    assert_eq!(result(&ben, "search_memory", &query).await["structuredContent"]["hits"], json!([]));
    assert_eq!(result(&ben, "delete_memory", &json!({ "id": id })).await["isError"], json!(true));
    let own = result(&ana, "search_memory", &query).await;
    assert_eq!(own["structuredContent"]["hits"][0]["id"], id);
    assert_eq!(result(&ana, "delete_memory", &json!({ "id": id })).await["structuredContent"]["deleted"], id);
    assert_eq!(result(&ana, "search_memory", &query).await["structuredContent"]["hits"], json!([]));
}

#[tokio::test]
async fn knowledge_graphs_belong_to_the_caller() {
    let server = TestServer::start().await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let reader = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Read]).await;
    let (ana, ben) = (tenant.as_user("ana"), tenant.as_user("ben"));
    assert_eq!(tool_names(&ana, "/mcp?tools=knowledge_graph").await.len(), 9);
    let read_tools = ["read_graph", "search_nodes", "open_nodes"];
    assert_eq!(tool_names(&reader, "/mcp?tools=knowledge_graph").await, read_tools);
    let stove = json!({ "name": "stove", "entityType": "tool", "observations": ["burns paraffin"] });
    let created = result(&ana, "create_entities", &json!({ "entities": [stove] })).await;
    assert_eq!(created["structuredContent"], json!({ "entities": [stove] }));
    let delete = json!({ "entityNames": ["stove"] });
    assert_eq!(result(&ben, "read_graph", &json!({})).await["structuredContent"]["entities"], json!([]));
    assert_eq!(result(&ben, "delete_entities", &delete).await["structuredContent"]["not_found"], json!(["stove"]));
    assert_eq!(result(&reader, "read_graph", &json!({})).await["structuredContent"]["entities"], json!([stove]));
    let refused = reader.post("/mcp?tools=all", call("delete_entities", &delete)).await.expect(200);
    assert!(refused["error"]["message"].as_str().unwrap().starts_with("unknown tool `delete_entities`"), "{refused}");
    result(&ana, "delete_entities", &delete).await;
    assert_eq!(result(&ana, "read_graph", &json!({})).await["structuredContent"]["entities"], json!([]));
}

#[tokio::test]
async fn pages_of_other_origins_are_refused() {
    let config = TestConfig::default();
    let options = ServerOptions { browser_origins: vec!["https://app.example".to_owned()], ..config.options };
    let server = TestServer::start_with(TestConfig { options, ..config }).await;
    let client = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let own = format!("http://{}", server.address);
    for (origin, status) in
        [(own.as_str(), 200), ("https://app.example", 200), ("https://evil.example", 403), ("null", 403), ("", 403)]
    {
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        let answer = send(client.request("POST", "/mcp").header("origin", origin).json(&list)).await;
        assert_eq!(answer.status, status, "{origin}");
        if status == 403 {
            assert_eq!(answer.code(403), "other_origin");
        }
    }
}

async fn send_body(client: &Client, body: impl Into<String>) -> Answer {
    send(client.request("POST", "/mcp").header("content-type", "application/json").body(body.into())).await
}

#[tokio::test]
async fn invalid_bodies_are_rejected() {
    let config = TestConfig::default();
    let options = ServerOptions { body_bytes: 100_000, ..config.options };
    let server = TestServer::start_with(TestConfig { options, ..config }).await;
    let client = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    assert_eq!(send_body(&client, " ".repeat(100_001)).await.code(413), "body_too_large");
    let nested = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}}"#, "[".repeat(90_000));
    assert_eq!(send_body(&client, nested).await.code(400), "invalid_request");
    for body in ["", "{", "[]", "{}", "1", r#"{"jsonrpc":"1.0"}"#, r#"{"jsonrpc":"2.0","id":{},"method":7}"#] {
        let answer = send_body(&client, body).await;
        assert!((400..500).contains(&answer.status), "{body}: {answer:?}");
        assert!(serde_json::from_str::<Value>(&answer.text).unwrap()["error"]["message"].is_string(), "{answer:?}");
    }
    let text = send(client.request("POST", "/mcp").header("content-type", "text/plain").body("{}")).await;
    assert_eq!(text.code(415), "unsupported_media_type");
    // There are no sessions: neither a stream to listen to nor anything to end.
    for method in ["GET", "DELETE"] {
        assert_eq!(send(client.request(method, "/mcp")).await.status, 405, "{method}");
    }
    for path in ["/mcp?tools=approve", "/mcp?read_only=maybe", "/mcp?user=ben"] {
        assert_eq!(client.post(path, json!({})).await.status, 400, "{path}");
    }
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(send_body(&client, notification).await.status, 202);
}
