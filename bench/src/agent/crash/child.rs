//! The process that crashes: it starts the run or resumes it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use threadkeep_agent::{
    Agent, AgentError, Definition, FnActivity, FnTool, RetryPolicy, TurnRequest, Verdict, result_message,
};
use threadkeep_core::{
    ChatMessage, Clock, JsonText, Map, Message, Namespace, Part, RecordOwner, RecordQuery, Scope, ThreadId, Timestamp,
    ToolCall, ToolOutput,
};
use threadkeep_graph::{END, Graph, ModelRequest, Node, Output, START, state};
use threadkeep_memory::{Memory, SystemClock};
use threadkeep_models::{Reply, ScriptedModel, Turn};

use super::{RunOutcome, open};
use crate::agent::crash_points::{CrashPoints, CrashingModel, CrashingStore};

/// Arguments of the process that crashes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The store's file or URL
    #[arg(long)]
    store: String,
    /// The tenant of the run
    #[arg(long)]
    tenant: String,
    /// The log file
    #[arg(long)]
    log: PathBuf,
    /// The number of the crash point; 0 for none
    #[arg(long)]
    die_at: u64,
    /// Minutes by which the clock is ahead
    #[arg(long)]
    minutes: i64,
}

/// The system clock plus an offset.
#[derive(Debug)]
struct OffsetClock {
    minutes: i64,
}

impl Clock for OffsetClock {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus_ms(self.minutes * 60_000)
    }

    fn random(&self) -> [u8; 10] {
        SystemClock.random()
    }
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let points = CrashPoints::new(&args.log, args.die_at)?;
    let backend = CrashingStore::wrap(open(&args.store).await?, Arc::clone(&points));
    let memory = Memory::with_clock(backend, Arc::new(OffsetClock { minutes: args.minutes }));
    let scope = Scope::user(&args.tenant, "ana")?;
    let thread = memory.open_by_key(&scope, "the thread").await?.thread.id;
    let agent = Agent::new(memory, assistant(&points)?);
    agent.resume(&scope, thread, &mut |_| {}).await?;
    let ask = TurnRequest {
        idempotency_key: Some("the turn".to_owned()),
        ..TurnRequest::new("Book it, look twice, delete it")
    };
    agent.chat_with(&scope, thread, ask, &mut |_| {}).await?;
    for approval in agent.list_open_approvals(&scope, thread).await? {
        match agent.decide(&scope, thread, &approval.id, Verdict::Approve, "ana", &mut |_| {}).await {
            Ok(_) | Err(AgentError::ApprovalClosed { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    println!("{}", serde_json::to_string(&outcome(&agent, &scope, thread).await?)?);
    Ok(())
}

async fn outcome(agent: &Agent, scope: &Scope, thread: ThreadId) -> Result<RunOutcome> {
    let messages = agent.memory().newest(scope, thread, 100).await?;
    let approvals = agent.approvals(scope, thread).await?;
    let mut leftover_records = 0;
    for namespace in ["run", "journal"] {
        let namespace = Some(Namespace::system(namespace)?);
        let query = RecordQuery { namespace, ..RecordQuery::of(RecordOwner::Thread(thread)) };
        leftover_records += agent.memory().list_records(scope, query).await?.len();
    }
    Ok(RunOutcome {
        transcript: messages.iter().map(line).collect(),
        approvals: approvals.iter().map(|approval| approval.preview.clone()).collect(),
        leftover_records,
    })
}

fn line(message: &Message) -> String {
    let parts = message.content.parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::ToolCall(call) => format!("{}({})", call.name, call.arguments),
        Part::ToolResult(result) => result.output.clone(),
        other => format!("{other:?}"),
    });
    format!("{}: {}", message.content.role, parts.collect::<Vec<_>>().join(" "))
}

state! {
    /// The state of the run.
    struct Booked (update BookedUpdate) {
        append messages: ChatMessage,
        replace booking: String,
    }
}

fn calls(state: &Booked) -> Vec<ToolCall> {
    state.messages.last().into_iter().flat_map(ChatMessage::tool_calls).cloned().collect()
}

fn graph() -> Result<Graph<Booked>> {
    let booked = |_: &Booked, output: JsonText| BookedUpdate { booking: output.read().ok(), ..BookedUpdate::default() };
    Ok(Graph::<Booked>::builder("booked", 1, |_| Booked::default())
        .node(
            "book",
            Node::activity("book", |_| JsonText::of("a seat"), booked).or_else(|_, failure| BookedUpdate {
                booking: Some(failure.message.clone()),
                ..BookedUpdate::default()
            }),
        )
        .node(
            "agent",
            Node::model(
                |state: &Booked| ModelRequest::reply(&state.messages),
                |_, answer| BookedUpdate { messages: vec![answer.message()], ..BookedUpdate::default() },
            ),
        )
        .node(
            "tools",
            Node::tools(calls, |_, results| BookedUpdate {
                messages: results.into_iter().map(result_message).collect(),
                ..BookedUpdate::default()
            }),
        )
        .edge(START, "book")
        .edge("book", "agent")
        .branch("agent", ["tools", END], |state| if calls(state).is_empty() { END } else { "tools" })
        .edge("tools", "agent")
        .messages(|state| &state.messages)
        .finish(|state| {
            let text = state.messages.last().map(ChatMessage::plain_text).unwrap_or_default();
            Output::reply(format!("{text} {}", state.booking))
        })?)
}

fn assistant(points: &Arc<CrashPoints>) -> Result<Definition> {
    let model = ScriptedModel::always(|request| {
        let exchanges = Turn::of(request).exchanges();
        if exchanges.is_empty() {
            let looks = Reply::call("look_one", json!({})).and_call("look_two", json!({}));
            return Ok(looks.and_call("delete", json!({})));
        }
        let results = exchanges.iter().filter_map(|exchange| exchange.result);
        Ok(Reply::text(results.map(|result| result.output.as_str()).collect::<Vec<_>>().join(", ")))
    });
    let model = CrashingModel { points: Arc::clone(points), inner: model };
    let in_activity = Arc::clone(points);
    let book = FnActivity::new("book", RetryPolicy::Once, move |_, _| {
        let points = Arc::clone(&in_activity);
        async move {
            points.pass("begin activity book");
            points.pass("end activity book");
            Ok(JsonText::from(&json!("booked")))
        }
    });
    let deletes = tool(points, "delete")?.with_side_effects(|_| "delete it".to_owned());
    Ok(Definition::new("crash", Arc::new(model))
        .with_graph(graph()?)
        .with_activity(book)
        .with_tool(tool(points, "look_one")?)
        .with_tool(tool(points, "look_two")?)
        .with_tool(deletes))
}

fn tool(points: &Arc<CrashPoints>, name: &'static str) -> Result<FnTool> {
    let points = Arc::clone(points);
    let parameters = JsonText::new(r#"{"type":"object"}"#)?;
    Ok(FnTool::with_schema(name, "Does what its name says", parameters, move |_, _: Map| {
        let points = Arc::clone(&points);
        async move {
            points.pass(&format!("begin tool {name}"));
            // Yields, so that the other tool starts before this one ends.
            tokio::task::yield_now().await;
            points.pass(&format!("end tool {name}"));
            Ok(ToolOutput::text(format!("{name} done")))
        }
    }))
}
