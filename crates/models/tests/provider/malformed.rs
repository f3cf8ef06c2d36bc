//! Tool calls that a model wrote as text, or that its provider could not parse.

use serde_json::{Value, json};
use threadkeep_core::{Finish, ModelError};
use threadkeep_models::Provider;

use crate::server::{Reply, Server, ask, config, event, model, request_with, short};

const CALL: &str = "<function=arrivals {\"station\": \"Times Sq\"}></function>";

fn text_reply(pieces: &[&str]) -> Reply {
    let mut events: Vec<String> =
        pieces.iter().map(|piece| event(&json!({"choices": [{"index": 0, "delta": {"content": piece}}]}))).collect();
    events.push(event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})));
    Reply::stream(events)
}

fn failed(generation: &str) -> Value {
    json!({
        "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        "type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": generation, "status_code": 400,
    })
}

async fn answer_to(replies: Vec<Reply>) -> (Result<(Vec<String>, Finish), ModelError>, String, usize) {
    let server = Server::start(replies).await;
    let (model, _) = model(config(Provider::Groq, &server, "m"));
    let (answer, streamed) = ask(&model, &request_with("Next train at Times Square?")).await;
    assert!(server.has_answered_all());
    (answer.map(|answer| (short(&answer), answer.finish)), streamed.concat(), server.requests().len())
}

#[tokio::test]
async fn a_call_in_text_is_parsed_and_never_displayed() {
    // S2.42, as far as the model is concerned: the agent runs the tool.
    let (answer, streamed, _) =
        answer_to(vec![text_reply(&["I look. <func", "tion=arrivals {\"station\": ", "\"Times Sq\"}></function>"])])
            .await;
    let expected = vec!["I look. ".to_owned(), r#"written_5_1 arrivals {"station":"Times Sq"}"#.to_owned()];
    assert_eq!(answer.unwrap(), (expected, Finish::ToolCalls));
    assert_eq!(streamed, "I look. ");
}

#[tokio::test]
async fn a_failed_generation_becomes_a_call() {
    // S2.44, as far as the model is concerned.
    let expected = (vec![r#"written_5_1 arrivals {"station":"Times Sq"}"#.to_owned()], Finish::ToolCalls);
    for reply in [
        Reply::json(400, &json!({"error": failed(CALL)})),
        Reply::stream([format!("event: error\ndata: {}\n\n", json!({"error": failed(CALL)}))]),
        Reply::json(200, &json!({"error": failed(CALL)})),
        Reply::new(
            400,
            "text/plain",
            [format!("Error code: 400 - {{'error': {{'code': 'tool_use_failed', 'failed_generation': '{CALL}'}}}}")],
        ),
    ] {
        let (answer, streamed, request_count) = answer_to(vec![reply]).await;
        assert_eq!((answer.unwrap(), streamed.as_str(), request_count), (expected.clone(), "", 1));
    }
}

#[tokio::test]
async fn an_unreadable_call_is_retried_once() {
    let unknown = "<function=launch {}></function>";
    for bad in [
        text_reply(&["Hm. ", unknown]),
        Reply::json(400, &json!({"error": failed(unknown)})),
        Reply::json(400, &json!({"error": failed("")})),
    ] {
        let (answer, _, request_count) = answer_to(vec![bad.clone(), text_reply(&["In 3 minutes."])]).await;
        assert_eq!(answer.unwrap(), (vec!["In 3 minutes.".to_owned()], Finish::Stop));
        assert_eq!(request_count, 2);
        // S2.45: the agent apologises to the user; only the error contains the markup.
        let (answer, streamed, _) = answer_to(vec![bad.clone(), bad]).await;
        assert_eq!(answer.unwrap_err().code(), "malformed_tool_call");
        assert!(!streamed.contains("<function"), "{streamed}");
    }
    let (_, streamed, _) = answer_to(vec![text_reply(&["Hm. ", unknown]), text_reply(&["In 3 minutes."])]).await;
    assert_eq!(streamed, "Hm. RESTARTEDIn 3 minutes.");
}

#[tokio::test]
async fn tokens_of_the_first_attempt_are_counted() {
    let taking = |text: &str, input: u64, output: u64| {
        let choice = json!({"index": 0, "delta": {"content": text}, "finish_reason": "stop"});
        let usage = json!({"prompt_tokens": input, "completion_tokens": output});
        Reply::stream([event(&json!({"choices": [choice], "usage": usage}))])
    };
    let server =
        Server::start([taking("<function=launch {}></function>", 100, 10), taking("In 3 minutes.", 120, 5)]).await;
    let (model, _) = model(config(Provider::Groq, &server, "m"));
    let usage = ask(&model, &request_with("When?")).await.0.unwrap().usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (220, 15));
}

#[tokio::test]
async fn a_truncated_call_is_not_retried() {
    let cut = event(&json!({"choices": [{"index": 0, "finish_reason": "length", "delta": {"tool_calls": [
        {"index": 0, "id": "a", "function": {"name": "arrivals", "arguments": "{\"station\": \"Ti"}},
    ]}}]}));
    let (answer, _, request_count) = answer_to(vec![Reply::stream([cut])]).await;
    match answer.unwrap_err() {
        ModelError::MalformedCall { text, .. } => assert_eq!(text, "arrivals{\"station\": \"Ti"),
        other => panic!("{other}"),
    }
    assert_eq!(request_count, 1);
}
