//! Calls that change the world, and what people decide about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use threadkeep_agent::{
    Agent, ApprovalPolicy, ApprovalState, Definition, EarlierRequests, FnTool, Turn, TurnStatus, Verdict,
};
use threadkeep_core::{JsonText, Map, ToolError, ToolOutput};
use threadkeep_models::{Reply, ScriptedModel};

use crate::world::{World, assistant};

/// What was done to the world.
#[derive(Clone, Default)]
pub(crate) struct Cluster {
    pub(crate) deleted: Arc<AtomicUsize>,
}

impl Cluster {
    pub(crate) fn kubectl(&self) -> FnTool {
        let deleted = Arc::clone(&self.deleted);
        let parameters = JsonText::new(r#"{"type":"object","properties":{"command":{"type":"string"}}}"#).unwrap();
        let run = move |context: threadkeep_core::ToolContext, arguments: Map| {
            let deleted = Arc::clone(&deleted);
            async move {
                let command = arguments["command"].as_str().unwrap_or_default().to_owned();
                if command.starts_with("get") {
                    return Ok(ToolOutput::text("nginx-7d4b Running"));
                }
                assert!(context.approval.is_some(), "nothing is deleted without leave");
                if command.contains("missing") {
                    return Err(ToolError::NotFound(command));
                }
                deleted.fetch_add(1, Ordering::SeqCst);
                Ok(ToolOutput::text(format!("done: {command}")))
            }
        };
        FnTool::with_schema("kubectl", "Runs kubectl", parameters, run).changing_the_world_where(|arguments| {
            let command = arguments.get("command")?.as_str()?;
            (!command.starts_with("get")).then(|| format!("kubectl {command}"))
        })
    }

    fn count(&self) -> usize {
        self.deleted.load(Ordering::SeqCst)
    }
}

fn asks_to(command: &str) -> Reply {
    Reply::call("kubectl", json!({"command": command}))
}

/// A model that asks for a command, then says what came of it.
fn script(command: &'static str) -> ScriptedModel {
    ScriptedModel::new().step("asks", move |_| Ok(asks_to(command))).step("tells", |request| {
        let result = threadkeep_models::Turn::of(request).exchanges().last().and_then(|exchange| exchange.result);
        Ok(Reply::text(format!("It says: {}", result.map(|result| result.output.as_str()).unwrap_or("nothing"))))
    })
}

async fn decide(world: &World, agent: &Agent, turn: &Turn, verdict: Verdict) -> Result<Turn, String> {
    let id = &turn.approvals[0].id;
    let decided = agent.decide(&world.scope, world.thread, id, verdict, "ana", &mut |_| {}).await;
    decided.map_err(|error| error.to_string())
}

fn kubeops(cluster: &Cluster, model: ScriptedModel) -> Definition {
    assistant(model).with_tool(cluster.kubectl())
}

// S4.18, S4.46, S4.47, S4.48
#[tokio::test]
async fn nothing_runs_before_it_is_approved_and_then_once() {
    let (world, cluster) = (World::new().await, Cluster::default());
    let model = ScriptedModel::new()
        .step("reads", |_| Ok(asks_to("get pods")))
        .step("asks", |_| Ok(asks_to("delete pod nginx-7d4b")))
        .says("It is gone.");
    let agent = world.agent(kubeops(&cluster, model));
    let turn = world.chat(&agent, "Delete the nginx pod").await;
    assert_eq!(turn.status, TurnStatus::WaitingForApproval);
    assert_eq!(turn.approvals[0].preview, "kubectl delete pod nginx-7d4b");
    assert_eq!(turn.approvals[0].expires_at.to_string(), "2026-11-21T09:00:00Z");
    assert_eq!(turn.reply, "⚠️ This action requires approval\n`kubectl delete pod nginx-7d4b`");
    assert_eq!(cluster.count(), 0);
    let turn = decide(&world, &agent, &turn, Verdict::Approve).await.unwrap();
    assert_eq!((turn.status, turn.reply.as_str(), cluster.count()), (TurnStatus::Completed, "It is gone.", 1));
    assert_eq!(turn.approvals[0].state, ApprovalState::Done);
    assert_eq!(turn.tool_calls.iter().filter(|call| call.ok).count(), 2);
    assert_eq!(turn.usage.model_calls, 3);
    assert_eq!(
        world.transcript().await,
        [
            "user: Delete the nginx pod",
            "assistant: kubectl({\"command\":\"get pods\"})",
            "tool: nginx-7d4b Running",
            "assistant: kubectl({\"command\":\"delete pod nginx-7d4b\"})",
            "assistant: ⚠️ This action requires approval\n`kubectl delete pod nginx-7d4b`",
            "user: Approved: kubectl delete pod nginx-7d4b",
            "tool: done: delete pod nginx-7d4b",
            "assistant: It is gone.",
        ]
    );
    assert_eq!(turn.stored.len(), 8);
    let again = decide(&world, &agent, &turn, Verdict::Approve).await;
    assert_eq!(again, Err(format!("approval {} is done already", turn.approvals[0].id)));
    assert_eq!(cluster.count(), 1);
    assert_eq!(agent.find_turn(&world.scope, world.thread, &turn.turn).await.unwrap(), Some(turn));
}

// S4.18: "did it work?" is answered from the conversation.
#[tokio::test]
async fn the_next_question_sees_request_decision_and_error() {
    let (world, cluster) = (World::new().await, Cluster::default());
    let model = script("delete pod missing").step("sees all", |request| {
        let said: Vec<String> = request.messages.iter().map(|message| format!("{:?}", message.parts)).collect();
        let said = said.join("\n");
        for expected in ["requires approval", "Approved: kubectl delete pod missing", "not found: delete pod missing"] {
            assert!(said.contains(expected), "{said}");
        }
        Ok(Reply::text("No: there is no such pod."))
    });
    let agent = world.agent(kubeops(&cluster, model));
    let turn = world.chat(&agent, "Delete the missing pod").await;
    let turn = decide(&world, &agent, &turn, Verdict::Approve).await.unwrap();
    assert_eq!(turn.approvals[0].state, ApprovalState::Failed);
    assert_eq!(world.chat(&agent, "Did it work?").await.reply, "No: there is no such pod.");
}

// S1.45, S4.47, S4.50
#[tokio::test]
async fn a_denial_is_told_to_the_model_and_final() {
    let (world, cluster) = (World::new().await, Cluster::default());
    let agent = world.agent(kubeops(&cluster, script("delete pod nginx")));
    let turn = world.chat(&agent, "Delete it").await;
    let deny = Verdict::Deny { reason: Some("it is Friday".to_owned()) };
    let turn = decide(&world, &agent, &turn, deny).await.unwrap();
    assert_eq!(turn.reply, "It says: not done: the approval was denied: it is Friday");
    assert_eq!((turn.status, turn.approvals[0].state), (TurnStatus::Completed, ApprovalState::Denied));
    let error = decide(&world, &agent, &turn, Verdict::Approve).await.unwrap_err();
    assert!(error.ends_with("is denied already"), "{error}");
    assert_eq!(cluster.count(), 0);
    assert!(world.transcript().await.contains(&"user: Denied: kubectl delete pod nginx (it is Friday)".to_owned()));
}

// S1.45
#[tokio::test]
async fn a_call_can_be_changed_by_who_approves_it() {
    let (world, cluster) = (World::new().await, Cluster::default());
    let agent = world.agent(kubeops(&cluster, script("delete pod nginx")));
    let turn = world.chat(&agent, "Delete it").await;
    let changed = Map::from_iter([("command".to_owned(), json!("delete pod apache"))]);
    let turn = decide(&world, &agent, &turn, Verdict::ApproveChanged(changed)).await.unwrap();
    assert_eq!(turn.reply, "It says: done: delete pod apache");
    assert_eq!(turn.tool_calls[0].arguments.as_str(), r#"{"command":"delete pod apache"}"#);
    assert_eq!(turn.approvals[0].arguments.as_str(), r#"{"command":"delete pod apache"}"#);
}

// S4.50
#[tokio::test]
async fn an_approval_that_nobody_gave_in_time_is_void() {
    let (world, cluster) = (World::new().await, Cluster::default());
    let agent = world.agent(kubeops(&cluster, script("delete pod nginx").says("Hello.")));
    let turn = world.chat(&agent, "Delete it").await;
    world.clock.advance_minutes(30);
    let error = decide(&world, &agent, &turn, Verdict::Approve).await.unwrap_err();
    assert!(error.ends_with("is expired already"), "{error}");
    assert_eq!(cluster.count(), 0);
    let closed = agent.find_turn(&world.scope, world.thread, &turn.turn).await.unwrap().unwrap();
    assert_eq!(closed.error.map(|error| error.code).as_deref(), Some("approval_expired"));
    assert_eq!(closed.tool_calls[0].error.as_deref(), Some("not done: the approval expired"));
    assert_eq!(agent.open_approvals(&world.scope, world.thread).await.unwrap(), []);
}

#[tokio::test]
async fn a_chat_after_the_time_closes_what_waited() {
    let (world, cluster) = (World::new().await, Cluster::default());
    let model = ScriptedModel::new().step("asks", |_| Ok(asks_to("delete pod nginx"))).says("Hello.");
    let agent = world.agent(kubeops(&cluster, model));
    world.chat(&agent, "Delete it").await;
    world.clock.advance_minutes(31);
    world.chat(&agent, "Hello?").await;
    let transcript = world.transcript().await;
    assert_eq!(
        transcript[3..5],
        [
            "tool: !not done: the approval expired".to_owned(),
            "assistant: `kubectl delete pod nginx`: not done: the approval expired".to_owned(),
        ]
    );
}

// S4.50
#[tokio::test]
async fn a_later_request_takes_the_place_of_an_earlier_one() {
    for (earlier, expected) in
        [(EarlierRequests::Replace, ApprovalState::Replaced), (EarlierRequests::Keep, ApprovalState::Pending)]
    {
        let (world, cluster) = (World::new().await, Cluster::default());
        let model = ScriptedModel::new()
            .step("asks", |_| Ok(asks_to("delete pod one")))
            .step("asks for another", |_| Ok(asks_to("delete pod two")))
            .says("Two is gone.");
        let approvals = ApprovalPolicy { earlier, ..ApprovalPolicy::default() };
        let agent = world.agent(Definition { approvals, ..kubeops(&cluster, model) });
        let first = world.chat(&agent, "Delete one").await;
        let second = world.chat(&agent, "No, delete two").await;
        let states: Vec<_> = agent.approvals(&world.scope, world.thread).await.unwrap();
        let states: Vec<_> = states.into_iter().map(|approval| approval.state).collect();
        assert_eq!(states, [expected, ApprovalState::Pending]);
        if earlier == EarlierRequests::Replace {
            let error = decide(&world, &agent, &first, Verdict::Approve).await.unwrap_err();
            assert!(error.ends_with("is replaced already"), "{error}");
        }
        decide(&world, &agent, &second, Verdict::Approve).await.unwrap();
        assert_eq!(cluster.count(), 1);
    }
}

// S4.49
#[tokio::test]
async fn only_those_who_may_decide() {
    let (world, cluster) = (World::new().await, Cluster::default());
    let approvals = ApprovalPolicy { deciders: Some(vec!["bob".to_owned()]), ..ApprovalPolicy::default() };
    let definition = Definition { approvals, ..kubeops(&cluster, script("delete pod nginx")) };
    let agent = world.agent(definition);
    let turn = world.chat(&agent, "Delete it").await;
    let error = decide(&world, &agent, &turn, Verdict::Approve).await.unwrap_err();
    assert_eq!((error.as_str(), cluster.count()), ("ana may not decide this approval", 0));
    let (id, thread) = (&turn.approvals[0].id, world.thread);
    let elsewhere = world.memory.open(&world.scope).await.unwrap().thread.id;
    let error = agent.decide(&world.scope, elsewhere, id, Verdict::Approve, "bob", &mut |_| {}).await.unwrap_err();
    assert_eq!(error.code(), "approval_not_found");
    let stranger = threadkeep_core::Scope::user("acme", "eve").unwrap();
    let error = agent.decide(&stranger, thread, id, Verdict::Approve, "bob", &mut |_| {}).await.unwrap_err();
    assert_eq!(error.code(), "not_found");
    agent.decide(&world.scope, thread, id, Verdict::Approve, "bob", &mut |_| {}).await.unwrap();
    assert_eq!(cluster.count(), 1);
}

// S4.50
#[tokio::test]
async fn an_approval_survives_a_restart_and_the_thread_is_free_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let open = || threadkeep_store_sqlite::SqliteStore::open(&path, Default::default()).unwrap().backend();
    let (world, cluster) = (World::over(open()).await, Cluster::default());
    let model = ScriptedModel::new().step("asks", |_| Ok(asks_to("delete pod nginx"))).says("Fine, thanks.");
    let agent = world.agent(kubeops(&cluster, model));
    let turn = world.chat(&agent, "Delete it").await;
    assert_eq!(world.chat(&agent, "How are you?").await.reply, "Fine, thanks.");
    let memory = threadkeep_memory::Memory::with_clock(open(), world.clock.clone());
    let restarted = Agent::new(
        memory,
        kubeops(
            &cluster,
            ScriptedModel::new().step("tells", |request| {
                let turn = threadkeep_models::Turn::of(request);
                assert_eq!(turn.question(), "Delete it");
                Ok(Reply::text(turn.result("kubectl")?.to_string()))
            }),
        ),
    );
    assert_eq!(restarted.open_approvals(&world.scope, world.thread).await.unwrap().len(), 1);
    let turn = decide(&world, &restarted, &turn, Verdict::Approve).await.unwrap();
    assert_eq!((turn.reply.as_str(), cluster.count()), ("\"done: delete pod nginx\"", 1));
    assert_eq!(turn.tool_calls.len(), 1);
}

#[tokio::test]
async fn two_calls_of_one_answer_are_decided_one_by_one() {
    let (world, cluster) = (World::new().await, Cluster::default());
    let both = |_: &_| {
        let call = |pod| json!({"command": format!("delete pod {pod}")});
        Ok(Reply::call("kubectl", call("one")).and_call("kubectl", call("two")))
    };
    let agent = world.agent(kubeops(&cluster, ScriptedModel::new().step("asks twice", both).says("One is gone.")));
    let turn = world.chat(&agent, "Delete both").await;
    assert_eq!(turn.approvals.len(), 2);
    let turn = decide(&world, &agent, &turn, Verdict::Approve).await.unwrap();
    assert_eq!((turn.status, cluster.count()), (TurnStatus::WaitingForApproval, 1));
    let deny = Verdict::Deny { reason: None };
    let second = &turn.approvals[1].id;
    let turn = agent.decide(&world.scope, world.thread, second, deny, "ana", &mut |_| {}).await.unwrap();
    assert_eq!((turn.status, turn.reply.as_str(), cluster.count()), (TurnStatus::Completed, "One is gone.", 1));
    let states: Vec<_> = turn.approvals.iter().map(|approval| approval.state).collect();
    assert_eq!(states, [ApprovalState::Done, ApprovalState::Denied]);
}

#[tokio::test]
async fn what_is_asked_for_beside_other_calls_is_asked_once_when_they_are_done() {
    let (world, cluster) = (World::new().await, Cluster::default());
    let slow = FnTool::with_schema(
        "slow",
        "Looks slowly",
        JsonText::new(r#"{"type":"object"}"#).unwrap(),
        |_: threadkeep_core::ToolContext, _: Map| async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            Ok(ToolOutput::text("seen"))
        },
    );
    let three = |_: &_| {
        let delete = asks_to("delete pod nginx");
        Ok(delete.and_call("kubectl", json!({"command": "get pods"})).and_call("slow", json!({})))
    };
    let model = ScriptedModel::new().step("calls three", three).says("All done.");
    let agent = world.agent(kubeops(&cluster, model).with_tool(slow));
    let mut names = Vec::new();
    let mut sink = |event: threadkeep_agent::TurnEvent| names.push(event.name());
    let ask = threadkeep_agent::Ask::new("Look twice and delete");
    let turn = agent.chat_with(&world.scope, world.thread, ask, &mut sink).await.unwrap();
    assert_eq!(names.iter().filter(|name| **name == "approval.requested").count(), 1, "{names:?}");
    assert_eq!(names[names.len() - 2..], ["approval.requested", "turn.completed"]);
    assert_eq!((turn.tool_calls.len(), turn.approvals.len()), (2, 1));
    let turn = decide(&world, &agent, &turn, Verdict::Approve).await.unwrap();
    let names: Vec<_> = turn.tool_calls.iter().map(|call| call.arguments.as_str().to_owned()).collect();
    assert_eq!(names, [r#"{"command":"delete pod nginx"}"#, r#"{"command":"get pods"}"#, "{}"]);
    assert_eq!((turn.reply.as_str(), cluster.count()), ("All done.", 1));
}
