//! The limits of a turn.

use serde_json::json;
use threadkeep_agent::{Definition, FnTool, TurnLimits, TurnStatus};
use threadkeep_core::{JsonText, Map, ToolContext, ToolOutput};
use threadkeep_models::{Reply, ScriptedModel, Turn};

use crate::env::{TestEnv, assistant};

fn look_tool() -> FnTool {
    let parameters = JsonText::new(r#"{"type":"object"}"#).unwrap();
    FnTool::with_schema("look", "Looks", parameters, |_: ToolContext, _: Map| async { Ok(ToolOutput::text("seen")) })
}

/// A model that calls a tool in every answer.
fn endless_model() -> ScriptedModel {
    ScriptedModel::always(|_| Ok(Reply::call("look", json!({})).with_usage(40, 10, Some(0.25))))
}

// S2.07
#[tokio::test]
async fn an_endless_turn_ends_at_the_first_limit_it_reaches() {
    let bounds = TurnLimits { model_calls: 1_000, tool_calls: 1_000, tokens: 1 << 40, ..TurnLimits::default() };
    let cases = [
        (bounds, "too_many_steps", 13),
        (TurnLimits { model_calls: 3, ..bounds }, "too_many_model_calls", 3),
        (TurnLimits { tokens: 200, ..bounds }, "too_many_tokens", 4),
        (TurnLimits { cost_usd: Some(0.5), ..bounds }, "too_expensive", 2),
    ];
    for (bounds, code, model_calls) in cases {
        let env = TestEnv::new().await;
        let agent = env.agent(Definition { bounds, ..assistant(endless_model()).with_tool(look_tool()) });
        let turn = env.chat(&agent, "Look").await;
        assert_eq!(turn.status, TurnStatus::Failed);
        assert_eq!(turn.error.map(|error| error.code).as_deref(), Some(code));
        assert_eq!(turn.usage.model_calls, model_calls, "{code}");
        let transcript = env.transcript().await;
        let calls = transcript.iter().filter(|line| line.starts_with("assistant: look(")).count();
        let results = transcript.iter().filter(|line| line.starts_with("tool: ")).count();
        assert_eq!((calls, results), (model_calls as usize, calls), "{code}");
    }
}

#[tokio::test]
async fn the_tool_call_limit_is_reported_to_the_model() {
    let env = TestEnv::new().await;
    let model = ScriptedModel::always(|request| match Turn::of(request).result("look") {
        Err(refusal) if refusal.contains("limit of 2 tool calls") => Ok(Reply::text("Enough.")),
        _ => Ok(Reply::call("look", json!({}))),
    });
    let bounds = TurnLimits { tool_calls: 2, ..TurnLimits::default() };
    let turn = env.chat(&env.agent(Definition { bounds, ..assistant(model).with_tool(look_tool()) }), "Look").await;
    assert_eq!(turn.reply, "Enough.");
    assert_eq!(turn.tool_calls.iter().map(|call| call.ok).collect::<Vec<_>>(), [true, true, false]);
}
