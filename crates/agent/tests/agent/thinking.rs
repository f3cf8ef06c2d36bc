//! Signed thinking blocks are returned unchanged: within their turn, after approval and a crash, and only to the provider
//! that signed them.

use serde_json::{Value, json};
use threadkeep_agent::{Agent, Definition, FnTool, TurnStatus, Verdict};
use threadkeep_core::{JsonText, Map, ToolContext, ToolOutput};
use threadkeep_models::Provider;

use crate::env::{TestEnv, assistant};
use crate::fake_provider::{FakeProvider, completion};

/// A thinking block as the provider sends it, with an undocumented field.
const THOUGHT: &str =
    r#"{"type":"thinking","thinking":"The pod is “nginx”. Delete 1/2?","signature":"EqQBCkYICRgC+/a==","since":7}"#;
const REDACTED: &str = r#"{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix/LafPsn4a"}"#;

fn message(content: Vec<Value>, reason: &str) -> Option<(u16, Value)> {
    Some((
        200,
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": content,
            "stop_reason": reason, "usage": {"input_tokens": 10, "output_tokens": 3},
        }),
    ))
}

fn thinks_and_calls() -> Option<(u16, Value)> {
    let [thought, redacted] = [THOUGHT, REDACTED].map(|block| serde_json::from_str(block).unwrap());
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "delete_pod", "input": {"name": "nginx"}});
    message(vec![thought, redacted, call], "tool_use")
}

fn says(text: &str) -> Option<(u16, Value)> {
    message(vec![json!({"type": "text", "text": text})], "end_turn")
}

fn delete_pod() -> FnTool {
    let parameters = JsonText::new(r#"{"type":"object"}"#).unwrap();
    FnTool::with_schema("delete_pod", "Deletes", parameters, |_: ToolContext, _: Map| async {
        Ok(ToolOutput::text("deleted"))
    })
}

fn approving_assistant(provider: &FakeProvider) -> Definition {
    assistant(provider.model(Provider::Anthropic))
        .with_tool(delete_pod().with_side_effects(|_| "delete nginx".to_owned()))
}

fn has_thoughts(request: &str) -> bool {
    request.contains(&format!("{THOUGHT},{REDACTED},"))
}

#[tokio::test(flavor = "multi_thread")]
async fn thoughts_are_returned_unchanged_within_their_turn() {
    let provider = FakeProvider::start(vec![thinks_and_calls(), says("Done.")]);
    let env = TestEnv::new().await;
    let agent = env.agent(assistant(provider.model(Provider::Anthropic)).with_tool(delete_pod()));
    let turn = env.chat(&agent, "Delete it").await;
    assert_eq!((turn.status, turn.reply.as_str()), (TurnStatus::Completed, "Done."));
    assert!(!has_thoughts(&provider.next_request()));
    let request = provider.next_request();
    assert!(has_thoughts(&request), "{request}");
}

#[tokio::test(flavor = "multi_thread")]
async fn thoughts_are_returned_after_an_approval_and_a_crash_only_to_their_provider() {
    let provider = FakeProvider::start(vec![thinks_and_calls(), None, says("Done."), says("Yes.")]);
    let env = TestEnv::new().await;
    let turn = env.chat(&env.agent(approving_assistant(&provider)), "Delete it").await;
    assert_eq!(turn.status, TurnStatus::WaitingForApproval);
    provider.next_request();

    // The deciding process is killed during the model call.
    let (decider, id) = (env.agent(approving_assistant(&provider)), turn.approvals[0].id.clone());
    let decision_task = {
        let env = env.clone();
        tokio::spawn(
            async move { decider.decide(&env.scope, env.thread, &id, Verdict::Approve, "ana", &mut |_| {}).await },
        )
    };
    let request = provider.next_request();
    assert!(has_thoughts(&request), "{request}");
    decision_task.abort();
    assert!(decision_task.await.unwrap_err().is_cancelled());

    let turns = env.agent(approving_assistant(&provider)).resume(&env.scope, env.thread, &mut |_| {}).await.unwrap();
    assert_eq!(turns.iter().map(|turn| turn.reply.as_str()).collect::<Vec<_>>(), ["Done."]);
    let again = provider.next_request();
    assert!(has_thoughts(&again), "{again}");

    let other = FakeProvider::start(vec![Some((200, completion(json!({"role": "assistant", "content": "Yes."}))))]);
    let agent: Agent = env.agent(assistant(other.model(Provider::Compatible)).with_tool(delete_pod()));
    assert_eq!(env.chat(&agent, "Did it work?").await.reply, "Yes.");
    let request = other.next_request();
    assert!(request.contains("deleted") && request.contains("toolu_1"), "{request}");
    for thought in ["signature", "thinking", "The pod is"] {
        assert!(!request.contains(thought), "{request}");
    }
}
