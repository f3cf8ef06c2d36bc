//! Pages, limits and invalid arguments.

use serde_json::{Value, json};

use super::{create, entity, names, put_record, relate, relation, stored};
use crate::{call, failure, memory, toolbox, user};

#[tokio::test]
async fn long_graphs_are_read_in_pages() {
    let tools = toolbox(&memory().await, &user("acme", "ana"));
    let texts: Vec<String> = (0..3).map(|number| format!("long {number} {}", "x".repeat(3_900))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let all: Vec<String> = (10..30).map(|number| format!("n{number}")).collect();
    let entities: Vec<Value> = all.iter().map(|name| entity(name, "node", &texts)).collect();
    create(&tools, &entities).await;
    let relations: Vec<Value> = all.windows(2).map(|pair| relation(&pair[0], &pair[1], "precedes")).collect();
    relate(&tools, &relations).await;
    for (tool, mut arguments) in [
        ("read_graph", json!({})),
        ("read_graph", json!({ "limit": 2 })),
        ("search_nodes", json!({ "query": "long" })),
        ("open_nodes", json!({ "names": all })),
    ] {
        let (mut seen, mut seen_relations) = (Vec::new(), Vec::new());
        loop {
            let page = call(&tools, tool, arguments.clone()).await;
            assert!(page.to_string().len() < 45_000);
            seen.extend(names(&page).into_iter().map(str::to_owned));
            seen_relations.extend(page["relations"].as_array().unwrap().clone());
            match page.get("next_cursor") {
                Some(cursor) => arguments["cursor"] = cursor.clone(),
                None => break,
            }
        }
        assert_eq!(seen, all, "{tool}");
        if tool == "read_graph" {
            assert_eq!(seen_relations, relations, "each relation is on the page of its start");
        } else {
            assert!(relations.iter().all(|relation| seen_relations.contains(relation)), "{tool}");
        }
    }
}

#[tokio::test]
async fn relations_of_found_entities_are_bounded() {
    let tools = toolbox(&memory().await, &user("acme", "ana"));
    let entities: Vec<Value> = (0..300).map(|number| entity(&format!("{number:0>150}"), "node", &[])).collect();
    create(&tools, &entities).await;
    create(&tools, &[entity("hub", "centre", &[])]).await;
    let relations: Vec<Value> =
        (0..300).map(|number| relation(&format!("{number:0>150}"), "hub", "leads_to")).collect();
    relate(&tools, &relations).await;
    let found = call(&tools, "open_nodes", json!({ "names": ["hub"] })).await;
    let (listed, omitted) = (found["relations"].as_array().unwrap().len(), &found["omitted_relations"]);
    assert!(listed < 300 && *omitted == json!(300 - listed), "{listed}, {omitted}");
    call(&tools, "delete_entities", json!({ "entityNames": ["hub"] })).await;
    assert_eq!(call(&tools, "search_nodes", json!({ "query": "node" })).await["relations"], json!([]));
}

#[tokio::test]
async fn invalid_arguments_are_named() {
    let (memory, ana) = (memory().await, user("acme", "ana"));
    let tools = toolbox(&memory, &ana);
    create(&tools, &[entity("a", "letter", &[])]).await;
    let before = stored(&memory, &ana).await;
    let many = |item: Value| vec![item; 501];
    let (long_name, long_text, wide_name) = ("x".repeat(501), "x".repeat(4_001), "é".repeat(251));
    let named = |name: &str| json!({ "entities": [entity(name, "x", &[])] });
    let large: Vec<String> = (0..17).map(|number| format!("{number:x>4000}")).collect();
    for (tool, arguments, expected) in [
        ("create_entities", json!({}), "missing field `entities`"),
        ("create_entities", json!({ "entities": "a" }), "invalid argument entities: invalid type"),
        ("create_entities", json!({ "entities": [{ "name": "b" }] }), "missing field `entityType`"),
        ("create_entities", json!({ "entities": [entity("b", "x", &[])], "force": true }), "unknown field `force`"),
        (
            "create_entities",
            json!({ "entities": [{ "name": "b", "entityType": "x", "observations": [], "type": "x" }] }),
            "unknown field `type`",
        ),
        ("create_entities", named(""), "invalid argument entities[0].name: must not be empty"),
        ("create_entities", named("a\u{0}b"), "invalid argument entities[0].name: contains a control character"),
        ("create_entities", named("a\nb"), "invalid argument entities[0].name: contains a control character"),
        ("create_entities", named(&long_name), "entities[0].name: has 501 characters; the maximum is 500"),
        ("create_entities", named(&wide_name), "entities[0].name: has 502 bytes; the maximum is 500"),
        (
            "create_entities",
            json!({ "entities": [entity("b", " ", &[])] }),
            "entities[0].entityType: must not be empty",
        ),
        (
            "create_entities",
            json!({ "entities": [entity("b", "x", &[]), entity("c", "x", &["y", &long_text])] }),
            "invalid argument entities[1].observations[1]: has 4001 characters; the maximum is 4000",
        ),
        (
            "create_entities",
            json!({ "entities": [{ "name": "b", "entityType": "x", "observations": large }] }),
            "invalid argument entities[0]: the entity would have 68",
        ),
        ("create_entities", json!({ "entities": many(entity("b", "x", &[])) }), "entities: has 501 items"),
        ("create_relations", json!({ "relations": [{ "from": "a", "to": "a" }] }), "missing field `relationType`"),
        (
            "create_relations",
            json!({ "relations": [relation("a", "a", "")] }),
            "relations[0].relationType: must not be",
        ),
        ("create_relations", json!({ "relations": [relation("a", "a", &"x".repeat(201))] }), "the maximum is 200"),
        ("create_relations", json!({ "relations": many(relation("a", "a", "is")) }), "relations: has 501 items"),
        (
            "add_observations",
            json!({ "observations": [{ "entityName": "a", "contents": [" "] }] }),
            "contents[0]: must",
        ),
        (
            "add_observations",
            json!({ "observations": [{ "entityName": "a", "contents": [5] }] }),
            "contents[0]: invalid",
        ),
        (
            "add_observations",
            json!({ "observations": [{ "entityName": "a", "contents": large }] }),
            "invalid argument observations[0].entityName: the entity would have 68",
        ),
        ("delete_entities", json!({ "entityNames": "a" }), "invalid argument entityNames: invalid type"),
        ("delete_entities", json!({ "entityNames": ["\u{0}"] }), "entityNames[0]: contains a control character"),
        ("delete_observations", json!({ "deletions": [{ "entityName": "a" }] }), "missing field `observations`"),
        ("delete_relations", json!({ "relations": [relation("", "a", "is")] }), "relations[0].from: must not be empty"),
        ("read_graph", json!({ "limit": 501 }), "invalid argument limit: expected a number from 1 to 500"),
        ("read_graph", json!({ "cursor": "\u{0}" }), "invalid argument cursor: expected the cursor"),
        ("search_nodes", json!({ "query": "  " }), "invalid argument query: must not be empty"),
        ("search_nodes", json!({ "query": "x".repeat(1_001) }), "query: has 1001 characters; the maximum is 1000"),
        ("open_nodes", json!({ "names": ["a", long_name] }), "invalid argument names[1]: has 501 characters"),
        ("open_nodes", json!({ "names": many(json!("a")) }), "invalid argument names: has 501 items"),
    ] {
        let error = failure(&tools, tool, arguments).await;
        assert!(error.contains(expected), "{tool}: {expected}: {error}");
        assert!(["field", "u64", "struct ", " at line "].iter().all(|term| !error.contains(term)), "{error}");
    }
    assert_eq!(stored(&memory, &ana).await, before, "nothing was stored");
    // Texts that resemble keys, queries or markup are names like any other.
    for name in ["' OR 1=1 --", "../../etc/passwd", "a/b#c?d%00", "{\"name\":1}", "\u{202e}x", "%", "*"] {
        create(&tools, &[entity(name, "odd", &[name])]).await;
        assert_eq!(names(&call(&tools, "open_nodes", json!({ "names": [name] })).await), [name]);
        call(&tools, "delete_entities", json!({ "entityNames": [name] })).await;
    }
    assert_eq!(stored(&memory, &ana).await, before);
}

#[tokio::test]
async fn full_graphs_accept_no_further_entities() {
    let (memory, ana) = (memory().await, user("acme", "ana"));
    let tools = toolbox(&memory, &ana);
    for number in 0..4_999 {
        put_record(&memory, &ana, &format!("{number:04}"), &json!({ "entityType": "x", "observations": [] })).await;
    }
    let entities = json!({ "entities": [entity("a", "x", &[]), entity("b", "x", &[])] });
    let error = failure(&tools, "create_entities", entities).await;
    assert!(error.contains("the graph has 4999 entities; the maximum is 5000"), "{error}");
    create(&tools, &[entity("a", "x", &[]), entity("0000", "x", &[])]).await;
    assert!(failure(&tools, "create_entities", json!({ "entities": [entity("b", "x", &[])] })).await.contains("5000"));
    assert_eq!(create(&tools, &[entity("a", "x", &[])]).await["existing"], json!(["a"]));
}
