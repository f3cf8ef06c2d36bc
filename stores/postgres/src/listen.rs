//! Detects other instances' commits: by notifications on a dedicated connection, or by polling.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::select;
use futures::stream::{StreamExt, poll_fn};
use threadkeep_core::{StoreError, WakeUp};
use tokio::sync::{Mutex, watch};
use tokio_postgres::{AsyncMessage, Client};

use crate::error::{PostgresError, Result};
use crate::options::Listen;
use crate::pool::{Caller, Shared};
use crate::row::get;

/// The initial delay between attempts to reconnect.
const BACKOFF: Duration = Duration::from_millis(200);
const MAX_BACKOFF: Duration = Duration::from_secs(5);
/// The interval and the timeout of the check that the connection is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The listening task. Started by the first subscriber.
#[derive(Default)]
pub(crate) struct Listener {
    is_started: Mutex<bool>,
}

/// Starts the listening task unless it has been started. Waits until it can receive notifications.
pub(crate) async fn ensure_started(shared: &Arc<Shared>) -> Result<()> {
    let mut is_started = shared.listener.is_started.lock().await;
    if *is_started {
        return Ok(());
    }
    match shared.options.listen {
        Listen::Notify => {
            let (ready, mut is_ready) = watch::channel(false);
            shared.spawn(listen(Arc::downgrade(shared), ready));
            // If the server cannot be reached now, subscribers receive `WakeUp::Unspecified` once the listener is
            // connected.
            drop(tokio::time::timeout(shared.options.connect_timeout, is_ready.wait_for(|ready| *ready)).await);
        }
        Listen::Poll => {
            let stamps = last_stamps(shared).await?;
            shared.spawn(poll(Arc::downgrade(shared), shared.options.poll_interval, stamps));
        }
        Listen::Off => {}
    }
    *is_started = true;
    Ok(())
}

async fn listen(weak: Weak<Shared>, ready: watch::Sender<bool>) {
    let mut backoff = BACKOFF;
    let mut is_first = true;
    loop {
        let Some(shared) = weak.upgrade() else { return };
        let connected = shared.connect_directly().await;
        drop(shared);
        if let Ok((client, mut connection)) = connected {
            backoff = BACKOFF;
            let target = weak.clone();
            let mut messages = poll_fn(move |context| connection.poll_message(context));
            let driving = Box::pin(async move {
                while let Some(Ok(message)) = messages.next().await {
                    forward(&target, message);
                }
            });
            let listening = Box::pin(listen_on(&weak, &client, &ready, is_first));
            drop(select(driving, listening).await);
        }
        is_first = false;
        tokio::time::sleep(backoff).await;
        backoff = (backoff * 2).min(MAX_BACKOFF);
    }
}

/// Listens until the connection fails.
async fn listen_on(weak: &Weak<Shared>, client: &Client, ready: &watch::Sender<bool>, is_first: bool) -> Result<()> {
    let rows = client.query_typed("SELECT threadkeep.channel()", &[]).await?;
    let row = rows.first().ok_or_else(|| StoreError::corrupt("query result", "no row"))?;
    // Needs no quoting: the schema generates it from letters, digits and an underscore.
    client.batch_execute(&format!("LISTEN {}", get::<&str>(row, 0)?)).await?;
    if !is_first {
        // Notifications sent while the listener was disconnected are lost.
        send(weak, WakeUp::Unspecified);
    }
    ready.send_replace(true);
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        tokio::time::timeout(HEARTBEAT, client.batch_execute("")).await.map_err(|_| PostgresError::NoResponse)??;
    }
}

fn forward(weak: &Weak<Shared>, message: AsyncMessage) {
    let AsyncMessage::Notification(notification) = message else { return };
    let Some(shared) = weak.upgrade() else { return };
    for wake_up in shared.outbox.decode(notification.payload()) {
        // Sending fails only without subscribers.
        drop(shared.wake_ups.send(wake_up));
    }
}

fn send(weak: &Weak<Shared>, wake_up: WakeUp) {
    if let Some(shared) = weak.upgrade() {
        drop(shared.wake_ups.send(wake_up));
    }
}

async fn poll(weak: Weak<Shared>, interval: Duration, mut stamps: (i64, i64)) {
    loop {
        tokio::time::sleep(interval).await;
        let Some(shared) = weak.upgrade() else { return };
        if shared.wake_ups.receiver_count() == 0 {
            continue;
        }
        if let Ok(last) = last_stamps(&shared).await
            && last != stamps
        {
            stamps = last;
            drop(shared.wake_ups.send(WakeUp::Unspecified));
        }
    }
}

/// Reads the newest stamps of changes and of deletions. A stamp that becomes visible later may be lower than the newest
/// ones, so that polling does not detect its change. The next change, or the subscriber's own read, then finds that
/// change.
async fn last_stamps(shared: &Shared) -> Result<(i64, i64)> {
    let sql = "SELECT coalesce((SELECT stamp FROM threadkeep.stamps ORDER BY stamp DESC LIMIT 1), 0), \
               coalesce((SELECT max(stamp) FROM threadkeep.deleted_threads), 0)";
    let answers = shared.read(&Caller::maintenance(), &[(sql, &[])]).await?;
    let row = &answers[0][0];
    Ok((get(row, 0)?, get(row, 1)?))
}
