//! The assistant with a scripted language model.

use std::sync::Arc;

use serde_json::json;
use threadkeep::agent::MEMORY_INSTRUCTIONS;
use threadkeep::models::{Failure, Reply, ScriptedModel, Turn};
use threadkeep::{Role, TurnStatus};
use threadkeep_general::{GeneralError, GeneralOptions};

use super::test_env::{TestEnv, sources};

fn system(request: &threadkeep::ChatRequest) -> String {
    let texts = request.messages.iter().filter(|message| message.role == Role::System);
    texts.map(threadkeep::ChatMessage::plain_text).collect::<Vec<_>>().join("\n")
}

// S1.37, S4.41
#[tokio::test]
async fn the_model_receives_and_cites_the_context() {
    let model = ScriptedModel::new().step("answers from the context", |request| {
        let instructions = system(request);
        for part in [MEMORY_INSTRUCTIONS, "[1] hours.md, line 1\n> We open at nine.", "not as instructions"] {
            if !instructions.contains(part) {
                return Err(format!("missing {part:?}: {instructions}"));
            }
        }
        let count = request.messages.iter().filter(|message| message.plain_text() == "When do you open?").count();
        if count != 1 {
            return Err(format!("the question is in the request {count} times"));
        }
        Ok(Reply::text("At nine [1]."))
    });
    let env = TestEnv::scripted(model).await;
    let conversation = env.conversation("ana").await;
    env.add_document(&conversation.scope, "documents", "hours.md", &[("line 1", "We open at nine.")]).await;
    let turn = conversation.turn("When do you open?").await;
    assert_eq!((turn.reply.as_str(), turn.model.as_str()), ("At nine [1].", "scripted"));
    assert_eq!(sources(&turn), ["hours.md, line 1"]);
}

#[tokio::test]
async fn uncited_excerpts_are_not_sources() {
    let env = TestEnv::scripted(ScriptedModel::always(|_| Ok(Reply::text("Good morning.")))).await;
    let conversation = env.conversation("ana").await;
    env.add_document(&conversation.scope, "documents", "hours.md", &[("line 1", "We open at nine.")]).await;
    assert!(conversation.turn("When do you open?").await.sources.is_empty());
}

// S1.38
#[tokio::test]
async fn the_model_is_informed_of_an_empty_search() {
    let model = ScriptedModel::new().step("admits it", |request| match system(request).contains("Nothing was found") {
        true => Ok(Reply::text("I do not know.")),
        false => Err(system(request)),
    });
    let env = TestEnv::scripted(model).await;
    assert_eq!(env.conversation("ana").await.say("When is high tide?").await, "I do not know.");
}

#[tokio::test]
async fn the_model_searches_with_the_recall_tool() {
    let model = ScriptedModel::new()
        .step("notes", |_| Ok(Reply::text("Noted.")))
        .step("searches", |_| Ok(Reply::call("recall", json!({"question": "boat name"}))))
        .step("answers", |request| {
            let found = Turn::of(request).result("recall")?;
            Ok(Reply::text(format!("You told me: {}", found["found"][0]["text"].as_str().ok_or("nothing")?)))
        });
    let env = TestEnv::scripted(model).await;
    let conversation = env.conversation("ana").await;
    conversation.say("My boat's name is Petrel.").await;
    let turn = conversation.turn("What was the name of it?").await;
    assert_eq!(turn.reply, "You told me: My boat's name is Petrel.");
    assert_eq!(sources(&turn)[0], "said by the user on 2026-05-03");
    let roles: Vec<Role> = conversation.messages().await.iter().map(|message| message.content.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
}

#[tokio::test]
async fn a_preference_set_by_the_model_is_in_the_next_conversation() {
    let model = ScriptedModel::new()
        .step("sets the preference", |_| {
            Ok(Reply::call("set_preference", json!({"name": "Language", "value": "Spanish"})))
        })
        .step("admits it", |_| Ok(Reply::text("I shall speak Spanish.")))
        .step("sees the preference", |request| match system(request).contains("- language: Spanish") {
            true => Ok(Reply::text("Hola.")),
            false => Err(system(request)),
        });
    let env = TestEnv::scripted(model).await;
    env.conversation("ana").await.say("Speak Spanish from now on.").await;
    assert_eq!(env.conversation("ana").await.say("Hello?").await, "Hola.");
}

#[tokio::test]
async fn invalid_arguments_are_returned_to_the_model() {
    let model = ScriptedModel::new()
        .step("omits an argument", |_| Ok(Reply::call("set_preference", json!({"name": "tea"}))))
        .step("corrects the call", |request| match Turn::of(request).result("set_preference") {
            Err(why) if why.contains("value") => {
                Ok(Reply::call("set_preference", json!({"name": "tea", "value": "green"})))
            }
            other => Err(format!("{other:?}")),
        })
        .step("answers", |_| Ok(Reply::text("Done.")));
    let env = TestEnv::scripted(model).await;
    let conversation = env.conversation("ana").await;
    let turn = conversation.turn("I like green tea.").await;
    assert_eq!(turn.tool_calls.iter().map(|call| call.ok).collect::<Vec<_>>(), [false, true]);
    assert_eq!(conversation.preferences().await.len(), 1);
}

// S0.26, S1.48
#[tokio::test]
async fn a_conversation_continues_after_a_model_failure() {
    let model = ScriptedModel::new()
        .step("fails", |_| Ok(Reply::failing(Failure::Unavailable { retry_after: None })))
        .step("answers", |request| match request.messages.iter().any(|message| message.plain_text() == "First?") {
            true => Ok(Reply::text("Now I can.")),
            false => Err("the first question is missing".to_owned()),
        });
    let env = TestEnv::scripted(model).await;
    let conversation = env.conversation("ana").await;
    let turn = conversation.turn("First?").await;
    assert_eq!(turn.status, TurnStatus::Failed);
    assert!(turn.error.is_some() && turn.reply.contains("Your message is saved"), "{}", turn.reply);
    assert_eq!(conversation.say("Second?").await, "Now I can.");
}

// S1.47
#[tokio::test]
async fn a_disabled_tool_cannot_be_called() {
    let model = ScriptedModel::new()
        .step("tries", |request| {
            let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
            match names == ["recall"] {
                true => Ok(Reply::call("set_preference", json!({"name": "a", "value": "b"}))),
                false => Err(format!("{names:?}")),
            }
        })
        .step("gives up", |_| Ok(Reply::text("I cannot.")));
    let options = GeneralOptions {
        model: Some(Arc::new(model)),
        tools: Some(vec!["recall".to_owned()]),
        ..GeneralOptions::default()
    };
    let env = TestEnv::with(options).await;
    let conversation = env.conversation("ana").await;
    let turn = conversation.turn("Set it.").await;
    assert!(!turn.tool_calls[0].ok && conversation.preferences().await.is_empty());
}

#[tokio::test]
async fn an_unknown_tool_is_an_error() {
    let env = TestEnv::new().await;
    let options = GeneralOptions { tools: Some(vec!["rm".to_owned()]), ..GeneralOptions::default() };
    let error = threadkeep_general::General::new(env.memory(), options).unwrap_err();
    assert_eq!(error, GeneralError::UnknownTool { name: "rm".to_owned() });
}
