use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use threadkeep::agent::find_running_turn;
use threadkeep::{AgentError, TurnStatus};

use super::get::any_agent;
use crate::app::App;
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

/// Stops a turn that is on its way, whichever instance it runs on
///
/// It ends as failed, with the code `stopped`; what it had done until then stays in the conversation. A turn that is over
/// is told as it is.
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/turns/{turn}/cancel",
    tag = "agents",
    params(("id" = String, Path), ("turn" = String, Path)),
    responses((status = 200, body = TurnJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn cancel(State(app): State<App>, caller: Caller, names: Names) -> Result {
    let (memory, scope, thread, turn) = (app.memory(), &caller.scope, names.thread()?, names.text("turn"));
    memory.get_thread(scope, thread).await?;
    let is_running = || async {
        let running = find_running_turn(memory, scope, thread).await?;
        Ok::<_, ApiError>(running.is_some_and(|running| running.turn == turn))
    };
    if is_running().await? {
        turns::ask_to_stop(&app, scope, thread, turn).await?;
        let stopped = tokio::time::timeout(PATIENCE, async {
            while is_running().await? {
                tokio::time::sleep(MOMENT).await;
            }
            Ok::<_, ApiError>(())
        });
        stopped.await.map_err(|_| ApiError::from(AgentError::Busy))??;
    }
    let found = any_agent(&app)?.find_turn(scope, thread, turn).await?;
    let turn = found.ok_or_else(|| ApiError::not_found("turn"))?;
    if turn.status == TurnStatus::WaitingForApproval {
        let message = "the turn waits for an approval: deny it";
        return Err(ApiError::new(StatusCode::CONFLICT, "waiting_for_approval", message));
    }
    Ok(json(&TurnJson::from(turn)))
}
