use axum::extract::State;
use serde::{Deserialize, Serialize};
use threadkeep::ContextPolicy;
use threadkeep::core::ApproximateCounter;
use threadkeep::memory::{AssembledContext, ContextOptions};
use threadkeep_api::context::ContextJson;
use threadkeep_api::policy::PolicyJson;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{JsonBody, PathParams};
use crate::output::{encode_json_with, json_text, with_etag};
use crate::rest::json::writer;
use crate::security::Caller;
use crate::security::KeyRole;

/// The question, and the policy for the context.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AssembleJson {
    /// The question, unless it is the last message of the thread.
    question: Option<String>,
    policy: PolicyJson,
    /// The model whose tokenizer counts the tokens. Default: token counts are approximate.
    model: Option<String>,
    /// Stores the report under this turn id for 30 days. Requires the role `write`.
    turn: Option<String>,
}

/// Writes the JSON of a [`ContextJson`] to a buffer.
fn write_context(out: &mut Vec<u8>, assembled: &AssembledContext) -> serde_json::Result<()> {
    if !assembled.unreadable.is_empty() {
        return serde_json::to_writer(out, &ContextJson::of(assembled));
    }
    let AssembledContext { context, positions, is_report_stored, .. } = assembled;
    out.extend_from_slice(br#"{"messages":"#);
    writer::write_list(out, &context.messages, writer::write_context_message)?;
    writer::write_value(out, br#","change":"#, &positions.change)?;
    writer::write_value(out, br#","report":"#, &context.report)?;
    writer::write_value(out, br#","is_report_kept":"#, is_report_stored)?;
    out.push(b'}');
    Ok(())
}

/// Assembles the context of a model from a thread
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/context",
    operation_id = "assemble_context",
    tag = "context",
    params(("id" = String, Path)),
    request_body = AssembleJson,
    responses((status = 200, body = ContextJson<'_>), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn assemble(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    JsonBody { value: body, .. }: JsonBody<AssembleJson>,
) -> Result {
    if body.turn.is_some() {
        // With a turn id, the report is stored.
        caller.require(KeyRole::Write)?;
    }
    let thread = path_params.thread(&app, &caller.scope).await?;
    let policy = ContextPolicy::from(body.policy);
    let counter = match &body.model {
        Some(model) => threadkeep::tokens::counter_for_model(model),
        None => std::sync::Arc::new(ApproximateCounter),
    };
    let embedder = app.embedder().cloned();
    let options = ContextOptions { counter, embedder, turn: body.turn, ..ContextOptions::default() };
    let question = body.question.as_deref();
    let context = app.memory().shared_context(&caller.scope, thread, question, &policy, &options).await?;
    let json = context.derived(|assembled| encode_json_with(|out| write_context(out, assembled)));
    Ok(with_etag(json_text(json.as_ref().clone()?), context.assembled().positions.tagged()))
}
