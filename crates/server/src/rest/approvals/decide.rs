use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use threadkeep::agent::{ApprovalState, TurnState, find_approval, find_turn_state};
use threadkeep::{Agent, AgentError, Map, Scope, ThreadId, Verdict};
use threadkeep_api::turn::TurnJson;
use utoipa::ToSchema;

use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{self, JsonBody, PathParams};
use crate::output::{json, with_replay};
use crate::rest::agents::ask::accepts_events;
use crate::security::Caller;
use crate::turns::{self, DecisionRequest, TurnTask};

/// A decision.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecideJson {
    decision: DecisionJson,
    /// Arguments that replace the requested arguments. Only allowed with `approve`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    arguments: Option<Map>,
    /// The reason, which the assistant reads. Only allowed with `deny`.
    #[serde(default)]
    reason: Option<String>,
    /// Whether to stream the turn's events as server-sent events.
    #[serde(default)]
    stream: bool,
}

/// The outcome of a decision.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DecisionJson {
    Approve,
    Deny,
}

/// Decides on an approval, and resumes its turn
///
/// Only the first decision counts: later decisions fail with 409 `approval_closed`. A repeated decision with the same
/// Idempotency-Key, or one that the client marks as a retry, returns the turn of the first decision. Returns or streams the turn,
/// like `POST /v1/agents/{name}/turns`.
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/approvals/{approval}",
    operation_id = "decide_approval",
    tag = "approvals",
    params(("id" = String, Path), ("approval" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body = DecideJson,
    responses((status = 200, description = "The turn, or a stream of events.", content((TurnJson = "application/json"), (String = "text/event-stream"))), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn decide(
    State(app): State<App>,
    caller: Caller,
    Extension(connection): Extension<ConnectionGuard>,
    path_params: PathParams,
    headers: HeaderMap,
    JsonBody { value: body, digest }: JsonBody<DecideJson>,
) -> Result<Response> {
    let (thread, approval) = (path_params.thread(&app, &caller.scope).await?, path_params.get("approval").to_owned());
    let identity = input::read_identity(&headers, "approvals", &format!("{approval}:{digest}"))?;
    let is_streamed = body.stream || accepts_events(&headers);
    let verdict = read_verdict(body)?;
    let (agent, turn) = find_requester(&app, &caller.scope, thread, &approval).await?;
    let (service, by) = (app.service().clone(), decider_name(&caller));
    let request =
        DecisionRequest { service, agent, scope: caller.scope, thread, approval, turn, verdict, by, identity };
    let updates = turns::start(connection, TurnTask::Decide(request));
    if is_streamed {
        return turns::respond(&app, updates).await;
    }
    let result = turns::wait_for_result(updates).await?;
    Ok(with_replay(json(&TurnJson::from(result.turn)), result.replayed))
}

fn read_verdict(body: DecideJson) -> Result<Verdict> {
    match body {
        DecideJson { decision: DecisionJson::Approve, reason: Some(_), .. } => {
            Err(ApiError::invalid("reason", "`reason` is only allowed with `deny`"))
        }
        DecideJson { decision: DecisionJson::Deny, arguments: Some(_), .. } => {
            Err(ApiError::invalid("arguments", "`arguments` is only allowed with `approve`"))
        }
        DecideJson { decision: DecisionJson::Approve, arguments: Some(arguments), .. } => {
            Ok(Verdict::ApproveWithChanges(arguments))
        }
        DecideJson { decision: DecisionJson::Approve, .. } => Ok(Verdict::Approve),
        DecideJson { decision: DecisionJson::Deny, reason, .. } => Ok(Verdict::Deny { reason }),
    }
}

/// Returns the assistant that requested an approval, and the id of the turn.
async fn find_requester(app: &App, scope: &Scope, thread: ThreadId, approval: &str) -> Result<(Agent, String)> {
    let not_found = || ApiError::not_found("approval");
    let found = find_approval(app.memory(), scope, thread, approval).await?.ok_or_else(not_found)?;
    let unavailable = || {
        let message = "the assistant that requested the approval is not available on this server";
        ApiError::new(StatusCode::CONFLICT, "assistant_not_here", message)
    };
    let name = match find_turn_state(app.memory(), scope, thread, &found.turn).await? {
        Some(TurnState::Running(running)) => running.assistant,
        Some(TurnState::NotRunning(turn)) => turn.agent,
        None if found.state == ApprovalState::Pending => return Err(not_found()),
        // The record of the turn has expired, but the record of the approval has not.
        _ => return Err(AgentError::ApprovalClosed { id: found.id, state: found.state }.into()),
    };
    Ok((app.assistants().find(&name).ok_or_else(unavailable)?, found.turn))
}

/// Returns the name of the caller as stored in the approval: the user, the key of an application, or the tenant.
fn decider_name(caller: &Caller) -> String {
    match (&caller.scope, caller.key_id()) {
        (Scope::User(_, user), _) => user.as_str().to_owned(),
        (Scope::Tenant(_), Some(key)) => format!("key {key}"),
        (Scope::Tenant(tenant), None) => tenant.as_str().to_owned(),
    }
}
