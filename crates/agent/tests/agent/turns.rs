//! Turns that go well.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use threadkeep_agent::{Ask, FnTool, TurnEvent, TurnStatus, schemars};
use threadkeep_core::{
    ChatAnswer, ChatMessage, ChatModel, ChatRequest, DeltaSink, Finish, ModelError, Part, Role, Source, ToolOutput,
};
use threadkeep_memory::ThreadConfig;
use threadkeep_models::{Reply, ScriptedModel, Turn};

use crate::world::{World, assistant, names, roles};

#[derive(Deserialize, JsonSchema)]
struct Station {
    station: String,
}

fn arrivals() -> FnTool {
    FnTool::new("arrivals", "Tells when trains come", |context, Station { station }: Station| async move {
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

fn looks_up() -> ScriptedModel {
    ScriptedModel::new()
        .step("looks the station up", |request| {
            let question = Turn::of(request).question();
            assert_eq!(question, "When is the next train at Bank?");
            let asked = request.messages.iter().filter(|message| message.plain_text() == question);
            assert_eq!(asked.count(), 1);
            assert_eq!(request.messages[0].plain_text(), "Be brief.");
            Ok(Reply::call("arrivals", json!({"stop": "Bank"})))
        })
        .step("answers", |request| {
            let found = Turn::of(request).result("arrivals")?;
            Ok(Reply::streamed(["In ", &format!("{} minutes.", found["minutes"])]).taking(100, 9, Some(0.5)))
        })
}

// S0.22, S0.23, S1.20, S2.06, S2.07
#[tokio::test]
async fn a_turn_with_a_tool_says_what_happened_and_stores_it() {
    let world = World::new().await;
    let agent = world.agent(assistant(looks_up()).with_tool(arrivals()));
    let mut events = Vec::new();
    let ask = Ask::new("When is the next train at Bank?");
    let turn = agent.chat_with(&world.scope, world.thread, ask, &mut |event| events.push(event)).await.unwrap();
    insta::assert_json_snapshot!(serde_json::to_value(&turn).unwrap());
    assert_eq!(
        world.transcript().await,
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
    let again = agent.find_turn(&world.scope, world.thread, &turn.turn).await.unwrap().unwrap();
    assert_eq!(again, turn);
    let report = world.memory.context_report(&world.scope, world.thread, &turn.turn).await.unwrap();
    assert_eq!(report.map(|report| report.tokens.total.0), Some(turn.context.tokens));
}

// S1.19, S1.21, S1.22
#[tokio::test]
async fn the_next_turn_sees_the_one_before() {
    let world = World::new().await;
    let model = ScriptedModel::new().says("Ana, nice to meet you.").step("remembers", |request| {
        let said: Vec<String> = request.messages.iter().map(ChatMessage::plain_text).collect();
        assert_eq!(said, ["Be brief.", "I am Ana.", "Ana, nice to meet you.", "Who am I?"]);
        Ok(Reply::text("You are Ana."))
    });
    let agent = world.agent(assistant(model));
    world.chat(&agent, "I am Ana.").await;
    let turn = world.chat(&agent, "Who am I?").await;
    assert_eq!((turn.reply.as_str(), turn.context.messages), ("You are Ana.", 2));
    let messages = world.messages().await;
    assert_eq!(roles(&messages), [Role::User, Role::Assistant, Role::User, Role::Assistant]);
    assert_eq!(world.memory.get_thread(&world.scope, world.thread).await.unwrap().title.as_deref(), Some("I am Ana."));
}

/// A model that looks into the store before it answers.
#[derive(Debug)]
struct Looking {
    world: Arc<Mutex<Option<World>>>,
}

#[async_trait]
impl ChatModel for Looking {
    fn name(&self) -> &str {
        "looking"
    }

    async fn answer(&self, request: &ChatRequest, _: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let world = self.world.lock().unwrap().clone().unwrap();
        let stored = world.transcript().await;
        assert_eq!(stored, ["user: Is it safe?"]);
        let asked = request.messages.iter().filter(|message| message.plain_text() == "Is it safe?");
        let text = format!("stored, and seen {} time(s)", asked.count());
        Ok(ChatAnswer { parts: vec![Part::Text(text)], finish: Finish::Stop, model: "m".to_owned(), usage: None })
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

// S0.22, S0.23, S4.13
#[tokio::test]
async fn the_message_is_stored_before_the_model_is_asked_and_seen_once() {
    let world = World::new().await;
    let model = Looking { world: Arc::new(Mutex::new(Some(world.clone()))) };
    let turn = world.chat(&world.agent(assistant(model)), "Is it safe?").await;
    assert_eq!((turn.reply.as_str(), turn.model.as_str()), ("stored, and seen 1 time(s)", "m"));
    assert_eq!(turn.usage.cost_usd, None);
}

// S1.23, S1.44, S1.47
#[tokio::test]
async fn a_threads_settings_bound_what_the_model_sees_and_calls() {
    let world = World::new().await;
    let model = ScriptedModel::new().says("one").says("two").step("sees less", |request| {
        let said: Vec<String> = request.messages.iter().map(ChatMessage::plain_text).collect();
        assert_eq!(said.last().unwrap(), "third");
        assert!(!said.iter().any(|text| text == "first"), "{said:?}");
        assert!(request.tools.is_empty());
        Ok(Reply::call("arrivals", json!({"station": "Bank"})))
    });
    let model = model.step("was refused", |request| {
        let refusal = Turn::of(request).result("arrivals").unwrap_err();
        assert!(refusal.contains("there is no such tool here"), "{refusal}");
        Ok(Reply::text("I may not look that up."))
    });
    let agent = world.agent(assistant(model).with_tool(arrivals()));
    world.chat(&agent, "first").await;
    world.chat(&agent, "second").await;
    let config = ThreadConfig {
        history_limit: Some(2),
        enabled_tools: Some(vec!["routes".to_owned()]),
        ..ThreadConfig::default()
    };
    world.memory.set_thread_config(&world.scope, world.thread, &config, None).await.unwrap();
    let turn = world.chat(&agent, "third").await;
    assert_eq!(turn.reply, "I may not look that up.");
    assert!(!turn.tool_calls[0].ok);
    assert_eq!(world.messages().await.len(), 8);
    let config = ThreadConfig { model: Some("gpt-9".to_owned()), ..ThreadConfig::default() };
    world.memory.set_thread_config(&world.scope, world.thread, &config, None).await.unwrap();
    let turn = world.chat(&agent, "fourth").await;
    assert_eq!(turn.error.map(|error| error.code).as_deref(), Some("unknown_model"));
}

#[tokio::test]
async fn a_request_that_comes_again_is_the_same_turn() {
    let world = World::new().await;
    let agent = world.agent(assistant(ScriptedModel::new().says("Once.")));
    let ask = || Ask { idempotency_key: Some("event 7".to_owned()), ..Ask::new("Hello?") };
    let first = agent.chat_with(&world.scope, world.thread, ask(), &mut |_| {}).await.unwrap();
    let again = agent.chat_with(&world.scope, world.thread, ask(), &mut |_| {}).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(world.messages().await.len(), 2);
}

#[tokio::test]
async fn users_of_a_shared_thread_are_told_apart() {
    let world = World::new().await;
    let tenant = threadkeep_core::Scope::tenant("acme").unwrap();
    let shared = world.memory.open(&tenant).await.unwrap().thread.id;
    let agent = world.agent(assistant(ScriptedModel::new().says("Hello both.")));
    let turn = agent.chat(&world.scope, shared, "It is me.").await.unwrap();
    assert_eq!(turn.status, TurnStatus::Completed);
    let messages = world.memory.newest(&world.scope, shared, 10).await.unwrap();
    assert_eq!(messages[0].content.author.as_deref(), Some("ana"));
    let stranger = threadkeep_core::Scope::user("acme", "bob").unwrap();
    let refused = agent.chat(&stranger, world.thread, "Let me in.").await.unwrap_err();
    assert_eq!(refused.code(), "not_found");
}

#[test]
fn events_have_the_names_that_doors_send() {
    let event = serde_json::to_value(TurnEvent::Token { text: "In".to_owned() }).unwrap();
    assert_eq!(event, json!({"event": "token", "data": {"text": "In"}}));
}
