use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use threadkeep::{Draft, Expected, MessageId};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{self, JsonBody, PathParams, expected_change, optional_whole_number};
use crate::output::{json_with, with_etag, with_replay};
use crate::rest::json::message::DraftJson;
use crate::security::Caller;

/// Messages to add. If one of them cannot be added, none is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AppendJson {
    messages: Vec<DraftJson>,
    /// The position that the thread's last message must have.
    #[serde(default, deserialize_with = "optional_whole_number")]
    expected_seq: Option<u64>,
}

/// The added messages.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AppendedJson {
    /// The number of the change.
    change: u64,
    /// The position of the first message.
    first_seq: u64,
    count: u64,
    messages: Vec<PlacedJson>,
    /// Whether an earlier request added the messages.
    replayed: bool,
}

/// The position of an added message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlacedJson {
    seq: u64,
    #[schema(value_type = String, format = Uuid)]
    id: MessageId,
}

/// Adds messages to a thread
///
/// Within seven days, a repeated request with the same Idempotency-Key does not add the messages again. Neither does a repeated
/// request without a key if the client marks it as a retry (`X-Stainless-Retry-Count`), the body is the same, less than 120 s have
/// passed, and nothing has been added since.
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/messages",
    operation_id = "append_messages",
    tag = "messages",
    params(
        ("id" = String, Path),
        ("Idempotency-Key" = Option<String>, Header),
        ("If-Match" = Option<String>, Header)
    ),
    request_body = AppendJson,
    responses((status = 201, body = AppendedJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn append(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    headers: HeaderMap,
    JsonBody { value: body, digest }: JsonBody<AppendJson>,
) -> Result {
    let thread = path_params.thread()?;
    let attempt = input::read_attempt(&headers, "messages", &digest)?;
    let drafts = body.messages.into_iter().map(Draft::try_from).collect::<Result<Vec<_>>>()?;
    let expected = match (expected_change(&headers)?, body.expected_seq) {
        (Some(_), Some(_)) => {
            return Err(ApiError::invalid("expected_seq", "`If-Match` and `expected_seq` are mutually exclusive"));
        }
        (change, seq) => change.or(seq.map(Expected::Seq)),
    };
    let appended = attempt.append(&app, &caller.scope, thread, drafts, expected).await?;
    let messages = appended.messages.iter().map(|message| PlacedJson { seq: message.seq, id: message.id }).collect();
    let (change, replayed) = (appended.tagged(), appended.replayed);
    let body = AppendedJson {
        change: change.number,
        first_seq: appended.first_seq,
        count: appended.count,
        messages,
        replayed,
    };
    Ok(with_replay(with_etag(json_with(StatusCode::CREATED, &body), change), replayed))
}
