use serde_json::{Value, json};
use threadkeep_server::KeyRole;

use crate::TestServer;
use crate::server::send;

#[tokio::test]
async fn threads_are_found_by_key() {
    let server = TestServer::start().await;
    let client = server.client();
    let body = json!({ "key": "web:42", "title": "Trains", "metadata": { "z": 1, "a": [null, 1.5] } });
    let first = client.post("/v1/threads", body.clone()).await.expect(201);
    assert_eq!(first["metadata"].to_string(), r#"{"z":1,"a":[null,1.5]}"#);
    let second = client.post("/v1/threads", body).await.expect(200);
    assert_eq!(first, second);
    let found = client.get("/v1/threads?key=web:42").await.expect(200);
    assert_eq!(found["data"], json!([first]));
    assert_eq!(client.get("/v1/threads?key=web:43").await.expect(200)["data"], json!([]));
    let taken = client.post("/v1/threads", json!({ "id": first["id"], "key": "web:43" })).await;
    assert_eq!(taken.code(409), "conflict");
}

#[tokio::test]
async fn threads_support_conditional_changes() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let path = format!("/v1/threads/{thread}");
    let answer = client.get(&path).await;
    let tag = answer.header("etag").to_owned();
    assert_eq!(tag, "\"0\"");
    for known in [tag.clone(), format!("\"7\", W/{tag}")] {
        let unchanged = send(client.request("GET", &path).header("if-none-match", known)).await;
        assert_eq!((unchanged.status, unchanged.text.as_str()), (304, ""));
    }
    let patch = |tag: &str, body: Value| send(client.request("PATCH", &path).header("if-match", tag).json(&body));
    let patched = patch(&tag, json!({ "title": "One", "state": { "step": 1 } })).await;
    let current_etag = patched.header("etag").to_owned();
    assert!(current_etag.starts_with("\"1-"), "{current_etag}");
    assert_eq!(patched.expect(200)["title"], "One");
    let stale = patch(&tag, json!({ "title": "Two" })).await;
    assert_eq!((stale.code(412).as_str(), stale.header("etag")), ("changed_meanwhile", current_etag.as_str()));
    let untitled = client.send("PATCH", &path, json!({ "title": null })).await.expect(200);
    assert_eq!((&untitled["title"], &untitled["state"]), (&Value::Null, &json!({ "step": 1 })));
    assert_eq!(patch("\"x\"", json!({})).await.error(400)["param"], "If-Match");
    let conditional = send(client.request("DELETE", &path).header("if-match", "\"2\"")).await;
    assert_eq!(conditional.error(400)["param"], "If-Match");
    assert_eq!(client.delete(&path).await.status, 204);
    assert_eq!(client.delete(&path).await.code(404), "not_found");
}

// Assembling a context stores derived data but does not change the thread, so the ETag of the context response remains valid.
#[tokio::test]
async fn contexts_do_not_change_the_thread() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    for number in 1..=20 {
        client.say(&thread, &format!("My train number {number} leaves from Platform {number}.")).await;
    }
    let path = format!("/v1/threads/{thread}");
    let before = client.get(&path).await;
    let request = json!({ "model": "gpt-4o", "policy": { "window": 4 } });
    let context = client.post(&format!("{path}/context"), request.clone()).await;
    let tag = context.header("etag").to_owned();
    assert!(context.expect(200)["messages"].to_string().contains("Platform 3."), "a summary was derived");
    assert_eq!((client.get(&path).await.text, tag.as_str()), (before.text.clone(), before.header("etag")));
    assert!(tag.starts_with("\"20-"), "{tag}");
    let patch = client.request("PATCH", &path).header("if-match", &tag).json(&json!({ "title": "Trains" }));
    send(patch).await.expect(200);
    // The same applies to the next context.
    client.say(&thread, "One more.").await;
    let context = client.post(&format!("{path}/context"), request).await;
    let patch = client.request("PATCH", &path).header("if-match", context.header("etag"));
    send(patch.json(&json!({ "title": "Some trains" }))).await.expect(200);
}

#[tokio::test]
async fn thread_lists_continue_from_a_cursor() {
    let server = TestServer::start().await;
    let client = server.client();
    let mut created = Vec::new();
    for _ in 0..7 {
        created.push(client.new_thread().await);
    }
    for order in ["created", "recent"] {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = client.get(&format!("/v1/threads?order={order}&limit=3{after}")).await.expect(200);
            seen.extend(
                page["data"].as_array().unwrap().iter().map(|thread| thread["id"].as_str().unwrap().to_owned()),
            );
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        if order == "recent" {
            seen.reverse();
        }
        assert_eq!(seen, created, "{order}");
    }
    let next = client.get("/v1/threads?order=created&limit=3").await.expect(200)["next"].take();
    let other = client.get(&format!("/v1/threads?order=recent&after={}", next.as_str().unwrap())).await;
    assert_eq!(other.code(400), "invalid_cursor");
    assert_eq!(client.get("/v1/threads?limit=0").await.error(400)["param"], "limit");
    assert_eq!(client.get("/v1/threads?limit=1001").await.code(400), "limit_exceeded");
}

#[tokio::test]
async fn forks_copy_the_first_messages() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    for count in 1..=5 {
        client.say(&thread, &format!("message {count}")).await;
    }
    client.delete(&format!("/v1/threads/{thread}/messages/2")).await;
    let path = format!("/v1/threads/{thread}/fork");
    let fork = client.post(&path, json!({ "through_seq": 4, "title": "Another way" })).await.expect(201);
    let id = fork["id"].as_str().unwrap();
    assert_eq!((&fork["title"], &fork["messages"]), (&json!("Another way"), &json!(3)));
    assert_eq!(client.texts(id).await, ["message 1", "message 3", "message 4"]);
    let beyond = client.post(&path, json!({ "through_seq": 6 })).await.error(400);
    assert_eq!(
        (&beyond["param"], &beyond["message"]),
        (&json!("through_seq"), &json!("`through_seq` must not exceed the position of the last message, 5"))
    );
    client.say(id, "otherwise").await;
    assert_eq!(client.texts(&thread).await.len(), 4, "the original thread is not affected");
    // The same key does not create another fork.
    let fork_with_key = || send(client.request("POST", &path).header("idempotency-key", "k").json(&json!({})));
    let (first_fork, same_fork) = (fork_with_key().await.expect(201), fork_with_key().await.expect(200));
    assert_eq!((&first_fork["id"], &first_fork["messages"]), (&same_fork["id"], &same_fork["messages"]));
    // Later changes to the original thread do not affect the fork either.
    client.say(&thread, "later").await;
    client.delete(&format!("/v1/threads/{thread}/messages/1")).await;
    let later = fork_with_key().await.expect(200);
    assert_eq!((&first_fork["id"], &first_fork["messages"]), (&later["id"], &later["messages"]));
    assert_eq!(client.texts(later["id"].as_str().unwrap()).await.len(), 4);
}

// A repeated request receives the same response, including the ETag.
#[tokio::test]
async fn repeated_thread_creation_returns_the_same_etag() {
    let server = TestServer::start().await;
    let client = server.client();
    let create_with_key =
        || send(client.request("POST", "/v1/threads").header("idempotency-key", "k").json(&json!({})));
    let (first, second) = (create_with_key().await, create_with_key().await);
    assert_eq!(first.header("etag"), second.header("etag"));
    assert_eq!(first.expect(201), second.expect(200));
    let path = format!("/v1/threads/{}", first.expect(201)["id"].as_str().unwrap());
    let patch = client.request("PATCH", &path).header("if-match", first.header("etag"));
    send(patch.json(&json!({ "title": "Mine" }))).await.expect(200);
}

#[tokio::test]
async fn shared_threads_belong_to_the_tenant() {
    let server = TestServer::start().await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let ana = tenant.as_user("ana");
    let shared = ana.post("/v1/threads", json!({ "owner": "tenant", "key": "slack:C1" })).await.expect(201);
    let id = shared["id"].as_str().unwrap().to_owned();
    tenant.as_user("bob").say(&id, "hello").await;
    assert_eq!(ana.texts(&id).await, ["hello"]);
    let denied = ana.send("PATCH", &format!("/v1/threads/{id}"), json!({ "title": "mine" })).await;
    assert_eq!(denied.code(403), "denied");
    let listed = tenant.get("/v1/threads?shared=true").await.expect(200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    let threads_of_ana = tenant.get("/v1/threads?user=ana").await.expect(200);
    assert_eq!(threads_of_ana["data"].as_array().unwrap().len(), 0);
}

#[tokio::test]
async fn threads_are_filtered_by_metadata() {
    let server = TestServer::start().await;
    let client = server.client();
    let mut ids = Vec::new();
    for number in 0..6 {
        let env = if number % 2 == 0 { "prod" } else { "test" };
        let metadata = json!({ "env": env, "number": number, "is_open": number < 4, "a key&=": "a b+c" });
        let opened = client.post("/v1/threads", json!({ "key": format!("k{number}"), "metadata": metadata })).await;
        ids.push(opened.expect(201)["id"].clone());
    }
    let list = async |query: &str| {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let page = client.get(&format!("/v1/threads?order=created&limit=2&{query}{after}")).await.expect(200);
            found.extend(page["data"].as_array().unwrap().iter().map(|thread| thread["id"].clone()));
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return found,
            }
        }
    };
    assert_eq!(list("metadata[env]=prod").await, [ids[0].clone(), ids[2].clone(), ids[4].clone()]);
    assert_eq!(
        list("metadata%5Benv%5D=prod&metadata%5Bis_open%5D=true").await,
        ids[..4].iter().step_by(2).cloned().collect::<Vec<_>>()
    );
    assert_eq!(list("metadata[number]=5").await, [ids[5].clone()]);
    assert_eq!(list("metadata[a%20key%26%3D]=a%20b%2Bc").await, ids);
    assert_eq!(list("metadata[env]=PROD").await, Vec::<Value>::new());
    assert_eq!(list("key=k1&metadata[env]=test").await, [ids[1].clone()]);
    assert_eq!(list("key=k1&metadata[env]=prod").await, Vec::<Value>::new());

    // A cursor is valid only for the filter of its list.
    let next = client.get("/v1/threads?limit=1&metadata[env]=prod").await.expect(200)["next"].take();
    let other = client.get(&format!("/v1/threads?limit=1&metadata[env]=test&after={}", next.as_str().unwrap())).await;
    assert_eq!(other.code(400), "invalid_cursor");

    for (query, param, word) in [
        ("metadata=prod", "metadata", "metadata[key]=value"),
        ("metadata[]=prod", "metadata[]", "metadata[key]=value"),
        ("metadata[env=prod", "metadata[env", "metadata[key]=value"),
        ("metadata[env]=prod&metadata[env]=test", "metadata", "`env` appears twice"),
        ("metadata[a%00]=x", "metadata", "control character"),
        ("metadata.env=prod", "metadata.env", "unknown parameter"),
    ] {
        let error = client.get(&format!("/v1/threads?{query}")).await.error(400);
        assert_eq!(error["param"], param, "{error}");
        assert!(error["message"].as_str().unwrap().contains(word), "{error}");
    }
    let many: Vec<String> = (0..9).map(|number| format!("metadata[k{number}]=x")).collect();
    assert_eq!(client.get(&format!("/v1/threads?{}", many.join("&"))).await.code(400), "limit_exceeded");
    let long = format!("/v1/threads?metadata[env]={}", "x".repeat(2_049));
    assert_eq!(client.get(&long).await.code(400), "limit_exceeded");
}
