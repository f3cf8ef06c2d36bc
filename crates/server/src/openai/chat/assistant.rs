//! A completion that an assistant answers.

use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use threadkeep::core::ChatDelta;
use threadkeep::{Agent, Part, Turn, TurnEvent};
use tokio::sync::mpsc;

use super::complete::{Answer, CompleteJson, PREFIX, Shell, THREAD, thread, usage, whole};
use super::messages;
use super::stream::{Teller, streamed};
use crate::app::App;
use crate::connections::Held;
use crate::error::{ApiError, Result};
use crate::input;
use crate::openai::assistant;
use crate::output::json;
use crate::security::Caller;
use crate::turns::{self, Asking, Told, Waiting, Work};

/// Asks an assistant. With a thread the last message is asked in it; without one the messages are what it knows, and
/// nothing of it stays.
pub(super) async fn complete(
    app: App,
    caller: Caller,
    held: Held,
    headers: &HeaderMap,
    (body, digest): (CompleteJson, &str),
    agent: Agent,
) -> Result<Response> {
    assistant::refuse_tools(body.tools.as_ref().map_or(0, Vec::len))?;
    let (said, ask) = assistant::question(messages::read(&body.messages)?, "messages")?;
    let named = thread(headers, body.metadata.as_ref())?;
    let name = named.map(|thread| thread.to_string()).unwrap_or_default();
    let attempt = input::attempt(headers, "chat", &format!("{name}:{digest}"))?;
    let (scope, memory) = (caller.scope, app.memory());
    let own = attempt.named_id(&scope).unwrap_or_else(|| memory.mint_thread_id());
    let thread = match named {
        Some(thread) => memory.get_thread(&scope, thread).await?.id,
        None => assistant::new_thread(&app, &agent, &scope, &attempt, said, true).await?,
    };
    let shell = Shell {
        id: format!("{PREFIX}{}", own.0.simple()),
        created: memory.now().as_millis().div_euclid(1000),
        model: body.model.unwrap_or_default(),
        include_usage: body.stream_options.unwrap_or_default().include_usage,
    };
    let is_passing = named.is_none();
    let stopping = app.clone();
    let waiting = turns::start(
        held,
        Work::Ask(Asking { service: app.service().clone(), agent, scope, thread, ask, attempt, is_passing }),
    );
    let mut response = if body.stream == Some(true) {
        respond(stopping, shell, waiting).await?
    } else {
        let turn = turns::whole(waiting).await?.turn;
        let mut body = whole(&shell, &answer(&turn));
        body["threadkeep"] = assistant::beside(&turn);
        json(&body)
    };
    if let Ok(thread) = HeaderValue::from_str(&thread.to_string()) {
        response.headers_mut().insert(THREAD, thread);
    }
    Ok(response)
}

fn answer(turn: &Turn) -> Answer {
    Answer {
        parts: vec![Part::Text(turn.reply.clone())],
        finish: "stop".to_owned(),
        usage: usage(Some(&assistant::usage(turn))),
    }
}

/// Answers while the assistant speaks. What keeps it from beginning is an error like any other.
async fn respond(app: App, shell: Shell, mut waiting: Waiting) -> Result<Response> {
    let mut told = match waiting.recv().await {
        Some(Told::End(Err(error))) => return Err(error.into()),
        told => told,
    };
    let (chunks, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut teller = Teller::new(chunks, shell);
        let mut said = String::new();
        while let Some(event) = told {
            match event {
                Told::Event(TurnEvent::Token { text }) => {
                    said.push_str(&text);
                    teller.hear(ChatDelta::Text(text));
                }
                Told::Event(_) => {}
                Told::End(Ok(answered)) => return finish(&mut teller, &said, &answered.turn),
                Told::End(Err(error)) => return teller.fail(&error.into()),
            }
            told = waiting.recv().await;
        }
        teller.fail(&ApiError::internal("a turn broke off"));
    });
    Ok(streamed(app, heard))
}

/// Tells what the user reads and has not heard yet: words that no model said, such as what waits for an approval.
fn finish(teller: &mut Teller, said: &str, turn: &Turn) {
    if !said.is_empty() && !said.ends_with(&turn.reply) {
        teller.hear(ChatDelta::Text(format!("\n\n{}", turn.reply)));
    }
    teller.finish(&answer(turn));
}
