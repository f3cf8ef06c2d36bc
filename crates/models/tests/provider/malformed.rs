//! Tool calls that a model wrote as text, or that its provider could not read.

use serde_json::{Value, json};
use threadkeep_core::{Finish, ModelError};
use threadkeep_models::Provider;

use crate::server::{Reply, Server, ask, asking, config, event, model, short};

const CALL: &str = "<function=arrivals {\"station\": \"Times Sq\"}></function>";

fn said(pieces: &[&str]) -> Reply {
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

async fn answered(replies: Vec<Reply>) -> (Result<(Vec<String>, Finish), ModelError>, String, usize) {
    let server = Server::start(replies).await;
    let (model, _) = model(config(Provider::Groq, &server, "m"));
    let (answer, shown) = ask(&model, &asking("Next train at Times Square?")).await;
    assert!(server.has_answered_all());
    (answer.map(|answer| (short(&answer), answer.finish)), shown.concat(), server.asked().len())
}

#[tokio::test]
async fn a_call_in_the_text_is_made_and_never_shown() {
    // S2.42 as far as the model goes: the agent runs the tool.
    let (answer, shown, _) =
        answered(vec![said(&["I look. <func", "tion=arrivals {\"station\": ", "\"Times Sq\"}></function>"])]).await;
    let expected = vec!["I look. ".to_owned(), r#"written_5_1 arrivals {"station":"Times Sq"}"#.to_owned()];
    assert_eq!(answer.unwrap(), (expected, Finish::ToolCalls));
    assert_eq!(shown, "I look. ");
}

#[tokio::test]
async fn a_generation_that_failed_is_made_a_call() {
    // S2.44 as far as the model goes.
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
        let (answer, shown, asked) = answered(vec![reply]).await;
        assert_eq!((answer.unwrap(), shown.as_str(), asked), (expected.clone(), "", 1));
    }
}

#[tokio::test]
async fn a_model_whose_call_cannot_be_read_is_asked_once_more() {
    let unknown = "<function=launch {}></function>";
    for bad in [
        said(&["Hm. ", unknown]),
        Reply::json(400, &json!({"error": failed(unknown)})),
        Reply::json(400, &json!({"error": failed("")})),
    ] {
        let (answer, _, asked) = answered(vec![bad.clone(), said(&["In 3 minutes."])]).await;
        assert_eq!(answer.unwrap(), (vec!["In 3 minutes.".to_owned()], Finish::Stop));
        assert_eq!(asked, 2);
        // S2.45: after that the agent apologises; the markup is in the error only.
        let (answer, shown, _) = answered(vec![bad.clone(), bad]).await;
        assert_eq!(answer.unwrap_err().code(), "malformed_tool_call");
        assert!(!shown.contains("<function"), "{shown}");
    }
    let (_, shown, _) = answered(vec![said(&["Hm. ", unknown]), said(&["In 3 minutes."])]).await;
    assert_eq!(shown, "Hm. RESTARTEDIn 3 minutes.");
}

#[tokio::test]
async fn what_the_first_attempt_took_is_counted() {
    let taking = |text: &str, input: u64, output: u64| {
        let choice = json!({"index": 0, "delta": {"content": text}, "finish_reason": "stop"});
        let usage = json!({"prompt_tokens": input, "completion_tokens": output});
        Reply::stream([event(&json!({"choices": [choice], "usage": usage}))])
    };
    let server =
        Server::start([taking("<function=launch {}></function>", 100, 10), taking("In 3 minutes.", 120, 5)]).await;
    let (model, _) = model(config(Provider::Groq, &server, "m"));
    let usage = ask(&model, &asking("When?")).await.0.unwrap().usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (220, 15));
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_not_asked_for_again() {
    let cut = event(&json!({"choices": [{"index": 0, "finish_reason": "length", "delta": {"tool_calls": [
        {"index": 0, "id": "a", "function": {"name": "arrivals", "arguments": "{\"station\": \"Ti"}},
    ]}}]}));
    let (answer, _, asked) = answered(vec![Reply::stream([cut])]).await;
    match answer.unwrap_err() {
        ModelError::MalformedCall { text, .. } => assert_eq!(text, "arrivals{\"station\": \"Ti"),
        other => panic!("{other}"),
    }
    assert_eq!(asked, 1);
}
