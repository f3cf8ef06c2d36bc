//! Stopping a turn from outside, whichever instance it runs on: what says so lies in the store.

use std::convert::Infallible;
use std::time::Duration;

use threadkeep::agent::Stop;
use threadkeep::core::PutDocument;
use threadkeep::{DocumentName, JsonText, Namespace, Scope, ThreadId};

use crate::app::App;
use crate::error::Result;

/// How often a turn that is on its way is looked after.
const MOMENT: Duration = Duration::from_millis(250);
/// How long a wish to stop stands.
const KEPT_MS: i64 = 60 * 60 * 1000;

/// Asks whoever drives a turn to stop it. The caller has made sure that the scope reaches the thread.
pub(crate) async fn ask_to_stop(app: &App, scope: &Scope, thread: ThreadId, turn: &str) -> Result<()> {
    let memory = app.memory();
    let expires_at = Some(memory.now().plus_ms(KEPT_MS));
    let put = PutDocument { name: name(turn), value: JsonText::of(&true)?, expires_at };
    memory.batch().put(put).commit(&writer(scope), thread).await?;
    Ok(())
}

/// Stops a turn once somebody asked for it. Ends never: it runs beside the turn.
pub(super) async fn heed(app: &App, scope: &Scope, thread: ThreadId, turn: &str, stop: &Stop) -> Infallible {
    let (writer, name) = (writer(scope), name(turn));
    loop {
        tokio::time::sleep(MOMENT).await;
        // A store that cannot be asked now is no reason to stop.
        if let Ok(Some(_)) = app.memory().find_thread_document(&writer, thread, &name).await {
            stop.stop();
            return std::future::pending().await;
        }
    }
}

/// A user may ask in a shared thread, and may not write its documents: this one is the application's.
fn writer(scope: &Scope) -> Scope {
    Scope::Tenant(scope.tenant_id().clone())
}

fn name(turn: &str) -> DocumentName {
    DocumentName { namespace: Namespace::System("server".to_owned()), key: format!("stop/{turn}") }
}
