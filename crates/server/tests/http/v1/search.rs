use serde_json::{Value, json};

use crate::TestServer;

#[tokio::test]
async fn messages_are_searched_recalled_and_assembled() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    client.say(&thread, "The stove burns paraffin.").await;
    client.say(&thread, "Nothing of interest.").await;
    let hits = client.post("/v1/search", json!({ "query": "stoves" })).await.expect(200);
    let hit = &hits["hits"][0];
    assert_eq!((&hit["thread"], &hit["message"]["seq"]), (&json!(thread), &json!(1)));
    assert_eq!(hit["snippet"]["matches"], json!([{ "start": 4, "end": 9 }]));
    let recalled = client.post("/v1/recall", json!({ "question": "What does the stove burn?" })).await.expect(200);
    assert_eq!((&recalled["turns"][0]["message"]["seq"], &recalled["meaning"]), (&json!(1), &json!("absent")));
    let body =
        json!({ "question": "And now?", "policy": { "system_prompt": "Be brief.", "window": 1 }, "turn": "t-1" });
    let context = client.post(&format!("/v1/threads/{thread}/context"), body).await.expect(200);
    let texts: Vec<&Value> =
        context["messages"].as_array().unwrap().iter().map(|message| &message["parts"][0]["text"]).collect();
    assert!(texts.first().unwrap().as_str().unwrap().starts_with("Be brief."));
    assert_eq!(texts.last().unwrap().as_str(), Some("And now?"));
    assert_eq!(context["is_report_kept"], true);
    let report = client.get(&format!("/v1/threads/{thread}/context/t-1")).await.expect(200);
    assert_eq!(report, context["report"]);
    let invalid = json!({ "policy": { "window": 0 } });
    let refused = client.post(&format!("/v1/threads/{thread}/context"), invalid).await;
    assert_eq!(refused.code(400), "invalid_policy");
    let analytics = client.get(&format!("/v1/analytics?thread={thread}")).await.expect(200);
    assert_eq!((&analytics["messages"], &analytics["roles"]), (&json!(2), &json!({ "user": 2 })));
}

#[tokio::test]
async fn searches_use_the_common_syntax() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    client.say(&thread, "The stove burns paraffin.").await;
    client.say(&thread, "Paraffin for the other stove.").await;
    for (query, expected) in [
        ("\"burns paraffin\"", json!([1])),
        ("stove -burns", json!([2])),
        ("paraf*", json!([2, 1])),
        ("stove until:2020", json!([])),
        ("role:assistant", json!([])),
        ("stove \"", json!([2, 1])),
    ] {
        let found = client.post("/v1/search", json!({ "query": query })).await.expect(200);
        let seqs = found["hits"].as_array().unwrap().iter().map(|hit| hit["message"]["seq"].clone());
        let mut seqs: Vec<Value> = seqs.collect();
        let mut expected = expected.as_array().unwrap().clone();
        seqs.sort_by_key(Value::as_u64);
        expected.sort_by_key(Value::as_u64);
        assert_eq!((seqs, &found["corrections"]), (expected, &json!([])), "{query}");
    }
    let found = client.post("/v1/search", json!({ "query": "parafin" })).await.expect(200);
    assert_eq!(found["corrections"], json!([{ "word": "parafin", "instead": "paraffin" }]));
    assert_eq!(found["hits"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn searches_and_recalls_are_filtered_by_metadata() {
    let server = TestServer::start().await;
    let client = server.client();
    let mut threads = Vec::new();
    for env in ["prod", "test"] {
        let opened = client.post("/v1/threads", json!({ "metadata": { "env": env, "number": 3 } })).await.expect(201);
        let id = opened["id"].as_str().unwrap().to_owned();
        let messages = json!([
            { "role": "user", "text": "The stove burns paraffin.", "metadata": { "topic": "stoves" } },
            { "role": "user", "text": "The other stove burns wood.", "metadata": { "topic": "wood" } },
        ]);
        client.post(&format!("/v1/threads/{id}/messages"), json!({ "messages": messages })).await.expect(201);
        threads.push(id);
    }
    let found = async |path: &str, list: &str, filter: Value| {
        let mut body = if path == "/v1/search" { json!({ "query": "stove" }) } else { json!({ "question": "stove?" }) };
        body.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
        let answer = client.post(path, body).await.expect(200);
        let hits = answer[list].as_array().unwrap().iter();
        let mut found: Vec<_> = hits
            .map(|hit| (hit["thread"].as_str().unwrap().to_owned(), hit["message"]["seq"].as_u64().unwrap()))
            .collect();
        found.sort();
        found
    };
    let [prod, test] = [&threads[0], &threads[1]];
    let both = |thread: &String| vec![(thread.clone(), 1), (thread.clone(), 2)];
    for (path, list) in [("/v1/search", "hits"), ("/v1/recall", "turns")] {
        for (filter, expected) in [
            (json!({}), [both(prod), both(test)].concat()),
            (json!({ "metadata": null, "message_metadata": null }), [both(prod), both(test)].concat()),
            (json!({ "metadata": { "env": "prod" } }), both(prod)),
            (json!({ "metadata": { "env": "test", "number": 3 } }), both(test)),
            (json!({ "metadata": { "number": "3" } }), vec![]),
            (json!({ "metadata": { "env": "prod" }, "thread": test }), vec![]),
            (json!({ "message_metadata": { "topic": "wood" }, "thread": test }), vec![(test.clone(), 2)]),
            (
                json!({ "metadata": { "env": "prod" }, "message_metadata": { "topic": "stoves" } }),
                vec![(prod.clone(), 1)],
            ),
            (json!({ "metadata": { "topic": "stoves" } }), vec![]),
        ] {
            let mut expected = expected;
            expected.sort();
            assert_eq!(found(path, list, filter.clone()).await, expected, "{path} {filter}");
        }
        for member in ["metadata", "message_metadata"] {
            for value in
                [json!({ "a": [1] }), json!({ "a": 0.5 }), json!({ "a": null }), json!({ "": "x" }), json!("a=b")]
            {
                let body = if path == "/v1/search" {
                    json!({ "query": "x", member: value })
                } else {
                    json!({ "question": "x", member: value })
                };
                let error = client.post(path, body).await.error(400);
                assert_eq!(error["param"], member, "{value}: {error}");
            }
        }
    }
}
