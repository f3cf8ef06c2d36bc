use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::app::App;

/// Sweeps what is over out of the store, now and then.
pub(crate) fn start(app: &App) -> JoinHandle<()> {
    let app = app.clone();
    tokio::spawn(async move {
        let Some(every) = app.options().sweep_every else { return };
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let memory = app.memory();
            match memory.backend().maintenance.sweep(memory.now()).await {
                Ok(report) => tracing::debug!(?report, "swept"),
                Err(error) => tracing::warn!(%error, "the sweep failed; the next one makes up for it"),
            }
        }
    })
}
