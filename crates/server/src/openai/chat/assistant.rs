//! Completions of assistants.

use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use threadkeep::core::ChatDelta;
use threadkeep::{Agent, Part, Turn, TurnEvent};
use tokio::sync::mpsc;

use super::complete::{Answer, CompleteJson, Envelope, PREFIX, THREAD_HEADER, completion_json, thread, usage};
use super::messages;
use super::stream::{ChunkWriter, response};
use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, Result};
use crate::input;
use crate::openai::assistant;
use crate::output::json;
use crate::security::Caller;
use crate::turns::{self, AskRequest, TurnTask, TurnUpdate, TurnUpdates};

/// Answers a request to an assistant. With a thread, the last message starts a turn in it. Without one, the messages are put into
/// an ephemeral thread.
pub(super) async fn complete(
    app: App,
    caller: Caller,
    connection: ConnectionGuard,
    headers: &HeaderMap,
    (body, digest): (CompleteJson, &str),
    agent: Agent,
) -> Result<Response> {
    assistant::reject_tools(body.tools.as_ref().map_or(0, Vec::len))?;
    let (earlier, ask) = assistant::split_question(messages::read(&body.messages)?, "messages")?;
    let named = thread(headers, body.metadata.as_ref())?;
    let thread_name = named.map(|thread| thread.to_string()).unwrap_or_default();
    let attempt = input::read_attempt(headers, "chat", &format!("{thread_name}:{digest}"))?;
    let (scope, memory) = (caller.scope, app.memory());
    let id = attempt.named_id(&scope).unwrap_or_else(|| memory.generate_thread_id());
    let thread = match named {
        Some(thread) => memory.get_thread(&scope, thread).await?.id,
        None => assistant::new_thread(&app, &agent, &scope, &attempt, earlier, true).await?,
    };
    let envelope = Envelope {
        id: format!("{PREFIX}{}", id.0.simple()),
        created: memory.now().as_millis().div_euclid(1000),
        model: body.model.unwrap_or_default(),
        include_usage: body.stream_options.unwrap_or_default().include_usage,
    };
    let is_ephemeral = named.is_none();
    let app_of_stream = app.clone();
    let waiting = turns::start(
        connection,
        TurnTask::Ask(AskRequest { service: app.service().clone(), agent, scope, thread, ask, attempt, is_ephemeral }),
    );
    let mut response = if body.stream == Some(true) {
        respond(app_of_stream, envelope, waiting).await?
    } else {
        let turn = turns::wait_for_result(waiting).await?.turn;
        let mut body = completion_json(&envelope, &answer(&turn));
        body["threadkeep"] = assistant::extension(&turn);
        json(&body)
    };
    if let Ok(thread) = HeaderValue::from_str(&thread.to_string()) {
        response.headers_mut().insert(THREAD_HEADER, thread);
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

/// Streams an assistant's answer. An error before its first event is returned as an ordinary error response.
async fn respond(app: App, envelope: Envelope, mut waiting: TurnUpdates) -> Result<Response> {
    let mut next = match waiting.recv().await {
        Some(TurnUpdate::End(Err(error))) => return Err(error.into()),
        next => next,
    };
    let (chunks, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut writer = ChunkWriter::new(chunks, envelope);
        let mut sent = String::new();
        while let Some(event) = next {
            match event {
                TurnUpdate::Event(TurnEvent::Token { text }) => {
                    sent.push_str(&text);
                    writer.write_delta(ChatDelta::Text(text));
                }
                TurnUpdate::Event(_) => {}
                TurnUpdate::End(Ok(answered)) => return finish(&mut writer, &sent, &answered.turn),
                TurnUpdate::End(Err(error)) => return writer.fail(&error.into()),
            }
            next = waiting.recv().await;
        }
        writer.fail(&ApiError::internal("the turn ended without a result"));
    });
    Ok(response(app, receiver))
}

/// Sends the part of the reply that was not streamed, because no model wrote it, such as a request for approval.
fn finish(writer: &mut ChunkWriter, sent: &str, turn: &Turn) {
    if !sent.is_empty() && !sent.ends_with(&turn.reply) {
        writer.write_delta(ChatDelta::Text(format!("\n\n{}", turn.reply)));
    }
    writer.finish(&answer(turn));
}
