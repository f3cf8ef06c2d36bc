use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use threadkeep::agent::{RunningTurn, TurnState, find_turn_state, stop_waiting_turn};
use threadkeep::memory::turns::{TurnKind, Waiting, ask_to_stop, stopped_completion};
use threadkeep::{AgentError, Scope, ThreadId, Turn, TurnStatus};

use super::get::go_on;
use crate::app::App;
use crate::connections::Held;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::Names;
use crate::openai;
use crate::output::json;
use crate::rest::json::turn::TurnJson;
use crate::security::Caller;

/// How long a turn may take to stop.
const PATIENCE: Duration = Duration::from_secs(30);

/// Stops a turn that is on its way or waits for an approval, whichever instance it runs on
///
/// It ends as failed, with the code `stopped`; what it had done until then stays in the conversation, and what it waited for
/// is void. A turn that is over is told as it is.
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/turns/{turn}/cancel",
    tag = "agents",
    params(("id" = String, Path), ("turn" = String, Path)),
    responses((status = 200, body = TurnJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Extension(held): Extension<Held>,
    names: Names,
) -> Result {
    let (memory, scope, thread, turn) = (app.memory(), &caller.scope, names.thread()?, names.text("turn"));
    let stopped = tokio::time::timeout(PATIENCE, async {
        let mut asked: Option<RunningTurn> = None;
        let mut waiting = Waiting::begin(memory, scope, thread).await;
        loop {
            match find_turn_state(memory, scope, thread, turn).await? {
                Some(TurnState::Running(running)) if asked.is_none() => {
                    ask_to_stop(memory, scope, thread, turn).await?;
                    asked = Some(running.clone());
                    // One whose driver is gone hears nothing until it is gone on with.
                    go_on(&app, scope.clone(), thread, running, held.clone());
                }
                Some(TurnState::Running(_)) => {}
                Some(TurnState::Settled(found)) if found.status == TurnStatus::WaitingForApproval => {
                    // Of a decision that is made at the same time one counts, so it is looked at again.
                    if stop_waiting_turn(memory, scope, thread, turn).await? {
                        continue;
                    }
                }
                Some(TurnState::Settled(found)) => return Ok::<_, ApiError>(found),
                _ => return call_of_a_model(&app, scope, thread, asked).await,
            }
            waiting.wait(None).await;
        }
    });
    let turn = stopped.await.map_err(|_| ApiError::from(AgentError::Busy))??;
    Ok(json(&TurnJson::from(*turn)))
}

/// What became of a call of a model that was asked to stop: it was stopped, of which nothing is kept, unless it was faster.
async fn call_of_a_model(app: &App, scope: &Scope, thread: ThreadId, asked: Option<RunningTurn>) -> Result<Box<Turn>> {
    let unknown = || ApiError::not_found("turn");
    let asked = asked.filter(|asked| asked.kind == TurnKind::Completion).ok_or_else(unknown)?;
    if openai::is_answered(app, scope, thread, &asked.turn).await? {
        return Err(unknown());
    }
    Ok(Box::new(stopped_completion(thread, asked, app.memory().now())))
}
