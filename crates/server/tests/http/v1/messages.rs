use serde_json::{Value, json};

use crate::TestServer;
use crate::server::send;

fn seqs_of(page: &Value) -> Vec<u64> {
    page["data"].as_array().unwrap().iter().map(|message| message["seq"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn messages_are_returned_unchanged() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let raw = r#"{"z":1.10,"a":"\u00e9","n":null}"#;
    let body = format!(
        r#"{{"messages":[{{"role":"user","text":"When?","author":"ana","external_id":"x-1","created_at":"2026-05-04T18:12:00Z"}},
        {{"role":"assistant","parts":[{{"reasoning":"hm"}},{{"text":"At nine."}},{{"tool_call":{{"id":"c1","name":"look","arguments":{raw}}}}},
        {{"raw":{{"format":"other","json":{raw}}}}}],"data":{raw},"agent":"a","sources":[{{"kind":"k","id":"1"}}],
        "usage":{{"input_tokens":3}},"metadata":{{"m":true}}}},
        {{"role":"tool","parts":[{{"tool_result":{{"call_id":"c1","output":"ok"}}}}]}}]}}"#
    );
    let path = format!("/v1/threads/{thread}/messages");
    let request = client.request("POST", &path).header("content-type", "application/json").body(body);
    let appended = send(request).await;
    assert!(appended.header("etag").starts_with("\"1-"), "{}", appended.header("etag"));
    let appended = appended.expect(201);
    assert_eq!((&appended["first_seq"], &appended["count"]), (&json!(1), &json!(3)));
    let page = client.get(&format!("{path}?order=asc")).await;
    assert_eq!(page.text.matches(raw).count(), 3, "JSON is preserved exactly: {}", page.text);
    let page = page.expect(200);
    let second = &page["data"][1];
    assert_eq!((&second["text"], &second["agent"]), (&json!("At nine."), &json!("a")));
    assert_eq!(page["data"][0]["created_at"], "2026-05-04T18:12:00Z");
    let by_seq = client.get(&format!("{path}/2")).await.expect(200);
    let by_id = client.get(&format!("{path}/{}", by_seq["id"].as_str().unwrap())).await.expect(200);
    assert_eq!((&by_seq, &by_id), (second, second));
    assert_eq!(client.get(&format!("{path}/9")).await.code(404), "not_found");
}

// S1.14, S1.15, S1.16
#[tokio::test]
async fn messages_sorted_by_time_are_paged_without_gaps_if_times_are_equal() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let path = format!("/v1/threads/{thread}/messages");
    // Two of three messages have the same time, and the times are not in the order of appending.
    let second = |number: usize| if number.is_multiple_of(3) { 59 - number } else { 30 };
    let messages: Vec<Value> = (0..30)
        .map(|number| {
            let created_at = format!("2026-01-01T00:00:{:02}Z", second(number));
            json!({ "role": "user", "text": number.to_string(), "created_at": created_at })
        })
        .collect();
    client.post(&path, json!({ "messages": messages })).await.expect(201);
    let mut expected: Vec<u64> = (1..=30).collect();
    expected.sort_by_key(|seq| (second(*seq as usize - 1), *seq));
    for limit in [1, 4, 7, 30, 100] {
        for (order, bound) in [("asc", "after"), ("desc", "before")] {
            let (mut seen, mut position) = (Vec::new(), String::new());
            loop {
                let page =
                    client.get(&format!("{path}?sort=time&order={order}&limit={limit}{position}")).await.expect(200);
                seen.extend(seqs_of(&page));
                assert_eq!(page["has_more"], json!(page["next"].is_string()));
                let Some(next) = page["next"].as_str() else { break };
                position = format!("&{bound}={next}");
            }
            if order == "desc" {
                seen.reverse();
            }
            assert_eq!(seen, expected, "{order} {limit}");
        }
    }
    let bounds = "after=2026-01-01T00:00:30Z&before=2026-01-01T00:00:50Z";
    let page = client.get(&format!("{path}?sort=time&order=asc&{bounds}")).await.expect(200);
    let between = expected.iter().filter(|seq| (31..50).contains(&second(**seq as usize - 1)));
    assert_eq!(seqs_of(&page), between.copied().collect::<Vec<_>>());
    for wrong in ["sort=size", "sort=time&after=7", "sort=time&order=asc&before=2026-01-01T00:00:30Z,7"] {
        assert_eq!(client.get(&format!("{path}?{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn content_can_have_the_format_of_the_openai_api() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let path = format!("/v1/threads/{thread}/messages");
    let image = json!({ "type": "image_url", "image_url": { "url": "https://example.org/a.png", "detail": "low" } });
    let call = json!({ "type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"at\": 1}" });
    let messages = json!([
        { "type": "message", "role": "user", "content": "hello" },
        { "role": "user", "content": [{ "type": "input_text", "text": "what is this?" }, image] },
        { "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }, call] },
        { "role": "tool", "content": [{ "type": "function_call_output", "call_id": "c1", "output": "a lamp" }] },
        { "role": "assistant", "content": [{ "text": "A lamp." }] },
    ]);
    client.post(&path, json!({ "messages": messages })).await.expect(201);
    let page = client.get(&format!("{path}?order=asc")).await.expect(200);
    let parts: Vec<Value> = page["data"].as_array().unwrap().iter().map(|message| message["parts"].clone()).collect();
    let image = json!({ "image": { "url": "https://example.org/a.png", "detail": "low" } });
    assert_eq!(parts[0], json!([{ "text": "hello" }]));
    assert_eq!(parts[1], json!([{ "text": "what is this?" }, image]));
    assert_eq!(parts[2][1]["tool_call"], json!({ "id": "c1", "name": "look", "arguments": { "at": 1 } }));
    assert_eq!(parts[3][0]["tool_result"]["output"], "a lamp");
    assert_eq!(parts[4], json!([{ "text": "A lamp." }]));
    for (wrong, param) in [
        (json!({ "role": "user", "content": "a", "text": "b" }), "content"),
        (json!({ "role": "user", "content": 7 }), "content"),
        (json!({ "role": "user", "content": [{ "type": "video" }] }), "content[0]"),
        (json!({ "role": "user", "content": [{ "type": "text" }] }), "content[0]"),
    ] {
        assert_eq!(client.post(&path, json!({ "messages": [wrong] })).await.error(400)["param"], param);
    }
    let replaced =
        client.send("PUT", &format!("{path}/1"), json!({ "role": "user", "content": "bye" })).await.expect(200);
    assert_eq!(replaced["text"], "bye");
}

#[tokio::test]
async fn pages_are_complete_in_both_orders_and_filters_apply_before_the_limit() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let path = format!("/v1/threads/{thread}/messages");
    let roles = ["user", "assistant"];
    let messages: Vec<Value> = (0..25)
        .map(|count| json!({ "role": roles[count % 2], "text": count.to_string(), "created_at": format!("2026-01-01T00:00:{count:02}Z") }))
        .collect();
    client.post(&path, json!({ "messages": messages })).await.expect(201);
    for (order, bound) in [("asc", "after"), ("desc", "before")] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = client.get(&format!("{path}?order={order}&limit=10{cursor}")).await.expect(200);
            seen.extend(seqs_of(&page));
            assert_eq!(page["has_more"], json!(page["next"].is_u64()));
            match page["next"].as_u64() {
                Some(next) => cursor = format!("&{bound}={next}"),
                None => break,
            }
        }
        if order == "desc" {
            seen.reverse();
        }
        assert_eq!(seen, (1..=25).collect::<Vec<_>>(), "{order}");
    }
    // S1.03
    let newest = client.get(&format!("{path}?limit=3&before=2026-01-01T00:00:10Z")).await.expect(200);
    assert_eq!(seqs_of(&newest), [10, 9, 8]);
    let filtered = client.get(&format!("{path}?after=20&role=assistant&order=asc")).await.expect(200);
    assert_eq!(seqs_of(&filtered), [22, 24]);
    assert_eq!(client.get(&format!("{path}?role=robot")).await.error(400)["param"], "role");
    assert_eq!(client.get(&format!("{path}?before=yesterday")).await.error(400)["param"], "before");
}

#[tokio::test]
async fn messages_are_replaced_and_erased() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    client.say(&thread, "first words").await;
    client.say(&thread, "second words").await;
    let path = format!("/v1/threads/{thread}/messages");
    let content = json!({ "role": "user", "text": "other words" });
    let stale = send(client.request("PUT", &format!("{path}/1")).header("if-match", "\"1\"").json(&content)).await;
    assert_eq!(stale.code(412), "changed_meanwhile");
    let replaced = client.send("PUT", &format!("{path}/1"), content).await.expect(200);
    assert_eq!((&replaced["seq"], &replaced["revision"]), (&json!(1), &json!(1)));
    assert_eq!(client.delete(&format!("{path}/1")).await.status, 204);
    assert_eq!(client.delete(&format!("{path}/1")).await.code(404), "not_found");
    assert_eq!(client.texts(&thread).await, ["second words"]);
}

// S1.08
#[tokio::test]
async fn rejected_requests_store_nothing() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let path = format!("/v1/threads/{thread}/messages");
    let empty = client.post(&path, json!({ "messages": [] })).await.expect(201);
    assert_eq!((&empty["count"], &empty["change"]), (&json!(0), &json!(0)));
    assert_eq!(client.post(&path, json!({ "messages": null })).await.error(400)["param"], "messages");
    client.post("/v1/threads//messages", json!({ "messages": [] })).await.error(404);
    let partly_invalid =
        json!({ "messages": [{ "role": "user", "text": "fine" }, { "role": "user", "text": "nul \u{0}" }] });
    assert_eq!(client.post(&path, partly_invalid).await.error(400)["param"], "text");
    let stale = json!({ "messages": [{ "role": "user", "text": "late" }], "expected_seq": 7 });
    assert_eq!(client.post(&path, stale).await.code(409), "seq_conflict");
    let duplicate_ids =
        json!({ "messages": [{ "role": "user", "external_id": "x" }, { "role": "user", "external_id": "x" }] });
    assert_eq!(client.post(&path, duplicate_ids).await.error(400)["param"], "external id");
    assert_eq!(client.texts(&thread).await, [""; 0]);
}
