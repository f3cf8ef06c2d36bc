//! Plan, execute, synthesise.

use serde_json::json;
use threadkeep_agent::{Definition, FnTool, TurnStatus, plan_execute_synthesise};
use threadkeep_core::{JsonText, Map, ToolContext, ToolError, ToolOutput, Value};
use threadkeep_memory::ThreadConfig;
use threadkeep_models::{Reply, ScriptedModel, Turn};

use crate::env::{TestEnv, assistant};

fn handbook() -> FnTool {
    let parameters = JsonText::new(r#"{"type":"object"}"#).unwrap();
    FnTool::with_schema("handbook", "Searches the handbook", parameters, |_: ToolContext, call: Map| async move {
        match call.get("topic").and_then(Value::as_str) {
            Some("leave") => Ok(ToolOutput::text("25 days; 30 after five years")),
            Some(topic) => Err(ToolError::NotFound(topic.to_owned())),
            None => Err(ToolError::Arguments("no topic".to_owned())),
        }
    })
}

fn plan(steps: &Value) -> Reply {
    Reply::text(json!({"intent": "know the leave", "steps": steps}).to_string())
}

fn plan_execute(model: ScriptedModel) -> Definition {
    assistant(model).with_tool(handbook()).with_graph(plan_execute_synthesise())
}

fn steps_of(data: Option<&JsonText>) -> Vec<(String, u64)> {
    let data: Value = data.unwrap().read().unwrap();
    let steps = data["plan"]["steps"].as_array().unwrap().clone();
    steps.iter().map(|step| (step["state"].as_str().unwrap().to_owned(), step["failures"].as_u64().unwrap())).collect()
}

// S1.18, S1.19, S1.46
#[tokio::test]
async fn a_plan_is_executed_and_refined_by_a_follow_up() {
    let env = TestEnv::new().await;
    let steps = json!([{"what": "days of leave", "tools": ["handbook"]}]);
    let model = ScriptedModel::new()
        .step("plans", move |request| {
            assert!(request.messages[0].plain_text().contains("Answer with JSON only"));
            Ok(plan(&steps))
        })
        .step("calls without a topic", |request| {
            assert!(request.messages[0].plain_text().contains("Step: days of leave"));
            Ok(Reply::call("handbook", json!({})))
        })
        .step("calls again", |request| {
            assert!(request.messages[0].plain_text().contains("It failed before: invalid arguments: no topic"));
            Ok(Reply::call("handbook", json!({"topic": "leave"})))
        })
        .step("answers", |request| {
            assert!(request.tools.is_empty());
            let results = request.messages.iter().flat_map(|message| message.tool_results()).count();
            assert_eq!(results, 2);
            Ok(Reply::text("25 days."))
        })
        .step("plans the follow-up from what is known", |request| {
            let earlier_results = request.messages.iter().flat_map(|message| message.tool_results());
            assert!(earlier_results.map(|result| &result.output).any(|output| output.contains("30 after five years")));
            Ok(plan(&json!([])))
        })
        .step("answers immediately", |request| {
            assert_eq!(Turn::of(request).question(), "And after five years?");
            Ok(Reply::text("30 days."))
        });
    let agent = env.agent(plan_execute(model));
    let turn = env.chat(&agent, "How many days of leave do I have?").await;
    assert_eq!((turn.status, turn.reply.as_str()), (TurnStatus::Completed, "25 days."), "{:?}", turn.error);
    assert_eq!(steps_of(turn.data.as_ref()), [("done".to_owned(), 1)]);
    assert_eq!(turn.tool_calls.iter().map(|call| call.ok).collect::<Vec<_>>(), [false, true]);
    let turn = env.chat(&agent, "And after five years?").await;
    assert_eq!((turn.reply.as_str(), turn.tool_calls.len()), ("30 days.", 0));
}

// S1.47
#[tokio::test]
async fn a_step_that_keeps_failing_is_reported_in_the_answer() {
    let env = TestEnv::new().await;
    let config = ThreadConfig { enabled_tools: Some(Vec::new()), ..ThreadConfig::default() };
    env.memory.set_thread_config(&env.scope, env.thread, &config, None).await.unwrap();
    let steps = json!([{"what": "days of leave", "tools": ["handbook"]}, {"what": "sick days", "tools": ["handbook"]}]);
    let call = |_: &_| Ok(Reply::call("handbook", json!({"topic": "leave"})));
    let model = ScriptedModel::new()
        .step("plans", move |request| {
            assert!(request.tools.is_empty());
            Ok(plan(&steps))
        })
        .step("calls a disabled tool", call)
        .step("again", call)
        .step("and again", call)
        .step("does nothing", |_| Ok(Reply::text("I think it is 25.")))
        .step("does nothing again", |_| Ok(Reply::text("I think it is 25.")))
        .step("does nothing a third time", |_| Ok(Reply::text("I think it is 25.")))
        .step("reports both failures", |request| {
            let instructions = request.messages[0].plain_text();
            assert!(instructions.contains("Not found out:\n- days of leave\n- sick days"), "{instructions}");
            Ok(Reply::text("I could not look that up."))
        });
    let turn = env.chat(&env.agent(plan_execute(model)), "How many days of leave and sickness?").await;
    assert_eq!(turn.reply, "I could not look that up.", "{:?}", turn.error);
    assert_eq!(steps_of(turn.data.as_ref()), [("failed".to_owned(), 3), ("failed".to_owned(), 3)]);
    assert!(turn.tool_calls.iter().all(|call| !call.ok));
    assert!(!env.transcript().await.iter().any(|line| line.contains("I think")));
}

#[tokio::test]
async fn an_invalid_plan_is_answered_without_tools() {
    let env = TestEnv::new().await;
    let model = ScriptedModel::new().says("Let me think about it.").says("I do not know.");
    let turn = env.chat(&env.agent(plan_execute(model)), "How many?").await;
    assert_eq!((turn.reply.as_str(), turn.usage.model_calls), ("I do not know.", 2));
}
