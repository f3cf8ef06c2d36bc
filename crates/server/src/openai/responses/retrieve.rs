use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use threadkeep::{MessageId, Scope};

use super::answer::{as_item, recalled};
use super::{background, body, kept, stream, thread_of, unknown};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{Names, Params};
use crate::openai::items::Item;
use crate::openai::turn;
use crate::security::{Caller, MayDrive};

/// A response as it stands.
pub(super) enum Found {
    /// It is being made.
    Going {
        shell: Map<String, Value>,
        /// The id of the message that its first words become.
        words: Option<MessageId>,
        /// What was told of them so far, where that is kept.
        heard: Vec<String>,
    },
    /// Its shell says how it ended.
    Over {
        shell: Map<String, Value>,
        output: Vec<Item>,
        /// The pieces in which its words were told, where that is kept.
        cuts: Vec<u32>,
    },
}

impl Found {
    pub(super) fn text(self) -> String {
        match self {
            Self::Going { shell, .. } => body::with_output(&shell, &[]),
            Self::Over { shell, output, .. } => body::with_output(&shell, &output),
        }
    }
}

/// Retrieves a response
///
/// With `stream` its events are told, those that were and those that come: the same events with the same `sequence_number`,
/// behind `starting_after`. Where it is not known any more in which pieces its words were told, they come as one.
#[utoipa::path(
    get,
    path = "/v1/responses/{id}",
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
    names: Names,
    mut params: Params,
) -> Result<Response> {
    let (id, scope) = (names.text("id"), &caller.scope);
    let is_streamed = params.parse("stream", "true or false")?.unwrap_or(false);
    let after = params.parse("starting_after", "the sequence number of an event")?;
    if is_streamed {
        return stream::follow(&app, scope, id, after, caller.may_drive()).await;
    }
    let text = find(&app, scope, id, caller.may_drive()).await?.ok_or_else(|| unknown(id))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// The text of a response as it stands.
pub(super) async fn find(app: &App, scope: &Scope, id: &str, may_drive: MayDrive) -> Result<Option<String>> {
    Ok(look(app, scope, id, may_drive).await?.map(Found::text))
}

/// A response as it stands.
pub(super) async fn look(app: &App, scope: &Scope, id: &str, may_drive: MayDrive) -> Result<Option<Found>> {
    let stored = match thread_of(id)? {
        Some(thread) => match turn::find(app, scope, thread, id).await? {
            Some(record) => {
                let (shell, output) = recalled(app, scope, thread, &record).await?;
                Some(Found::Over { shell, output, cuts: record.cuts })
            }
            // It goes with its conversation.
            None if app.memory().find_thread(scope, thread).await?.is_none() => return Ok(None),
            None => None,
        },
        None => match kept::find(app, scope, id).await? {
            Some(kept) => {
                let output = kept.output.iter().map(as_item).collect();
                Some(Found::Over { shell: kept.response.read()?, output, cuts: kept.cuts })
            }
            None => None,
        },
    };
    match stored {
        Some(stored) => Ok(Some(stored)),
        None => background::look(app, scope, id, may_drive).await,
    }
}
