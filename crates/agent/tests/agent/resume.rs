//! Going on with what was left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use threadkeep_agent::{Agent, Asked, Assistant, Definition, FnTool, Prepared, Stop, TurnStatus, list_cut_turns};
use threadkeep_core::{DocumentOwner, DocumentQuery, JsonText, Map, Namespace, Scope, ToolContext, ToolOutput};
use threadkeep_graph::{END, Failure, Graph, ModelAsk, Node, Output, START, state};
use threadkeep_models::{Reply, ScriptedModel, Turn};

use crate::world::{World, assistant};

fn counting(count: &Arc<AtomicUsize>) -> FnTool {
    let count = Arc::clone(count);
    let parameters = JsonText::new(r#"{"type":"object"}"#).unwrap();
    FnTool::with_schema("look", "Looks", parameters, move |_: ToolContext, _: Map| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok(ToolOutput::text("seen")) }
    })
}

/// Chats until the model hangs, and drops the call there.
async fn chat_until_it_hangs(world: &World, agent: &Agent, text: &str, model_calls: usize, model: &ScriptedModel) {
    tokio::select! {
        turn = agent.chat(&world.scope, world.thread, text) => panic!("{turn:?}"),
        () = async {
            while model.requests().len() < model_calls {
                tokio::task::yield_now().await;
            }
        } => {}
    }
}

#[derive(Debug)]
struct Shared(Arc<ScriptedModel>);

#[async_trait::async_trait]
impl threadkeep_core::ChatModel for Shared {
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
async fn a_dropped_turn_goes_on_where_it_was() {
    let (world, count) = (World::new().await, Arc::new(AtomicUsize::new(0)));
    let model = Arc::new(
        ScriptedModel::new()
            .step("calls", |_| Ok(Reply::call("look", json!({}))))
            .step("hangs", |_| Ok(Reply::hanging()))
            .step("answers with what was looked up", |request| {
                Ok(Reply::text(Turn::of(request).result("look")?.to_string()))
            }),
    );
    let agent = world.agent(assistant(Shared(Arc::clone(&model))).with_tool(counting(&count)));
    chat_until_it_hangs(&world, &agent, "Look", 2, &model).await;
    let turns = agent.resume(&world.scope, world.thread, &mut |_| {}).await.unwrap();
    assert_eq!(turns.len(), 1);
    assert_eq!((turns[0].status, turns[0].reply.as_str()), (TurnStatus::Completed, "\"seen\""));
    assert_eq!((turns[0].usage.model_calls, turns[0].tool_calls.len(), turns[0].stored.len()), (2, 1, 4));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert_eq!(model.verify(), Ok(()));
    assert!(agent.resume(&world.scope, world.thread, &mut |_| {}).await.unwrap().is_empty());
}

async fn documents(world: &World, namespace: &str) -> Vec<String> {
    let query = DocumentQuery {
        namespace: Some(Namespace::System(namespace.to_owned())),
        ..DocumentQuery::of(DocumentOwner::Thread(world.thread))
    };
    let found = world.memory.list_documents(&world.scope, query).await.unwrap();
    found.into_iter().map(|document| document.value.as_str().to_owned()).collect()
}

#[tokio::test]
async fn what_is_over_leaves_a_stub_of_a_kilobyte_at_most() {
    let (world, count) = (World::new().await, Arc::new(AtomicUsize::new(0)));
    let model = ScriptedModel::always(|request| match Turn::of(request).exchanges().len() {
        0 => Ok(Reply::call("look", json!({}))),
        _ => Ok(Reply::text("Done.")),
    });
    let agent = world.agent(assistant(model).with_tool(counting(&count)));
    for _ in 0..3 {
        world.chat(&agent, "Look").await;
    }
    assert_eq!((documents(&world, "run").await.len(), documents(&world, "journal").await.len()), (0, 0));
    let stubs = documents(&world, "turn").await;
    assert_eq!(stubs.len(), 3);
    assert!(stubs.iter().all(|stub| stub.len() <= 1_024), "{stubs:?}");
}

state! {
    struct Plain (update PlainUpdate) {
        append answers: String,
    }
}

/// A graph that asks as often as its version says.
fn graph(version: u32) -> Graph<Plain> {
    let wanted = version as usize;
    Graph::<Plain>::draw("plain", version, |_| Plain::default())
        .node("agent", Node::model(|_| ModelAsk::reply(&[]), |_, answer| PlainUpdate { answers: vec![answer.text()] }))
        .edge(START, "agent")
        .branch("agent", ["agent", END], move |state| if state.answers.len() < wanted { "agent" } else { END })
        .finish(|state| Output::reply(state.answers.join(" ")))
        .unwrap()
}

#[tokio::test]
async fn a_run_of_another_version_begins_afresh() {
    let world = World::new().await;
    let model = Arc::new(ScriptedModel::new().says("old").step("hangs", |_| Ok(Reply::hanging())).says("new"));
    let with = |version| Definition { ..assistant(Shared(Arc::clone(&model))).with_graph(graph(version)) };
    let old = world.agent(with(2));
    chat_until_it_hangs(&world, &old, "Hello", 2, &model).await;
    let turns = world.agent(with(1)).resume(&world.scope, world.thread, &mut |_| {}).await.unwrap();
    assert_eq!((turns[0].reply.as_str(), turns[0].usage.model_calls), ("new", 1));
    assert_eq!(documents(&world, "journal").await.len(), 0);
}

#[tokio::test]
async fn a_run_of_another_assistant_is_closed() {
    let world = World::new().await;
    let model = Arc::new(ScriptedModel::new().step("hangs", |_| Ok(Reply::hanging())).says("Hello."));
    let first = world.agent(assistant(Shared(Arc::clone(&model))));
    chat_until_it_hangs(&world, &first, "Anyone?", 1, &model).await;
    let other = world.agent(Definition { name: "other".to_owned(), ..assistant(Shared(model)) });
    assert_eq!(world.chat(&other, "Hello?").await.reply, "Hello.");
    assert_eq!(
        world.transcript().await,
        ["user: Anyone?", "assistant: the program ended before this was answered", "user: Hello?", "assistant: Hello.",]
    );
}

#[tokio::test]
async fn a_question_that_was_erased_is_not_answered() {
    let world = World::new().await;
    let model = Arc::new(ScriptedModel::new().step("hangs", |_| Ok(Reply::hanging())));
    let agent = world.agent(assistant(Shared(Arc::clone(&model))));
    chat_until_it_hangs(&world, &agent, "My secret", 1, &model).await;
    let id = world.messages().await[0].id;
    world.memory.erase_messages(&world.scope, world.thread, &[id]).await.unwrap();
    let turns = agent.resume(&world.scope, world.thread, &mut |_| {}).await.unwrap();
    assert_eq!(turns[0].error.as_ref().map(|error| error.code.as_str()), Some("question_erased"));
    assert_eq!(model.requests().len(), 1);
}

/// A model that answers the second time it is asked only.
fn hanging_once() -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new().step("hangs", |_| Ok(Reply::hanging())).step("answers", |_| Ok(Reply::text("Here."))))
}

#[tokio::test]
async fn what_was_cut_is_found_in_every_tenant_and_gone_on_with() {
    let world = World::new().await;
    let model = hanging_once();
    let agent = world.agent(assistant(Shared(Arc::clone(&model))));
    assert_eq!(list_cut_turns(&world.memory).await.unwrap(), []);
    let while_driven = async {
        while model.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(list_cut_turns(&world.memory).await.unwrap(), [], "it has a driver");
    };
    tokio::select! {
        turn = agent.chat(&world.scope, world.thread, "Are you there?") => panic!("{turn:?}"),
        () = while_driven => {}
    }
    // Somebody of another tenant has nothing that was cut.
    let other = Scope::user("globex", "zoë").unwrap();
    let theirs = world.memory.open(&other).await.unwrap().thread.id;
    let done = world.agent(assistant(ScriptedModel::always(|_| Ok(Reply::text("Done.")))));
    done.chat(&other, theirs, "Hello").await.unwrap();
    let cut = list_cut_turns(&world.memory).await.unwrap();
    assert_eq!(cut.len(), 1);
    assert_eq!((&cut[0].scope, cut[0].thread, cut[0].assistant.as_str()), (&world.scope, world.thread, "test"));
    let turns = agent.resume(&cut[0].scope, cut[0].thread, &mut |_| {}).await.unwrap();
    assert_eq!((turns[0].turn.as_str(), turns[0].reply.as_str()), (cut[0].turn.as_str(), "Here."));
    assert_eq!(list_cut_turns(&world.memory).await.unwrap(), []);
}

/// An assistant that says on whose behalf it is asked.
#[derive(Debug)]
struct Telling(Definition);

#[async_trait::async_trait]
impl Assistant for Telling {
    fn definition(&self) -> &Definition {
        &self.0
    }

    async fn prepare(&self, asked: &Asked<'_>) -> Result<Prepared, Failure> {
        Ok(Prepared { grounding: Some(format!("Asked by {:?}.", asked.scope)), ..Prepared::default() })
    }
}

#[tokio::test]
async fn whoever_goes_on_does_so_for_the_one_who_asked() {
    let world = World::new().await;
    let tenant = Scope::Tenant(world.scope.tenant_id().clone());
    let shared = world.memory.open(&tenant).await.unwrap().thread.id;
    let model = hanging_once();
    let agent = world.agent(Telling(assistant(Shared(Arc::clone(&model)))));
    tokio::select! {
        turn = agent.chat(&world.scope, shared, "Are you there?") => panic!("{turn:?}"),
        () = async {
            while model.requests().is_empty() {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    let ben = Scope::user("acme", "ben").unwrap();
    assert_eq!(agent.resume(&ben, shared, &mut |_| {}).await.unwrap()[0].reply, "Here.");
    for request in model.requests() {
        let said = format!("{request:?}");
        assert!(said.contains("Asked by") && said.contains("ana") && !said.contains("ben"), "{said}");
    }
}

#[tokio::test]
async fn what_ends_the_program_each_time_is_taken_up_a_few_times_only() {
    let world = World::new().await;
    let model = Arc::new(ScriptedModel::always(|_| Ok(Reply::hanging())));
    let agent = world.agent(assistant(Shared(Arc::clone(&model))));
    chat_until_it_hangs(&world, &agent, "Are you there?", 1, &model).await;
    let mut unheard = |_| {};
    for times in 2..=6 {
        tokio::select! {
            turns = agent.resume(&world.scope, world.thread, &mut unheard) => panic!("{turns:?}"),
            () = async {
                while model.requests().len() < times {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
    }
    let turn = list_cut_turns(&world.memory).await.unwrap().remove(0).turn;
    assert!(agent.resume(&world.scope, world.thread, &mut |_| {}).await.unwrap().is_empty());
    assert_eq!(model.requests().len(), 6);
    let turn = agent.find_turn(&world.scope, world.thread, &turn).await.unwrap().unwrap();
    assert_eq!((turn.status, turn.error.unwrap().code.as_str()), (TurnStatus::Failed, "interrupted"));
    assert_eq!(list_cut_turns(&world.memory).await.unwrap(), []);
}

#[tokio::test]
async fn what_is_gone_on_with_can_be_stopped() {
    let world = World::new().await;
    let model = Arc::new(ScriptedModel::always(|_| Ok(Reply::hanging())));
    let agent = world.agent(assistant(Shared(Arc::clone(&model))));
    chat_until_it_hangs(&world, &agent, "Are you there?", 1, &model).await;
    let stop = Stop::new();
    let mut unheard = |_| {};
    let (turns, ()) = futures::join!(agent.resume_with(&world.scope, world.thread, &stop, &mut unheard), async {
        while model.requests().len() < 2 {
            tokio::task::yield_now().await;
        }
        stop.stop();
    });
    assert_eq!(turns.unwrap()[0].error.as_ref().unwrap().code, "stopped");
}
