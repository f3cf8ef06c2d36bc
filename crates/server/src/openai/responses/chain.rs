//! Reads the messages of a chain of responses: the response to be continued and all responses before it.

use axum::http::StatusCode;
use threadkeep::{Bound, Draft, MessageQuery, Scope, ThreadId};

use super::{stored_response, thread_in_id};
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::openai::turn;

/// The maximum number of responses in a chain.
const MAX_RESPONSES: usize = 1_000;

/// Returns the messages of a chain of responses, oldest first. `last` is the id of the last response in the chain. A chain of more
/// than [`MAX_RESPONSES`] is an error, unless `may_truncate` allows omitting the oldest responses.
pub(super) async fn read(app: &App, scope: &Scope, last: &str, may_truncate: bool) -> Result<Vec<Draft>> {
    let (mut backwards, mut next) = (Vec::new(), Some(last.to_owned()));
    for _ in 0..MAX_RESPONSES {
        let Some(id) = next else { break };
        if let Ok(Some(thread)) = thread_in_id(&id) {
            // The conversation contains all earlier messages.
            backwards.extend(read_conversation(app, scope, thread, &id).await?.into_iter().rev());
            next = None;
            break;
        }
        let stored = stored_response::find(app, scope, &id).await?.ok_or_else(|| not_found(&id))?;
        for item in stored.input.iter().chain(&stored.output).rev() {
            backwards.push(stored_response::read_draft(item)?);
        }
        next = stored.previous;
    }
    if next.is_some() && !may_truncate {
        let message = format!(
            "The chain has more than {MAX_RESPONSES} responses. Use a conversation, or set 'truncation' to 'auto'."
        );
        return Err(ApiError::invalid("previous_response_id", message));
    }
    backwards.reverse();
    Ok(backwards)
}

/// Returns the latest messages of a conversation up to a response.
async fn read_conversation(app: &App, scope: &Scope, thread: ThreadId, id: &str) -> Result<Vec<Draft>> {
    let record = turn::find_turn_record(app, scope, thread, id).await?.ok_or_else(|| not_found(id))?;
    let turn_messages = turn::stored_messages(app, scope, thread, &[record.input, record.output].concat()).await?;
    let last = turn_messages.last().ok_or_else(|| not_found(id))?.seq;
    let query = MessageQuery { before: Some(Bound::Seq(last + 1)), ..MessageQuery::newest(turn::CONTEXT_MESSAGES) };
    let page = app.memory().messages(scope, thread, &query).await?;
    let to_draft = |message: threadkeep::Message| Draft {
        id: Some(message.id),
        external_id: message.external_id,
        ..Draft::new(message.content)
    };
    Ok(page.messages.into_iter().map(to_draft).collect())
}

pub(super) fn not_found(id: &str) -> ApiError {
    let id: String = id.chars().take(200).collect();
    let message = format!("Previous response with id '{id}' not found.");
    ApiError::new(StatusCode::BAD_REQUEST, "previous_response_not_found", message).param("previous_response_id")
}
