//! The scripted model: its checks of requests, and its failures.

use std::time::Duration;

use serde_json::json;
use threadkeep_core::{ChatDelta, ChatMessage, ChatModel, ChatRequest, Finish, ModelError, Part, Role, ToolResult};
use threadkeep_models::{Failure, Reply, ScriptedModel, Turn};

fn request_with(text: &str) -> ChatRequest {
    ChatRequest { messages: vec![ChatMessage::text(Role::User, text)], ..ChatRequest::default() }
}

fn result_message(call_id: &str, output: &str, is_error: bool) -> ChatMessage {
    let result = ToolResult { call_id: call_id.to_owned(), output: output.to_owned(), is_error };
    ChatMessage { role: Role::Tool, author: None, parts: vec![Part::ToolResult(result)], seq: None }
}

#[tokio::test]
async fn arguments_can_use_earlier_results() {
    let model = ScriptedModel::new()
        .step("looks up the station", |_| Ok(Reply::call("find", json!({"name": "Times Sq"}))))
        .step("uses the id", |request| {
            let found = Turn::of(request).result("find")?;
            Ok(Reply::text("One moment.").and_call("arrivals", json!({"stop": found["id"]})))
        });
    let mut request = request_with("Next train at Times Sq?");
    let first = model.answer(&request, &mut |_| {}).await.unwrap();
    assert_eq!(first.finish, Finish::ToolCalls);
    let id = first.tool_calls().next().unwrap().id.clone();
    request.messages.extend([first.message(), result_message(&id, r#"{"id":"127"}"#, false)]);
    let second = model.answer(&request, &mut |_| {}).await.unwrap();
    let call = second.tool_calls().next().unwrap();
    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("arrivals", r#"{"stop":"127"}"#));
    assert_ne!(call.id, id);
    assert_eq!(second.text(), "One moment.");
    model.verify().unwrap();
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn a_failed_step_is_named_and_ends_the_script() {
    let uses_the_id = |request: &ChatRequest| Turn::of(request).result("find").map(|_| Reply::text("found"));
    let model = ScriptedModel::new().says("hello").step("uses the id", uses_the_id).says("never");
    model.answer(&request_with("hi"), &mut |_| {}).await.unwrap();
    let expected = "step 2 (uses the id): find was not called in this turn";
    for _ in 0..2 {
        match model.answer(&request_with("hi"), &mut |_| {}).await.unwrap_err() {
            ModelError::InvalidAnswer { model, detail } => assert_eq!((&*model, &*detail), ("scripted", expected)),
            other => panic!("{other}"),
        }
    }
    assert_eq!(model.verify().unwrap_err(), expected);
}

#[tokio::test]
async fn missing_and_failed_results_are_distinguished() {
    let first = ScriptedModel::new()
        .step("calls", |_| Ok(Reply::call("find", json!({}))))
        .answer(&request_with("where?"), &mut |_| {})
        .await
        .unwrap();
    let mut request = request_with("where?");
    request.messages.push(first.message());
    assert_eq!(Turn::of(&request).result("find").unwrap_err(), "find has no result yet");
    let id = first.tool_calls().next().unwrap().id.clone();
    request.messages.push(result_message(&id, "no such place", true));
    assert_eq!(Turn::of(&request).result("find").unwrap_err(), "find failed: no such place");
    assert!(Turn::of(&request).exchanges()[0].has_failed());
}

#[tokio::test]
async fn calls_after_the_last_step_are_errors() {
    let model = ScriptedModel::new().says("hello");
    assert_eq!(model.verify().unwrap_err(), "1 of 1 steps were not played; next: says");
    model.answer(&request_with("hi"), &mut |_| {}).await.unwrap();
    model.verify().unwrap();
    model.answer(&request_with("hi"), &mut |_| {}).await.unwrap_err();
    assert_eq!(model.verify().unwrap_err(), "step 2 (none): the script ended after step 1");
}

#[tokio::test]
async fn every_failure_has_its_error_code() {
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
        assert_eq!(model.answer(&request_with("hi"), &mut |_| {}).await.unwrap_err().code(), code);
        assert_eq!(model.answer(&request_with("hi"), &mut |_| {}).await.unwrap().text(), "recovered");
        model.verify().unwrap();
    }
}

#[tokio::test]
async fn a_reply_can_fail_or_hang_after_streaming_text() {
    let failing = Reply::streamed(["Let me ", "see"]).then_fails(Failure::TimedOut);
    let model = ScriptedModel::new()
        .step("fails after text", move |_| Ok(failing.clone()))
        .step("hangs", |_| Ok(Reply::text("Well").then_hangs()));
    let mut deltas = Vec::new();
    let error = model.answer(&request_with("hi"), &mut |delta| deltas.push(delta)).await.unwrap_err();
    assert!(error.is_retryable());
    assert_eq!(deltas, ["Let me ", "see"].map(|text| ChatDelta::Text(text.to_owned())));
    let mut delta_count = 0;
    let waited =
        tokio::time::timeout(Duration::from_millis(1), model.answer(&request_with("hi"), &mut |_| delta_count += 1))
            .await;
    assert!(waited.is_err());
    assert_eq!((delta_count, model.abandoned()), (1, 1));
}

#[tokio::test]
async fn replies_of_a_model_without_steps_depend_only_on_the_request() {
    let model = ScriptedModel::always(|request| match Turn::of(request).result("find") {
        Ok(found) => Ok(Reply::text(format!("It is {found}.")).with_usage(10, 2, Some(0.25))),
        Err(_) => Ok(Reply::call("find", json!({}))),
    });
    let mut request = request_with("where?");
    for _ in 0..2 {
        assert_eq!(model.answer(&request, &mut |_| {}).await.unwrap().tool_calls().count(), 1);
    }
    let first = model.answer(&request, &mut |_| {}).await.unwrap();
    let id = first.tool_calls().next().unwrap().id.clone();
    request.messages.extend([first.message(), result_message(&id, "42", false)]);
    let last = model.answer(&request, &mut |_| {}).await.unwrap();
    assert_eq!(last.text(), "It is 42.");
    let usage = last.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_usd), (10, 2, Some(0.25)));
    model.verify().unwrap();
}
