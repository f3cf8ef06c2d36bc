use serde_json::{Value, json};

use crate::server::send;
use crate::{Client, TestServer};

async fn create_conversation(client: &Client, body: Value) -> String {
    client.post("/v1/conversations", body).await.expect(200)["id"].as_str().unwrap().to_owned()
}

/// Adds items, given as comma-separated JSON, and returns the text of the response.
async fn add_items(client: &Client, id: &str, items: &str) -> String {
    let request = client.request("POST", &format!("/v1/conversations/{id}/items"));
    let request = request.header("content-type", "application/json").body(format!("{{\"items\":[{items}]}}"));
    let answer = send(request).await;
    answer.expect(200);
    answer.text
}

/// Reads all pages of a conversation, and returns the ids of its items.
async fn list_ids(client: &Client, id: &str, order: &str, limit: usize) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/conversations/{id}/items?order={order}&limit={limit}{after}");
        let page = client.get(&path).await.expect(200);
        let data = page["data"].as_array().unwrap();
        assert!(data.len() <= limit);
        ids.extend(data.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        assert_eq!(page["last_id"], data.last().map_or(Value::Null, |item| item["id"].clone()));
        assert_eq!(page["first_id"], data.first().map_or(Value::Null, |item| item["id"].clone()));
        if page["has_more"] != true {
            return ids;
        }
        after = format!("&after={}", page["last_id"].as_str().unwrap());
    }
}

#[tokio::test]
async fn conversations_are_created_changed_and_deleted() {
    let server = TestServer::start().await;
    let client = server.client();
    let id = create_conversation(&client, json!({ "items": [], "metadata": { "topic": "trains" } })).await;
    let empty = send(client.request("POST", "/v1/conversations")).await.expect(200);
    assert_ne!(empty["id"], json!(id), "requests without a key are never treated as repeated");
    let path = format!("/v1/conversations/{id}");
    let found = client.get(&path).await.expect(200);
    assert_eq!((&found["object"], &found["metadata"]), (&json!("conversation"), &json!({ "topic": "trains" })));
    assert!(found["created_at"].is_i64());
    let changed = client.post(&path, json!({ "metadata": { "topic": "boats" } })).await.expect(200);
    assert_eq!(changed["metadata"], json!({ "topic": "boats" }));
    let long = json!({ "metadata": { "k": "x".repeat(513) } });
    assert_eq!(client.post(&path, long).await.error(400)["param"], "metadata");
    let deleted = client.delete(&path).await.expect(200);
    assert_eq!(deleted, json!({ "id": id, "object": "conversation.deleted", "deleted": true }));
    for unknown in [client.delete(&path).await, client.get(&path).await, client.get(&format!("{path}/items")).await] {
        assert_eq!(unknown.error(404)["message"], format!("Conversation with id '{id}' not found."));
    }
}

#[tokio::test]
async fn items_are_returned_in_full_and_are_valid_inputs() {
    let server = TestServer::start().await;
    let client = server.client();
    let id = create_conversation(&client, json!({})).await;
    let items = [
        r#"{"role":"user","content":"weather?"}"#,
        r#"{"role":"assistant","content":"Let me look."}"#,
        r#"{"role":"developer","content":"Be brief."}"#,
        r#"{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"at\": 1.10}"}"#,
        r#"{"type":"function_call_output","call_id":"c1","output":"rain"}"#,
    ];
    let added: Value = serde_json::from_str(&add_items(&client, &id, &items.join(",")).await).unwrap();
    let data = added["data"].as_array().unwrap();
    let without_ids: Vec<Value> = data
        .iter()
        .map(|item| {
            let mut item = item.clone();
            let prefix = item["id"].as_str().unwrap().split('_').next().unwrap().to_owned();
            item["id"] = prefix.into();
            item
        })
        .collect();
    assert_eq!(
        Value::Array(without_ids),
        json!([
            { "id": "msg", "type": "message", "status": "completed", "role": "user", "content": [{ "type": "input_text", "text": "weather?" }] },
            { "id": "msg", "type": "message", "status": "completed", "role": "assistant", "content": [{ "type": "output_text", "text": "Let me look.", "annotations": [], "logprobs": [] }] },
            { "id": "msg", "type": "message", "status": "completed", "role": "developer", "content": [{ "type": "input_text", "text": "Be brief." }] },
            { "id": "fc", "type": "function_call", "status": "completed", "call_id": "c1", "name": "look", "arguments": "{\"at\": 1.10}" },
            { "id": "fco", "type": "function_call_output", "status": "completed", "call_id": "c1", "output": "rain" },
        ])
    );
    // Returned items can be sent again, and are returned unchanged.
    let copy = create_conversation(&client, json!({ "items": data })).await;
    let page = client.get(&format!("/v1/conversations/{copy}/items?order=asc")).await.expect(200);
    assert_eq!(page["data"], added["data"]);
    // An existing item is not added again.
    add_items(&client, &copy, &format!("{},{}", data[4], r#"{"role":"user","content":"thanks"}"#)).await;
    assert_eq!(list_ids(&client, &copy, "asc", 100).await.len(), 6);
    // Other APIs return the same conversation.
    let thread = id.trim_start_matches("conv_");
    assert_eq!(client.texts(thread).await, ["weather?", "Let me look.", "Be brief.", "", ""]);
}

#[tokio::test]
async fn unknown_items_are_returned_byte_for_byte() {
    let server = TestServer::start().await;
    let client = server.client();
    let id = create_conversation(&client, json!({})).await;
    let with_id =
        r#"{"type":"mcp_list_tools","id":"mcpl_abc","server_label":"d\u00e9","tools":[{"z":1.10,"a":1E3}],"b":null}"#;
    let without_id = r#"{ "type":"compaction", "encrypted_content":"x/+=", "n":1.50 }"#;
    let annotated = r#"{"type":"output_text","text":"See.","annotations":[{"type":"url_citation","start_index":0,"url":"u"}],"logprobs":[]}"#;
    let message = format!(r#"{{"type":"message","role":"assistant","phase":"commentary","content":[{annotated}]}}"#);
    let reasoning =
        r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"abc"}"#;
    let text = add_items(&client, &id, &[with_id, without_id, &message, reasoning].join(",")).await;
    assert!(text.contains(with_id), "{text}");
    assert!(text.contains(r#""type":"compaction", "encrypted_content":"x/+=", "n":1.50 }"#), "{text}");
    assert!(
        text.contains(&format!(r#""phase":"commentary","content":[{annotated}],"status":"completed"}}"#)),
        "{text}"
    );
    assert!(text.contains(r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"abc"}"#), "{text}");
    let found = client.get(&format!("/v1/conversations/{id}/items/mcpl_abc")).await;
    assert_eq!(found.text, with_id);
    let found = client.post("/v1/search", json!({ "query": "see" })).await.expect(200);
    assert_eq!(found["hits"].as_array().unwrap().len(), 1, "text in a message with unknown parts is found");
}

#[tokio::test]
async fn pages_are_complete_in_both_orders() {
    let server = TestServer::start().await;
    let client = server.client();
    let id = create_conversation(&client, json!({})).await;
    let mut added = Vec::new();
    for count in 0..2 {
        let items: Vec<String> =
            (0..130).map(|index| format!(r#"{{"role":"user","content":"{count}/{index}"}}"#)).collect();
        let answer: Value = serde_json::from_str(&add_items(&client, &id, &items.join(",")).await).unwrap();
        assert_eq!(answer["has_more"], false);
        added.extend(answer["data"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
    }
    let reversed: Vec<String> = added.iter().rev().cloned().collect();
    for limit in [1, 7, 20, 52, 65, 100] {
        assert_eq!(list_ids(&client, &id, "asc", limit).await, added, "{limit}");
        assert_eq!(list_ids(&client, &id, "desc", limit).await, reversed, "{limit}");
    }
    let newest = client.get(&format!("/v1/conversations/{id}/items")).await.expect(200);
    assert_eq!((newest["data"].as_array().unwrap().len(), &newest["first_id"]), (20, &json!(added[259])));
    let large = client.get(&format!("/v1/conversations/{id}/items?limit=1000")).await.error(400);
    assert_eq!(large["code"], "integer_above_max_value");
    assert_eq!(
        large["message"],
        "Invalid 'limit': integer above maximum value. Expected a value <= 100, but got 1000 instead."
    );
    let unknown = client.get(&format!("/v1/conversations/{id}/items?after=msg_unknown")).await;
    assert_eq!(unknown.error(404)["message"], "Item with id 'msg_unknown' not found in conversation.");
    // An empty cursor is ignored.
    assert_eq!(client.get(&format!("/v1/conversations/{id}/items?after=&include[]=x")).await.expect(200), newest);
}

#[tokio::test]
async fn items_may_be_deleted_between_pages() {
    let server = TestServer::start().await;
    let client = server.client();
    for order in ["asc", "desc"] {
        let id = create_conversation(&client, json!({})).await;
        for number in 0..7 {
            add_items(&client, &id, &format!(r#"{{"role":"user","content":"{number}"}}"#)).await;
        }
        let mut after = String::new();
        for remaining in [4, 1, 0] {
            let path = format!("/v1/conversations/{id}/items");
            let page = client.get(&format!("{path}?order={order}&limit=3&after={after}")).await.expect(200);
            for item in page["data"].as_array().unwrap() {
                client.delete(&format!("{path}/{}", item["id"].as_str().unwrap())).await.expect(200);
            }
            assert_eq!(
                (list_ids(&client, &id, order, 10).await.len(), &page["has_more"]),
                (remaining, &json!(remaining > 0))
            );
            after = page["last_id"].as_str().unwrap().to_owned();
        }
    }
    let (conversation, other) =
        (create_conversation(&client, json!({})).await, create_conversation(&client, json!({})).await);
    add_items(&client, &conversation, r#"{"role":"user","content":"mine"}"#).await;
    let item = list_ids(&client, &conversation, "asc", 1).await.remove(0);
    client.delete(&format!("/v1/conversations/{conversation}/items/{item}")).await.expect(200);
    client.get(&format!("/v1/conversations/{other}/items?after={item}")).await.error(404);
}

#[tokio::test]
async fn messages_of_other_apis_are_items() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let calls = json!({ "role": "assistant", "parts": [
        { "text": "Looking." },
        { "tool_call": { "id": "a", "name": "look", "arguments": { "x": 1 } } },
        { "tool_call": { "id": "b", "name": "look", "arguments": {} } },
    ] });
    let body = json!({ "messages": [{ "role": "user", "text": "go" }, calls, { "role": "user", "parts": [] }] });
    client.post(&format!("/v1/threads/{thread}/messages"), body).await.expect(201);
    let id = format!("conv_{}", thread.replace('-', ""));
    let all = list_ids(&client, &id, "asc", 100).await;
    assert_eq!(all.len(), 5);
    for limit in 1..5 {
        assert_eq!(list_ids(&client, &id, "asc", limit).await, all, "{limit}");
        assert_eq!(
            list_ids(&client, &id, "desc", limit).await,
            all.iter().rev().cloned().collect::<Vec<_>>(),
            "{limit}"
        );
    }
    let call = client.get(&format!("/v1/conversations/{id}/items/{}", all[2])).await.expect(200);
    assert_eq!((&call["type"], &call["call_id"]), (&json!("function_call"), &json!("a")));
    let part_of_message = client.delete(&format!("/v1/conversations/{id}/items/{}", all[1])).await;
    assert_eq!(part_of_message.code(400), "item_is_part_of_message");
    assert_eq!(client.delete(&format!("/v1/conversations/{id}/items/{}", all[0])).await.expect(200)["id"], json!(id));
    assert_eq!(list_ids(&client, &id, "asc", 2).await, all[1..]);
}

#[tokio::test]
async fn invalid_items_are_rejected_with_their_path() {
    let server = TestServer::start().await;
    let client = server.client();
    let id = create_conversation(&client, json!({})).await;
    let many: Vec<Value> = (0..501).map(|_| json!({ "role": "user", "content": "x" })).collect();
    for (items, param) in [
        (json!([{ "content": "x" }]), "items[0].type"),
        (json!([{ "role": "user" }]), "items[0].content"),
        (json!([{ "role": "robot", "content": "x" }]), "items[0].role"),
        (
            json!([{ "role": "user", "content": "x" }, { "type": "function_call", "name": "n", "arguments": "{}" }]),
            "items[1].call_id",
        ),
        (json!([{ "type": "message", "role": "user", "content": [7] }]), "items[0].content"),
        (json!([{ "role": "user", "content": "x", "id": "a/b" }]), "items[0]"),
        (json!([7]), "items[0]"),
        (json!(many), "items"),
        (json!("x"), "items"),
    ] {
        let refused = client.post(&format!("/v1/conversations/{id}/items"), json!({ "items": items })).await;
        assert_eq!(refused.error(400)["param"], param, "{items}");
    }
    assert_eq!(list_ids(&client, &id, "asc", 100).await, [""; 0]);
    let missing = client.post(&format!("/v1/conversations/{id}/items"), json!({})).await;
    missing.error(400);
}

#[tokio::test]
async fn retries_of_the_last_addition_are_recognised() {
    let server = TestServer::start().await;
    let client = server.client();
    let id = create_conversation(&client, json!({})).await;
    let add_with_retry_count = |retry: &str| {
        let request = client.request("POST", &format!("/v1/conversations/{id}/items"));
        let body = json!({ "items": [{ "role": "user", "content": "yes" }] });
        send(request.header("x-stainless-retry-count", retry).json(&body))
    };
    let first = add_with_retry_count("0").await.expect(200);
    assert_eq!(add_with_retry_count("1").await.expect(200), first);
    assert_ne!(
        add_with_retry_count("0").await.expect(200)["data"][0]["id"],
        first["data"][0]["id"],
        "identical requests that are not retries are stored"
    );
    assert_eq!(list_ids(&client, &id, "asc", 100).await.len(), 2);
}
