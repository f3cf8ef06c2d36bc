use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use threadkeep::agent::{TurnState, find_turn_state, stop_waiting_turn};
use threadkeep::{AgentError, TurnStatus};

use super::get::go_on;
use crate::app::App;
use crate::connections::Held;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::Names;
use crate::output::json;
use crate::rest::json::turn::TurnJson;
use crate::security::Caller;
use crate::turns;

/// How long a turn may take to stop.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether it has.
const MOMENT: Duration = Duration::from_millis(50);

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
        let mut is_asked = false;
        loop {
            match find_turn_state(memory, scope, thread, turn).await? {
                Some(TurnState::Running(running)) if !is_asked => {
                    turns::ask_to_stop(&app, scope, thread, turn).await?;
                    is_asked = true;
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
                _ => return Err(ApiError::not_found("turn")),
            }
            tokio::time::sleep(MOMENT).await;
        }
    });
    let turn = stopped.await.map_err(|_| ApiError::from(AgentError::Busy))??;
    Ok(json(&TurnJson::from(*turn)))
}
