use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::app::App;

/// Periodically sweeps expired data from the store. Of several instances over one store, only one sweeps.
pub(crate) fn start(app: &App) -> JoinHandle<()> {
    let app = app.clone();
    tokio::spawn(async move {
        let Some(every) = app.options().sweep_every else { return };
        // More often than it is done: an instance that ends leaves its turn to the others.
        let look_every = (every / 4).max(Duration::from_millis(1));
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + look_every, look_every);
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
