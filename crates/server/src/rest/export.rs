use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::StreamExt;
use threadkeep::core::json_line;
use threadkeep::{MemoryError, StoreError, ThreadSelection, exchange::ExportLine};

use super::analytics::take_thread_selection;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::QueryParams;
use crate::security::Caller;

/// Exports a thread, or all threads to which the caller has full access
///
/// Streams JSON Lines in the export format. Messages that cannot be decoded are omitted. After any other error, the connection is
/// closed before the end of the response.
#[utoipa::path(
    get,
    path = "/v1/export",
    operation_id = "export_threads",
    tag = "exchange",
    params(("thread" = Option<String>, Query, description = "Only this thread")),
    responses(
        (status = 200, description = "JSON Lines.", content_type = "application/jsonl", body = String),
        (status = "4XX", body = ErrorEnvelope<'_>)
    ),
    security(("key" = []))
)]
pub(crate) async fn export(State(app): State<App>, caller: Caller, mut params: QueryParams) -> Result<Response> {
    let selection = take_thread_selection(&app, &caller.scope, &mut params).await?;
    params.finish()?;
    if let ThreadSelection::Thread(thread) = selection {
        // An unknown thread must be reported before the response starts.
        app.memory().get_thread(&caller.scope, thread).await?;
    }
    let lines = app.memory().export(&caller.scope, selection);
    let lines = lines.filter_map(|line| std::future::ready(encode_line(line)));
    let headers = [(header::CONTENT_TYPE, "application/jsonl")];
    Ok((headers, Body::from_stream(lines)).into_response())
}

/// Encodes a line. Returns `None` for a message that cannot be decoded.
fn encode_line(line: Result<ExportLine, MemoryError>) -> Option<Result<Bytes, MemoryError>> {
    match line {
        Ok(line) => {
            let mut text = json_line(&line).ok()?;
            text.push('\n');
            Some(Ok(text.into()))
        }
        Err(MemoryError::Store(StoreError::Corrupt { what: "message", detail })) => {
            tracing::warn!(detail, "an unreadable message was left out of an export");
            None
        }
        Err(error) => Some(Err(error)),
    }
}
