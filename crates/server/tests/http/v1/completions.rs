use serde_json::{Value, json};

use super::model::start_with_model;

#[tokio::test]
async fn completions_are_stored_if_store_is_true() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let ask = async |text: &str, members: Value| {
        let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": text, "name": "ana" }] });
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        client.post("/v1/chat/completions", body).await
    };
    let mut ids = Vec::new();
    for number in 0..25 {
        let metadata = json!({ "parity": if number % 2 == 0 { "even" } else { "odd" } });
        let completion = ask(&number.to_string(), json!({ "store": true, "metadata": metadata })).await.expect(200);
        ids.push(completion["id"].as_str().unwrap().to_owned());
    }
    let streamed = ask("streamed", json!({ "store": true, "stream": true })).await;
    assert!(streamed.text.ends_with("data: [DONE]\n\n"));
    let unstored = ask("x", json!({})).await.expect(200)["id"].as_str().unwrap().to_owned();
    assert_eq!(client.get(&format!("/v1/chat/completions/{unstored}")).await.code(404), "not_found");
    let list = async |query: &str| {
        let page = client.get(&format!("/v1/chat/completions?{query}")).await.expect(200);
        let ids =
            page["data"].as_array().unwrap().iter().map(|completion| completion["id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), page["has_more"].as_bool().unwrap())
    };
    assert_eq!(list("").await, (ids[..20].to_vec(), true));
    assert_eq!(list(&format!("after={}&limit=5", ids[19])).await, (ids[20..].to_vec(), true));
    // A completion names the model that answered, regardless of the model in the request.
    assert_eq!(list("model=echo&limit=1").await, (vec![ids[0].clone()], true));
    assert_eq!(list("model=other").await.0.len(), 0);
    let odd_ids: Vec<String> = ids.iter().skip(1).step_by(2).cloned().collect();
    assert_eq!(list("metadata[parity]=odd").await, (odd_ids, false));
    let path = format!("/v1/chat/completions/{}", ids[3]);
    let stored = client.get(&path).await.expect(200);
    assert_eq!(stored["choices"][0]["message"]["content"], "echo: 3 (1 messages)");
    let messages = client.get(&format!("{path}/messages")).await.expect(200);
    let message = json!({ "id": format!("{}-0", ids[3]), "role": "user", "content": "3", "name": "ana" });
    assert_eq!(messages["data"], json!([message]));
    let changed = client.post(&path, json!({ "metadata": { "a": "b" } })).await.expect(200);
    assert_eq!((&changed["metadata"], &changed["choices"]), (&json!({ "a": "b" }), &stored["choices"]));
    assert_eq!(client.get(&path).await.expect(200), changed);
    assert_eq!(client.delete(&path).await.expect(200)["object"], "chat.completion.deleted");
    assert_eq!(client.delete(&path).await.code(404), "not_found");
    assert_eq!(client.get("/v1/chat/completions/chatcmpl-0").await.code(404), "not_found");
}

/// Client programs that run agents keep the history themselves and resend it with each request.
#[tokio::test]
async fn resent_messages_are_stored_once() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let tools = json!([{ "type": "function", "function": { "name": "look", "parameters": { "type": "object" } } }]);
    let ask = async |messages: &[Value]| {
        let system = json!({ "role": "system", "content": "Be brief." });
        let messages: Vec<&Value> = [&system].into_iter().chain(messages).collect();
        let body = json!({ "messages": messages, "tools": tools, "metadata": { "thread": thread } });
        let completion = client.post("/v1/chat/completions", body).await.expect(200);
        completion["choices"][0]["message"].clone()
    };
    let user = |text: &str| json!({ "role": "user", "content": text });
    let mut messages = vec![user("call")];
    let mut calling_message = ask(&messages).await;
    let call_id = calling_message["tool_calls"][0]["id"].clone();
    // Clients may encode a call differently than the server did.
    calling_message["tool_calls"][0]["function"]["arguments"] = json!(r#"{ "at" : "14 St" }"#);
    calling_message["content"] = json!("");
    messages.extend([calling_message, json!({ "role": "tool", "tool_call_id": call_id, "content": "in 3 minutes" })]);
    let answer = ask(&messages).await;
    assert_eq!(answer["content"], "echo: in 3 minutes (4 messages)");
    messages.extend([answer, user("thanks")]);
    let answer = ask(&messages).await;
    assert_eq!(answer["content"], "echo: thanks (6 messages)");
    let stored_once = ["call", "", "", "echo: in 3 minutes (4 messages)", "thanks", "echo: thanks (6 messages)"];
    assert_eq!(client.texts(&thread).await, stored_once);
    // A later message with the same text is a new message.
    assert_eq!(ask(&[user("thanks")]).await["content"], "echo: thanks (8 messages)");
    // A request may begin in the middle of the thread, or branch off before its end.
    let completion = ask(&[messages[3..].to_vec(), vec![answer.clone(), user("two")]].concat()).await;
    assert_eq!(completion["content"], "echo: two (10 messages)");
    assert_eq!(ask(&[&messages[..4], &[user("three")]].concat()).await["content"], "echo: three (12 messages)");
    // A message that the thread does not contain is new, and so are all after it, even if the thread contains them.
    let completion = ask(&[user("before"), answer, user("four")]).await;
    assert_eq!(completion["content"], "echo: four (16 messages)");
    let texts = client.texts(&thread).await;
    assert_eq!(texts[6..8], ["thanks", "echo: thanks (8 messages)"]);
    assert_eq!(texts[8..12], ["two", "echo: two (10 messages)", "three", "echo: three (12 messages)"]);
    assert_eq!(texts[12..], ["before", "echo: thanks (6 messages)", "four", "echo: four (16 messages)"]);
    assert_eq!(model.requests.lock().unwrap().len(), 7);
}

#[tokio::test]
async fn an_empty_answer_in_the_first_request_is_stored() {
    let (server, _) = start_with_model().await;
    let (client, thread) = (server.client(), server.client().new_thread().await);
    let messages = json!([{ "role": "assistant", "content": "" }, { "role": "user", "content": "hello" }]);
    let body = json!({ "messages": messages, "metadata": { "thread": thread } });
    client.post("/v1/chat/completions", body).await.expect(200);
    assert_eq!(client.texts(&thread).await[..2], ["", "hello"]);
}

#[tokio::test]
async fn long_conversations_continue_in_their_thread() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let message = |number: usize| {
        let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
        json!({ "role": role, "content": format!("number {number}") })
    };
    let messages: Vec<Value> = (0..1_200).map(message).collect();
    let ask = async |messages: &[Value]| {
        let body = json!({ "messages": messages, "metadata": { "thread": thread } });
        client.post("/v1/chat/completions", body).await
    };
    // The request contains more new messages than one commit may contain.
    assert_eq!(ask(&messages[..701]).await.error(400)["param"], "messages");
    for chunk in messages.chunks(600) {
        let path = format!("/v1/threads/{thread}/messages");
        let messages: Vec<Value> =
            chunk.iter().map(|message| json!({ "role": message["role"], "text": message["content"] })).collect();
        client.post(&path, json!({ "messages": messages })).await.expect(201);
    }
    let last = json!({ "role": "user", "content": "and?" });
    ask(&[messages, vec![last]].concat()).await.expect(200);
    let page = client.get(&format!("/v1/threads/{thread}/messages?limit=3")).await.expect(200);
    let seqs: Vec<&Value> = page["data"].as_array().unwrap().iter().map(|message| &message["seq"]).collect();
    assert_eq!(seqs, [&json!(1202), &json!(1201), &json!(1200)]);
}
