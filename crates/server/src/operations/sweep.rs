use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::app::App;

/// Periodically sweeps the store, that is, deletes expired data. If several instances use one store, only one of them sweeps at a
/// time.
pub(crate) fn start(app: &App) -> JoinHandle<()> {
    let app = app.clone();
    tokio::spawn(async move {
        let Some(every) = app.options().sweep_every else { return };
        // Checks more often than it sweeps, so that another instance soon takes over when the sweeping instance ends.
        let check_every = (every / 4).max(Duration::from_millis(1));
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + check_every, check_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match app.memory().sweep_if_due(every).await {
                Ok(Some(report)) => tracing::debug!(?report, "swept"),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "sweeping the store failed; will retry"),
            }
        }
    })
}
