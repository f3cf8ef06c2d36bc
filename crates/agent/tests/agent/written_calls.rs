//! Tool calls that a model wrote as text, or that its provider rejected, in whole turns over the chat completions API.

use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use threadkeep_agent::{FnTool, TurnStatus, schemars};
use threadkeep_core::{Role, ToolContext, ToolOutput};
use threadkeep_models::Provider;

use crate::env::{TestEnv, assistant, roles};
use crate::fake_provider::{FakeProvider, completion};

#[derive(Deserialize, JsonSchema)]
struct Platform {
    #[serde(default)]
    station: String,
    #[serde(default)]
    filter: Value,
}

type RecordedCalls = Arc<Mutex<Vec<String>>>;

fn arrivals(called: &RecordedCalls) -> FnTool {
    let called = Arc::clone(called);
    FnTool::new("arrivals", "Lists arrivals", move |_: ToolContext, platform: Platform| {
        called.lock().unwrap().push(format!("{} {}", platform.station, platform.filter));
        async { Ok(ToolOutput::text("in 3 minutes")) }
    })
}

fn text_answer(text: &str) -> Option<(u16, Value)> {
    Some((200, completion(json!({"role": "assistant", "content": text}))))
}

fn refused_call(generation: &str) -> Option<(u16, Value)> {
    let error = json!({
        "message": "Failed to call a function. See 'failed_generation' for more details.",
        "type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": generation,
    });
    Some((400, json!({"error": error})))
}

/// Runs a turn in which the provider returns these answers. Returns the turn's status, reply, tool calls and model requests.
async fn run_turn(answers: Vec<Option<(u16, Value)>>) -> (TurnStatus, String, Vec<String>, Vec<Value>) {
    let count = answers.len();
    let (provider, env, called) = (FakeProvider::start(answers), TestEnv::new().await, RecordedCalls::default());
    let agent = env.agent(assistant(provider.model(Provider::Compatible)).with_tool(arrivals(&called)));
    let turn = env.chat(&agent, "Next train at Times Square?").await;
    let requests = (0..count).map(|_| serde_json::from_str(&provider.next_request()).unwrap()).collect();
    let called = called.lock().unwrap().clone();
    for message in env.messages().await {
        let text = message.plain_text().into_owned();
        assert!(!text.contains("function") && !text.contains("{\""), "markup is stored: {text}");
    }
    (turn.status, turn.reply, called, requests)
}

// S2.42, S2.44, S2.45: the tool runs once, and the reply uses its result.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_runs_for_every_written_form_of_its_call() {
    let plain = [
        r#"<function=arrivals {"station": "Times Sq"}></function>"#,
        r#"<function=arrivals{"station": "Times Sq"}></function>"#,
        r#"<function=arrivals{"station": "Times Sq"}</function>"#,
        r#"<function=arrivals>{"station": "Times Sq"}</function>"#,
        r#"arrivals{"station": "Times Sq"}</function>"#,
        r#"\u003cfunction=arrivals {"station": "Times Sq"}\u003e\u003c/function\u003e"#,
    ];
    let nested = r#"<function=arrivals {"station": "Times Sq", "filter": {"lines": ["N", "Q"]}}></function>"#;
    let without_arguments = "<function=arrivals></function>";
    let cases = plain.map(|text| (text, "Times Sq null"));
    let cases = cases.into_iter().chain([(nested, r#"Times Sq {"lines":["N","Q"]}"#), (without_arguments, " null")]);
    for (written, expected) in cases {
        for first in [text_answer(written), refused_call(written)] {
            let (status, reply, called, requests) = run_turn(vec![first, text_answer("In 3 minutes.")]).await;
            assert_eq!((status, reply.as_str()), (TurnStatus::Completed, "In 3 minutes."), "{written}");
            assert_eq!(called, [expected], "{written}");
            let result = &requests[1]["messages"].as_array().unwrap().last().unwrap().clone();
            assert_eq!((&result["role"], &result["content"]), (&"tool".into(), &"in 3 minutes".into()), "{written}");
        }
    }
}

// S2.43
#[tokio::test(flavor = "multi_thread")]
async fn text_is_not_parsed_as_a_call_next_to_a_structured_call() {
    let function = json!({"name": "arrivals", "arguments": "{\"station\":\"Canal\"}"});
    let message = json!({
        "role": "assistant", "content": "<function=arrivals {\"station\": \"Times Sq\"}></function>",
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    });
    let (_, reply, called, _) = run_turn(vec![Some((200, completion(message))), text_answer("In 3 minutes.")]).await;
    assert_eq!((reply.as_str(), called), ("In 3 minutes.", vec!["Canal null".to_owned()]));
}

// S2.45: the reply never contains raw markup.
#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_call_is_answered_without_markup() {
    for written in [r#"<function=arrivals {"station": </function>"#, "<function=launch {\"x\": 1}></function>"] {
        for to_answer in [text_answer, refused_call] {
            // A malformed call is requested again, with the same answer. A call of an unknown tool gets an error result.
            let mut answers = vec![to_answer(written), to_answer(written)];
            if written.contains("launch") {
                answers = vec![to_answer(written), text_answer("I cannot do that.")];
            }
            let (_, reply, called, _) = run_turn(answers).await;
            assert!(called.is_empty() && !reply.is_empty() && !reply.contains('<'), "{written}: {reply}");
        }
    }
}

// S2.46
#[tokio::test(flavor = "multi_thread")]
async fn other_provider_errors_fail_only_their_turn() {
    let provider = FakeProvider::start(vec![
        Some((422, json!({"error": {"message": "no such parameter"}}))),
        text_answer("Hello."),
    ]);
    let env = TestEnv::new().await;
    let agent = env.agent(assistant(provider.model(Provider::Compatible)));
    let turn = env.chat(&agent, "Hello?").await;
    assert_eq!((turn.status, turn.error.unwrap().code.as_str()), (TurnStatus::Failed, "model_refused"));
    assert!(!turn.reply.is_empty());
    assert_eq!(env.chat(&agent, "And now?").await.reply, "Hello.");
    assert_eq!(roles(&env.messages().await), [Role::User, Role::Assistant, Role::User, Role::Assistant]);
}

// S2.04, S2.05, S2.09
#[tokio::test(flavor = "multi_thread")]
async fn requests_have_one_system_prompt_and_all_tools() {
    let written = r#"<function=arrivals {"station": "Times Sq"}></function>"#;
    let (_, _, _, requests) = run_turn(vec![text_answer(written), text_answer("In 3 minutes.")]).await;
    let roles = |body: &Value| -> Vec<String> {
        let messages = body["messages"].as_array().unwrap();
        messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(roles(&requests[0]), ["system", "user"]);
    assert_eq!(roles(&requests[1]), ["system", "user", "assistant", "tool"]);
    for body in &requests {
        assert_eq!(body["tools"][0]["function"]["name"], "arrivals");
        assert!(matches!(body.get("tool_choice").and_then(Value::as_str), None | Some("auto")), "{body}");
    }
    let call = &requests[1]["messages"][2]["tool_calls"][0];
    assert_eq!(call["id"], requests[1]["messages"][3]["tool_call_id"]);
}
