use axum::extract::State;
use serde::{Deserialize, Serialize};
use threadkeep::ContextPolicy;
use threadkeep::context::Report;
use threadkeep::core::{ApproximateCounter, ChatMessage};
use threadkeep::memory::ContextOptions;
use utoipa::ToSchema;

use super::policy::PolicyJson;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{JsonBody, Names};
use crate::output::{json, with_etag};
use crate::rest::json::message::{RoleJson, UnreadableJson};
use crate::rest::json::part::PartJson;
use crate::security::Caller;
use crate::security::keys::KeyRole;

/// What the model is asked, and by which policy it is shown the thread.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AssembleJson {
    /// The question, where it is not the thread's newest message already.
    question: Option<String>,
    policy: PolicyJson,
    /// The model whose tokens are counted; about right where it is left out.
    model: Option<String>,
    /// Keeps the report under this name for 30 days.
    turn: Option<String>,
}

/// What the model sees, and why.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContextJson<'a> {
    messages: Vec<ContextMessageJson>,
    /// The change that the thread was read at.
    change: u64,
    /// What became of every message, and what took how many tokens.
    #[schema(value_type = Object)]
    report: &'a Report,
    /// Whether the report is kept.
    is_report_kept: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<UnreadableJson>,
}

/// A message for a model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContextMessageJson {
    role: RoleJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<String>,
    parts: Vec<PartJson>,
    /// Its position, where it is a message of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

impl From<ChatMessage> for ContextMessageJson {
    fn from(message: ChatMessage) -> Self {
        let ChatMessage { role, author, parts, seq } = message;
        Self { role: role.into(), author, parts: parts.into_iter().map(Into::into).collect(), seq }
    }
}

/// Assembles what a model sees of a thread
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/context",
    tag = "context",
    params(("id" = String, Path)),
    request_body = AssembleJson,
    responses((status = 200, body = ContextJson<'_>), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn assemble(
    State(app): State<App>,
    caller: Caller,
    names: Names,
    JsonBody { value: body, .. }: JsonBody<AssembleJson>,
) -> Result {
    if body.turn.is_some() {
        // What is kept is written.
        caller.demand(KeyRole::Write)?;
    }
    let thread = names.thread()?;
    let policy = ContextPolicy::from(body.policy);
    let counter = match &body.model {
        Some(model) => threadkeep::tokens::counter_for_model(model),
        None => std::sync::Arc::new(ApproximateCounter),
    };
    let embedder = app.embedder().cloned();
    let options = ContextOptions { counter, embedder, turn: body.turn, ..ContextOptions::default() };
    let assembled =
        app.memory().context_with(&caller.scope, thread, body.question.as_deref(), &policy, &options).await?;
    let body = ContextJson {
        messages: assembled.context.messages.into_iter().map(Into::into).collect(),
        change: assembled.positions.change,
        report: &assembled.context.report,
        is_report_kept: assembled.is_report_kept,
        unreadable: assembled.unreadable.into_iter().map(Into::into).collect(),
    };
    Ok(with_etag(json(&body), assembled.positions.change))
}
