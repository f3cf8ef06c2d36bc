//! Assistants that store the user's message with the answer, in one commit.

use std::sync::Arc;

use serde_json::json;
use threadkeep_agent::{
    Agent, Definition, FnTool, RunError, RunRequest, StoreUserMessage, TurnStatus, Verdict, find_turn_state,
};
use threadkeep_core::{JsonText, Map, Scope, ThreadOrder, ThreadQuery, ToolContext, ToolOutput, UserId};
use threadkeep_models::{Failure, Reply, ScriptedModel};
use threadkeep_store_conformance::FaultyStore;
use threadkeep_store_memory::MemoryStore;

use crate::approvals::Cluster;
use crate::env::{TestEnv, assistant};
use crate::resume::{SharedModel, chat_until_it_hangs};

fn storing_with_answer(model: impl threadkeep_core::ChatModel) -> Definition {
    Definition { store_user_message: StoreUserMessage::WithAnswer, ..assistant(model) }
}

/// A tool that counts the messages of the thread.
fn counting_tool(env: &TestEnv) -> FnTool {
    let parameters = JsonText::new(r#"{"type":"object"}"#).unwrap();
    let env = env.clone();
    FnTool::with_schema("count", "Counts", parameters, move |_: ToolContext, _: Map| {
        let env = env.clone();
        async move { Ok(ToolOutput::text(env.messages().await.len().to_string())) }
    })
}

// S3.46
#[tokio::test]
async fn question_and_answer_are_stored_by_one_commit() {
    let env = TestEnv::new().await;
    let model =
        Arc::new(ScriptedModel::new().step("calls", |_| Ok(Reply::call("count", json!({})))).says("Seen.").step(
            "reads the pair",
            |request| {
                let texts: Vec<String> = request.messages.iter().map(|message| message.plain_text()).collect();
                assert_eq!(texts.iter().filter(|text| *text == "Look").count(), 1, "{texts:?}");
                assert_eq!(texts.iter().filter(|text| *text == "Again").count(), 1, "{texts:?}");
                Ok(Reply::text("Again seen."))
            },
        ));
    let agent = env.agent(storing_with_answer(SharedModel(Arc::clone(&model))).with_tool(counting_tool(&env)));
    let turn = env.chat(&agent, "Look").await;
    assert_eq!(turn.stored.iter().map(|stored| stored.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    // The tool found no message: the question is not stored before the answer.
    assert_eq!(env.transcript().await, ["user: Look", "assistant: count({})", "tool: 0", "assistant: Seen."]);
    let found = agent.find_turn(&env.scope, env.thread, &turn.turn).await.unwrap().unwrap();
    assert_eq!((found.stored, found.reply), (turn.stored, turn.reply));
    env.chat(&agent, "Again").await;
    assert_eq!(model.verify(), Ok(()));
}

// S3.46
#[tokio::test]
async fn a_failed_turn_stores_neither() {
    let env = TestEnv::new().await;
    let agent = env.agent(storing_with_answer(ScriptedModel::new().fails(Failure::Refused).says("Here again.")));
    let turn = env.chat(&agent, "Are you there?").await;
    assert_eq!((turn.status, turn.stored.len()), (TurnStatus::Failed, 0));
    assert!(turn.reply.starts_with("I could not answer this"), "{}", turn.reply);
    assert_eq!(env.transcript().await, Vec::<String>::new());
    let found = agent.find_turn(&env.scope, env.thread, &turn.turn).await.unwrap().unwrap();
    assert_eq!((found.status, found.error), (turn.status, turn.error));
    env.chat(&agent, "And now?").await;
    assert_eq!(env.transcript().await, ["user: And now?", "assistant: Here again."]);
}

// S3.46
#[tokio::test]
async fn an_interrupted_turn_is_resumed_with_its_question() {
    let env = TestEnv::new().await;
    let model = Arc::new(ScriptedModel::new().step("hangs", |_| Ok(Reply::hanging())).says("Here."));
    let agent = env.agent(storing_with_answer(SharedModel(Arc::clone(&model))));
    chat_until_it_hangs(&env, &agent, "Anyone?", 1, &model).await;
    assert_eq!(env.transcript().await, Vec::<String>::new());
    let turns = agent.resume(&env.scope, env.thread, &mut |_| {}).await.unwrap();
    assert_eq!((turns.len(), turns[0].stored.len()), (1, 2));
    assert_eq!(env.transcript().await, ["user: Anyone?", "assistant: Here."]);
    assert!(find_turn_state(&env.memory, &env.scope, env.thread, &turns[0].turn).await.unwrap().is_some());
}

#[tokio::test]
async fn an_interrupted_turn_of_another_assistant_leaves_nothing() {
    let env = TestEnv::new().await;
    let model = Arc::new(ScriptedModel::new().step("hangs", |_| Ok(Reply::hanging())).says("Hello."));
    let first = env.agent(storing_with_answer(SharedModel(Arc::clone(&model))));
    chat_until_it_hangs(&env, &first, "Anyone?", 1, &model).await;
    let other = env.agent(Definition { name: "other".to_owned(), ..assistant(SharedModel(model)) });
    assert_eq!(env.chat(&other, "Hello?").await.reply, "Hello.");
    assert_eq!(env.transcript().await, ["user: Hello?", "assistant: Hello."]);
}

#[tokio::test]
async fn a_turn_that_waits_for_approval_stores_its_question() {
    let env = TestEnv::new().await;
    let cluster = Cluster::default();
    let model = ScriptedModel::new()
        .step("asks", |_| Ok(Reply::call("kubectl", json!({"command": "delete pod nginx"}))))
        .says("Deleted.");
    let agent = env.agent(storing_with_answer(model).with_tool(cluster.kubectl()));
    let turn = env.chat(&agent, "Delete nginx").await;
    assert_eq!((turn.status, turn.stored.len()), (TurnStatus::WaitingForApproval, 3));
    assert_eq!(env.transcript().await[0], "user: Delete nginx");
    let approval = &turn.approvals[0].id;
    agent.decide(&env.scope, env.thread, approval, Verdict::Approve, "ana", &mut |_| {}).await.unwrap();
    let transcript = env.transcript().await;
    assert_eq!(transcript.iter().filter(|line| *line == "user: Delete nginx").count(), 1, "{transcript:?}");
    assert_eq!(transcript.last().unwrap(), "assistant: Deleted.");
}

// S3.46
#[tokio::test(start_paused = true)]
async fn pairs_are_whole_in_a_store_with_the_weakest_guarantees() {
    for seed in 0..20 {
        let env = TestEnv::with_backend(FaultyStore::wrap(MemoryStore::open(), seed)).await;
        let agent = env.agent(storing_with_answer(ScriptedModel::always(|_| Ok(Reply::text("Done.")))));
        for _ in 0..3 {
            let turn = agent.chat(&env.scope, env.thread, "Go").await;
            turn.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        assert_eq!(env.transcript().await, [["user: Go", "assistant: Done."]; 3].concat(), "seed {seed}");
    }
}

#[tokio::test]
async fn a_question_that_cannot_be_stored_starts_no_turn() {
    let env = TestEnv::new().await;
    let agent = env.agent(storing_with_answer(ScriptedModel::new().says("Hello.")));
    let nul = agent.chat(&env.scope, env.thread, "a\0b").await;
    assert!(nul.is_err(), "{nul:?}");
    assert_eq!(env.chat(&agent, "Hello").await.reply, "Hello.");
}

fn run(query: &str, conversation: Option<&str>, user: Option<&str>) -> RunRequest {
    RunRequest {
        user_query: query.to_owned(),
        max_iterations: None,
        conversation_id: conversation.map(|id| id.parse().unwrap()),
        user_id: user.map(|user| UserId::new(user).unwrap()),
    }
}

async fn thread_count(env: &TestEnv, scope: &Scope) -> usize {
    env.memory.list_threads(scope, &ThreadQuery::new(ThreadOrder::Recent, 10)).await.unwrap().threads.len()
}

async fn run_all(agent: &Agent, scope: &Scope, request: RunRequest) -> Result<threadkeep_agent::RunResult, RunError> {
    agent.run(scope, request, &mut |_| {}).await
}

// S3.05, S3.06, S3.07, S3.08
#[tokio::test]
async fn runs_of_any_assistant_have_a_flat_result() {
    let env = TestEnv::new().await;
    let agent = env.agent(assistant(ScriptedModel::always(|_| Ok(Reply::text("Hello.")))));
    let before = thread_count(&env, &env.scope).await;
    let first = run_all(&agent, &env.scope, run("Hi", None, Some("ana"))).await.unwrap();
    assert_eq!((first.final_response.as_str(), first.exit_reason.as_str()), ("Hello.", "completed"));
    assert_eq!((first.llm_calls, &first.metadata["total_messages"]), (1, &json!(2)));
    let id = first.conversation_id.unwrap();
    let second = run_all(&agent, &env.scope, run("Hi", Some(&id), Some("ana"))).await.unwrap();
    assert_eq!((second.conversation_id, &second.metadata["total_messages"]), (Some(id), &json!(4)));
    assert_eq!(thread_count(&env, &env.scope).await, before + 1);
    let unstored = run_all(&agent, &env.scope, run("Hi", None, None)).await.unwrap();
    assert_eq!((unstored.conversation_id, unstored.llm_calls), (None, 1));
    assert_eq!(unstored.warning.as_deref(), Some("No conversation_id or user_id, skipping save"));
    assert_eq!(thread_count(&env, &env.scope).await, before + 1);
}

#[tokio::test]
async fn a_run_that_fails_leaves_no_empty_conversation() {
    let env = TestEnv::new().await;
    let agent = env.agent(storing_with_answer(ScriptedModel::new().fails(Failure::Refused)));
    let before = thread_count(&env, &env.scope).await;
    let result = run_all(&agent, &env.scope, run("Hi", None, Some("ana"))).await.unwrap();
    assert_eq!((result.conversation_id, result.exit_reason.as_str()), (None, "model_refused"));
    assert!(result.warning.unwrap().contains("neither"));
    assert_eq!(thread_count(&env, &env.scope).await, before);
}

// S3.40
#[tokio::test]
async fn runs_stay_in_their_scope() {
    let env = TestEnv::new().await;
    let agent = env.agent(assistant(ScriptedModel::always(|_| Ok(Reply::text("Hello.")))));
    let own = run_all(&agent, &env.scope, run("Hi", None, Some("ana"))).await.unwrap().conversation_id.unwrap();
    let tenant = Scope::Tenant(env.scope.tenant_id().clone());
    let of_ben = run_all(&agent, &tenant, run("Hi", Some(&own), Some("ben"))).await;
    assert!(matches!(of_ben, Err(RunError::NotFound)), "{of_ben:?}");
    let as_ben = run_all(&agent, &env.scope, run("Hi", None, Some("ben"))).await;
    assert!(matches!(as_ben, Err(RunError::Invalid { field: "user_id", .. })), "{as_ben:?}");
}
