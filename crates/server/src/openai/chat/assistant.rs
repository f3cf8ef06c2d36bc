//! Chat completions by assistants.

use axum::http::HeaderMap;
use axum::response::Response;
use threadkeep::core::ChatDelta;
use threadkeep::{Agent, Part, Turn, TurnEvent};
use tokio::sync::mpsc;

use super::complete::{
    Answer, CompleteJson, Envelope, PREFIX, chat_request, completion_json, selected_thread, usage_json, with_thread,
};
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

/// Answers a request to an assistant. If the request selects a thread, the last message of the request starts a turn in that
/// thread. Otherwise all messages are put into an ephemeral thread.
pub(super) async fn complete(
    app: App,
    caller: Caller,
    connection: ConnectionGuard,
    headers: &HeaderMap,
    (mut body, digest): (CompleteJson, &str),
    agent: Agent,
) -> Result<Response> {
    let max_tokens_param = body.max_completion_tokens.map(|_| "max_completion_tokens");
    assistant::reject_options(&chat_request(&mut body)?, "messages").map_err(|error| match max_tokens_param {
        Some(param) if error.param.as_deref() == Some("max_tokens") => error.param(param),
        _ => error,
    })?;
    let (earlier, ask) = assistant::split_question(messages::read_messages(&body.messages)?, "messages")?;
    let selected = selected_thread(&app, &caller.scope, headers, body.metadata.as_ref()).await?;
    let thread_name = selected.map(|thread| thread.to_string()).unwrap_or_default();
    let identity = input::read_identity(headers, "chat", &format!("{thread_name}:{digest}"))?;
    let (scope, memory) = (caller.scope, app.memory());
    let id = identity.named_id(&scope).unwrap_or_else(|| memory.generate_thread_id());
    let thread = match selected {
        Some(thread) => memory.get_thread(&scope, thread).await?.id,
        None => assistant::new_thread(&app, &agent, &scope, &identity, earlier, true).await?,
    };
    let envelope = Envelope {
        id: format!("{PREFIX}{}", id.0.simple()),
        created: memory.now().as_millis().div_euclid(1000),
        model: body.model.unwrap_or_default(),
        include_usage: body.stream_options.unwrap_or_default().include_usage,
    };
    let is_ephemeral = selected.is_none();
    let stream_app = app.clone();
    let updates = turns::start(
        connection,
        TurnTask::Ask(AskRequest { service: app.service().clone(), agent, scope, thread, ask, identity, is_ephemeral }),
    );
    if body.stream == Some(true) {
        return Ok(with_thread(respond_with_stream(stream_app, envelope, updates, is_ephemeral).await?, selected));
    }
    let turn = turns::wait_for_result(updates).await?.turn;
    let thread = assistant::retained_thread(&turn, is_ephemeral);
    let mut body = completion_json(&envelope, &answer(&turn));
    body["threadkeep"] = assistant::extension_json(&turn, thread);
    Ok(with_thread(json(&body), thread))
}

fn answer(turn: &Turn) -> Answer {
    Answer {
        parts: vec![Part::Text(turn.reply.clone())],
        finish: "stop".to_owned(),
        usage: usage_json(Some(&assistant::answer_usage(turn))),
    }
}

/// Streams an assistant's answer. If the turn fails before its first event, an ordinary error response is returned.
async fn respond_with_stream(
    app: App,
    envelope: Envelope,
    mut updates: TurnUpdates,
    is_ephemeral: bool,
) -> Result<Response> {
    // If the question has to wait for another turn, the head of the response is not delayed indefinitely.
    let first = match tokio::time::timeout(app.options().stream_head, updates.recv()).await {
        Ok(Some(TurnUpdate::End(Err(error)))) => return Err(error.into()),
        first => first.ok(),
    };
    let (chunks, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut writer = ChunkWriter::new(chunks, envelope);
        let mut sent_text = String::new();
        let mut next = match first {
            Some(next) => next,
            None => updates.recv().await,
        };
        while let Some(update) = next {
            match update {
                TurnUpdate::Event(TurnEvent::Token { text }) => {
                    sent_text.push_str(&text);
                    writer.write_delta(ChatDelta::Text(text));
                }
                TurnUpdate::Event(_) => {}
                TurnUpdate::End(Ok(result)) => return finish(&mut writer, &sent_text, &result.turn, is_ephemeral),
                TurnUpdate::End(Err(error)) => return writer.fail(&error.into()),
            }
            next = updates.recv().await;
        }
        writer.fail(&ApiError::internal("the turn ended without a result"));
    });
    Ok(response(app, receiver))
}

/// Sends the final chunks. If the reply was not streamed because no model wrote it, as in a request for approval, it is sent first.
fn finish(writer: &mut ChunkWriter, sent_text: &str, turn: &Turn, is_ephemeral: bool) {
    if !sent_text.is_empty() && !sent_text.ends_with(&turn.reply) {
        writer.write_delta(ChatDelta::Text(format!("\n\n{}", turn.reply)));
    }
    let thread = assistant::retained_thread(turn, is_ephemeral);
    writer.finish_with(&answer(turn), Some(&assistant::extension_json(turn, thread)));
}
