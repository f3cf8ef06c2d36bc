use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use threadkeep::{MessageId, Scope};

use super::answer::{read_response, stored_item};
use super::{background, body, not_found, stored_response, stream, thread_in_id};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams};
use crate::openai::items::Item;
use crate::openai::turn;
use crate::security::{Caller, MayResume};

/// The state of a response.
pub(super) enum ResponseState {
    InProgress {
        envelope: Map<String, Value>,
        /// The id of the message that contains the first text.
        text_id: Option<MessageId>,
        /// The deltas of the first text so far, if they are stored.
        deltas: Vec<String>,
    },
    /// The response has ended. The envelope contains the final status.
    Ended {
        envelope: Map<String, Value>,
        output: Vec<Item>,
        /// The lengths of the deltas in which the first text was streamed, if they are stored.
        delta_lengths: Vec<u32>,
    },
}

impl ResponseState {
    pub(super) fn to_json(&self) -> String {
        match self {
            Self::InProgress { envelope, .. } => body::with_output(envelope, &[]),
            Self::Ended { envelope, output, .. } => body::with_output(envelope, output),
        }
    }
}

/// Retrieves a response
///
/// With `stream`, all events after `starting_after` are streamed, past and future, with the same `sequence_number`s as in the
/// original stream. If the lengths of the original deltas are not stored, the text is sent as one delta.
#[utoipa::path(
    get,
    path = "/v1/responses/{id}",
    operation_id = "retrieve_response",
    tag = "openai",
    params(
        ("id" = String, Path),
        ("stream" = Option<bool>, Query),
        ("starting_after" = Option<u64>, Query)
    ),
    responses((status = 200, description = "The response, or a stream of events.", content((Object = "application/json"), (String = "text/event-stream"))), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn retrieve(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    mut params: QueryParams,
) -> Result<Response> {
    let (id, scope) = (path_params.get("id"), &caller.scope);
    let is_streamed = params.parse("stream", "true or false")?.unwrap_or(false);
    let after = params.parse("starting_after", "the sequence number of an event")?;
    if is_streamed {
        return stream::subscribe(&app, scope, id, after, caller.may_resume()).await;
    }
    let text = find_json(&app, scope, id, caller.may_resume()).await?.ok_or_else(|| not_found(id))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// Finds a response and returns its JSON; `None` if it does not exist.
pub(super) async fn find_json(app: &App, scope: &Scope, id: &str, may_resume: MayResume) -> Result<Option<String>> {
    Ok(find_state(app, scope, id, may_resume).await?.map(|state| state.to_json()))
}

/// Finds the state of a response; `None` if the response does not exist.
pub(super) async fn find_state(
    app: &App,
    scope: &Scope,
    id: &str,
    may_resume: MayResume,
) -> Result<Option<ResponseState>> {
    // A response that ends between the two reads is found by the second attempt, because its answer is stored before its state is deleted.
    for _ in 0..2 {
        let stored = match thread_in_id(id)? {
            Some(thread) => match turn::find_turn_record(app, scope, thread, id).await? {
                Some(record) => {
                    let (envelope, output) = read_response(app, scope, thread, &record).await?;
                    Some(ResponseState::Ended { envelope, output, delta_lengths: record.delta_lengths })
                }
                // The response was deleted with its conversation.
                None if app.memory().find_thread(scope, thread).await?.is_none() => return Ok(None),
                None => None,
            },
            None => match stored_response::find(app, scope, id).await? {
                Some(stored) => {
                    let output = stored.output.iter().map(stored_item).collect();
                    Some(ResponseState::Ended {
                        envelope: stored.response.read()?,
                        output,
                        delta_lengths: stored.delta_lengths,
                    })
                }
                None => None,
            },
        };
        let found = match stored {
            Some(stored) => Some(stored),
            None => background::find_state(app, scope, id, may_resume).await?,
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
