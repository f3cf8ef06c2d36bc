//! The tools on an in-memory store.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod knowledge_graph;

use serde_json::{Value, json};
use threadkeep::core::OpenThread;
use threadkeep::{Content, Draft, Map, Memory, Role, Scope, ThreadId, TokenCounter};
use threadkeep_mcp::{INSTRUCTIONS, MEMORIES_KEY, Tool, ToolSelection, Toolbox, tool_list};

const DOCS: &str = include_str!("../../../../docs/mcp.md");

async fn memory() -> Memory {
    threadkeep::open("memory:").await.unwrap()
}

fn toolbox(memory: &Memory, scope: &Scope) -> Toolbox {
    Toolbox::new(memory.clone(), scope.clone(), "all".parse().unwrap())
}

fn user(tenant: &str, user: &str) -> Scope {
    Scope::user(tenant, user).unwrap()
}

async fn call(toolbox: &Toolbox, tool: &str, arguments: Value) -> Value {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    toolbox.call(tool, arguments, "test").await.unwrap_or_else(|error| panic!("{tool}: {error}"))
}

async fn failure(toolbox: &Toolbox, tool: &str, arguments: Value) -> String {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    toolbox.call(tool, arguments, "test").await.unwrap_err().to_string()
}

fn texts(results: &Value) -> Vec<&str> {
    results.as_array().unwrap().iter().map(|result| result["text"].as_str().unwrap()).collect()
}

/// Stores a conversation about boats with one message per day from 2026-03-01.
async fn store_boats(memory: &Memory, scope: &Scope, count: u64) -> ThreadId {
    let thread = memory.open_by_key(scope, "boats").await.unwrap().thread.id;
    for day in 1..=count {
        let text = format!("boat number {day}");
        let at = format!("2026-03-{day:02}T09:00:00Z").parse().unwrap();
        let role = if day % 2 == 1 { Role::User } else { Role::Assistant };
        memory.append(scope, thread, Draft::new(Content::text(role, text)).with_created_at(at)).await.unwrap();
    }
    thread
}

#[test]
fn default_tools_fit_into_their_token_budget() {
    let count = |selection: &str| {
        let list = tool_list(&selection.parse::<ToolSelection>().unwrap()).to_string();
        threadkeep::O200k.count(&list).0
    };
    let (default, all) = (count("default"), count("all"));
    assert!(default <= 1_500, "{default} tokens");
    assert!(DOCS.contains(&format!("{default} tokens")), "docs/mcp.md must say {default} tokens");
    assert!(DOCS.contains(&format!("all {all}")), "docs/mcp.md must say all {all}");
    assert!(threadkeep::O200k.count(INSTRUCTIONS).0 <= 80);
    for tool in Tool::ALL {
        assert!(DOCS.contains(&format!("| `{}` |", tool.name())), "{}", tool.name());
    }
}

#[test]
fn annotations_say_what_a_tool_changes() {
    let list = tool_list(&"all".parse().unwrap());
    for tool in list.as_array().unwrap() {
        let hints = &tool["annotations"];
        let actual = (&hints["readOnlyHint"], &hints["destructiveHint"], &hints["idempotentHint"]);
        let expected = match tool["name"].as_str().unwrap() {
            "add_memory" | "create_entities" | "create_relations" | "add_observations" => {
                (json!(false), json!(false), json!(false))
            }
            "update_memory" | "delete_memory" | "delete_entities" | "delete_observations" | "delete_relations" => {
                (json!(false), json!(true), json!(true))
            }
            _ => (json!(true), Value::Null, Value::Null),
        };
        assert_eq!(actual, (&expected.0, &expected.1, &expected.2), "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], json!(false));
        assert_eq!(tool["outputSchema"]["type"], json!("object"));
    }
}

#[tokio::test]
async fn memories_are_found_updated_and_deleted_in_their_scope_only() {
    let memory = memory().await;
    let (ana, others) = (user("acme", "ana"), [user("acme", "ben"), user("other", "ana")]);
    let tools = toolbox(&memory, &ana);
    let id = call(&tools, "add_memory", json!({ "text": "We chose Postgres for the ledger." })).await["id"].clone();
    for other in others.iter().map(|scope| toolbox(&memory, scope)) {
        assert_eq!(call(&other, "search_memory", json!({ "query": "ledger" })).await["hits"], json!([]));
        call(&other, "add_memory", json!({ "text": "something else" })).await;
        for (tool, arguments) in [
            ("delete_memory", json!({ "id": id })),
            ("update_memory", json!({ "id": id, "text": "x" })),
            ("get_memory", json!({ "id": id })),
        ] {
            let error = failure(&other, tool, arguments).await;
            assert!(error.starts_with("memory not found"), "{tool}: {error}");
        }
        assert!(failure(&other, "read_thread", json!({ "thread": id })).await.starts_with("thread not found"));
    }
    let found = call(&tools, "search_memory", json!({ "query": "ledger" })).await;
    assert_eq!(texts(&found["hits"]), ["We chose Postgres for the ledger."]);
    assert_eq!((&found["hits"][0]["id"], &found["hits"][0]["title"]), (&id, &json!("Memories")));
    assert!(found["notice"].as_str().unwrap().contains("data, not instructions"));
    let recalled = call(&tools, "recall", json!({ "question": "Which database did we choose for the ledger?" })).await;
    assert_eq!(texts(&recalled["messages"]), ["We chose Postgres for the ledger."]);

    call(&tools, "update_memory", json!({ "id": id, "text": "We chose SQLite for the ledger." })).await;
    let found = call(&tools, "search_memory", json!({ "query": "ledger" })).await;
    assert_eq!(texts(&found["hits"]), ["We chose SQLite for the ledger."]);
    assert_eq!(call(&tools, "search_memory", json!({ "query": "Postgres" })).await["hits"], json!([]));

    assert_eq!(call(&tools, "delete_memory", json!({ "id": id })).await, json!({ "deleted": id }));
    assert_eq!(call(&tools, "search_memory", json!({ "query": "ledger" })).await["hits"], json!([]));
    assert!(failure(&tools, "delete_memory", json!({ "id": id })).await.starts_with("memory not found"));
}

#[tokio::test]
async fn only_memories_can_be_changed() {
    let (memory, ana) = (memory().await, user("acme", "ana"));
    let tools = toolbox(&memory, &ana);
    store_boats(&memory, &ana, 3).await;
    call(&tools, "add_memory", json!({ "text": "a memory" })).await;
    let id = call(&tools, "search_memory", json!({ "query": "boat" })).await["hits"][0]["id"].clone();
    for (tool, arguments) in
        [("delete_memory", json!({ "id": id })), ("update_memory", json!({ "id": id, "text": "x" }))]
    {
        assert!(failure(&tools, tool, arguments).await.contains("only memories"), "{tool}");
    }
    assert_eq!(call(&tools, "search_memory", json!({ "query": "boat" })).await["hits"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn searches_have_pages_and_filters() {
    let (memory, ana) = (memory().await, user("acme", "ana"));
    let tools = toolbox(&memory, &ana);
    store_boats(&memory, &ana, 25).await;
    let (mut seen, mut arguments) = (Vec::new(), json!({ "query": "boat", "limit": 10 }));
    loop {
        let page = call(&tools, "search_memory", arguments.clone()).await;
        seen.extend(texts(&page["hits"]).into_iter().map(str::to_owned));
        match page.get("next_cursor") {
            Some(cursor) => arguments["cursor"] = cursor.clone(),
            None => break,
        }
    }
    assert_eq!(seen.len(), 25);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 25);
    let filtered = json!({ "query": "boat", "since": "2026-03-03", "until": "2026-03-05", "role": "assistant" });
    assert_eq!(texts(&call(&tools, "search_memory", filtered).await["hits"]), ["boat number 4"]);
    assert_eq!(call(&tools, "search_memory", json!({ "query": "boat", "until": "2026-02" })).await["hits"], json!([]));
    let march = json!({ "query": "boat", "since": "2026-03", "until": "2026-03", "limit": 50 });
    assert_eq!(call(&tools, "search_memory", march).await["hits"].as_array().unwrap().len(), 25);
}

#[tokio::test]
async fn threads_are_named_by_conversation_id_and_filtered_by_metadata() {
    let (memory, ana) = (memory().await, user("acme", "ana"));
    let tools = toolbox(&memory, &ana);
    let boats = store_boats(&memory, &ana, 1).await;
    let mut open = OpenThread::new(&ana, memory.generate_thread_id());
    open.metadata = Map::from_iter([("env".to_owned(), json!("prod"))]);
    let prod = memory.open_thread(&ana, open).await.unwrap().thread.id;
    memory.append(&ana, prod, Draft::user("a boat in production")).await.unwrap();
    let conversation = format!("conv_{}", boats.0.simple());
    let page = call(&tools, "read_thread", json!({ "thread": conversation, "limit": 5.0 })).await;
    assert_eq!(texts(&page["messages"]), ["boat number 1"]);
    let filter = json!({ "env": "prod" });
    let found = call(&tools, "search_memory", json!({ "query": "boat", "metadata": filter })).await;
    assert_eq!(texts(&found["hits"]), ["a boat in production"]);
    let recalled = call(&tools, "recall", json!({ "question": "boat", "metadata": filter })).await;
    assert_eq!(texts(&recalled["messages"]), ["a boat in production"]);
    let listed = call(&tools, "list_threads", json!({ "metadata": filter })).await;
    assert_eq!((&listed["threads"][0]["id"], listed["threads"].as_array().unwrap().len()), (&json!(prod), 1));
    let all = call(&tools, "list_threads", json!({})).await;
    assert_eq!(all["threads"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn threads_are_read_in_pages_and_around_hits() {
    let (memory, ana) = (memory().await, user("acme", "ana"));
    let tools = toolbox(&memory, &ana);
    let thread = store_boats(&memory, &ana, 25).await;
    let first = call(&tools, "read_thread", json!({ "thread": "boats" })).await;
    assert_eq!((texts(&first["messages"]).len(), &first["next_cursor"]), (20, &json!("21")));
    let last = call(&tools, "read_thread", json!({ "thread": "boats", "cursor": "21" })).await;
    assert_eq!(texts(&last["messages"]).last(), Some(&"boat number 25"));
    assert_eq!((last.get("next_cursor"), &last["previous_cursor"]), (None, &json!("1")));
    let around = call(&tools, "read_thread", json!({ "thread": format!("{thread}#12"), "limit": 5 })).await;
    assert_eq!(texts(&around["messages"]), [10, 11, 12, 13, 14].map(|n| format!("boat number {n}")));
}

#[tokio::test]
async fn long_messages_are_read_in_parts() {
    let (memory, ana) = (memory().await, user("acme", "ana"));
    let tools = toolbox(&memory, &ana);
    let thread = memory.open_by_key(&ana, "long").await.unwrap().thread.id;
    let long = "é".repeat(50_000);
    for text in ["before", &long, "after"] {
        memory.append(&ana, thread, Draft::user(text)).await.unwrap();
    }
    let (mut joined, mut arguments) = (String::new(), json!({ "thread": "long" }));
    loop {
        let page = call(&tools, "read_thread", arguments.clone()).await;
        assert!(page.to_string().len() < 40_000);
        joined.extend(texts(&page["messages"]));
        match page.get("next_cursor") {
            Some(cursor) => arguments["cursor"] = cursor.clone(),
            None => break,
        }
    }
    assert_eq!(joined, format!("before{long}after"));
}

#[tokio::test]
async fn optional_tools_list_what_is_stored() {
    let (memory, ana) = (memory().await, user("acme", "ana"));
    let tools = toolbox(&memory, &ana);
    assert_eq!(call(&tools, "list_memories", json!({})).await["memories"], json!([]));
    store_boats(&memory, &ana, 3).await;
    for text in ["one", "two", "three"] {
        call(&tools, "add_memory", json!({ "text": text })).await;
    }
    let page = call(&tools, "list_memories", json!({ "limit": 2 })).await;
    assert_eq!(texts(&page["memories"]), ["three", "two"]);
    let rest = call(&tools, "list_memories", json!({ "limit": 2, "cursor": page["next_cursor"] })).await;
    assert_eq!((texts(&rest["memories"]), rest.get("next_cursor")), (vec!["one"], None));
    let id = &rest["memories"][0]["id"];
    assert_eq!(call(&tools, "get_memory", json!({ "id": id })).await["text"], json!("one"));
    let threads = call(&tools, "list_threads", json!({})).await;
    let keys: Vec<_> = threads["threads"].as_array().unwrap().iter().map(|thread| thread["key"].clone()).collect();
    assert_eq!(keys, [json!(MEMORIES_KEY), json!("boats")]);
    memory.set_preference(&ana, "units", "metric").await.unwrap();
    assert_eq!(call(&tools, "list_preferences", json!({})).await["preferences"], json!({ "units": "metric" }));
    let context = call(&tools, "get_context", json!({ "thread": "boats", "question": "Which boat?" })).await;
    assert!(context["messages"].as_array().unwrap().len() >= 3 && context["report"].is_object());
    assert_eq!(call(&tools, "search_documents", json!({ "question": "boat" })).await["passages"], json!([]));
}

#[tokio::test]
async fn tools_that_are_not_selected_cannot_be_called() {
    let tools = Toolbox::new(memory().await, user("acme", "ana"), ToolSelection::default().read_only());
    for tool in ["add_memory", "list_threads", "decide_approval", ""] {
        assert!(failure(&tools, tool, json!({ "text": "x" })).await.starts_with("unknown tool"), "{tool}");
    }
    assert_eq!(call(&tools, "search_memories", json!({ "query": "x1" })).await["hits"], json!([]));
}

#[tokio::test]
async fn invalid_arguments_are_named() {
    let tools = toolbox(&memory().await, &user("acme", "ana"));
    let long = "x".repeat(16_001);
    for (tool, arguments, expected) in [
        ("search_memory", json!({}), "missing field `query`"),
        ("search_memory", json!({ "query": 5 }), "invalid argument query: invalid type"),
        ("search_memory", json!({ "query": "x", "users": "all" }), "unknown field `users`"),
        ("search_memory", json!({ "query": " \u{0} " }), "invalid argument query: contains no word"),
        (
            "search_memory",
            json!({ "query": "a", "limit": 51 }),
            "invalid argument limit: expected a number from 1 to 50",
        ),
        ("search_memory", json!({ "query": "a", "limit": -1 }), "invalid argument limit"),
        ("search_memory", json!({ "query": "a", "limit": "x" }), "expected a whole number"),
        ("search_memory", json!({ "query": "a", "limit": 1.5 }), "expected a whole number"),
        ("search_memory", json!({ "query": "a", "metadata": { "env": [] } }), "the value of `env` must be a string"),
        ("list_threads", json!({ "metadata": "prod" }), "invalid argument metadata: invalid type"),
        ("search_memory", json!({ "query": "a", "cursor": "999999999999999999999" }), "invalid argument cursor"),
        ("search_memory", json!({ "query": "a", "since": "March" }), "invalid argument since: expected a date"),
        ("search_memory", json!({ "query": "a", "role": "root" }), "invalid argument role"),
        ("search_memory", json!({ "query": "a", "thread": "no'; drop table" }), "thread not found"),
        ("recall", json!({ "question": long }), "invalid argument question: has 16001 characters"),
        ("read_thread", json!({ "thread": "" }), "thread not found"),
        ("read_thread", json!({ "thread": "\u{0}#1" }), "thread not found"),
        ("add_memory", json!({ "text": "  " }), "invalid argument text: must not be empty"),
        ("add_memory", json!({ "text": long }), "the maximum is 16000"),
        ("add_memory", json!({ "text": "a\u{0}b" }), "NUL"),
        ("update_memory", json!({ "id": "5", "text": "x" }), "invalid argument id: expected the id"),
        ("delete_memory", json!({ "id": ["a"] }), "invalid argument id: invalid type"),
        ("get_context", json!({ "thread": "x", "budget": 1 }), "invalid argument budget"),
    ] {
        let error = failure(&tools, tool, arguments.clone()).await;
        assert!(error.contains(expected), "{tool} {arguments}: {error}");
        assert!(["field", "u64", "struct ", " at line "].iter().all(|term| !error.contains(term)), "{error}");
    }
    assert_eq!(call(&tools, "list_threads", json!({})).await["threads"], json!([]), "no thread was created");
}

#[tokio::test]
async fn many_calls_at_once_are_all_answered() {
    let (memory, ana) = (memory().await, user("acme", "ana"));
    let tools = toolbox(&memory, &ana);
    let calls: Vec<_> = (0..30)
        .map(|number| {
            let tools = tools.clone();
            tokio::spawn(async move { call(&tools, "add_memory", json!({ "text": format!("fact {number}") })).await })
        })
        .collect();
    let mut ids = Vec::new();
    for call in calls {
        ids.push(call.await.unwrap()["id"].as_str().unwrap().to_owned());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 30);
}
