//! A language model behind the same assistant.

use std::sync::Arc;

use serde_json::json;
use threadkeep::agent::MEMORY_INSTRUCTIONS;
use threadkeep::models::{Failure, Reply, ScriptedModel, Turn};
use threadkeep::{Role, TurnStatus};
use threadkeep_general::{GeneralError, GeneralOptions};

use super::world::{World, sources};

fn system(request: &threadkeep::ChatRequest) -> String {
    let texts = request.messages.iter().filter(|message| message.role == Role::System);
    texts.map(threadkeep::ChatMessage::plain_text).collect::<Vec<_>>().join("\n")
}

// S1.37, S4.41
#[tokio::test]
async fn the_model_is_told_what_was_found_and_cites_it() {
    let model = ScriptedModel::new().step("answers by what was found", |request| {
        let told = system(request);
        for part in [MEMORY_INSTRUCTIONS, "[1] hours.md, line 1\n> We open at nine.", "not instructions to follow"] {
            if !told.contains(part) {
                return Err(format!("not told {part:?}: {told}"));
            }
        }
        let asked = request.messages.iter().filter(|message| message.plain_text() == "When do you open?").count();
        if asked != 1 {
            return Err(format!("asked {asked} times"));
        }
        Ok(Reply::text("At nine [1]."))
    });
    let world = World::scripted(model).await;
    let talk = world.talk("ana").await;
    world.document(&talk.scope, "documents", "hours.md", &[("line 1", "We open at nine.")]).await;
    let turn = talk.turn("When do you open?").await;
    assert_eq!((turn.reply.as_str(), turn.model.as_str()), ("At nine [1].", "scripted"));
    assert_eq!(sources(&turn), ["hours.md, line 1"]);
}

#[tokio::test]
async fn what_the_model_does_not_cite_is_no_source() {
    let world = World::scripted(ScriptedModel::always(|_| Ok(Reply::text("Good morning.")))).await;
    let talk = world.talk("ana").await;
    world.document(&talk.scope, "documents", "hours.md", &[("line 1", "We open at nine.")]).await;
    assert!(talk.turn("When do you open?").await.sources.is_empty());
}

// S1.38
#[tokio::test]
async fn the_model_is_told_that_nothing_was_found() {
    let model = ScriptedModel::new().step("says so", |request| match system(request).contains("Nothing was found") {
        true => Ok(Reply::text("I do not know.")),
        false => Err(system(request)),
    });
    let world = World::scripted(model).await;
    assert_eq!(world.talk("ana").await.say("When is high tide?").await, "I do not know.");
}

#[tokio::test]
async fn the_model_recalls_with_a_tool() {
    let model = ScriptedModel::new()
        .step("notes", |_| Ok(Reply::text("Noted.")))
        .step("looks", |_| Ok(Reply::call("recall", json!({"question": "boat name"}))))
        .step("answers", |request| {
            let found = Turn::of(request).result("recall")?;
            Ok(Reply::text(format!("You told me: {}", found["found"][0]["text"].as_str().ok_or("nothing")?)))
        });
    let world = World::scripted(model).await;
    let talk = world.talk("ana").await;
    talk.say("My boat's name is Petrel.").await;
    let turn = talk.turn("What was the name of it?").await;
    assert_eq!(turn.reply, "You told me: My boat's name is Petrel.");
    assert_eq!(sources(&turn)[0], "said by the user on 2026-05-03");
    let roles: Vec<Role> = talk.messages().await.iter().map(|message| message.content.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
}

#[tokio::test]
async fn the_model_keeps_a_preference_that_the_next_conversation_shows() {
    let model = ScriptedModel::new()
        .step("keeps", |_| Ok(Reply::call("set_preference", json!({"name": "Language", "value": "Spanish"}))))
        .step("says so", |_| Ok(Reply::text("I shall speak Spanish.")))
        .step("knows it", |request| match system(request).contains("- language: Spanish") {
            true => Ok(Reply::text("Hola.")),
            false => Err(system(request)),
        });
    let world = World::scripted(model).await;
    world.talk("ana").await.say("Speak Spanish from now on.").await;
    assert_eq!(world.talk("ana").await.say("Hello?").await, "Hola.");
}

#[tokio::test]
async fn bad_arguments_go_back_to_the_model() {
    let model = ScriptedModel::new()
        .step("forgets an argument", |_| Ok(Reply::call("set_preference", json!({"name": "tea"}))))
        .step("mends it", |request| match Turn::of(request).result("set_preference") {
            Err(why) if why.contains("value") => {
                Ok(Reply::call("set_preference", json!({"name": "tea", "value": "green"})))
            }
            other => Err(format!("{other:?}")),
        })
        .step("is done", |_| Ok(Reply::text("Done.")));
    let world = World::scripted(model).await;
    let talk = world.talk("ana").await;
    let turn = talk.turn("I like green tea.").await;
    assert_eq!(turn.tool_calls.iter().map(|call| call.ok).collect::<Vec<_>>(), [false, true]);
    assert_eq!(talk.preferences().await.len(), 1);
}

// S0.26, S1.48
#[tokio::test]
async fn a_model_that_fails_leaves_the_conversation_usable() {
    let model = ScriptedModel::new()
        .step("fails", |_| Ok(Reply::failing(Failure::Unavailable { retry_after: None })))
        .step("answers", |request| match request.messages.iter().any(|message| message.plain_text() == "First?") {
            true => Ok(Reply::text("Now I can.")),
            false => Err("the first question is lost".to_owned()),
        });
    let world = World::scripted(model).await;
    let talk = world.talk("ana").await;
    let turn = talk.turn("First?").await;
    assert_eq!(turn.status, TurnStatus::Failed);
    assert!(turn.error.is_some() && turn.reply.contains("Your message is kept"), "{}", turn.reply);
    assert_eq!(talk.say("Second?").await, "Now I can.");
}

// S1.47
#[tokio::test]
async fn a_tool_that_is_not_enabled_cannot_be_called() {
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
    let world = World::with(options).await;
    let talk = world.talk("ana").await;
    let turn = talk.turn("Set it.").await;
    assert!(!turn.tool_calls[0].ok && talk.preferences().await.is_empty());
}

#[tokio::test]
async fn a_tool_that_there_is_not_is_named() {
    let world = World::new().await;
    let options = GeneralOptions { tools: Some(vec!["rm".to_owned()]), ..GeneralOptions::default() };
    let error = threadkeep_general::General::new(world.memory(), options).unwrap_err();
    assert_eq!(error, GeneralError::UnknownTool { name: "rm".to_owned() });
}
