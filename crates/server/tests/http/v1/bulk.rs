//! Requests for many threads and records, pages of searches, lists, and merge patches.

use serde_json::{Value, json};
use threadkeep_server::KeyRole;

use super::model::start_with_model;
use crate::TestServer;
use crate::server::{Answer, Client, send};

async fn merge_patch(client: &Client, thread: &str, body: Value) -> Answer {
    let request = client.request("PATCH", &format!("/v1/threads/{thread}"));
    send(request.header("content-type", "application/merge-patch+json").body(body.to_string())).await
}

#[tokio::test]
async fn merge_patches_change_single_fields() {
    let server = TestServer::start().await;
    let client = server.client();
    let metadata = json!({ "topic": "trains", "labels": { "a": 1, "b": 2 }, "old": true });
    let thread = client.post("/v1/threads", json!({ "metadata": metadata })).await.expect(201);
    let id = thread["id"].as_str().unwrap();
    let changes =
        json!({ "metadata": { "labels": { "b": null, "c": 3 }, "old": null, "new": [1] }, "state": { "x": 1 } });
    let patched = merge_patch(&client, id, changes).await.expect(200);
    assert_eq!(patched["metadata"], json!({ "topic": "trains", "labels": { "a": 1, "c": 3 }, "new": [1] }));
    assert_eq!((&patched["state"], &patched["title"]), (&json!({ "x": 1 }), &Value::Null));
    // Concurrent merges all take effect.
    let merges = (0..8).map(|number| merge_patch(&client, id, json!({ "metadata": { format!("m{number}"): number } })));
    for merged in futures::future::join_all(merges).await {
        merged.expect(200);
    }
    let merged = client.get(&format!("/v1/threads/{id}")).await.expect(200);
    assert!((0..8).all(|number| merged["metadata"][format!("m{number}")] == number), "{merged}");
    // Other patches replace the whole metadata, and `If-Match` is checked.
    let replaced = client.send("PATCH", &format!("/v1/threads/{id}"), json!({ "metadata": { "a": null } })).await;
    assert_eq!(replaced.expect(200)["metadata"], json!({ "a": null }));
    let request = client.request("PATCH", &format!("/v1/threads/{id}")).header("if-match", "\"1\"");
    let request = request.header("content-type", "application/merge-patch+json").body("{\"metadata\": {}}");
    assert_eq!(send(request).await.code(412), "changed_meanwhile");
}

#[tokio::test]
async fn many_threads_and_records_are_changed_with_one_request() {
    let server = TestServer::start().await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let (ana, eve) = (tenant.as_user("ana"), tenant.as_user("eve"));
    let shared = tenant.new_thread().await;
    ana.post("/v1/threads", json!({ "key": "mine", "metadata": { "a": 1 } })).await.expect(201);
    let (own, eves_thread) = (ana.new_thread().await, eve.new_thread().await);
    let names = json!(["mine", own, eves_thread, shared, "unknown"]);
    let statuses = |answer: &Value| {
        answer["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|result| result["status"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    let body = json!({ "threads": names, "title": "Trains", "metadata": { "b": 2 } });
    let patched = ana.post("/v1/bulk/threads/patch", body).await.expect(200);
    assert_eq!((statuses(&patched), &patched["succeeded"]), (vec![200, 200, 404, 403, 404], &json!(2)));
    assert_eq!(ana.get("/v1/threads/mine").await.expect(200)["metadata"], json!({ "a": 1, "b": 2 }));
    let deleted = ana.post("/v1/bulk/threads/delete", json!({ "threads": names })).await.expect(200);
    assert_eq!((statuses(&deleted), &deleted["failed"]), (vec![204, 204, 404, 403, 404], &json!(3)));
    assert_eq!(deleted["results"][2]["error"]["code"], "not_found");
    assert_eq!(ana.get("/v1/threads/mine").await.code(404), "not_found");
    eve.get(&format!("/v1/threads/{eves_thread}")).await.expect(200);

    let record =
        |key: &str, version: Value| json!({ "namespace": "notes", "key": key, "value": key, "version": version });
    let records = json!([record("a", json!(0)), record("b", Value::Null), record("c", json!(7))]);
    let written = ana.post("/v1/bulk/records", json!({ "records": records })).await.expect(200);
    assert_eq!(statuses(&written), [200, 200, 412]);
    let again = json!({ "records": [record("a", json!(0)), record("b", json!(7.0))] });
    let again = ana.post("/v1/bulk/records", again).await.expect(200);
    for (index, message) in [(0, "the record already exists"), (1, "the record has a different version")] {
        let error = &again["results"][index]["error"];
        let expected = (&json!("changed_meanwhile"), &json!("version"), &json!(message));
        assert_eq!((&error["code"], &error["param"], &error["message"]), expected);
    }
    assert_eq!(ana.get("/v1/records/notes").await.expect(200)["data"].as_array().unwrap().len(), 2);
    let to_tenant = ana.post("/v1/bulk/records?owner=tenant", json!({ "records": records })).await.expect(200);
    assert_eq!(to_tenant["succeeded"], 0);
    for (path, body) in [
        ("/v1/bulk/threads/delete", json!({ "threads": [] })),
        ("/v1/bulk/threads/delete", json!({ "threads": vec!["a"; 501] })),
        ("/v1/bulk/records", json!({ "records": [] })),
    ] {
        assert_eq!(ana.post(path, body).await.code(400), "invalid_request", "{path}");
    }
}

#[tokio::test]
async fn searches_have_pages() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    for number in 0..25 {
        client.say(&thread, &format!("train {number}")).await;
    }
    let (mut found, mut after) = (Vec::new(), Value::Null);
    loop {
        let body = json!({ "query": "train", "limit": 10, "after": after });
        let page = client.post("/v1/search", body).await.expect(200);
        found.extend(page["hits"].as_array().unwrap().iter().map(|hit| hit["message"]["seq"].as_u64().unwrap()));
        after = page["next"].clone();
        if after.is_null() {
            break;
        }
        // A cursor belongs to one search.
        let other = client.post("/v1/search", json!({ "query": "lamp", "after": after })).await;
        assert_eq!(other.code(400), "invalid_cursor");
    }
    found.sort_unstable();
    assert_eq!(found, (1..=25).collect::<Vec<u64>>());
    let one = client.post("/v1/search", json!({ "query": "train", "limit": 1000 })).await.expect(200);
    assert_eq!((one["hits"].as_array().unwrap().len(), &one["next"]), (25, &Value::Null));
}

#[tokio::test]
async fn conversations_and_responses_are_listed() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let marked = client.post("/v1/conversations", json!({ "metadata": { "env": "prod" } })).await.expect(200);
    let filtered = client.get("/v1/conversations?metadata[env]=prod").await.expect(200);
    assert_eq!((&filtered["data"][0]["id"], filtered["data"].as_array().unwrap().len()), (&marked["id"], 1));
    assert_eq!(client.get("/v1/conversations?metadata[env]=test").await.expect(200)["data"], json!([]));
    client.delete(&format!("/v1/conversations/{}", marked["id"].as_str().unwrap())).await.expect(200);
    let (mut conversations, mut responses) = (Vec::new(), Vec::new());
    for number in 0..5 {
        conversations.push(client.post("/v1/conversations", json!({})).await.expect(200)["id"].clone());
        responses
            .push(client.post("/v1/responses", json!({ "input": number.to_string() })).await.expect(200)["id"].clone());
    }
    for (path, ids) in [("/v1/conversations", &conversations), ("/v1/responses", &responses)] {
        let list = async |query: &str| {
            let page = client.get(&format!("{path}?{query}")).await.expect(200);
            let ids = page["data"].as_array().unwrap().iter().map(|entry| entry["id"].clone()).collect::<Vec<_>>();
            assert_eq!(ids.last().unwrap_or(&Value::Null), &page["last_id"]);
            (ids, page["has_more"] == true)
        };
        let newest: Vec<Value> = ids.iter().rev().cloned().collect();
        assert_eq!(list("").await, (newest.clone(), false), "{path}");
        assert_eq!(list("limit=2").await, (newest[..2].to_vec(), true));
        assert_eq!(list(&format!("order=asc&after={}", ids[2].as_str().unwrap())).await, (ids[3..].to_vec(), false));
    }
}
