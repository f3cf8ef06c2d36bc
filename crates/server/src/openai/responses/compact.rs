use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json as value;
use threadkeep::context::{SummaryPolicy, SummaryTask, task_messages};
use threadkeep::core::{ChatModel, ChatRequest};
use threadkeep::{Draft, Message, Part, Role, Usage};

use super::answer::unplaced;
use super::asked::Asked;
use super::body;
use super::create::CreateResponseJson;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::JsonBody;
use crate::openai::items::{Item, compacted, items_of};
use crate::openai::turn;
use crate::security::Caller;

/// Items that are compacted at most.
const ITEMS: usize = 2_000;
/// Calls of the model that one compaction takes at most.
const PIECES: usize = 50;

/// Makes a long input short
///
/// What the user said stays as it is; for all else stands one item with notes that the model wrote of it. The output is the
/// input of the next request. Nothing is stored.
#[utoipa::path(
    post,
    path = "/v1/responses/compact",
    tag = "openai",
    request_body = CreateResponseJson,
    responses((status = 200, description = "The items that stand for the input.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn compact(
    State(app): State<App>,
    caller: Caller,
    JsonBody { value: body, .. }: JsonBody<CreateResponseJson>,
) -> Result<Response> {
    let model = Arc::clone(app.model().ok_or_else(turn::no_model)?);
    if body.conversation.as_ref().is_some_and(|given| !given.is_null()) {
        let message = "Invalid 'conversation': a conversation is kept whole, and is shortened by itself for the model.";
        return Err(ApiError::invalid("conversation", message));
    }
    let asked = Asked::read(&app, &caller.scope, &body).await?;
    let items: Vec<Draft> = asked.chain.into_iter().chain(asked.input).collect();
    if items.is_empty() {
        let message = "Missing required parameter: 'input'.";
        return Err(ApiError::invalid("input", message).code("missing_required_parameter"));
    }
    if items.len() > ITEMS {
        return Err(ApiError::invalid("input", format!("Invalid 'input': at most {ITEMS} items are compacted.")));
    }
    let (said, rest): (Vec<Draft>, Vec<Draft>) = items.into_iter().partition(|draft| draft.content.role == Role::User);
    let said: Vec<Message> = said.iter().map(|draft| unplaced(&app, draft)).collect();
    let rest: Vec<Message> = rest.iter().map(|draft| unplaced(&app, &in_words(draft))).collect();
    let (notes, usage) = write(&*model, &rest).await?;
    let memory = app.memory();
    let mut output: Vec<Item> = said.iter().flat_map(items_of).collect();
    output.extend(notes.map(|notes| compacted(memory.mint_message_id(), &notes)));
    let compaction = value!({
        "id": format!("resp_{}", memory.mint_thread_id().0.simple()),
        "object": "response.compaction",
        "created_at": memory.now().as_millis().div_euclid(1000),
        "output": [],
        "usage": body::usage(Some(&usage)),
    });
    let shell = compaction.as_object().cloned().unwrap_or_default();
    Ok(([(header::CONTENT_TYPE, "application/json")], body::with_output(&shell, &output)).into_response())
}

/// A message with its calls as words: notes are made of words.
fn in_words(draft: &Draft) -> Draft {
    let mut told = draft.clone();
    for part in &mut told.content.parts {
        if let Part::ToolCall(call) = part {
            *part = Part::Text(format!("called {}({})", call.name, call.arguments.as_str()));
        }
    }
    told
}

/// Has the model write notes, of a piece after the other; `None` where there is nothing to note.
async fn write(model: &dyn ChatModel, messages: &[Message]) -> Result<(Option<String>, Usage)> {
    let (mut pieces, mut left) = (Vec::new(), messages);
    while !left.is_empty() {
        let (piece, rest) = left.split_at(task_messages(left).len());
        pieces.push(piece);
        left = rest;
    }
    if pieces.len() > PIECES {
        return Err(ApiError::invalid("input", "Invalid 'input': it is too long to be compacted at once."));
    }
    let (mut notes, mut usage) = (None::<String>, Usage::default());
    for piece in pieces {
        let characters = SummaryPolicy::default().characters;
        let task = SummaryTask { previous: notes.as_deref(), fallen: piece, characters };
        let request = ChatRequest { messages: task.prompt(), ..ChatRequest::default() };
        let answer = model.answer(&request, &mut |_| {}).await?;
        let text = answer.text().trim().to_owned();
        if text.is_empty() {
            let error = ApiError::new(StatusCode::BAD_GATEWAY, "invalid_model_answer", "the model wrote no notes");
            return Err(error);
        }
        let took = answer.usage.unwrap_or_default();
        usage.input_tokens += took.input_tokens;
        usage.output_tokens += took.output_tokens;
        usage.details = usage.details.plus(took.details);
        notes = Some(text);
    }
    Ok((notes, usage))
}
