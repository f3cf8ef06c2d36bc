//! The scripted model: what it demands of requests, and each way in which it fails.

use std::time::Duration;

use serde_json::json;
use threadkeep_core::{ChatDelta, ChatMessage, ChatModel, ChatRequest, Finish, ModelError, Part, Role, ToolResult};
use threadkeep_models::{Failure, Reply, ScriptedModel, Turn};

fn asking(text: &str) -> ChatRequest {
    ChatRequest { messages: vec![ChatMessage::text(Role::User, text)], ..ChatRequest::default() }
}

fn giving(call_id: &str, output: &str, is_error: bool) -> ChatMessage {
    let result = ToolResult { call_id: call_id.to_owned(), output: output.to_owned(), is_error };
    ChatMessage { role: Role::Tool, author: None, parts: vec![Part::ToolResult(result)], seq: None }
}

#[tokio::test]
async fn arguments_come_from_what_the_tools_gave() {
    let model = ScriptedModel::new()
        .step("looks it up", |_| Ok(Reply::call("find", json!({"name": "Times Sq"}))))
        .step("uses the id", |request| {
            let found = Turn::of(request).result("find")?;
            Ok(Reply::text("One moment.").and_call("arrivals", json!({"stop": found["id"]})))
        });
    let mut request = asking("Next train at Times Sq?");
    let first = model.answer(&request, &mut |_| {}).await.unwrap();
    assert_eq!(first.finish, Finish::ToolCalls);
    let id = first.tool_calls().next().unwrap().id.clone();
    request.messages.extend([first.message(), giving(&id, r#"{"id":"127"}"#, false)]);
    let second = model.answer(&request, &mut |_| {}).await.unwrap();
    let call = second.tool_calls().next().unwrap();
    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("arrivals", r#"{"stop":"127"}"#));
    assert_ne!(call.id, id);
    assert_eq!(second.text(), "One moment.");
    model.verify().unwrap();
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn a_step_that_does_not_hold_is_named_and_nothing_goes_on() {
    let uses_the_id = |request: &ChatRequest| Turn::of(request).result("find").map(|_| Reply::text("found"));
    let model = ScriptedModel::new().says("hello").step("uses the id", uses_the_id).says("never");
    model.answer(&asking("hi"), &mut |_| {}).await.unwrap();
    let expected = "step 2 (uses the id): find was not called in this turn";
    for _ in 0..2 {
        match model.answer(&asking("hi"), &mut |_| {}).await.unwrap_err() {
            ModelError::InvalidAnswer { model, detail } => assert_eq!((&*model, &*detail), ("scripted", expected)),
            other => panic!("{other}"),
        }
    }
    assert_eq!(model.verify().unwrap_err(), expected);
}

#[tokio::test]
async fn results_that_are_missing_or_errors_are_told_apart() {
    let first = ScriptedModel::new()
        .step("calls", |_| Ok(Reply::call("find", json!({}))))
        .answer(&asking("where?"), &mut |_| {})
        .await
        .unwrap();
    let mut request = asking("where?");
    request.messages.push(first.message());
    assert_eq!(Turn::of(&request).result("find").unwrap_err(), "find has no result yet");
    let id = first.tool_calls().next().unwrap().id.clone();
    request.messages.push(giving(&id, "no such place", true));
    assert_eq!(Turn::of(&request).result("find").unwrap_err(), "find failed: no such place");
    assert!(Turn::of(&request).exchanges()[0].has_failed());
}

#[tokio::test]
async fn asking_more_often_than_the_script_says_is_an_error() {
    let model = ScriptedModel::new().says("hello");
    assert_eq!(model.verify().unwrap_err(), "1 of 1 steps were not played; next: says");
    model.answer(&asking("hi"), &mut |_| {}).await.unwrap();
    model.verify().unwrap();
    model.answer(&asking("hi"), &mut |_| {}).await.unwrap_err();
    assert_eq!(model.verify().unwrap_err(), "step 2 (none): the script has 1 steps");
}

#[tokio::test]
async fn it_fails_in_each_way() {
    let failures = [
        (Failure::Unavailable { retry_after: Some(Duration::from_secs(3)) }, "model_unavailable"),
        (Failure::TimedOut, "model_timed_out"),
        (Failure::Unauthorized, "model_unauthorized"),
        (Failure::Refused, "model_refused"),
        (Failure::ContextTooLong, "context_too_long"),
        (Failure::MalformedCall("<function=".to_owned()), "malformed_tool_call"),
        (Failure::InvalidAnswer, "invalid_model_answer"),
    ];
    for (failure, code) in failures {
        let model = ScriptedModel::new().fails(failure).says("recovered");
        assert_eq!(model.answer(&asking("hi"), &mut |_| {}).await.unwrap_err().code(), code);
        assert_eq!(model.answer(&asking("hi"), &mut |_| {}).await.unwrap().text(), "recovered");
        model.verify().unwrap();
    }
}

#[tokio::test]
async fn it_fails_and_hangs_in_the_middle_of_its_words() {
    let failing = Reply::streamed(["Let me ", "see"]).then_fails(Failure::TimedOut);
    let model = ScriptedModel::new()
        .step("breaks off", move |_| Ok(failing.clone()))
        .step("hangs", |_| Ok(Reply::text("Well").then_hangs()));
    let mut said = Vec::new();
    let error = model.answer(&asking("hi"), &mut |delta| said.push(delta)).await.unwrap_err();
    assert!(error.is_retryable());
    assert_eq!(said, ["Let me ", "see"].map(|text| ChatDelta::Text(text.to_owned())));
    let mut heard = 0;
    let waited = tokio::time::timeout(Duration::from_millis(1), model.answer(&asking("hi"), &mut |_| heard += 1)).await;
    assert!(waited.is_err());
    assert_eq!((heard, model.abandoned()), (1, 1));
}

#[tokio::test]
async fn a_model_that_always_answers_knows_the_turn_from_the_request() {
    let model = ScriptedModel::always(|request| match Turn::of(request).result("find") {
        Ok(found) => Ok(Reply::text(format!("It is {found}.")).taking(10, 2, Some(0.25))),
        Err(_) => Ok(Reply::call("find", json!({}))),
    });
    let mut request = asking("where?");
    for _ in 0..2 {
        assert_eq!(model.answer(&request, &mut |_| {}).await.unwrap().tool_calls().count(), 1);
    }
    let first = model.answer(&request, &mut |_| {}).await.unwrap();
    let id = first.tool_calls().next().unwrap().id.clone();
    request.messages.extend([first.message(), giving(&id, "42", false)]);
    let last = model.answer(&request, &mut |_| {}).await.unwrap();
    assert_eq!(last.text(), "It is 42.");
    let usage = last.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_usd), (10, 2, Some(0.25)));
    model.verify().unwrap();
}
