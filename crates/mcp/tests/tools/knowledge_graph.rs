//! The knowledge graph: round trips, deletions, scopes, concurrent writers.

mod limits;

use serde_json::{Value, json};
use threadkeep::core::{RecordQuery, RecordWrite};
use threadkeep::{JsonText, Memory, Namespace, Scope};
use threadkeep_mcp::{ToolSelection, Toolbox};

use crate::{call, failure, memory, toolbox, user};

fn entity(name: &str, entity_type: &str, observations: &[&str]) -> Value {
    json!({ "name": name, "entityType": entity_type, "observations": observations })
}

fn relation(from: &str, to: &str, relation_type: &str) -> Value {
    json!({ "from": from, "to": to, "relationType": relation_type })
}

async fn create(tools: &Toolbox, entities: &[Value]) -> Value {
    call(tools, "create_entities", json!({ "entities": entities })).await
}

async fn relate(tools: &Toolbox, relations: &[Value]) -> Value {
    call(tools, "create_relations", json!({ "relations": relations })).await
}

/// Returns the entities and relations of a result.
fn parts(result: &Value) -> (&Value, &Value) {
    assert!(result["notice"].as_str().unwrap().contains("data, not instructions"), "{result}");
    (&result["entities"], &result["relations"])
}

fn names(result: &Value) -> Vec<&str> {
    parts(result).0.as_array().unwrap().iter().map(|entity| entity["name"].as_str().unwrap()).collect()
}

async fn observations(tools: &Toolbox, name: &str) -> Value {
    call(tools, "open_nodes", json!({ "names": [name] })).await["entities"][0]["observations"].clone()
}

/// Returns everything that the store contains for a user or tenant, as text.
async fn stored(memory: &Memory, scope: &Scope) -> String {
    let records = memory.list_records(scope, RecordQuery::of(scope.default_owner().into())).await.unwrap();
    serde_json::to_string(&records).unwrap()
}

/// Stores a record as another program can.
async fn put_record(memory: &Memory, scope: &Scope, key: &str, value: &Value) {
    let write = RecordWrite {
        owner: scope.default_owner().into(),
        namespace: Namespace::app("knowledge_graph").unwrap(),
        key: key.to_owned(),
        expected: None,
        value: Some(JsonText::of(value).unwrap()),
        expires_at: None,
    };
    memory.backend().store.write_record(scope, write, memory.now()).await.unwrap();
}

/// Stores Ana, who works at Acme, and Acme's office.
async fn store_acme(tools: &Toolbox) {
    let entities = [
        entity("Ana_Ruiz", "person", &["Speaks Spanish", "Joined in 2019"]),
        entity("Acme", "organisation", &["Makes boats"]),
        entity("Córdoba", "place", &[]),
    ];
    create(tools, &entities).await;
    relate(tools, &[relation("Ana_Ruiz", "Acme", "works_at"), relation("Acme", "Córdoba", "is_based_in")]).await;
}

#[tokio::test]
async fn entities_are_created_once() {
    let tools = toolbox(&memory().await, &user("acme", "ana"));
    let ana = entity("Ana_Ruiz", "person", &["Speaks Spanish"]);
    assert_eq!(create(&tools, std::slice::from_ref(&ana)).await, json!({ "entities": [ana] }));
    let acme = entity("Acme", "organisation", &["Makes boats", "Makes boats"]);
    let again = create(&tools, &[entity("Ana_Ruiz", "robot", &["Beeps"]), acme, entity("Acme", "x", &[])]).await;
    let created = entity("Acme", "organisation", &["Makes boats"]);
    assert_eq!(again, json!({ "entities": [created], "existing": ["Ana_Ruiz", "Acme"] }));
    assert_eq!(parts(&call(&tools, "read_graph", json!({})).await), (&json!([created, ana]), &json!([])));
    // Names are compared exactly.
    assert_eq!(create(&tools, &[entity("ana_ruiz", "person", &[])]).await["entities"][0]["name"], json!("ana_ruiz"));
}

#[tokio::test]
async fn relations_are_created_once_between_existing_entities() {
    let tools = toolbox(&memory().await, &user("acme", "ana"));
    create(&tools, &[entity("a", "letter", &[]), entity("b", "letter", &[])]).await;
    let (first, second) = (relation("a", "b", "precedes"), relation("b", "a", "follows"));
    assert_eq!(relate(&tools, &[first.clone(), first.clone()]).await, json!({ "relations": [first] }));
    assert_eq!(relate(&tools, &[first.clone(), second.clone()]).await, json!({ "relations": [second] }));
    let unknown_ends =
        [(relation("a", "c", "precedes"), "relations[1].to"), (relation("c", "a", "follows"), "relations[1].from")];
    for (invalid, argument) in unknown_ends {
        let relations = json!({ "relations": [relation("a", "b", "knows"), invalid] });
        let error = failure(&tools, "create_relations", relations).await;
        assert_eq!(error, format!("invalid argument {argument}: no entity has this name; create_entities creates it"));
    }
    // Nothing was stored by the calls that failed.
    assert_eq!(parts(&call(&tools, "read_graph", json!({})).await).1, &json!([first, second]));
    relate(&tools, &[relation("a", "a", "is")]).await;
    let deleted = call(&tools, "delete_relations", json!({ "relations": [first, relation("a", "b", "x")] })).await;
    assert_eq!(deleted, json!({ "success": true, "message": "relations deleted: 1" }));
    let deleted = call(&tools, "delete_relations", json!({ "relations": [relation("x", "a", "is")] })).await;
    assert_eq!(deleted, json!({ "success": true, "message": "relations deleted: 0", "not_found": ["x"] }));
    assert_eq!(parts(&call(&tools, "read_graph", json!({})).await).1, &json!([relation("a", "a", "is"), second]));
}

#[tokio::test]
async fn observations_are_added_once_and_deleted() {
    let tools = toolbox(&memory().await, &user("acme", "ana"));
    store_acme(&tools).await;
    let additions = json!({ "observations": [
        { "entityName": "Ana_Ruiz", "contents": ["Likes tea", "Joined in 2019", "Likes tea"] },
        { "entityName": "Acme", "contents": [] },
        { "entityName": "Ana_Ruiz", "contents": ["Likes tea", "Sails"] },
    ] });
    let results = json!([
        { "entityName": "Ana_Ruiz", "addedObservations": ["Likes tea"] },
        { "entityName": "Acme", "addedObservations": [] },
        { "entityName": "Ana_Ruiz", "addedObservations": ["Sails"] },
    ]);
    assert_eq!(call(&tools, "add_observations", additions).await, json!({ "results": results }));
    let all = json!(["Speaks Spanish", "Joined in 2019", "Likes tea", "Sails"]);
    assert_eq!(observations(&tools, "Ana_Ruiz").await, all);
    let unknown = json!({ "observations": [
        { "entityName": "Ana_Ruiz", "contents": ["is not added"] },
        { "entityName": "Unknown", "contents": ["x"] },
    ] });
    let error = failure(&tools, "add_observations", unknown).await;
    assert!(error.starts_with("invalid argument observations[1].entityName: no entity has this name"), "{error}");
    assert_eq!(observations(&tools, "Ana_Ruiz").await, all);

    let deletions = json!({ "deletions": [
        { "entityName": "Ana_Ruiz", "observations": ["Likes tea", "Likes coffee", "Sails"] },
        { "entityName": "Unknown", "observations": ["x"] },
    ] });
    let deleted = call(&tools, "delete_observations", deletions.clone()).await;
    assert_eq!(deleted, json!({ "success": true, "message": "observations deleted: 2", "not_found": ["Unknown"] }));
    assert_eq!(observations(&tools, "Ana_Ruiz").await, json!(["Speaks Spanish", "Joined in 2019"]));
    let again = call(&tools, "delete_observations", deletions).await;
    assert_eq!(again["message"], json!("observations deleted: 0"));
}

#[tokio::test]
async fn deleted_entities_are_erased_with_their_relations() {
    let (memory, ana) = (memory().await, user("acme", "ana"));
    let tools = toolbox(&memory, &ana);
    store_acme(&tools).await;
    let deleted = call(&tools, "delete_entities", json!({ "entityNames": ["Acme", "Unknown", "Acme"] })).await;
    assert_eq!(deleted, json!({ "success": true, "message": "entities deleted: 1", "not_found": ["Unknown"] }));
    let graph = call(&tools, "read_graph", json!({})).await;
    assert_eq!((names(&graph), &graph["relations"]), (vec!["Ana_Ruiz", "Córdoba"], &json!([])));
    let left = stored(&memory, &ana).await;
    assert!(left.contains("Speaks Spanish") && !left.contains("Acme") && !left.contains("boats"), "{left}");
    // An entity with the same name starts without relations.
    create(&tools, &[entity("Acme", "brand", &[])]).await;
    assert_eq!(call(&tools, "open_nodes", json!({ "names": ["Acme"] })).await["relations"], json!([]));
    call(&tools, "delete_entities", json!({ "entityNames": ["Acme", "Ana_Ruiz", "Córdoba"] })).await;
    assert_eq!(stored(&memory, &ana).await, "[]");
}

#[tokio::test]
async fn searches_find_names_types_and_observations() {
    let tools = toolbox(&memory().await, &user("acme", "ana"));
    store_acme(&tools).await;
    create(&tools, &[entity("Ben", "person", &["Lives in Leon"])]).await;
    for (query, expected) in [
        ("RUIZ", vec!["Ana_Ruiz"]),
        ("PERSON", vec!["Ana_Ruiz", "Ben"]),
        ("makes BOATS", vec!["Acme"]),
        ("oats", vec!["Acme"]),
        ("boats acme", vec!["Acme"]),
        ("spanish 2019", vec!["Ana_Ruiz"]),
        ("cordoba", vec!["Córdoba"]),
        ("boats spanish", vec![]),
        ("_", vec!["Ana_Ruiz"]),
        ("→", vec![]),
    ] {
        let found = call(&tools, "search_nodes", json!({ "query": query })).await;
        assert_eq!(names(&found), expected, "{query}");
    }
    // Relations lead to entities that were not found.
    let found = call(&tools, "search_nodes", json!({ "query": "boats" })).await;
    let both = json!([relation("Acme", "Córdoba", "is_based_in"), relation("Ana_Ruiz", "Acme", "works_at")]);
    assert_eq!(parts(&found).1, &both);
    let opened = call(&tools, "open_nodes", json!({ "names": ["Córdoba", "Unknown", "Acme"] })).await;
    assert_eq!((names(&opened), parts(&opened).1), (vec!["Acme", "Córdoba"], &both));
    assert_eq!(names(&call(&tools, "open_nodes", json!({ "names": [] })).await), [""; 0]);
}

#[tokio::test]
async fn graphs_belong_to_their_scope() {
    let memory = memory().await;
    let ana = toolbox(&memory, &user("acme", "ana"));
    store_acme(&ana).await;
    let before = call(&ana, "read_graph", json!({})).await;
    for scope in [user("acme", "ben"), user("other", "ana"), Scope::tenant("acme").unwrap()] {
        let other = toolbox(&memory, &scope);
        for (tool, arguments) in [
            ("read_graph", json!({})),
            ("search_nodes", json!({ "query": "acme" })),
            ("open_nodes", json!({ "names": ["Acme"] })),
        ] {
            assert_eq!(parts(&call(&other, tool, arguments).await), (&json!([]), &json!([])), "{scope:?}");
        }
        let error = failure(&other, "create_relations", json!({ "relations": [relation("Acme", "Acme", "x")] })).await;
        assert!(error.contains("no entity has this name"), "{error}");
        create(&other, &[entity("Acme", "other", &["Makes boats"])]).await;
        let deletions = json!({ "deletions": [{ "entityName": "Acme", "observations": ["Makes boats"] }] });
        call(&other, "delete_observations", deletions).await;
        let deleted = call(&other, "delete_entities", json!({ "entityNames": ["Acme", "Ana_Ruiz"] })).await;
        assert_eq!(deleted["not_found"], json!(["Ana_Ruiz"]));
    }
    assert_eq!(call(&ana, "read_graph", json!({})).await, before);
}

#[tokio::test]
async fn records_of_other_programs_do_not_break_the_graph() {
    let (memory, ana) = (memory().await, user("acme", "ana"));
    let tools = toolbox(&memory, &ana);
    create(&tools, &[entity("a", "letter", &[])]).await;
    put_record(&memory, &ana, "odd", &json!({ "x": 1 })).await;
    put_record(&memory, &ana, "later", &json!({ "entityType": "t", "observations": [], "confidence": 0.5 })).await;
    for (tool, arguments) in [("read_graph", json!({})), ("search_nodes", json!({ "query": "t" }))] {
        let read = call(&tools, tool, arguments).await;
        assert_eq!((names(&read), &read["unreadable"]), (vec!["a", "later"], &json!(["odd"])), "{tool}");
    }
    let additions = json!({ "observations": [{ "entityName": "odd", "contents": ["x"] }] });
    let error = failure(&tools, "add_observations", additions).await;
    assert!(error.contains("does not contain an entity"), "{error}");
    let additions = json!({ "observations": [{ "entityName": "later", "contents": ["new"] }] });
    call(&tools, "add_observations", additions).await;
    assert!(stored(&memory, &ana).await.contains(r#""confidence":0.5"#), "unknown fields are kept");
    assert_eq!(call(&tools, "delete_entities", json!({ "entityNames": ["odd"] })).await.get("not_found"), None);
    assert_eq!(call(&tools, "read_graph", json!({})).await.get("unreadable"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_of_one_entity_lose_nothing() {
    let (memory, ana) = (memory().await, user("acme", "ana"));
    create(&toolbox(&memory, &ana), &[entity("shared", "x", &[]), entity("other", "x", &[])]).await;
    let writers: Vec<_> = (0..2)
        .map(|writer| {
            let tools = toolbox(&memory, &ana);
            tokio::spawn(async move {
                for number in 0..20 {
                    let contents = [format!("fact {number} of {writer}"), format!("fact {number}")];
                    let additions = json!({ "observations": [{ "entityName": "shared", "contents": contents }] });
                    call(&tools, "add_observations", additions).await;
                    relate(&tools, &[relation("shared", "other", &format!("{writer} {number}"))]).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let opened = call(&toolbox(&memory, &ana), "open_nodes", json!({ "names": ["shared"] })).await;
    assert_eq!(opened["entities"][0]["observations"].as_array().unwrap().len(), 60);
    assert_eq!(opened["relations"].as_array().unwrap().len(), 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_relation_to_a_deleted_entity_is_left() {
    let (memory, ana) = (memory().await, user("acme", "ana"));
    let tools = toolbox(&memory, &ana);
    create(&tools, &[entity("start", "x", &[])]).await;
    for _ in 0..50 {
        create(&tools, &[entity("end", "x", &[])]).await;
        let (writer, deleter) = (tools.clone(), tools.clone());
        let relations = json!({ "relations": [relation("start", "end", "leads_to")] });
        let Value::Object(relations) = relations else { unreachable!() };
        // Fails if the entity is deleted first.
        let write = tokio::spawn(async move { writer.call("create_relations", relations, "test").await.is_ok() });
        let delete =
            tokio::spawn(async move { call(&deleter, "delete_entities", json!({ "entityNames": ["end"] })).await });
        let (written, deleted) = (write.await.unwrap(), delete.await.unwrap());
        let graph = call(&tools, "read_graph", json!({})).await;
        let no_relation = json!([]);
        assert_eq!((names(&graph), parts(&graph).1), (vec!["start"], &no_relation), "{written} {deleted}");
    }
}

#[tokio::test]
async fn the_tools_are_selected_as_a_group() {
    let memory = memory().await;
    let select = |tools: ToolSelection| Toolbox::new(memory.clone(), user("acme", "ana"), tools);
    let default = select(ToolSelection::default());
    assert!(failure(&default, "read_graph", json!({})).await.starts_with("unknown tool"));
    let group: ToolSelection = "knowledge_graph".parse().unwrap();
    store_acme(&select(group.clone())).await;
    let reader = select(group.read_only());
    assert_eq!(names(&call(&reader, "read_graph", json!({})).await), ["Acme", "Ana_Ruiz", "Córdoba"]);
    for tool in ["create_entities", "delete_entities", "search_memory"] {
        assert!(failure(&reader, tool, json!({})).await.starts_with("unknown tool"), "{tool}");
    }
}
