//! Turns that complete.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use threadkeep_agent::{FnTool, TurnEvent, TurnRequest, TurnStatus, schemars};
use threadkeep_core::{
    ChatAnswer, ChatMessage, ChatModel, ChatRequest, DeltaSink, Finish, ModelError, Part, Role, Source, ToolOutput,
};
use threadkeep_memory::ThreadConfig;
use threadkeep_models::{Reply, ScriptedModel, Turn};

use crate::env::{TestEnv, assistant, names, roles};

#[derive(Deserialize, JsonSchema)]
struct Station {
    station: String,
}

fn arrivals() -> FnTool {
    FnTool::new("arrivals", "Lists the next trains", |context, Station { station }: Station| async move {
        assert_eq!(context.question, "When is the next train at Bank?");
        let source = Source {
            kind: "feed".to_owned(),
            id: "1".to_owned(),
            title: None,
            score: Some(f64::NAN),
            distance: None,
            fields: threadkeep_core::Map::new(),
        };
        let value = threadkeep_core::JsonText::from(&json!({"station": station, "minutes": 3}));
        Ok(ToolOutput::json(value).with_sources(vec![source]))
    })
    .with_alias("stop", "station")
}

fn arrivals_model() -> ScriptedModel {
    ScriptedModel::new()
        .step("looks the station up", |request| {
            let question = Turn::of(request).question();
            assert_eq!(question, "When is the next train at Bank?");
            let questions = request.messages.iter().filter(|message| message.plain_text() == question);
            assert_eq!(questions.count(), 1);
            assert_eq!(request.messages[0].plain_text(), "Be brief.");
            Ok(Reply::call("arrivals", json!({"stop": "Bank"})))
        })
        .step("answers", |request| {
            let found = Turn::of(request).result("arrivals")?;
            Ok(Reply::streamed(["In ", &format!("{} minutes.", found["minutes"])]).with_usage(100, 9, Some(0.5)))
        })
}

// S0.22, S0.23, S1.20, S2.06, S2.07
#[tokio::test]
async fn a_turn_with_a_tool_is_reported_and_stored() {
    let env = TestEnv::new().await;
    let agent = env.agent(assistant(arrivals_model()).with_tool(arrivals()));
    let mut events = Vec::new();
    let request = TurnRequest::new("When is the next train at Bank?");
    let turn = agent.chat_with(&env.scope, env.thread, request, &mut |event| events.push(event)).await.unwrap();
    insta::assert_json_snapshot!(serde_json::to_value(&turn).unwrap());
    assert_eq!(
        env.transcript().await,
        [
            "user: When is the next train at Bank?",
            "assistant: arrivals({\"stop\":\"Bank\"})",
            "tool: {\"station\":\"Bank\",\"minutes\":3}",
            "assistant: In 3 minutes.",
        ]
    );
    let expected = ["turn.started", "tool.started", "tool.finished", "token", "token", "turn.completed"];
    assert_eq!(names(&events), expected);
    assert_eq!(events.last(), Some(&TurnEvent::Completed(Box::new(turn.clone()))));
    let again = agent.find_turn(&env.scope, env.thread, &turn.turn).await.unwrap().unwrap();
    assert_eq!(again, turn);
    let report = env.memory.context_report(&env.scope, env.thread, &turn.turn).await.unwrap();
    assert_eq!(report.map(|report| report.tokens.total.0), Some(turn.context.tokens));
}

// S1.19, S1.21, S1.22
#[tokio::test]
async fn a_turn_sees_the_messages_of_the_previous_turn() {
    let env = TestEnv::new().await;
    let model = ScriptedModel::new().says("Ana, nice to meet you.").step("remembers", |request| {
        let texts: Vec<String> = request.messages.iter().map(ChatMessage::plain_text).collect();
        assert_eq!(texts, ["Be brief.", "I am Ana.", "Ana, nice to meet you.", "Who am I?"]);
        Ok(Reply::text("You are Ana."))
    });
    let agent = env.agent(assistant(model));
    env.chat(&agent, "I am Ana.").await;
    let turn = env.chat(&agent, "Who am I?").await;
    assert_eq!((turn.reply.as_str(), turn.context.messages), ("You are Ana.", 2));
    let messages = env.messages().await;
    assert_eq!(roles(&messages), [Role::User, Role::Assistant, Role::User, Role::Assistant]);
    assert_eq!(env.memory.get_thread(&env.scope, env.thread).await.unwrap().title.as_deref(), Some("I am Ana."));
}

/// A model that reads the thread before it answers.
#[derive(Debug)]
struct ThreadReadingModel {
    env: Arc<Mutex<Option<TestEnv>>>,
}

#[async_trait]
impl ChatModel for ThreadReadingModel {
    fn name(&self) -> &str {
        "thread-reading"
    }

    async fn answer(&self, request: &ChatRequest, _: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let env = self.env.lock().unwrap().clone().unwrap();
        let stored = env.transcript().await;
        assert_eq!(stored, ["user: Is it safe?"]);
        let questions = request.messages.iter().filter(|message| message.plain_text() == "Is it safe?");
        let text = format!("stored, and sent {} time(s)", questions.count());
        Ok(ChatAnswer { parts: vec![Part::Text(text)], finish: Finish::Stop, model: "m".to_owned(), usage: None })
    }
}

impl std::fmt::Debug for TestEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestEnv").finish_non_exhaustive()
    }
}

// S0.22, S0.23, S4.13
#[tokio::test]
async fn the_message_is_stored_before_the_model_call_and_sent_once() {
    let env = TestEnv::new().await;
    let model = ThreadReadingModel { env: Arc::new(Mutex::new(Some(env.clone()))) };
    let turn = env.chat(&env.agent(assistant(model)), "Is it safe?").await;
    assert_eq!((turn.reply.as_str(), turn.model.as_str()), ("stored, and sent 1 time(s)", "m"));
    assert_eq!(turn.usage.cost_usd, None);
}

// S1.23, S1.44, S1.47
#[tokio::test]
async fn thread_settings_limit_history_and_tools() {
    let env = TestEnv::new().await;
    let model = ScriptedModel::new().says("one").says("two").step("gets a shorter history", |request| {
        let texts: Vec<String> = request.messages.iter().map(ChatMessage::plain_text).collect();
        assert_eq!(texts.last().unwrap(), "third");
        assert!(!texts.iter().any(|text| text == "first"), "{texts:?}");
        assert!(request.tools.is_empty());
        Ok(Reply::call("arrivals", json!({"station": "Bank"})))
    });
    let model = model.step("was refused", |request| {
        let refusal = Turn::of(request).result("arrivals").unwrap_err();
        assert!(refusal.contains("unknown tool"), "{refusal}");
        Ok(Reply::text("I may not look that up."))
    });
    let agent = env.agent(assistant(model).with_tool(arrivals()));
    env.chat(&agent, "first").await;
    env.chat(&agent, "second").await;
    let config = ThreadConfig {
        history_limit: Some(2),
        enabled_tools: Some(vec!["routes".to_owned()]),
        ..ThreadConfig::default()
    };
    env.memory.set_thread_config(&env.scope, env.thread, &config, None).await.unwrap();
    let turn = env.chat(&agent, "third").await;
    assert_eq!(turn.reply, "I may not look that up.");
    assert!(!turn.tool_calls[0].ok);
    assert_eq!(env.messages().await.len(), 8);
    let config = ThreadConfig { model: Some("gpt-9".to_owned()), ..ThreadConfig::default() };
    env.memory.set_thread_config(&env.scope, env.thread, &config, None).await.unwrap();
    let turn = env.chat(&agent, "fourth").await;
    assert_eq!(turn.error.map(|error| error.code).as_deref(), Some("unknown_model"));
}

#[tokio::test]
async fn a_repeated_request_returns_the_same_turn() {
    let env = TestEnv::new().await;
    let agent = env.agent(assistant(ScriptedModel::new().says("Once.")));
    let request = || TurnRequest { idempotency_key: Some("event 7".to_owned()), ..TurnRequest::new("Hello?") };
    let first = agent.chat_with(&env.scope, env.thread, request(), &mut |_| {}).await.unwrap();
    let again = agent.chat_with(&env.scope, env.thread, request(), &mut |_| {}).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(env.messages().await.len(), 2);
}

#[tokio::test]
async fn messages_in_a_shared_thread_name_their_authors() {
    let env = TestEnv::new().await;
    let tenant = threadkeep_core::Scope::tenant("acme").unwrap();
    let shared = env.memory.open(&tenant).await.unwrap().thread.id;
    let agent = env.agent(assistant(ScriptedModel::new().says("Hello both.")));
    let turn = agent.chat(&env.scope, shared, "It is me.").await.unwrap();
    assert_eq!(turn.status, TurnStatus::Completed);
    let messages = env.memory.newest(&env.scope, shared, 10).await.unwrap();
    assert_eq!(messages[0].content.author.as_deref(), Some("ana"));
    let other_user = threadkeep_core::Scope::user("acme", "bob").unwrap();
    let refused = agent.chat(&other_user, env.thread, "Let me in.").await.unwrap_err();
    assert_eq!(refused.code(), "not_found");
}

#[test]
fn events_serialise_with_their_names() {
    let event = serde_json::to_value(TurnEvent::Token { text: "In".to_owned() }).unwrap();
    assert_eq!(event, json!({"event": "token", "data": {"text": "In"}}));
}
