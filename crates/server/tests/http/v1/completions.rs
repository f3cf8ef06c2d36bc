use serde_json::{Value, json};

use super::model::with_model;

#[tokio::test]
async fn a_completion_is_stored_where_it_is_to_be() {
    let (server, _) = with_model().await;
    let client = server.client();
    let ask = async |text: &str, more: Value| {
        let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": text, "name": "ana" }] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.post("/v1/chat/completions", body).await
    };
    let mut ids = Vec::new();
    for number in 0..25 {
        let metadata = json!({ "parity": if number % 2 == 0 { "even" } else { "odd" } });
        let told = ask(&number.to_string(), json!({ "store": true, "metadata": metadata })).await.expect(200);
        ids.push(told["id"].as_str().unwrap().to_owned());
    }
    let streamed = ask("streamed", json!({ "store": true, "stream": true, "model": "other" })).await;
    assert!(streamed.text.ends_with("data: [DONE]\n\n"));
    let unkept = ask("x", json!({})).await.expect(200)["id"].as_str().unwrap().to_owned();
    assert_eq!(client.get(&format!("/v1/chat/completions/{unkept}")).await.code(404), "not_found");
    let list = async |query: &str| {
        let page = client.get(&format!("/v1/chat/completions?{query}")).await.expect(200);
        let ids = page["data"].as_array().unwrap().iter().map(|told| told["id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), page["has_more"].as_bool().unwrap())
    };
    assert_eq!(list("").await, (ids[..20].to_vec(), true));
    assert_eq!(list(&format!("after={}&limit=5", ids[19])).await, (ids[20..].to_vec(), true));
    assert_eq!(list("model=m&order=desc&limit=1").await, (vec![ids[24].clone()], true));
    assert_eq!(list("model=other").await.0.len(), 1);
    let odd: Vec<String> = ids.iter().skip(1).step_by(2).cloned().collect();
    assert_eq!(list("metadata[parity]=odd").await, (odd, false));
    let path = format!("/v1/chat/completions/{}", ids[3]);
    let kept = client.get(&path).await.expect(200);
    assert_eq!(kept["choices"][0]["message"]["content"], "echo: 3 (1 messages)");
    let asked = client.get(&format!("{path}/messages")).await.expect(200);
    let message = json!({ "id": format!("{}-0", ids[3]), "role": "user", "content": "3", "name": "ana" });
    assert_eq!(asked["data"], json!([message]));
    let changed = client.post(&path, json!({ "metadata": { "a": "b" } })).await.expect(200);
    assert_eq!((&changed["metadata"], &changed["choices"]), (&json!({ "a": "b" }), &kept["choices"]));
    assert_eq!(client.get(&path).await.expect(200), changed);
    assert_eq!(client.delete(&path).await.expect(200)["object"], "chat.completion.deleted");
    assert_eq!(client.delete(&path).await.code(404), "not_found");
    assert_eq!(client.get("/v1/chat/completions/chatcmpl-0").await.code(404), "not_found");
}
