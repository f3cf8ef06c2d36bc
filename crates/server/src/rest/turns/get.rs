use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use threadkeep::agent::{RunningTurn, TurnState, find_turn_state};
use threadkeep::{Scope, ThreadId};
use threadkeep_api::turn::TurnJson;
use threadkeep_service::in_current_span;
use utoipa::ToSchema;

use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::{json, json_with};
use crate::security::{Caller, MayResume};
use crate::turns;

/// A turn that is still running.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunningJson {
    #[schema(value_type = String, format = Uuid)]
    thread: ThreadId,
    turn: String,
    agent: String,
    /// `running`
    status: &'static str,
}

/// Gets a turn
///
/// The messages of the turn are read from the thread, so erased messages are missing. Turns are retained for 30 days. If the turn
/// was interrupted by a crash, this request resumes it, provided that the caller has the role `write`.
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/turns/{turn}",
    operation_id = "get_turn",
    tag = "agents",
    params(("id" = String, Path), ("turn" = String, Path)),
    responses(
        (status = 200, body = TurnJson),
        (status = 202, description = "The turn is still running.", body = RunningJson),
        (status = "4XX", body = ErrorEnvelope<'_>)
    ),
    security(("key" = []))
)]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    Extension(connection): Extension<ConnectionGuard>,
    path_params: PathParams,
) -> Result {
    let (thread, turn) = (path_params.thread(&app, &caller.scope).await?, path_params.get("turn"));
    match find_turn_state(app.memory(), &caller.scope, thread, turn).await? {
        Some(TurnState::Running(running)) => {
            let agent = running.assistant.clone();
            let body = RunningJson { thread, turn: turn.to_owned(), agent, status: "running" };
            if caller.may_resume() == MayResume::Yes {
                resume(&app, caller.scope, thread, running, connection);
            }
            Ok(json_with(StatusCode::ACCEPTED, &body))
        }
        Some(TurnState::NotRunning(turn)) => Ok(json(&TurnJson::from(*turn))),
        _ => Err(ApiError::not_found("turn")),
    }
}

/// Resumes a turn in the background if the server that ran it has stopped.
pub(super) fn resume(app: &App, scope: Scope, thread: ThreadId, running: RunningTurn, connection: ConnectionGuard) {
    let (app, RunningTurn { turn, assistant, .. }) = (app.clone(), running);
    let Some(agent) = app.assistants().find(&assistant) else { return };
    tokio::spawn(in_current_span(async move {
        if let Err(error) = turns::resume(&app, &agent, &scope, thread, &turn).await {
            tracing::warn!(%error, "failed to resume a turn");
        }
        drop(connection);
    }));
}
