//! Assistants with custom graphs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use threadkeep_agent::{Agent, Failure, FnActivity, RetryPolicy, TurnRequest, TurnStatus, Verdict};
use threadkeep_core::{ChatMessage, JsonText, Role};
use threadkeep_graph::{END, Graph, ModelRequest, Node, Output, START, state};
use threadkeep_models::{Reply, ScriptedModel};

use crate::env::{TestEnv, assistant};

state! {
    /// The state of a turn about Tube lines.
    struct Lines (update LinesUpdate) {
        replace question: String,
        append messages: ChatMessage,
        optional status: JsonText,
        append opinions: String,
        replace confidence: f64,
    }
}

fn opinion(line: &'static str) -> Node<Lines> {
    Node::model(
        move |state: &Lines| {
            ModelRequest::without_history(vec![ChatMessage::text(Role::User, &state.question)]).with_instructions(line)
        },
        |_, answer| LinesUpdate { opinions: vec![answer.text()], ..LinesUpdate::default() },
    )
}

/// `START → status → (circle ∥ district) → merge → END`
fn two_lines() -> Graph<Lines> {
    Graph::<Lines>::builder("two_lines", 1, |input| Lines { question: input.question.clone(), ..Lines::default() })
        .node(
            "status",
            Node::activity(
                "line_status",
                |state: &Lines| JsonText::of(&state.question),
                |_, status| LinesUpdate { status: Some(status), confidence: Some(0.95), ..LinesUpdate::default() },
            ),
        )
        .node("circle", opinion("You are the Circle line."))
        .node("district", opinion("You are the District line."))
        .node(
            "merge",
            Node::pure(|state: &Lines| {
                let text = state.opinions.join(" ");
                LinesUpdate { messages: vec![ChatMessage::text(Role::Assistant, text)], ..LinesUpdate::default() }
            }),
        )
        .edge(START, "status")
        .edge("status", "circle")
        .edge("status", "district")
        .edge("circle", "merge")
        .edge("district", "merge")
        .edge("merge", END)
        .messages(|state| &state.messages)
        .finish(|state| Output {
            agent: Some("CIRCLE".to_owned()),
            confidence: Some(state.confidence),
            data: state.status.clone(),
            ..Output::reply(state.messages[0].plain_text())
        })
        .unwrap()
}

fn instruction_echo_model() -> ScriptedModel {
    ScriptedModel::always(|request| {
        assert_eq!(request.messages.len(), 2);
        Ok(Reply::text(format!("[{}]", request.messages[0].plain_text())))
    })
}

// S0.19, S0.24, S0.25
#[tokio::test]
async fn branches_merge_in_the_order_of_their_edges() {
    let env = TestEnv::new().await;
    let status = FnActivity::new("line_status", RetryPolicy::Retryable, |_, question: JsonText| async move {
        Ok(JsonText::from(&json!({"asked": question.read::<String>().unwrap(), "severity": 10})))
    });
    let agent = env.agent(assistant(instruction_echo_model()).with_graph(two_lines()).with_activity(status));
    let turn = env.chat(&agent, "Any delays?").await;
    assert_eq!(turn.reply, "[You are the Circle line.] [You are the District line.]");
    assert_eq!((turn.routed_agent.as_deref(), turn.confidence), (Some("CIRCLE"), Some(0.95)));
    let stored = &env.messages().await[1].content;
    assert_eq!(stored.agent.as_deref(), Some("CIRCLE"));
    assert_eq!(stored.data.as_ref().map(JsonText::as_str), Some(r#"{"asked":"Any delays?","severity":10}"#));
    assert_eq!(turn.data, stored.data);
}

#[tokio::test]
async fn a_failing_activity_fails_the_turn() {
    let env = TestEnv::new().await;
    let broken = FnActivity::new("line_status", RetryPolicy::Once, |_, _| async {
        Err(Failure::new("tfl_unavailable", "TfL is not responding"))
    });
    let agent = env.agent(assistant(instruction_echo_model()).with_graph(two_lines()).with_activity(broken));
    let turn = env.chat(&agent, "Any delays?").await;
    assert_eq!(turn.error, Some(Failure::new("tfl_unavailable", "TfL is not responding")));
    let without_activity = env.agent(assistant(instruction_echo_model()).with_graph(two_lines()));
    let turn = env.chat(&without_activity, "Any delays?").await;
    assert_eq!(turn.error.map(|error| error.code).as_deref(), Some("unknown_activity"));
}

state! {
    struct Journey (update JourneyUpdate) {
        replace plan: String,
        replace answer: String,
    }
}

fn confirmed_journey() -> Graph<Journey> {
    Graph::<Journey>::builder("journey", 1, |input| {
        let from = input.extra_input.get("location").and_then(|at| at.as_str()).unwrap_or("nowhere");
        Journey { plan: format!("{from} to {}", input.question), ..Journey::default() }
    })
    .node(
        "confirm",
        Node::approval(
            |state: &Journey| format!("Shall I plan {}?", state.plan),
            |state| JsonText::of(&state.plan),
            |state, decision| {
                let changed = decision.changed.and_then(|changed| changed.read::<threadkeep_core::Value>().ok());
                let plan = changed.and_then(|changed| changed["plan"].as_str().map(str::to_owned));
                let answer = if decision.approved { "Planned" } else { "Not planned" };
                let plan = plan.unwrap_or_else(|| state.plan.clone());
                JourneyUpdate { answer: Some(format!("{answer}: {plan}")), ..JourneyUpdate::default() }
            },
        ),
    )
    .edge(START, "confirm")
    .edge("confirm", END)
    .finish(|state| Output::reply(state.answer.clone()))
    .unwrap()
}

// S1.45
#[tokio::test]
async fn a_node_asks_for_approval() {
    for (verdict, expected) in [
        (Verdict::Approve, "Planned: Bank to Oxford"),
        (
            Verdict::ApproveWithChanges(threadkeep_core::Map::from_iter([("plan".to_owned(), json!("Bank to Ely"))])),
            "Planned: Bank to Ely",
        ),
        (Verdict::Deny { reason: None }, "Not planned: Bank to Oxford"),
    ] {
        let env = TestEnv::new().await;
        let agent: Agent = env.agent(assistant(ScriptedModel::new()).with_graph(confirmed_journey()));
        let extra_input = threadkeep_core::Map::from_iter([("location".to_owned(), json!("Bank"))]);
        let request = TurnRequest { extra_input, ..TurnRequest::new("Oxford") };
        let turn = agent.chat_with(&env.scope, env.thread, request, &mut |_| {}).await.unwrap();
        assert_eq!(turn.status, TurnStatus::WaitingForApproval);
        assert_eq!(turn.approvals[0].preview, "Shall I plan Bank to Oxford?");
        let id = &turn.approvals[0].id;
        let turn = agent.decide(&env.scope, env.thread, id, verdict, "ana", &mut |_| {}).await.unwrap();
        assert_eq!((turn.status, turn.reply.as_str()), (TurnStatus::Completed, expected));
    }
}

#[tokio::test]
async fn an_activity_that_runs_once_has_an_idempotency_key() {
    let env = TestEnv::new().await;
    let run_count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&run_count);
    let status = FnActivity::new("line_status", RetryPolicy::Once, move |context, _| {
        assert!(context.key.starts_with(&context.turn) && context.key.ends_with("/0"), "{}", context.key);
        counter.fetch_add(1, Ordering::SeqCst);
        async { Ok(JsonText::from(&json!(null))) }
    });
    let agent = env.agent(assistant(instruction_echo_model()).with_graph(two_lines()).with_activity(status));
    env.chat(&agent, "Any delays?").await;
    assert_eq!(run_count.load(Ordering::SeqCst), 1);
}
