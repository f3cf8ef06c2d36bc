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
