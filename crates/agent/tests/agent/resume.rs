//! Going on with what was left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use threadkeep_agent::{Agent, Definition, FnTool, TurnStatus};
use threadkeep_core::{DocumentOwner, DocumentQuery, JsonText, Map, Namespace, ToolContext, ToolOutput};
use threadkeep_graph::{END, Graph, ModelAsk, Node, Output, START, state};
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
