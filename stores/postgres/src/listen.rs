//! Hears what other instances did: by notifications on a connection of its own, or by looking now and then.

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

/// Between two attempts to connect again.
const BACKOFF: Duration = Duration::from_millis(200);
const LONGEST_BACKOFF: Duration = Duration::from_secs(5);
/// How often a silent connection is asked whether it is still there.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Starts with the first who listens.
#[derive(Default)]
pub(crate) struct Listener {
    is_started: Mutex<bool>,
}

/// Makes sure that other instances are heard from now on.
pub(crate) async fn ensure(shared: &Arc<Shared>) -> Result<()> {
    let mut is_started = shared.listener.is_started.lock().await;
    if *is_started {
        return Ok(());
    }
    match shared.options.listen {
        Listen::Notify => {
            let (ready, mut is_ready) = watch::channel(false);
            shared.spawn(listen(Arc::downgrade(shared), ready));
            // A server that is away now is told of as "anything" once it is back.
            drop(tokio::time::timeout(shared.options.connect_timeout, is_ready.wait_for(|ready| *ready)).await);
        }
        Listen::Poll => {
            let seen = last_stamps(shared).await?;
            shared.spawn(poll(Arc::downgrade(shared), shared.options.poll_interval, seen));
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
            let told = weak.clone();
            let mut messages = poll_fn(move |context| connection.poll_message(context));
            let driving = Box::pin(async move {
                while let Some(Ok(message)) = messages.next().await {
                    pass_on(&told, message);
                }
            });
            let listening = Box::pin(stay(&weak, &client, &ready, is_first));
            drop(select(driving, listening).await);
        }
        is_first = false;
        tokio::time::sleep(backoff).await;
        backoff = (backoff * 2).min(LONGEST_BACKOFF);
    }
}

/// Listens for as long as the connection answers.
async fn stay(weak: &Weak<Shared>, client: &Client, ready: &watch::Sender<bool>, is_first: bool) -> Result<()> {
    let rows = client.query_typed("SELECT threadkeep.channel()", &[]).await?;
    let row = rows.first().ok_or_else(|| StoreError::corrupt("answer", "of no row"))?;
    // Made by the schema, of letters, digits and a line.
    client.batch_execute(&format!("LISTEN {}", get::<&str>(row, 0)?)).await?;
    if !is_first {
        // What was told while nobody listened is lost.
        send(weak, WakeUp::Anything);
    }
    ready.send_replace(true);
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        tokio::time::timeout(HEARTBEAT, client.batch_execute("")).await.map_err(|_| PostgresError::Silence)??;
    }
}

fn pass_on(weak: &Weak<Shared>, message: AsyncMessage) {
    let AsyncMessage::Notification(notification) = message else { return };
    let Some(shared) = weak.upgrade() else { return };
    for wake_up in shared.outbox.read(notification.payload()) {
        // Nobody listening any more is no failure.
        drop(shared.wake_ups.send(wake_up));
    }
}

fn send(weak: &Weak<Shared>, wake_up: WakeUp) {
    if let Some(shared) = weak.upgrade() {
        drop(shared.wake_ups.send(wake_up));
    }
}

async fn poll(weak: Weak<Shared>, interval: Duration, mut seen: (i64, i64)) {
    loop {
        tokio::time::sleep(interval).await;
        let Some(shared) = weak.upgrade() else { return };
        if shared.wake_ups.receiver_count() == 0 {
            continue;
        }
        if let Ok(last) = last_stamps(&shared).await
            && last != seen
        {
            seen = last;
            drop(shared.wake_ups.send(WakeUp::Anything));
        }
    }
}

/// The newest stamps of changes and of deletions. One that is given later may be lower for a moment: then the look after
/// it, or the subscriber's own, finds the change.
async fn last_stamps(shared: &Shared) -> Result<(i64, i64)> {
    let sql = "SELECT coalesce((SELECT stamp FROM threadkeep.stamps ORDER BY stamp DESC LIMIT 1), 0), \
               coalesce((SELECT max(stamp) FROM threadkeep.deleted_threads), 0)";
    let answers = shared.read(&Caller::keeper(), &[(sql, &[])]).await?;
    let row = &answers[0][0];
    Ok((get(row, 0)?, get(row, 1)?))
}
