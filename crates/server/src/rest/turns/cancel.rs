use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use threadkeep::agent::{RunningTurn, TurnState, find_turn_state, stop_waiting_turn};
use threadkeep::memory::turns::{TurnKind, TurnWaiter, request_stop, stopped_completion};
use threadkeep::{AgentError, Scope, ThreadId, Turn, TurnStatus};
use threadkeep_api::turn::TurnJson;

use super::get::resume;
use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::openai;
use crate::output::json;
use crate::security::Caller;

/// How long to wait for a turn to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Stops a turn that is running or waits for approval, on whichever instance it runs
///
/// The turn ends as failed with the code `stopped`. Messages that it has already stored remain in the conversation, and its open
/// approvals are closed. A turn that has already ended is returned unchanged.
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/turns/{turn}/cancel",
    operation_id = "cancel_turn",
    tag = "agents",
    params(("id" = String, Path), ("turn" = String, Path)),
    responses((status = 200, body = TurnJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Extension(connection): Extension<ConnectionGuard>,
    path_params: PathParams,
) -> Result {
    let (memory, scope, thread, turn) =
        (app.memory(), &caller.scope, path_params.thread(&app, &caller.scope).await?, path_params.get("turn"));
    let stopped = tokio::time::timeout(STOP_TIMEOUT, async {
        let mut requested: Option<RunningTurn> = None;
        let mut waiter = TurnWaiter::begin(memory, scope, thread).await;
        loop {
            match find_turn_state(memory, scope, thread, turn).await? {
                Some(TurnState::Running(running)) if requested.is_none() => {
                    request_stop(memory, scope, thread, turn).await?;
                    requested = Some(running.clone());
                    // If the server that ran the turn has stopped, the turn has to be resumed to notice the request.
                    resume(&app, scope.clone(), thread, running, connection.clone());
                }
                Some(TurnState::Running(_)) => {}
                Some(TurnState::NotRunning(found)) if found.status == TurnStatus::WaitingForApproval => {
                    // The state is read again, because a concurrent decision may have resumed the turn first.
                    if stop_waiting_turn(memory, scope, thread, turn).await? {
                        continue;
                    }
                }
                Some(TurnState::NotRunning(found)) => return Ok::<_, ApiError>(found),
                _ => return find_stopped_model_call(&app, scope, thread, requested).await,
            }
            waiter.wait(None).await;
        }
    });
    let turn = stopped.await.map_err(|_| ApiError::from(AgentError::Busy))??;
    Ok(json(&TurnJson::from(*turn)))
}

/// Returns the turn of a stopped model call. Nothing of such a call is stored.
///
/// # Errors
/// `not_found` if `requested` is not a model call, or if the call finished before it was stopped.
async fn find_stopped_model_call(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    requested: Option<RunningTurn>,
) -> Result<Box<Turn>> {
    let not_found = || ApiError::not_found("turn");
    let call = requested.filter(|call| call.kind == TurnKind::Completion).ok_or_else(not_found)?;
    if openai::is_answered(app, scope, thread, &call.turn).await? {
        return Err(not_found());
    }
    Ok(Box::new(stopped_completion(thread, call, app.memory().now())))
}
