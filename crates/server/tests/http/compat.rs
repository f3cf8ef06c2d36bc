//! The compatibility endpoints of assistants, and access to them.

use std::sync::Arc;

use serde_json::{Value, json};
use threadkeep::agent::plugin::{AssistantParts, Lookup, PluginSettings};
use threadkeep::{AssistantPlugin, Definition, FnTool, JsonText, Map, ToolError, ToolOutput};
use threadkeep_server::{KeyRole, Quota, RateLimit, ServerOptions, SharedKey};

use crate::Client;
use crate::assistants::{start_with_test_assistant, test_assistant};
use crate::server::{TestConfig, TestServer, send};

/// A lookup may record the request for its user, but only if the caller may write.
#[tokio::test]
async fn lookups_with_a_read_key_change_nothing() {
    let (definition, _) = test_assistant("keeper");
    let scopes = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&scopes);
    let schema = JsonText::of(&json!({ "type": "object", "properties": {} })).unwrap();
    let tool = FnTool::with_schema("get_route", "Finds a route", schema, move |context, _: Map| {
        seen.lock().unwrap().push(context.scope);
        async { Ok::<_, ToolError>(ToolOutput::text("Take the 1.")) }
    });
    let assistants = vec![definition.with_tool(tool)];
    let server = TestServer::start_with(TestConfig { assistants, ..TestConfig::default() }).await;
    for (role, is_user) in [(KeyRole::Write, true), (KeyRole::Read, false)] {
        let client = server.client_with_new_key("acme", Some("ana"), &[role]).await;
        client.get("/route?from=a&to=b").await.expect(200);
        let scope = scopes.lock().unwrap().pop().unwrap();
        assert_eq!(scope == threadkeep::Scope::user("acme", "ana").unwrap(), is_user, "{scope:?}");
        assert_eq!(matches!(scope, threadkeep::Scope::User(..)), is_user);
    }
}

/// Sends a message on behalf of a user, and returns the response body.
async fn chat_as(client: &Client, user: &str, message: &str) -> Value {
    client.post("/chat", json!({ "message": message, "user_id": user })).await.expect(200)
}

/// Each user has one conversation, which is stored, can be read again, and can be cleared.
///
/// Covers S2.50, and the requirement of S2.51 that a page is served.
#[tokio::test]
async fn a_single_assistant_is_served_at_the_root() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    let first = chat_as(&client, "ana", "one").await;
    assert_eq!(first["reply"], "You said: one");
    let second = chat_as(&client, "ana", "two").await;
    assert_eq!((&second["thread"], &second["context"]["messages"]), (&first["thread"], &json!(2)));
    assert_ne!(chat_as(&client, "eve", "one").await["thread"], first["thread"]);
    // A conversation can be read with only its id. The history does not contain messages that only call tools.
    let looked = chat_as(&client, "bob", "look lamp").await;
    let reply = looked["reply"].as_str().unwrap();
    for (turn, expected) in
        [(&first, &["one", "You said: one", "two", "You said: two"][..]), (&looked, &["look lamp", reply])]
    {
        let history = client.get(&format!("/conversations/{}", turn["thread"].as_str().unwrap())).await.expect(200);
        let messages = history["messages"].as_array().unwrap();
        assert_eq!(messages.iter().map(|message| message["content"].as_str().unwrap()).collect::<Vec<_>>(), expected);
    }
    assert_eq!(
        client.post("/keeper/chat", json!({ "message": "three", "user_id": "ana" })).await.expect(200)["thread"],
        first["thread"]
    );
    assert_eq!(client.post("/clear", json!({ "user_id": "ana" })).await.expect(200), json!({ "success": true }));
    assert_eq!(client.post("/keeper/clear", json!({ "user_id": "ana" })).await.expect(200), json!({ "success": true }));
    let fresh = chat_as(&client, "ana", "four").await;
    assert_eq!((&fresh["context"]["messages"], fresh["thread"] == first["thread"]), (&json!(0), false));
    assert_eq!(
        chat_as(&client, "eve", "two").await["context"]["messages"],
        2,
        "conversations of other users are not cleared"
    );
    client.as_user("ana").send("PUT", "/v1/preferences/home", json!({ "value": "14 St" })).await.expect(200);
    for path in ["/preferences/ana", "/keeper/preferences/ana"] {
        assert_eq!(client.get(path).await.expect(200), json!({ "preferences": { "home": "14 St" } }));
    }
    assert_eq!(client.get("/preferences/eve").await.expect(200)["preferences"], json!({}));
    // A number that most parsers cannot represent is returned unchanged.
    let put = client.as_user("eve").request("PUT", "/v1/preferences/far").header("content-type", "application/json");
    assert_eq!(send(put.body(r#"{"value":1e1041}"#)).await.status, 200);
    assert_eq!(client.get("/preferences/eve").await.text, r#"{"preferences":{"far":1e1041}}"#);
    for path in ["/health", "/keeper/health"] {
        assert_eq!(client.get(path).await.expect(200)["status"], "ok");
    }
    for path in ["/", "/keeper/"] {
        let page = client.get(path).await;
        assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
        assert!(
            page.text.contains("placeholder=\"Ask keeper\"")
                && page.header("content-security-policy").contains("'self'")
        );
    }
    assert_eq!(client.post("/chat", json!({ "message": " " })).await.error(400)["param"], "message");
    let chat_with_key =
        || send(client.request("POST", "/chat").header("idempotency-key", "k").json(&json!({ "message": "five" })));
    assert_eq!(chat_with_key().await.expect(200)["turn"], chat_with_key().await.expect(200)["turn"]);
}

#[tokio::test]
async fn several_assistants_are_served_only_at_their_own_paths() {
    let assistants = vec![test_assistant("one").0, test_assistant("two").0];
    let server = TestServer::start_with(TestConfig { assistants, ..TestConfig::default() }).await;
    let client = server.client();
    let body = || json!({ "message": "hello" });
    assert_eq!(client.post("/chat", body()).await.code(404), "unknown_route");
    assert_eq!(client.get("/").await.status, 200, "a plain page lists the assistants");
    let first = client.post("/one/chat", body()).await.expect(200);
    let second = client.post("/two/chat", body()).await.expect(200);
    assert_eq!((&first["agent"], &second["agent"]), (&json!("one"), &json!("two")));
    assert_ne!(first["thread"], second["thread"]);
    assert_eq!(client.post("/three/chat", body()).await.code(404), "unknown_route");
    for path in ["/three/health", "/three/", "/three/conversations/x"] {
        assert_eq!(client.get(path).await.code(404), "unknown_route", "{path}");
    }
    let thread = first["thread"].as_str().unwrap();
    // S0.29, on a path that starts with the assistant's name.
    let history = client.get(&format!("/one/conversations/{thread}")).await.expect(200);
    assert_eq!(history["messages"][1]["content"], "You said: hello");
    let deleted = client.delete(&format!("/one/conversations/{thread}")).await;
    assert_eq!(deleted.expect(200)["success"], true);
}

/// The lookup tools that the endpoints call, named as in the subway assistant. Arguments have the names of the query parameters.
pub(crate) const LOOKUPS: [Lookup; 4] = [
    Lookup { endpoint: "route", required_parameter: None, tool: "get_route", arguments: &[] },
    Lookup { endpoint: "arrivals", required_parameter: None, tool: "get_train_arrivals", arguments: &[] },
    Lookup { endpoint: "stations", required_parameter: Some("line"), tool: "find_stations_on_line", arguments: &[] },
    Lookup { endpoint: "stations", required_parameter: None, tool: "get_station_info", arguments: &[] },
];

/// Returns an assistant whose tools have the same names as those of the subway assistant.
fn subway_assistant() -> Definition {
    let schema = || JsonText::of(&json!({ "type": "object" })).unwrap();
    let tool_named = |name: &'static str| {
        FnTool::with_schema(name, "Answers", schema(), move |_, arguments: Map| async move {
            match arguments.get("line").and_then(|line| line.as_str()) {
                Some("Z9") => Err(ToolError::Arguments("unknown line".to_owned())),
                _ => Ok(ToolOutput { value: Some(JsonText::of(&arguments).unwrap()), ..ToolOutput::text(name) }),
            }
        })
    };
    let tool_with_side_effects = tool_named("get_station_info").with_side_effects(|_| "rm".to_owned());
    let (mut definition, _) = test_assistant("subway");
    definition = definition.with_tool(tool_named("get_route")).with_tool(tool_named("get_train_arrivals"));
    definition.with_tool(tool_named("find_stations_on_line")).with_tool(tool_with_side_effects)
}

#[tokio::test]
async fn tool_endpoints_call_their_tools() {
    let server =
        TestServer::start_with(TestConfig { assistants: vec![subway_assistant()], ..TestConfig::default() }).await;
    let client = server.client();
    for (path, tool, data) in [
        ("/route?from=14+St&to=96+St", "get_route", json!({ "from": "14 St", "to": "96 St" })),
        (
            "/subway/arrivals?station=14+St&line=L&key=x",
            "get_train_arrivals",
            json!({ "station": "14 St", "line": "L" }),
        ),
        ("/stations?line=L&user_id=ana", "find_stations_on_line", json!({ "line": "L" })),
    ] {
        assert_eq!(client.get(path).await.expect(200), json!({ "text": tool, "data": data }), "{path}");
    }
    assert_eq!(client.get("/arrivals?line=Z9").await.error(400)["param"], "query");
    assert_eq!(
        client.get("/stations?station=x").await.code(404),
        "unknown_route",
        "tools with side effects are not called"
    );
    assert_eq!(client.get("/route?from=a&from=b").await.error(400)["param"], "from");
    let (server, _) = start_with_test_assistant().await;
    assert_eq!(server.client().get("/route?from=a&to=b").await.code(404), "unknown_route");
}

/// The assistant's plugin, not the server, defines the tool that an endpoint calls and the names of the tool's arguments.
#[tokio::test]
async fn an_assistants_plugin_defines_the_tools_that_endpoints_call() {
    const GARDENER: AssistantPlugin = AssistantPlugin {
        lookups: &[
            Lookup { endpoint: "arrivals", required_parameter: None, tool: "look", arguments: &[("station", "thing")] },
            Lookup {
                endpoint: "stations",
                required_parameter: None,
                tool: "delete",
                arguments: &[("station", "thing")],
            },
            Lookup { endpoint: "route", required_parameter: Some("from"), tool: "nothing", arguments: &[] },
        ],
        ..AssistantPlugin::new("gardener", "Follows commands.", |_, _| Ok(Arc::new(test_assistant("gardener").0)))
    };
    let memory = threadkeep::open("memory:").await.unwrap();
    let parts = AssistantParts { memory: memory.clone(), model: None, embedder: None, tool_sources: Vec::new() };
    let assistant = (GARDENER.make)(parts, &PluginSettings::default()).unwrap();
    let assistants = vec![assistant.definition().clone()];
    let server =
        TestServer::start_on(memory, TestConfig { assistants, lookups: GARDENER.lookups, ..TestConfig::default() })
            .await;
    let client = server.client();
    for path in ["/arrivals?station=lamp", "/gardener/arrivals?thing=lamp"] {
        assert_eq!(client.get(path).await.expect(200)["data"], json!({ "seen": "lamp" }), "{path}");
    }
    for path in ["/stations?station=lamp", "/route?from=a&to=b", "/route?to=b"] {
        assert_eq!(client.get(path).await.code(404), "unknown_route", "{path}");
    }
}

/// S2.50: if a shared key is set, requests with the right key are accepted, and others are rejected.
#[tokio::test]
async fn the_shared_key_is_valid_for_compatibility_endpoints_only() {
    let options = ServerOptions { shared_key: SharedKey::new("s3cret"), ..TestConfig::default().options };
    let server =
        TestServer::start_with(TestConfig { options, assistants: vec![subway_assistant()], ..TestConfig::default() })
            .await;
    let client = server.anonymous_client();
    let chat = |path: &str, key: Option<&str>| {
        let request = client.request("POST", path).json(&json!({ "message": "hello", "user_id": "ana" }));
        send(match key {
            Some(key) => request.header("x-api-key", key),
            None => request,
        })
    };
    assert_eq!(chat("/chat", None).await.code(401), "invalid_key");
    assert_eq!(chat("/chat", Some("wrong")).await.code(401), "invalid_key");
    assert_eq!(chat("/chat?key=wrong", None).await.code(401), "invalid_key");
    assert_eq!(chat("/chat", Some("s3cret")).await.expect(200)["reply"], "You said: hello");
    assert_eq!(chat("/subway/chat?key=s3cret", None).await.expect(200)["reply"], "You said: hello");
    assert_eq!(client.get("/route?from=a&to=b").await.code(401), "invalid_key");
    assert_eq!(client.get("/route?from=a&to=b&key=s3cret").await.status, 200);
    // Keys that the server created are valid too. The shared key is not valid for other endpoints.
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    assert_eq!(ana.post("/chat", json!({ "message": "hello" })).await.status, 200);
    let other = ana.post("/chat", json!({ "message": "hello", "user_id": "eve" })).await;
    assert_eq!(other.code(403), "other_user");
    assert_eq!(chat("/chat", None).await.code(401), "invalid_key");
    let outside = send(client.request("GET", "/v1/threads").header("x-api-key", "s3cret")).await;
    assert_eq!(outside.code(401), "invalid_key");
    assert!(!format!("{:?}", SharedKey::new("s3cret")).contains("s3cret"));
}

/// After too many wrong guesses, requests from an address are rejected without checking the key. Other addresses are not affected,
/// nor are addresses that recently sent the right key.
#[tokio::test]
async fn guesses_at_the_shared_key_are_rate_limited() {
    let options = ServerOptions { shared_key: SharedKey::new("s3cret"), ..TestConfig::default().options };
    let server =
        TestServer::start_with(TestConfig { options, assistants: vec![subway_assistant()], ..TestConfig::default() })
            .await;
    let client = server.anonymous_client();
    // `from` is the client's address as a local proxy reports it.
    let ask = |from: &str, key: &str| {
        let request = client.request("GET", &format!("/route?from=a&to=b&key={key}"));
        send(request.header("x-forwarded-for", from))
    };
    ask("192.0.2.1", "s3cret").await.expect(200);
    for guesser in ["192.0.2.2", "192.0.2.1"] {
        let mut guesses = 0;
        let refused = loop {
            let answer = ask(guesser, &format!("guess{guesses}")).await;
            if answer.status != 401 {
                break answer;
            }
            guesses += 1;
        };
        assert_eq!(
            (refused.code(429).as_str(), guesses >= 30),
            ("rate_limited", true),
            "{guesses} guesses were checked"
        );
        assert!((1..=2).contains(&refused.header("retry-after").parse::<u64>().unwrap()));
    }
    // The first address has sent the right key before; the second is new.
    for from in ["192.0.2.1", "192.0.2.3"] {
        ask(from, "s3cret").await.expect(200);
    }
    client.get("/route?from=a&to=b&key=s3cret").await.expect(200);
}

/// All clients with the shared key share one rate limit, regardless of the user that they name. Other callers have separate limits.
#[tokio::test]
async fn clients_with_the_shared_key_share_one_rate_limit() {
    let options_with = |rate: Option<u32>, quota: Option<u32>| ServerOptions {
        shared_key: SharedKey::new("s3cret"),
        rate_limit: rate.map(|per_minute| RateLimit { per_minute }),
        quota: quota.map(|per_day| Quota { per_day }),
        ..TestConfig::default().options
    };
    let start = |options| {
        TestServer::start_with(TestConfig { options, assistants: vec![subway_assistant()], ..TestConfig::default() })
    };
    let ask = |server: &TestServer, user: u32| {
        let client = server.anonymous_client();
        async move { client.get(&format!("/route?from=a&to=b&key=s3cret&user_id=u{user}")).await }
    };
    for (options, code) in
        [(options_with(Some(3), None), "rate_limited"), (options_with(None, Some(3)), "quota_exceeded")]
    {
        let server = start(options).await;
        for user in 0..3 {
            ask(&server, user).await.expect(200);
        }
        let refused = ask(&server, 3).await;
        assert_eq!(refused.code(429), code);
        assert!(refused.header("retry-after").parse::<u64>().unwrap() >= 1);
        let wrong = server.anonymous_client().get("/route?from=a&to=b&key=wrong").await;
        assert_eq!(wrong.code(401), "invalid_key", "rejected requests are not counted");
        let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
        ana.get("/route?from=a&to=b").await.expect(200);
    }
    // The default limit is 600 a minute. It refills while the test runs, so more requests may be accepted.
    let server = start(options_with(None, None)).await;
    let (client, mut served) = (server.anonymous_client(), 0);
    let refused = loop {
        let answer = client.get("/route?from=a&to=b&key=s3cret").await;
        if answer.status != 200 {
            break answer;
        }
        served += 1;
    };
    assert_eq!((refused.code(429).as_str(), served >= 600), ("rate_limited", true), "{served} requests were served");
}
