//! Calls with side effects, and decisions about their approvals.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use threadkeep_agent::{
    Agent, ApprovalPolicy, ApprovalState, Definition, EarlierRequests, FnTool, Turn, TurnStatus, Verdict,
};
use threadkeep_core::{JsonText, Map, ToolError, ToolOutput};
use threadkeep_memory::{Draft, MemoryOptions, Retention};
use threadkeep_models::{Reply, ScriptedModel};

use crate::env::{TestEnv, assistant};

/// A cluster that counts deletions.
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
                assert!(context.approval.is_some(), "deleted without approval");
                if command.contains("missing") {
                    return Err(ToolError::NotFound(command));
                }
                deleted.fetch_add(1, Ordering::SeqCst);
                Ok(ToolOutput::text(format!("done: {command}")))
            }
        };
        FnTool::with_schema("kubectl", "Runs kubectl", parameters, run).with_side_effects_where(|arguments| {
            let command = arguments.get("command")?.as_str()?;
            (!command.starts_with("get")).then(|| format!("kubectl {command}"))
        })
    }

    fn deletion_count(&self) -> usize {
        self.deleted.load(Ordering::SeqCst)
    }
}

fn calls_kubectl(command: &str) -> Reply {
    Reply::call("kubectl", json!({"command": command}))
}

/// A model that calls a command, then reports the result.
fn calls_and_reports(command: &'static str) -> ScriptedModel {
    ScriptedModel::new().step("asks", move |_| Ok(calls_kubectl(command))).step("reports", |request| {
        let result = threadkeep_models::Turn::of(request).exchanges().last().and_then(|exchange| exchange.result);
        Ok(Reply::text(format!("It says: {}", result.map(|result| result.output.as_str()).unwrap_or("nothing"))))
    })
}

async fn decide(env: &TestEnv, agent: &Agent, turn: &Turn, verdict: Verdict) -> Result<Turn, String> {
    let id = &turn.approvals[0].id;
    let decided = agent.decide(&env.scope, env.thread, id, verdict, "ana", &mut |_| {}).await;
    decided.map_err(|error| error.to_string())
}

fn kubeops(cluster: &Cluster, model: ScriptedModel) -> Definition {
    assistant(model).with_tool(cluster.kubectl())
}

// S4.18, S4.46, S4.47, S4.48
#[tokio::test]
async fn an_approved_call_runs_once_and_not_before_approval() {
    let (env, cluster) = (TestEnv::new().await, Cluster::default());
    let model = ScriptedModel::new()
        .step("reads", |_| Ok(calls_kubectl("get pods")))
        .step("asks", |_| Ok(calls_kubectl("delete pod nginx-7d4b")))
        .says("It is gone.");
    let agent = env.agent(kubeops(&cluster, model));
    let turn = env.chat(&agent, "Delete the nginx pod").await;
    assert_eq!(turn.status, TurnStatus::WaitingForApproval);
    assert_eq!(turn.approvals[0].preview, "kubectl delete pod nginx-7d4b");
    assert_eq!(turn.approvals[0].expires_at.to_string(), "2026-11-21T09:00:00Z");
    assert_eq!(turn.reply, "⚠️ This action requires approval\n`kubectl delete pod nginx-7d4b`");
    assert_eq!(cluster.deletion_count(), 0);
    let turn = decide(&env, &agent, &turn, Verdict::Approve).await.unwrap();
    assert_eq!((turn.status, turn.reply.as_str(), cluster.deletion_count()), (TurnStatus::Completed, "It is gone.", 1));
    assert_eq!(turn.approvals[0].state, ApprovalState::Done);
    assert_eq!(turn.tool_calls.iter().filter(|call| call.ok).count(), 2);
    assert_eq!(turn.usage.model_calls, 3);
    assert_eq!(
        env.transcript().await,
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
    let again = decide(&env, &agent, &turn, Verdict::Approve).await;
    assert_eq!(again, Err(format!("approval {} is already done", turn.approvals[0].id)));
    assert_eq!(cluster.deletion_count(), 1);
    assert_eq!(agent.find_turn(&env.scope, env.thread, &turn.turn).await.unwrap(), Some(turn));
}

// S4.18: "did it work?" is answered from the conversation.
#[tokio::test]
async fn the_next_turn_sees_request_decision_and_error() {
    let (env, cluster) = (TestEnv::new().await, Cluster::default());
    let model = calls_and_reports("delete pod missing").step("sees all", |request| {
        let messages: Vec<String> = request.messages.iter().map(|message| format!("{:?}", message.parts)).collect();
        let messages = messages.join("\n");
        for expected in ["requires approval", "Approved: kubectl delete pod missing", "not found: delete pod missing"] {
            assert!(messages.contains(expected), "{messages}");
        }
        Ok(Reply::text("No: there is no such pod."))
    });
    let agent = env.agent(kubeops(&cluster, model));
    let turn = env.chat(&agent, "Delete the missing pod").await;
    let turn = decide(&env, &agent, &turn, Verdict::Approve).await.unwrap();
    assert_eq!(turn.approvals[0].state, ApprovalState::Failed);
    assert_eq!(env.chat(&agent, "Did it work?").await.reply, "No: there is no such pod.");
}

// S1.45, S4.47, S4.50
#[tokio::test]
async fn a_denial_is_passed_to_the_model_and_is_final() {
    let (env, cluster) = (TestEnv::new().await, Cluster::default());
    let agent = env.agent(kubeops(&cluster, calls_and_reports("delete pod nginx")));
    let turn = env.chat(&agent, "Delete it").await;
    let deny = Verdict::Deny { reason: Some("it is Friday".to_owned()) };
    let turn = decide(&env, &agent, &turn, deny).await.unwrap();
    assert_eq!(turn.reply, "It says: not done: the approval was denied: it is Friday");
    assert_eq!((turn.status, turn.approvals[0].state), (TurnStatus::Completed, ApprovalState::Denied));
    let error = decide(&env, &agent, &turn, Verdict::Approve).await.unwrap_err();
    assert!(error.ends_with("is already denied"), "{error}");
    assert_eq!(cluster.deletion_count(), 0);
    assert!(env.transcript().await.contains(&"user: Denied: kubectl delete pod nginx (it is Friday)".to_owned()));
}

// S1.45
#[tokio::test]
async fn an_approval_can_change_the_arguments() {
    let (env, cluster) = (TestEnv::new().await, Cluster::default());
    let agent = env.agent(kubeops(&cluster, calls_and_reports("delete pod nginx")));
    let turn = env.chat(&agent, "Delete it").await;
    let changed = Map::from_iter([("command".to_owned(), json!("delete pod apache"))]);
    let turn = decide(&env, &agent, &turn, Verdict::ApproveWithChanges(changed)).await.unwrap();
    assert_eq!(turn.reply, "It says: done: delete pod apache");
    assert_eq!(turn.tool_calls[0].arguments.as_str(), r#"{"command":"delete pod apache"}"#);
    assert_eq!(turn.approvals[0].arguments.as_str(), r#"{"command":"delete pod apache"}"#);
}

// S4.50
#[tokio::test]
async fn an_expired_approval_cannot_be_decided() {
    let (env, cluster) = (TestEnv::new().await, Cluster::default());
    let agent = env.agent(kubeops(&cluster, calls_and_reports("delete pod nginx").says("Hello.")));
    let turn = env.chat(&agent, "Delete it").await;
    env.clock.advance_minutes(30);
    let error = decide(&env, &agent, &turn, Verdict::Approve).await.unwrap_err();
    assert!(error.ends_with("is already expired"), "{error}");
    assert_eq!(cluster.deletion_count(), 0);
    let closed = agent.find_turn(&env.scope, env.thread, &turn.turn).await.unwrap().unwrap();
    assert_eq!(closed.error.map(|error| error.code).as_deref(), Some("approval_expired"));
    assert_eq!(closed.tool_calls[0].error.as_deref(), Some("not done: the approval expired"));
    assert_eq!(agent.list_open_approvals(&env.scope, env.thread).await.unwrap(), []);
}

#[tokio::test]
async fn a_new_turn_closes_runs_with_expired_approvals() {
    let (env, cluster) = (TestEnv::new().await, Cluster::default());
    let model = ScriptedModel::new().step("asks", |_| Ok(calls_kubectl("delete pod nginx"))).says("Hello.");
    let agent = env.agent(kubeops(&cluster, model));
    env.chat(&agent, "Delete it").await;
    env.clock.advance_minutes(31);
    env.chat(&agent, "Hello?").await;
    let transcript = env.transcript().await;
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
async fn the_policy_determines_whether_a_request_replaces_an_earlier_one() {
    for (earlier_requests, expected) in
        [(EarlierRequests::Replace, ApprovalState::Void), (EarlierRequests::Keep, ApprovalState::Pending)]
    {
        let (env, cluster) = (TestEnv::new().await, Cluster::default());
        let model = ScriptedModel::new()
            .step("asks", |_| Ok(calls_kubectl("delete pod one")))
            .step("asks for another", |_| Ok(calls_kubectl("delete pod two")))
            .says("Two is gone.");
        let approvals = ApprovalPolicy { earlier_requests, ..ApprovalPolicy::default() };
        let agent = env.agent(Definition { approvals, ..kubeops(&cluster, model) });
        let first = env.chat(&agent, "Delete one").await;
        let second = env.chat(&agent, "No, delete two").await;
        let states: Vec<_> = agent.approvals(&env.scope, env.thread).await.unwrap();
        let states: Vec<_> = states.into_iter().map(|approval| approval.state).collect();
        assert_eq!(states, [expected, ApprovalState::Pending]);
        if earlier_requests == EarlierRequests::Replace {
            let error = decide(&env, &agent, &first, Verdict::Approve).await.unwrap_err();
            assert!(error.ends_with("is already replaced"), "{error}");
        }
        decide(&env, &agent, &second, Verdict::Approve).await.unwrap();
        assert_eq!(cluster.deletion_count(), 1);
    }
}

// S4.49
#[tokio::test]
async fn only_deciders_with_access_to_the_thread_can_decide() {
    let (env, cluster) = (TestEnv::new().await, Cluster::default());
    let approvals = ApprovalPolicy { deciders: Some(vec!["bob".to_owned()]), ..ApprovalPolicy::default() };
    let definition = Definition { approvals, ..kubeops(&cluster, calls_and_reports("delete pod nginx")) };
    let agent = env.agent(definition);
    let turn = env.chat(&agent, "Delete it").await;
    let error = decide(&env, &agent, &turn, Verdict::Approve).await.unwrap_err();
    assert_eq!((error.as_str(), cluster.deletion_count()), ("ana is not allowed to decide on this approval", 0));
    let (id, thread) = (&turn.approvals[0].id, env.thread);
    let other_thread = env.memory.open(&env.scope).await.unwrap().thread.id;
    let error = agent.decide(&env.scope, other_thread, id, Verdict::Approve, "bob", &mut |_| {}).await.unwrap_err();
    assert_eq!(error.code(), "approval_not_found");
    let other_user = threadkeep_core::Scope::user("acme", "eve").unwrap();
    let error = agent.decide(&other_user, thread, id, Verdict::Approve, "bob", &mut |_| {}).await.unwrap_err();
    assert_eq!(error.code(), "not_found");
    agent.decide(&env.scope, thread, id, Verdict::Approve, "bob", &mut |_| {}).await.unwrap();
    assert_eq!(cluster.deletion_count(), 1);
}

// S4.50
#[tokio::test]
async fn a_waiting_approval_survives_a_restart_and_does_not_block_the_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let open = || threadkeep_store_sqlite::SqliteStore::open(&path, Default::default()).unwrap().backend();
    let (env, cluster) = (TestEnv::with_backend(open()).await, Cluster::default());
    let model = ScriptedModel::new().step("asks", |_| Ok(calls_kubectl("delete pod nginx"))).says("Fine, thanks.");
    let agent = env.agent(kubeops(&cluster, model));
    let turn = env.chat(&agent, "Delete it").await;
    assert_eq!(env.chat(&agent, "How are you?").await.reply, "Fine, thanks.");
    let memory = threadkeep_memory::Memory::with_clock(open(), env.clock.clone());
    let restarted = Agent::new(
        memory,
        kubeops(
            &cluster,
            ScriptedModel::new().step("reports", |request| {
                let turn = threadkeep_models::Turn::of(request);
                assert_eq!(turn.question(), "Delete it");
                Ok(Reply::text(turn.result("kubectl")?.to_string()))
            }),
        ),
    );
    assert_eq!(restarted.list_open_approvals(&env.scope, env.thread).await.unwrap().len(), 1);
    let turn = decide(&env, &restarted, &turn, Verdict::Approve).await.unwrap();
    assert_eq!((turn.reply.as_str(), cluster.deletion_count()), ("\"done: delete pod nginx\"", 1));
    assert_eq!(turn.tool_calls.len(), 1);
}

#[tokio::test]
async fn two_calls_of_one_answer_are_decided_separately() {
    let (env, cluster) = (TestEnv::new().await, Cluster::default());
    let calls_twice = |_: &_| {
        let call = |pod| json!({"command": format!("delete pod {pod}")});
        Ok(Reply::call("kubectl", call("one")).and_call("kubectl", call("two")))
    };
    let agent =
        env.agent(kubeops(&cluster, ScriptedModel::new().step("calls twice", calls_twice).says("One is gone.")));
    let turn = env.chat(&agent, "Delete both").await;
    assert_eq!(turn.approvals.len(), 2);
    let turn = decide(&env, &agent, &turn, Verdict::Approve).await.unwrap();
    assert_eq!((turn.status, cluster.deletion_count()), (TurnStatus::WaitingForApproval, 1));
    let deny = Verdict::Deny { reason: None };
    let second = &turn.approvals[1].id;
    let turn = agent.decide(&env.scope, env.thread, second, deny, "ana", &mut |_| {}).await.unwrap();
    assert_eq!(
        (turn.status, turn.reply.as_str(), cluster.deletion_count()),
        (TurnStatus::Completed, "One is gone.", 1)
    );
    let states: Vec<_> = turn.approvals.iter().map(|approval| approval.state).collect();
    assert_eq!(states, [ApprovalState::Done, ApprovalState::Denied]);
}

#[tokio::test]
async fn an_approval_among_other_calls_is_requested_once_after_they_finish() {
    let (env, cluster) = (TestEnv::new().await, Cluster::default());
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
    let calls_three = |_: &_| {
        let delete = calls_kubectl("delete pod nginx");
        Ok(delete.and_call("kubectl", json!({"command": "get pods"})).and_call("slow", json!({})))
    };
    let model = ScriptedModel::new().step("calls three", calls_three).says("All done.");
    let agent = env.agent(kubeops(&cluster, model).with_tool(slow));
    let mut names = Vec::new();
    let mut sink = |event: threadkeep_agent::TurnEvent| names.push(event.name());
    let request = threadkeep_agent::TurnRequest::new("Look twice and delete");
    let turn = agent.chat_with(&env.scope, env.thread, request, &mut sink).await.unwrap();
    assert_eq!(names.iter().filter(|name| **name == "approval.requested").count(), 1, "{names:?}");
    assert_eq!(names[names.len() - 2..], ["approval.requested", "turn.completed"]);
    assert_eq!((turn.tool_calls.len(), turn.approvals.len()), (2, 1));
    let turn = decide(&env, &agent, &turn, Verdict::Approve).await.unwrap();
    let arguments: Vec<_> = turn.tool_calls.iter().map(|call| call.arguments.as_str().to_owned()).collect();
    assert_eq!(arguments, [r#"{"command":"delete pod nginx"}"#, r#"{"command":"get pods"}"#, "{}"]);
    assert_eq!((turn.reply.as_str(), cluster.deletion_count()), ("All done.", 1));
}

/// Returns an agent whose threads keep at most six messages, and its memory.
fn with_retention(env: &TestEnv, definition: Definition) -> (Agent, threadkeep_memory::Memory) {
    let retention = Some(Retention { max_messages: Some(6), ttl_minutes: None });
    let memory = env.memory.with_options(MemoryOptions { retention, ..env.memory.options().clone() }).unwrap();
    (Agent::new(memory.clone(), definition), memory)
}

// S4.08, S4.47: messages of a turn that is waiting for approval are not trimmed, however many messages follow.
#[tokio::test]
async fn a_pending_request_outlives_the_retention_limit() {
    let (env, cluster) = (TestEnv::new().await, Cluster::default());
    let mut model = ScriptedModel::new().step("asks", |_| Ok(calls_kubectl("delete pod nginx-7d4b")));
    for _ in 0..5 {
        model = model.says("You are welcome.");
    }
    let (agent, _) = with_retention(&env, kubeops(&cluster, model.says("It is gone.").says("Yes.")));
    let turn = env.chat(&agent, "Delete the nginx pod").await;
    for _ in 0..5 {
        env.chat(&agent, "Thanks").await;
    }
    let turn = decide(&env, &agent, &turn, Verdict::Approve).await.unwrap();
    assert_eq!((turn.reply.as_str(), cluster.deletion_count()), ("It is gone.", 1));
    env.chat(&agent, "Is it gone?").await;
    assert_eq!(env.messages().await.len(), 6, "the policy applies again");
}

// S4.50
#[tokio::test]
async fn a_request_whose_question_is_gone_is_closed() {
    let (env, cluster) = (TestEnv::new().await, Cluster::default());
    let (agent, memory) = with_retention(&env, kubeops(&cluster, calls_and_reports("delete pod nginx-7d4b")));
    let turn = env.chat(&agent, "Delete the nginx pod").await;
    for number in 0..7 {
        // Messages that are not part of a turn follow the policy.
        memory.append(&env.scope, env.thread, Draft::user(format!("note {number}"))).await.unwrap();
    }
    let refused = decide(&env, &agent, &turn, Verdict::Approve).await;
    assert_eq!(refused, Err(format!("approval {} is already replaced", turn.approvals[0].id)));
    assert_eq!(cluster.deletion_count(), 0);
    assert_eq!(agent.list_open_approvals(&env.scope, env.thread).await.unwrap(), []);
}
