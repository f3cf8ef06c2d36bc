//! Signed thoughts go back as they came: within their turn, after an approval and a crash, and to no other provider.

use serde_json::{Value, json};
use threadkeep_agent::{Agent, Definition, FnTool, TurnStatus, Verdict};
use threadkeep_core::{JsonText, Map, ToolContext, ToolOutput};
use threadkeep_models::Provider;

use crate::wire::{Wire, completion};
use crate::world::{World, assistant};

/// Blocks as the wire brings them, with a member that nobody has told us of.
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

fn asking(wire: &Wire) -> Definition {
    assistant(wire.model(Provider::Anthropic)).with_tool(delete_pod().changing_the_world(|_| "delete nginx".to_owned()))
}

fn holds_thoughts(asked: &str) -> bool {
    asked.contains(&format!("{THOUGHT},{REDACTED},"))
}

#[tokio::test(flavor = "multi_thread")]
async fn thoughts_go_back_within_their_turn_byte_for_byte() {
    let wire = Wire::start(vec![thinks_and_calls(), says("Done.")]);
    let world = World::new().await;
    let agent = world.agent(assistant(wire.model(Provider::Anthropic)).with_tool(delete_pod()));
    let turn = world.chat(&agent, "Delete it").await;
    assert_eq!((turn.status, turn.reply.as_str()), (TurnStatus::Completed, "Done."));
    assert!(!holds_thoughts(&wire.next()));
    let asked = wire.next();
    assert!(holds_thoughts(&asked), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn thoughts_go_back_after_an_approval_and_a_crash_and_to_nobody_else() {
    let wire = Wire::start(vec![thinks_and_calls(), None, says("Done."), says("Yes.")]);
    let world = World::new().await;
    let turn = world.chat(&world.agent(asking(&wire)), "Delete it").await;
    assert_eq!(turn.status, TurnStatus::WaitingForApproval);
    wire.next();

    // The process that decides is killed while the model is asked.
    let (decider, id) = (world.agent(asking(&wire)), turn.approvals[0].id.clone());
    let decided = {
        let world = world.clone();
        tokio::spawn(async move {
            decider.decide(&world.scope, world.thread, &id, Verdict::Approve, "ana", &mut |_| {}).await
        })
    };
    let asked = wire.next();
    assert!(holds_thoughts(&asked), "{asked}");
    decided.abort();
    assert!(decided.await.unwrap_err().is_cancelled());

    let turns = world.agent(asking(&wire)).resume(&world.scope, world.thread, &mut |_| {}).await.unwrap();
    assert_eq!(turns.iter().map(|turn| turn.reply.as_str()).collect::<Vec<_>>(), ["Done."]);
    let again = wire.next();
    assert!(holds_thoughts(&again), "{again}");

    let other = Wire::start(vec![Some((200, completion(json!({"role": "assistant", "content": "Yes."}))))]);
    let agent: Agent = world.agent(assistant(other.model(Provider::Compatible)).with_tool(delete_pod()));
    assert_eq!(world.chat(&agent, "Did it work?").await.reply, "Yes.");
    let asked = other.next();
    assert!(asked.contains("deleted") && asked.contains("toolu_1"), "{asked}");
    assert!(!asked.contains("signature") && !asked.contains("thinking") && !asked.contains("The pod is"), "{asked}");
}
