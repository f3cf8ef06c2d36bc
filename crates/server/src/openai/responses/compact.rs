use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json as value;
use threadkeep::context::{SummaryPolicy, SummaryTask, task_messages};
use threadkeep::core::{ChatModel, ChatRequest};
use threadkeep::{Draft, Message, Part, Role, Usage};

use super::answer::unstored_message;
use super::body;
use super::create::CreateResponseJson;
use super::resolved_input::ResolvedInput;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::JsonBody;
use crate::openai::items::{Item, compaction_item, items_of};
use crate::openai::turn;
use crate::security::Caller;

/// The maximum number of items in one request.
const MAX_ITEMS: usize = 2_000;
/// The maximum number of model calls for one compaction.
const MAX_CALLS: usize = 50;

/// Compacts a long input
///
/// The user's messages are kept. All other items are replaced with one item, which contains notes that the model writes about them.
/// The output can be used as the input of the next request. Nothing is stored.
#[utoipa::path(
    post,
    path = "/v1/responses/compact",
    operation_id = "compact_input",
    tag = "openai",
    request_body = CreateResponseJson,
    responses((status = 200, description = "The items that replace the input.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn compact(
    State(app): State<App>,
    caller: Caller,
    JsonBody { value: body, .. }: JsonBody<CreateResponseJson>,
) -> Result<Response> {
    let model = Arc::clone(app.model().ok_or_else(turn::no_model_error)?);
    if body.conversation.as_ref().is_some_and(|conversation| !conversation.is_null()) {
        let message =
            "Invalid 'conversation': a conversation cannot be compacted; its context is shortened automatically.";
        return Err(ApiError::invalid("conversation", message));
    }
    let resolved = ResolvedInput::read(&app, &caller.scope, &body).await?;
    let items: Vec<Draft> = resolved.chain.into_iter().chain(resolved.input).collect();
    if items.is_empty() {
        let message = "Missing required parameter: 'input'.";
        return Err(ApiError::invalid("input", message).code("missing_required_parameter"));
    }
    if items.len() > MAX_ITEMS {
        return Err(ApiError::invalid(
            "input",
            format!("Invalid 'input': at most {MAX_ITEMS} items can be compacted in one request."),
        ));
    }
    let (user_drafts, other_drafts): (Vec<Draft>, Vec<Draft>) =
        items.into_iter().partition(|draft| draft.content.role == Role::User);
    let user_messages: Vec<Message> = user_drafts.iter().map(|draft| unstored_message(&app, draft)).collect();
    let other_messages: Vec<Message> =
        other_drafts.iter().map(|draft| unstored_message(&app, &calls_as_text(draft))).collect();
    let (notes, usage) = write_notes(&*model, &other_messages).await?;
    let memory = app.memory();
    let mut output: Vec<Item> = user_messages.iter().flat_map(items_of).collect();
    output.extend(notes.map(|notes| compaction_item(memory.generate_message_id(), &notes)));
    let compaction = value!({
        "id": format!("resp_{}", memory.generate_thread_id().0.simple()),
        "object": "response.compaction",
        "created_at": memory.now().as_millis().div_euclid(1000),
        "output": [],
        "usage": body::usage_json(Some(&usage)),
    });
    let envelope = compaction.as_object().cloned().unwrap_or_default();
    Ok(([(header::CONTENT_TYPE, "application/json")], body::with_output(&envelope, &output)).into_response())
}

/// Converts the tool calls of a message into text, because only text is included when notes are written.
fn calls_as_text(draft: &Draft) -> Draft {
    let mut converted = draft.clone();
    for part in &mut converted.content.parts {
        if let Part::ToolCall(call) = part {
            *part = Part::Text(format!("called {}({})", call.name, call.arguments.as_str()));
        }
    }
    converted
}

/// Has the model write notes about messages. Long input is divided into pieces; each model call adds one piece to the notes.
/// Returns the notes (`None` if there are no messages) and the token usage of all calls.
async fn write_notes(model: &dyn ChatModel, messages: &[Message]) -> Result<(Option<String>, Usage)> {
    let (mut pieces, mut left) = (Vec::new(), messages);
    while !left.is_empty() {
        let (piece, rest) = left.split_at(task_messages(left).len());
        pieces.push(piece);
        left = rest;
    }
    if pieces.len() > MAX_CALLS {
        return Err(ApiError::invalid(
            "input",
            "Invalid 'input': the input is too long to be compacted in one request.",
        ));
    }
    let (mut notes, mut usage) = (None::<String>, Usage::default());
    for piece in pieces {
        let characters = SummaryPolicy::default().characters;
        let task = SummaryTask { previous: notes.as_deref(), new_messages: piece, characters };
        let request = ChatRequest { messages: task.prompt(), ..ChatRequest::default() };
        let answer = model.answer(&request, &mut |_| {}).await?;
        let text = answer.text().trim().to_owned();
        if text.is_empty() {
            let error = ApiError::new(StatusCode::BAD_GATEWAY, "invalid_model_answer", "the model returned no notes");
            return Err(error);
        }
        let call_usage = answer.usage.unwrap_or_default();
        usage.input_tokens += call_usage.input_tokens;
        usage.output_tokens += call_usage.output_tokens;
        usage.details = usage.details.plus(call_usage.details);
        notes = Some(text);
    }
    Ok((notes, usage))
}
