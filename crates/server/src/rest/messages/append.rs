use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use threadkeep::memory::UpsertOutcome;
use threadkeep::{AppendOptions, AppendedMessage, Draft, Expected, MemoryError, MessageId, StoreError, ThreadId};
use threadkeep_service::RequestIdentity;
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
    /// The lowest position of the messages.
    first_seq: u64,
    /// The number of added messages.
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
    outcome: OutcomeJson,
}

/// What happened to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutcomeJson {
    Added,
    /// The thread contains the message with the same content.
    Unchanged,
    /// The content of the message with the same external id was replaced.
    Replaced,
}

/// Adds messages, some of which have external ids that the thread already contains. The stored content of those is replaced if it
/// differs.
async fn upsert(
    app: &App,
    caller: &Caller,
    thread: ThreadId,
    drafts: Vec<Draft>,
    (identity, expected): (&RequestIdentity, Option<Expected>),
) -> Result {
    let idempotency_key = identity.key().map(|key| format!("key:{key}"));
    let options = AppendOptions { idempotency_key, expected, ..AppendOptions::default() };
    let upserted =
        app.memory().upsert_with(&caller.scope, thread, drafts, &options).await.map_err(|error| match error {
            MemoryError::Store(StoreError::Denied(_)) => {
                let message = "the thread already has a message with this external id but different content, \
                           and this caller may not replace it";
                ApiError::new(StatusCode::CONFLICT, "external_id_taken", message).param("external_id")
            }
            error => error.into(),
        })?;
    let messages: Vec<PlacedJson> = upserted
        .messages
        .iter()
        .map(|message| {
            let outcome = match message.outcome {
                UpsertOutcome::Added => OutcomeJson::Added,
                UpsertOutcome::Unchanged => OutcomeJson::Unchanged,
                UpsertOutcome::Replaced => OutcomeJson::Replaced,
            };
            PlacedJson { seq: message.seq, id: message.id, outcome }
        })
        .collect();
    let is_unchanged = messages.iter().all(|message| message.outcome == OutcomeJson::Unchanged);
    let (change, replayed) = (upserted.change, upserted.replayed || is_unchanged);
    let body = AppendedJson {
        change: change.number,
        first_seq: messages.iter().map(|message| message.seq).min().unwrap_or_default(),
        count: messages.iter().filter(|message| message.outcome == OutcomeJson::Added).count() as u64,
        messages,
        replayed,
    };
    Ok(with_replay(with_etag(json_with(StatusCode::CREATED, &body), change), replayed))
}

/// Adds messages to a thread
///
/// A message with an external id that the thread already contains is not added again: if its content differs, the content of the
/// stored message is replaced.
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
    let thread = path_params.thread(&app, &caller.scope).await?;
    let identity = input::read_identity(&headers, "messages", &digest)?;
    let drafts = body.messages.into_iter().map(Draft::try_from).collect::<Result<Vec<_>>>()?;
    let expected = match (expected_change(&headers)?, body.expected_seq) {
        (Some(_), Some(_)) => {
            return Err(ApiError::invalid("expected_seq", "`If-Match` and `expected_seq` are mutually exclusive"));
        }
        (change, seq) => change.or(seq.map(Expected::Seq)),
    };
    let upsert_drafts = drafts.iter().any(|draft| draft.external_id.is_some()).then(|| drafts.clone());
    let appended = match identity.append(&app, &caller.scope, thread, drafts, expected).await {
        Err(error) if error.code == "external_id_taken" => {
            let drafts = upsert_drafts.unwrap_or_default();
            return upsert(&app, &caller, thread, drafts, (&identity, expected)).await;
        }
        // The original request added only some of the messages, because the thread already contained the others.
        Ok(appended)
            if appended.replayed && upsert_drafts.as_ref().is_some_and(|all| all.len() > appended.messages.len()) =>
        {
            let drafts = upsert_drafts.unwrap_or_default();
            return upsert(&app, &caller, thread, drafts, (&identity, expected)).await;
        }
        result => result?,
    };
    let outcome = OutcomeJson::Added;
    let placed = |message: &AppendedMessage| PlacedJson { seq: message.seq, id: message.id, outcome };
    let messages = appended.messages.iter().map(placed).collect();
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
