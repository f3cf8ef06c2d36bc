//! What was said up to a response, which another one goes on from.

use axum::http::StatusCode;
use threadkeep::{Bound, Draft, MessageQuery, Scope, ThreadId};

use super::{kept, thread_of};
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::openai::turn;

/// Responses of one chain that are read at most.
const RESPONSES: usize = 1_000;

/// What was said in a chain of responses up to one, oldest first. The beginning of a very long one is left out where it may
/// be cut.
pub(super) async fn read(app: &App, scope: &Scope, last: &str, is_cut: bool) -> Result<Vec<Draft>> {
    let (mut backwards, mut next) = (Vec::new(), Some(last.to_owned()));
    for _ in 0..RESPONSES {
        let Some(id) = next else { break };
        if let Ok(Some(thread)) = thread_of(&id) {
            // It has all that was said before in its conversation.
            backwards.extend(of_conversation(app, scope, thread, &id).await?.into_iter().rev());
            next = None;
            break;
        }
        let kept = kept::find(app, scope, &id).await?.ok_or_else(|| not_found(&id))?;
        for item in kept.input.iter().chain(&kept.output).rev() {
            backwards.push(kept::draft(item)?);
        }
        next = kept.previous;
    }
    if next.is_some() && !is_cut {
        let message = format!(
            "A chain of more than {RESPONSES} responses is not read: use a conversation, or 'truncation' with 'auto'."
        );
        return Err(ApiError::invalid("previous_response_id", message));
    }
    backwards.reverse();
    Ok(backwards)
}

/// The end of a conversation as it was with a response of it.
async fn of_conversation(app: &App, scope: &Scope, thread: ThreadId, id: &str) -> Result<Vec<Draft>> {
    let record = turn::find(app, scope, thread, id).await?.ok_or_else(|| not_found(id))?;
    let said = turn::said(app, scope, thread, &[record.input, record.output].concat()).await?;
    let last = said.last().ok_or_else(|| not_found(id))?.seq;
    let query = MessageQuery { before: Some(Bound::Seq(last + 1)), ..MessageQuery::newest(turn::WINDOW) };
    let page = app.memory().messages(scope, thread, &query).await?;
    let draft = |message: threadkeep::Message| Draft {
        id: Some(message.id),
        external_id: message.external_id,
        ..Draft::new(message.content)
    };
    Ok(page.messages.into_iter().map(draft).collect())
}

/// What is told where there is no response to go on from.
pub(super) fn not_found(id: &str) -> ApiError {
    let id: String = id.chars().take(200).collect();
    let message = format!("Previous response with id '{id}' not found.");
    ApiError::new(StatusCode::BAD_REQUEST, "previous_response_not_found", message).param("previous_response_id")
}
