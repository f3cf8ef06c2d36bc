use serde_json::{Value, json};
use threadkeep_server::KeyRole;

use crate::TestServer;
use crate::server::{Answer, send};

#[tokio::test]
async fn records_support_conditional_writes() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    for base in ["/v1/records/notes".to_owned(), format!("/v1/threads/{thread}/records/notes")] {
        let path = format!("{base}/a%2Fb");
        assert_eq!(client.get(&path).await.code(404), "not_found");
        let raw = r#"{"value":{"z":1.10,"a":[]}}"#;
        // An empty header name sends the request without a condition.
        let put = |name: &str, value: &str| {
            let request = client.request("PUT", &path).header("content-type", "application/json").body(raw);
            send(if name.is_empty() { request } else { request.header(name, value) })
        };
        let first = put("if-none-match", "*").await;
        first.expect(200);
        let tag = first.header("etag").to_owned();
        let check = |answer: &Answer, param: &str, message: &str| {
            let error = answer.error(412);
            assert_eq!((&error["code"], &error["param"]), (&json!("changed_meanwhile"), &json!(param)), "{base}");
            let text = error["message"].as_str().unwrap();
            assert!(text.contains(message) && !text.contains("app/"), "{base}: {text}");
        };
        check(&put("if-none-match", "*").await, "If-None-Match", "already exists");
        let second = put("if-match", &tag).await;
        second.expect(200);
        check(&put("if-match", &tag).await, "If-Match", "different version");
        let deleted = send(client.request("DELETE", &path).header("if-match", &tag)).await;
        check(&deleted, "If-Match", "different version");
        assert_eq!(put("if-match", "*").await.error(400)["param"], "If-Match");
        let with_both_headers = client.request("PUT", &path).header("content-type", "application/json").body(raw);
        let with_both_headers = send(with_both_headers.header("if-match", &tag).header("if-none-match", "*")).await;
        assert_eq!(with_both_headers.error(400)["param"], "If-Match");
        put("", "").await.expect(200);
        let found = client.get(&path).await;
        assert!(found.text.contains(r#""value":{"z":1.10,"a":[]}"#), "{}", found.text);
        assert_eq!(found.expect(200)["key"], "a/b");
        client.send("PUT", &format!("{base}/b"), json!({ "value": 2 })).await.expect(200);
        let page = client.get(&format!("{base}?limit=1")).await.expect(200);
        assert_eq!(page["data"][0]["key"], "a/b");
        let next = page["next"].as_str().unwrap();
        assert_eq!(client.get(&format!("{base}?limit=1&after={next}")).await.expect(200)["data"][0]["key"], "b");
        assert_eq!(client.delete(&path).await.status, 204);
        assert_eq!(client.delete(&path).await.code(404), "not_found");
    }
}

/// Returns the status, the body without the request id, and the ETag and Allow headers of a response.
fn normalize(answer: &Answer) -> (u16, Value, String, String) {
    let mut body = if answer.text.is_empty() { Value::Null } else { serde_json::from_str(&answer.text).unwrap() };
    if let Some(error) = body.get_mut("error").and_then(Value::as_object_mut) {
        error.remove("request_id");
    }
    (answer.status, body, answer.header("etag").to_owned(), answer.header("allow").to_owned())
}

#[tokio::test]
async fn document_paths_are_aliases_of_record_paths() {
    let server = TestServer::start().await;
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let reader = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Read]).await;
    let operator = server.client_with_new_key("acme", None, &[KeyRole::Operate]).await;
    let thread_base = format!("/v1/threads/{}", ana.new_thread().await);
    for base in ["/v1", thread_base.as_str()] {
        let paths = |rest: &str| ["documents", "records"].map(|name| format!("{base}/{name}/{rest}"));
        let [old, new] = [paths("notes/a")[0].clone(), paths("notes/b")[1].clone()];
        for (path, other) in [(&old, old.replace("documents", "records")), (&new, new.replace("records", "documents"))]
        {
            let value = json!({ "value": path });
            let put = send(ana.request("PUT", path).header("if-none-match", "*").json(&value)).await;
            let version = put.expect(200)["version"].clone();
            let get = ana.get(&other).await;
            assert_eq!(get.expect(200)["version"], version, "{path}");
            assert_eq!(get.header("etag"), put.header("etag"), "{path}");
        }
        for (client, method, rest, status) in [
            (&ana, "GET", "notes/a", 200),
            (&ana, "GET", "notes?limit=1", 200),
            (&ana, "GET", "notes?unknown=1", 400),
            (&ana, "GET", "notes/missing", 404),
            (&ana, "PUT", "notes/a", 400),
            (&ana, "POST", "notes/a", 405),
            (&reader, "DELETE", "notes/a", 403),
            (&server.anonymous_client(), "GET", "notes/a", 401),
        ] {
            let request = |path: String| send(client.request(method, &path));
            let [old, new] = paths(rest);
            let (old, new) = (request(old).await, request(new).await);
            assert_eq!(normalize(&old), normalize(&new), "{method} {base} {rest}");
            assert_eq!(old.status, status, "{method} {base} {rest}");
        }
        for (method, status) in [("DELETE", 204), ("DELETE", 404), ("GET", 404)] {
            let (old, new) = (send(ana.request(method, &old)).await, send(ana.request(method, &new)).await);
            assert_eq!(normalize(&old), normalize(&new), "{method} {base}");
            assert_eq!(old.status, status, "{method} {base}");
        }
        let document = ana.get("/v1/openapi.json").await.expect(200);
        let template = if base == "/v1" { "/v1" } else { "/v1/threads/{id}" };
        for (name, is_deprecated) in [("documents", true), ("records", false)] {
            let path = &document["paths"][format!("{template}/{name}/{{namespace}}/{{key}}")];
            for method in ["get", "put", "delete"] {
                assert_eq!(path[method]["deprecated"] == true, is_deprecated, "{method} {template}/{name}");
            }
        }
    }
    let metrics = operator.get("/metrics").await.text;
    assert!(metrics.contains(r#"route="/v1/records/{namespace}/{key}""#), "{metrics}");
    assert!(!metrics.contains("/documents"), "{metrics}");
}

#[tokio::test]
async fn system_records_are_not_accessible() {
    let server = TestServer::start().await;
    // API keys are stored as system records of the internal tenant. No spelling of their namespace gives access to them.
    let admin = server.client_with_new_key("other", None, &[KeyRole::Admin]).await;
    for name in ["server.keys", "system%2Fserver.keys", "system/server.keys", "..%2Fsystem%2Fserver.keys"] {
        let answer = admin.get(&format!("/v1/records/{name}?owner=tenant")).await;
        assert!(answer.status == 404 || answer.expect(200)["data"] == json!([]), "{name}: {}", answer.text);
    }
}

#[tokio::test]
async fn users_read_the_tenants_records_but_cannot_write_them() {
    let server = TestServer::start().await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let ana = tenant.as_user("ana");
    tenant.send("PUT", "/v1/records/rules/tone", json!({ "value": "formal" })).await.expect(200);
    assert_eq!(ana.get("/v1/records/rules/tone?owner=tenant").await.expect(200)["value"], "formal");
    assert_eq!(ana.get("/v1/records/rules/tone").await.code(404), "not_found");
    let denied = ana.send("PUT", "/v1/records/rules/tone?owner=tenant", json!({ "value": 1 })).await;
    assert_eq!(denied.code(403), "denied");
}

#[tokio::test]
async fn preferences_belong_to_users() {
    let server = TestServer::start().await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let ana = tenant.as_user("ana");
    ana.send("PUT", "/v1/preferences/home", json!({ "value": { "station": "14 St" } })).await.expect(200);
    assert_eq!(ana.get("/v1/preferences/home").await.expect(200)["value"], json!({ "station": "14 St" }));
    assert_eq!(ana.get("/v1/preferences").await.expect(200)["data"].as_array().unwrap().len(), 1);
    assert_eq!(tenant.as_user("bob").get("/v1/preferences/home").await.code(404), "not_found");
    assert_eq!(tenant.get("/v1/preferences").await.code(400), "user_required");
    assert_eq!(ana.delete("/v1/preferences/home").await.status, 204);
    assert_eq!(ana.delete("/v1/preferences/home").await.status, 204);
}
