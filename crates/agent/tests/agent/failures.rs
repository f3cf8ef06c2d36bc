//! Failing models, tools and stores: the conversation can continue, and no reply is invented.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use threadkeep_agent::{
    Assistant, Definition, Failure, FnTool, PrepareRequest, Stop, TurnLimits, TurnPreparation, TurnRequest, TurnStatus,
};
use threadkeep_core::{JsonText, Map, ToolContext, ToolError, ToolOutput};
use threadkeep_models::{Reply, ScriptedModel, Turn};
use threadkeep_store_conformance::FaultyStore;
use threadkeep_store_memory::MemoryStore;

use crate::env::{TestEnv, assistant};

fn tool(name: &'static str) -> FnTool {
    let parameters = JsonText::new(r#"{"type":"object"}"#).unwrap();
    FnTool::with_schema(name, "Does what its name says", parameters, move |_: ToolContext, _: Map| async move {
        match name {
            "breaks" => panic!("boom"),
            "fails" => Err(ToolError::Unavailable("the feed is down".to_owned())),
            "hangs" => std::future::pending().await,
            _ => Ok(ToolOutput::text("fine")),
        }
    })
}

// S0.22, S0.26, S1.48
#[tokio::test]
async fn a_conversation_continues_after_a_model_failure() {
    use threadkeep_models::Failure;
    let failures = [
        (Failure::Unavailable { retry_after: None }, "model_unavailable"),
        (Failure::Refused, "model_refused"),
        (Failure::MalformedCall("<function=delete{}>".to_owned()), "malformed_tool_call"),
    ];
    for (failure, code) in failures {
        let env = TestEnv::new().await;
        let agent = env.agent(assistant(ScriptedModel::new().fails(failure).says("Here again.")));
        let turn = env.chat(&agent, "Are you there?").await;
        assert_eq!(
            (turn.status, turn.error.as_ref().map(|error| error.code.as_str())),
            (TurnStatus::Failed, Some(code))
        );
        assert!(!turn.reply.contains("<function"), "{}", turn.reply);
        assert!(turn.tool_calls.is_empty());
        assert_eq!(env.transcript().await, ["user: Are you there?".to_owned(), format!("assistant: {}", turn.reply)]);
        assert_eq!(agent.find_turn(&env.scope, env.thread, &turn.turn).await.unwrap().unwrap().error, turn.error);
        assert_eq!(env.chat(&agent, "And now?").await.reply, "Here again.");
    }
}

#[tokio::test]
async fn a_model_failure_after_tools_leaves_every_call_with_its_result() {
    let env = TestEnv::new().await;
    let failure = threadkeep_models::Failure::TimedOut;
    let model = ScriptedModel::new().step("calls", |_| Ok(Reply::call("works", json!({})))).fails(failure);
    let turn = env.chat(&env.agent(assistant(model).with_tool(tool("works"))), "Look").await;
    assert_eq!(turn.status, TurnStatus::Failed);
    let transcript = env.transcript().await;
    assert_eq!(transcript[..3], ["user: Look", "assistant: works({})", "tool: fine"]);
    assert!(transcript[3].starts_with("assistant: I could not answer this"), "{transcript:?}");
}

#[tokio::test(start_paused = true)]
async fn tool_failures_are_passed_to_the_model() {
    let env = TestEnv::new().await;
    let calls = ["fails", "breaks", "hangs", "works", "invented"];
    let model = ScriptedModel::new()
        .step("calls all", move |_| {
            let first = Reply::call(calls[0], json!({}));
            Ok(calls[1..].iter().fold(first, |reply, name| reply.and_call(*name, json!({}))))
        })
        .step("reads", move |request| {
            let exchanges = Turn::of(request).exchanges();
            let results: Vec<_> = exchanges.iter().filter_map(|exchange| exchange.result).collect();
            let outputs: Vec<&str> = results.iter().map(|result| result.output.as_str()).collect();
            assert_eq!(
                outputs,
                [
                    "unavailable: the feed is down",
                    "failed: the tool panicked",
                    "unavailable: no result within 5000 ms",
                    "fine",
                    "unknown tool; available tools: fails, breaks, hangs, works",
                ]
            );
            Ok(Reply::text("One works."))
        });
    let tools = calls[..4].iter().map(|name| tool(name).with_timeout(Duration::from_secs(5)));
    let definition = tools.fold(assistant(model), |definition, tool| definition.with_tool(tool));
    let turn = env.chat(&env.agent(definition), "Try them").await;
    assert_eq!(turn.reply, "One works.");
    assert_eq!(turn.tool_calls.iter().map(|call| call.ok).collect::<Vec<_>>(), [false, false, false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_model_times_out() {
    let env = TestEnv::new().await;
    let bounds = TurnLimits { model_timeout: Duration::from_secs(9), ..TurnLimits::default() };
    let model = ScriptedModel::new().step("hangs", |_| Ok(Reply::hanging()));
    let turn = env.chat(&env.agent(Definition { bounds, ..assistant(model) }), "Hello?").await;
    assert_eq!(turn.error.map(|error| error.code).as_deref(), Some("model_timed_out"));
}

#[tokio::test]
async fn a_stopped_turn_keeps_its_finished_calls() {
    let env = TestEnv::new().await;
    let model = ScriptedModel::new()
        .step("calls", |_| Ok(Reply::call("works", json!({})).and_call("hangs", json!({}))))
        .says("Hello.");
    let agent = env.agent(assistant(model).with_tool(tool("works")).with_tool(tool("hangs")));
    let stop = Stop::new();
    let request = TurnRequest { stop: stop.clone(), ..TurnRequest::new("Go") };
    let mut stop_when_one_is_done = |event| {
        if matches!(event, threadkeep_agent::TurnEvent::ToolFinished(_)) {
            stop.stop();
        }
    };
    let turn = agent.chat_with(&env.scope, env.thread, request, &mut stop_when_one_is_done).await.unwrap();
    assert_eq!(turn.error.as_ref().map(|error| error.code.as_str()), Some("stopped"));
    let transcript = env.transcript().await;
    assert_eq!(
        transcript[1..4],
        ["assistant: works({}) hangs({})", "tool: fine", "tool: !not done: the turn was stopped",]
    );
    assert_eq!(env.chat(&agent, "Hello?").await.reply, "Hello.");
}

/// An assistant whose preparation fails.
#[derive(Debug)]
struct FailingPreparation(Definition);

#[async_trait]
impl Assistant for FailingPreparation {
    fn definition(&self) -> &Definition {
        &self.0
    }

    async fn prepare(&self, request: &PrepareRequest<'_>) -> Result<TurnPreparation, Failure> {
        assert_eq!((request.question, request.seq), ("What is new?", 1));
        Err(Failure::new("feed_failed", "the feed cannot be read"))
    }

    fn failure_reply(&self, _: &Failure) -> String {
        "I apologize for the technical difficulties.".to_owned()
    }
}

// S0.26
#[tokio::test]
async fn an_assistant_determines_the_reply_to_a_failure() {
    let env = TestEnv::new().await;
    let turn = env.chat(&env.agent(FailingPreparation(assistant(ScriptedModel::new()))), "What is new?").await;
    assert_eq!(turn.reply, "I apologize for the technical difficulties.");
    assert_eq!(turn.error, Some(Failure::new("feed_failed", "the feed cannot be read")));
    assert_eq!(turn.usage.model_calls, 0);
}

#[tokio::test(start_paused = true)]
async fn turns_complete_in_a_store_with_the_weakest_guarantees() {
    for seed in 0..40 {
        let env = TestEnv::with_backend(FaultyStore::wrap(MemoryStore::open(), seed)).await;
        let model = ScriptedModel::always(|request| match Turn::of(request).exchanges().len() {
            0 => Ok(Reply::call("works", json!({}))),
            _ => Ok(Reply::text("Done.")),
        });
        let agent = env.agent(assistant(model).with_tool(tool("works")));
        for _ in 0..3 {
            let turn = agent.chat(&env.scope, env.thread, "Go").await;
            let turn = turn.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!((turn.status, turn.reply.as_str()), (TurnStatus::Completed, "Done."), "seed {seed}");
        }
        let transcript = env.transcript().await;
        let messages_of_turn = ["user: Go", "assistant: works({})", "tool: fine", "assistant: Done."];
        assert_eq!(transcript, [messages_of_turn; 3].concat(), "seed {seed}");
    }
}

// S0.26, S1.48
#[tokio::test]
async fn a_turn_whose_thread_is_deleted_fails() {
    let env = TestEnv::new().await;
    let (memory, scope, thread) = (env.memory.clone(), env.scope.clone(), env.thread);
    let parameters = JsonText::new(r#"{"type":"object"}"#).unwrap();
    let delete = FnTool::with_schema("delete", "Deletes", parameters, move |_: ToolContext, _: Map| {
        let (memory, scope) = (memory.clone(), scope.clone());
        async move {
            memory.delete_thread(&scope, thread).await.unwrap();
            Ok(ToolOutput::text("gone"))
        }
    });
    let model = ScriptedModel::new().step("calls", |_| Ok(Reply::call("delete", json!({})))).says("Gone.");
    let turn = env.chat(&env.agent(assistant(model).with_tool(delete)), "Delete all of this").await;
    assert_eq!(turn.status, TurnStatus::Failed);
    assert_eq!(turn.error.unwrap(), Failure::new("store_failed", "thread not found"));
}

#[tokio::test]
async fn an_answer_that_cannot_be_stored_fails_only_its_turn() {
    let env = TestEnv::new().await;
    let model = ScriptedModel::new()
        .step("answers with too much text before a call", |_| {
            Ok(Reply::text("\u{1}".repeat(2 << 20)).and_call("works", json!({})))
        })
        .says("Short.");
    let agent = env.agent(assistant(model).with_tool(tool("works")));
    let turn = env.chat(&agent, "Go").await;
    assert_eq!(turn.error.map(|error| error.code).as_deref(), Some("not_storable"));
    assert_eq!(env.chat(&agent, "Again").await.reply, "Short.");
}
