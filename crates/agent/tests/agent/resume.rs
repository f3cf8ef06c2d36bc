//! Resuming interrupted turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use threadkeep_agent::{
    Agent, Assistant, Definition, FnTool, PrepareRequest, Stop, TurnPreparation, TurnStatus, list_interrupted_turns,
};
use threadkeep_core::{
    JsonText, Map, Namespace, RecordOwner, RecordQuery, Scope, Tool, ToolContext, ToolDescription, ToolEffect,
    ToolError, ToolOutput, ToolSource, ToolSpec,
};
use threadkeep_graph::{END, Failure, Graph, ModelRequest, Node, Output, START, state};
use threadkeep_models::{Reply, ScriptedModel, Turn};

use crate::env::{TestEnv, assistant};

fn counting_tool(count: &Arc<AtomicUsize>) -> FnTool {
    let count = Arc::clone(count);
    let parameters = JsonText::new(r#"{"type":"object"}"#).unwrap();
    FnTool::with_schema("look", "Looks", parameters, move |_: ToolContext, _: Map| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok(ToolOutput::text("seen")) }
    })
}

/// Starts a turn and drops it when the model hangs, at its call number `model_calls`.
pub(crate) async fn chat_until_it_hangs(
    env: &TestEnv,
    agent: &Agent,
    text: &str,
    model_calls: usize,
    model: &ScriptedModel,
) {
    tokio::select! {
        turn = agent.chat(&env.scope, env.thread, text) => panic!("{turn:?}"),
        () = async {
            while model.requests().len() < model_calls {
                tokio::task::yield_now().await;
            }
        } => {}
    }
}

/// A model that several agents share.
#[derive(Debug)]
pub(crate) struct SharedModel(pub(crate) Arc<ScriptedModel>);

#[async_trait::async_trait]
impl threadkeep_core::ChatModel for SharedModel {
    fn name(&self) -> &str {
        "scripted"
    }

    async fn answer(
        &self,
        request: &threadkeep_core::ChatRequest,
        deltas: threadkeep_core::DeltaSink<'_>,
    ) -> Result<threadkeep_core::ChatAnswer, threadkeep_core::ModelError> {
        self.0.answer(request, deltas).await
    }
}

#[tokio::test]
async fn a_dropped_turn_resumes_from_its_journal() {
    let (env, count) = (TestEnv::new().await, Arc::new(AtomicUsize::new(0)));
    let model = Arc::new(
        ScriptedModel::new()
            .step("calls", |_| Ok(Reply::call("look", json!({}))))
            .step("hangs", |_| Ok(Reply::hanging()))
            .step("answers with the tool's result", |request| {
                Ok(Reply::text(Turn::of(request).result("look")?.to_string()))
            }),
    );
    let agent = env.agent(assistant(SharedModel(Arc::clone(&model))).with_tool(counting_tool(&count)));
    chat_until_it_hangs(&env, &agent, "Look", 2, &model).await;
    let turns = agent.resume(&env.scope, env.thread, &mut |_| {}).await.unwrap();
    assert_eq!(turns.len(), 1);
    assert_eq!((turns[0].status, turns[0].reply.as_str()), (TurnStatus::Completed, "\"seen\""));
    assert_eq!((turns[0].usage.model_calls, turns[0].tool_calls.len(), turns[0].stored.len()), (2, 1, 4));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert_eq!(model.verify(), Ok(()));
    assert!(agent.resume(&env.scope, env.thread, &mut |_| {}).await.unwrap().is_empty());
}

async fn record_values(env: &TestEnv, namespace: &str) -> Vec<String> {
    let query = RecordQuery {
        namespace: Some(Namespace::System(namespace.to_owned())),
        ..RecordQuery::of(RecordOwner::Thread(env.thread))
    };
    let found = env.memory.list_records(&env.scope, query).await.unwrap();
    found.into_iter().map(|record| record.value.as_str().to_owned()).collect()
}

#[tokio::test]
async fn a_finished_turn_leaves_only_a_record_of_at_most_a_kilobyte() {
    let (env, count) = (TestEnv::new().await, Arc::new(AtomicUsize::new(0)));
    let model = ScriptedModel::always(|request| match Turn::of(request).exchanges().len() {
        0 => Ok(Reply::call("look", json!({}))),
        _ => Ok(Reply::text("Done.")),
    });
    let agent = env.agent(assistant(model).with_tool(counting_tool(&count)));
    for _ in 0..3 {
        env.chat(&agent, "Look").await;
    }
    assert_eq!((record_values(&env, "run").await.len(), record_values(&env, "journal").await.len()), (0, 0));
    let turns = record_values(&env, "turn").await;
    assert_eq!(turns.len(), 3);
    assert!(turns.iter().all(|turn| turn.len() <= 1_024), "{turns:?}");
}

state! {
    struct Plain (update PlainUpdate) {
        append answers: String,
    }
}

/// A graph that calls its model as many times as its version number.
fn graph(version: u32) -> Graph<Plain> {
    let max_answers = version as usize;
    Graph::<Plain>::builder("plain", version, |_| Plain::default())
        .node(
            "agent",
            Node::model(|_| ModelRequest::reply(&[]), |_, answer| PlainUpdate { answers: vec![answer.text()] }),
        )
        .edge(START, "agent")
        .branch("agent", ["agent", END], move |state| if state.answers.len() < max_answers { "agent" } else { END })
        .finish(|state| Output::reply(state.answers.join(" ")))
        .unwrap()
}

#[tokio::test]
async fn a_run_of_another_graph_version_restarts() {
    let env = TestEnv::new().await;
    let model = Arc::new(ScriptedModel::new().says("old").step("hangs", |_| Ok(Reply::hanging())).says("new"));
    let with_version = |version| Definition { ..assistant(SharedModel(Arc::clone(&model))).with_graph(graph(version)) };
    let old = env.agent(with_version(2));
    chat_until_it_hangs(&env, &old, "Hello", 2, &model).await;
    let turns = env.agent(with_version(1)).resume(&env.scope, env.thread, &mut |_| {}).await.unwrap();
    assert_eq!((turns[0].reply.as_str(), turns[0].usage.model_calls), ("new", 1));
    assert_eq!(record_values(&env, "journal").await.len(), 0);
}

#[tokio::test]
async fn a_run_of_another_assistant_is_closed() {
    let env = TestEnv::new().await;
    let model = Arc::new(ScriptedModel::new().step("hangs", |_| Ok(Reply::hanging())).says("Hello."));
    let first = env.agent(assistant(SharedModel(Arc::clone(&model))));
    chat_until_it_hangs(&env, &first, "Anyone?", 1, &model).await;
    let other = env.agent(Definition { name: "other".to_owned(), ..assistant(SharedModel(model)) });
    assert_eq!(env.chat(&other, "Hello?").await.reply, "Hello.");
    assert_eq!(
        env.transcript().await,
        [
            "user: Anyone?",
            "assistant: the program ended before the question was answered",
            "user: Hello?",
            "assistant: Hello.",
        ]
    );
}

#[tokio::test]
async fn a_question_that_was_erased_is_not_answered() {
    let env = TestEnv::new().await;
    let model = Arc::new(ScriptedModel::new().step("hangs", |_| Ok(Reply::hanging())));
    let agent = env.agent(assistant(SharedModel(Arc::clone(&model))));
    chat_until_it_hangs(&env, &agent, "My secret", 1, &model).await;
    let id = env.messages().await[0].id;
    env.memory.erase_messages(&env.scope, env.thread, &[id]).await.unwrap();
    let turns = agent.resume(&env.scope, env.thread, &mut |_| {}).await.unwrap();
    assert_eq!(turns[0].error.as_ref().map(|error| error.code.as_str()), Some("question_erased"));
    assert_eq!(model.requests().len(), 1);
}

/// A model that hangs in its first call and answers the second.
fn hanging_once() -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new().step("hangs", |_| Ok(Reply::hanging())).step("answers", |_| Ok(Reply::text("Here."))))
}

#[tokio::test]
async fn interrupted_turns_are_listed_across_tenants_and_resumed() {
    let env = TestEnv::new().await;
    let model = hanging_once();
    let agent = env.agent(assistant(SharedModel(Arc::clone(&model))));
    assert_eq!(list_interrupted_turns(&env.memory).await.unwrap(), []);
    let check_while_running = async {
        while model.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(list_interrupted_turns(&env.memory).await.unwrap(), [], "it has a driver");
    };
    tokio::select! {
        turn = agent.chat(&env.scope, env.thread, "Are you there?") => panic!("{turn:?}"),
        () = check_while_running => {}
    }
    // A user of another tenant without interrupted turns.
    let other = Scope::user("globex", "zoë").unwrap();
    let other_thread = env.memory.open(&other).await.unwrap().thread.id;
    let done = env.agent(assistant(ScriptedModel::always(|_| Ok(Reply::text("Done.")))));
    done.chat(&other, other_thread, "Hello").await.unwrap();
    let interrupted = list_interrupted_turns(&env.memory).await.unwrap();
    assert_eq!(interrupted.len(), 1);
    let first = &interrupted[0];
    assert_eq!((&first.scope, first.thread, first.assistant.as_str()), (&env.scope, env.thread, "test"));
    let turns = agent.resume(&first.scope, first.thread, &mut |_| {}).await.unwrap();
    assert_eq!((turns[0].turn.as_str(), turns[0].reply.as_str()), (first.turn.as_str(), "Here."));
    assert_eq!(list_interrupted_turns(&env.memory).await.unwrap(), []);
}

/// An assistant whose context contains the scope on whose behalf the turn runs.
#[derive(Debug)]
struct ScopeReporting(Definition);

#[async_trait::async_trait]
impl Assistant for ScopeReporting {
    fn definition(&self) -> &Definition {
        &self.0
    }

    async fn prepare(&self, request: &PrepareRequest<'_>) -> Result<TurnPreparation, Failure> {
        Ok(TurnPreparation {
            grounding: Some(format!("This turn runs for {:?}.", request.scope)),
            ..TurnPreparation::default()
        })
    }
}

#[tokio::test]
async fn a_turn_resumed_by_another_user_runs_for_its_author() {
    let env = TestEnv::new().await;
    let tenant = Scope::Tenant(env.scope.tenant_id().clone());
    let shared = env.memory.open(&tenant).await.unwrap().thread.id;
    let model = hanging_once();
    let agent = env.agent(ScopeReporting(assistant(SharedModel(Arc::clone(&model)))));
    tokio::select! {
        turn = agent.chat(&env.scope, shared, "Are you there?") => panic!("{turn:?}"),
        () = async {
            while model.requests().is_empty() {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    let ben = Scope::user("acme", "ben").unwrap();
    assert_eq!(agent.resume(&ben, shared, &mut |_| {}).await.unwrap()[0].reply, "Here.");
    for request in model.requests() {
        let request = format!("{request:?}");
        assert!(
            request.contains("This turn runs for") && request.contains("ana") && !request.contains("ben"),
            "{request}"
        );
    }
}

#[tokio::test]
async fn a_run_is_taken_over_at_most_five_times() {
    let env = TestEnv::new().await;
    let model = Arc::new(ScriptedModel::always(|_| Ok(Reply::hanging())));
    let agent = env.agent(assistant(SharedModel(Arc::clone(&model))));
    chat_until_it_hangs(&env, &agent, "Are you there?", 1, &model).await;
    let mut ignore = |_| {};
    for times in 2..=6 {
        tokio::select! {
            turns = agent.resume(&env.scope, env.thread, &mut ignore) => panic!("{turns:?}"),
            () = async {
                while model.requests().len() < times {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
    }
    let turn = list_interrupted_turns(&env.memory).await.unwrap().remove(0).turn;
    assert!(agent.resume(&env.scope, env.thread, &mut |_| {}).await.unwrap().is_empty());
    assert_eq!(model.requests().len(), 6);
    let turn = agent.find_turn(&env.scope, env.thread, &turn).await.unwrap().unwrap();
    assert_eq!((turn.status, turn.error.unwrap().code.as_str()), (TurnStatus::Failed, "interrupted"));
    assert_eq!(list_interrupted_turns(&env.memory).await.unwrap(), []);
}

#[tokio::test]
async fn a_resumed_turn_can_be_stopped() {
    let env = TestEnv::new().await;
    let model = Arc::new(ScriptedModel::always(|_| Ok(Reply::hanging())));
    let agent = env.agent(assistant(SharedModel(Arc::clone(&model))));
    chat_until_it_hangs(&env, &agent, "Are you there?", 1, &model).await;
    let stop = Stop::new();
    let mut ignore = |_| {};
    let (turns, ()) = futures::join!(agent.resume_with(&env.scope, env.thread, &stop, &mut ignore), async {
        while model.requests().len() < 2 {
            tokio::task::yield_now().await;
        }
        stop.stop();
    });
    assert_eq!(turns.unwrap()[0].error.as_ref().unwrap().code, "stopped");
}

/// A tool that may change something without approval, and hangs.
#[derive(Debug)]
struct AllowedTool {
    spec: ToolSpec,
    count: Arc<AtomicUsize>,
}

#[async_trait::async_trait]
impl Tool for AllowedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _: &Map) -> ToolEffect {
        ToolEffect::Allowed
    }

    async fn call(&self, _: &ToolContext, _: &Map) -> Result<ToolOutput, ToolError> {
        self.count.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }
}

/// A source of one tool, which is only known after the wait.
#[derive(Debug)]
struct OneTool(Arc<AllowedTool>, AtomicUsize);

#[async_trait::async_trait]
impl ToolSource for OneTool {
    async fn wait_until_ready(&self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let is_ready = self.1.load(Ordering::SeqCst) > 0;
        is_ready.then(|| Arc::clone(&self.0) as Arc<dyn Tool>).into_iter().collect()
    }
}

#[tokio::test]
async fn an_allowed_call_is_not_repeated_after_a_crash() {
    let (env, count) = (TestEnv::new().await, Arc::new(AtomicUsize::new(0)));
    let model = ScriptedModel::new().step("calls", |_| Ok(Reply::call("send", json!({})))).step("reports", |request| {
        let error = Turn::of(request).result("send").unwrap_err();
        assert!(error.contains("outcome unknown: the process ended during this call"), "{error}");
        Ok(Reply::text("It may have been sent."))
    });
    let parameters = JsonText::new(r#"{"type":"object"}"#).unwrap();
    let (name, description) = ("send".to_owned(), "Sends".to_owned());
    let spec = ToolSpec::new(ToolDescription { name, description, parameters, is_strict: None });
    let mut definition = assistant(model);
    let tool = Arc::new(AllowedTool { spec, count: Arc::clone(&count) });
    definition.tool_sources.push(Arc::new(OneTool(tool, AtomicUsize::new(0))));
    let agent = env.agent(definition);
    tokio::select! {
        turn = agent.chat(&env.scope, env.thread, "Send it") => panic!("{turn:?}"),
        () = async {
            while count.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    let turns = agent.resume(&env.scope, env.thread, &mut |_| {}).await.unwrap();
    assert_eq!(turns[0].reply, "It may have been sent.", "{:?}", turns[0].error);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}
