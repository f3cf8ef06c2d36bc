//! [`ExternalServer`]: a server that is kept running.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use threadkeep::{Tool, ToolSource};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::connection::Connection;
use super::link::{Link, State};
use super::spec::ServerSpec;
use super::tools::{self, Listing};

/// The wait before the first restart; it doubles with each failure.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The maximum wait before a restart.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// How long a server must run before its next failure counts as the first one.
const STABLE_AFTER: Duration = Duration::from_secs(60);
/// The minimum time between two reads of the list of tools.
const LIST_INTERVAL: Duration = Duration::from_secs(1);

/// An external server, as a source of tools.
///
/// It is started when its tools are first needed, in the current tokio runtime, and restarted with increasing waits when it ends. A call
/// that was running at that moment fails, and is not repeated. Dropping the value ends the server.
#[derive(Debug)]
pub struct ExternalServer {
    spec: ServerSpec,
    link: Arc<Link>,
    listing: Arc<RwLock<Listing>>,
    /// Dropped to end the task.
    task: Mutex<Option<oneshot::Sender<()>>>,
}

impl ExternalServer {
    /// Creates the source, without starting the server.
    #[must_use]
    pub fn new(spec: ServerSpec) -> Self {
        let link = Arc::new(Link::new(&spec.name));
        Self { spec, link, listing: Arc::default(), task: Mutex::new(None) }
    }

    /// Starts the server, unless it was started already. Must be called in a tokio runtime.
    pub fn start(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.is_none() {
            let (sender, stop) = oneshot::channel();
            *task = Some(sender);
            self.link.state.send_replace(State::Starting);
            let keeper =
                Keeper { spec: self.spec.clone(), link: Arc::clone(&self.link), listing: Arc::clone(&self.listing) };
            tokio::spawn(keeper.run(stop));
        }
    }
}

#[async_trait]
impl ToolSource for ExternalServer {
    async fn wait_until_ready(&self) {
        self.start();
        self.link.wait_while_starting().await;
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let listing = self.listing.read().unwrap_or_else(PoisonError::into_inner);
        listing.tools.iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }
}

/// The task that keeps a server running.
struct Keeper {
    spec: ServerSpec,
    link: Arc<Link>,
    listing: Arc<RwLock<Listing>>,
}

impl Keeper {
    async fn run(self, mut stop: oneshot::Receiver<()>) {
        let mut wait = FIRST_WAIT;
        loop {
            let began = Instant::now();
            // `stop` resolves when the source is dropped.
            let reason = tokio::select! {
                _ = &mut stop => return,
                opened = open(&self.spec, &self.link) => match opened {
                    Ok((connection, listing)) => match self.serve(connection, listing, &mut stop).await {
                        Some(reason) => reason,
                        None => return,
                    },
                    Err(reason) => reason,
                },
            };
            if began.elapsed() >= STABLE_AFTER {
                wait = FIRST_WAIT;
            }
            tracing::warn!(
                "the MCP server {} is not running, next start in {} s: {reason}",
                self.spec.name,
                wait.as_secs()
            );
            let restarts_at = Instant::now() + wait;
            self.link.state.send_replace(State::Down { reason: public_reason(&reason), restarts_at });
            tokio::select! {
                _ = &mut stop => return,
                () = sleep_until(restarts_at) => {}
            }
            wait = (wait * 2).min(MAX_WAIT);
        }
    }

    /// Keeps a connection until the server closes it. Returns the reason, or `None` if the source was dropped.
    async fn serve(
        &self,
        mut connection: Connection,
        listing: Listing,
        stop: &mut oneshot::Receiver<()>,
    ) -> Option<String> {
        self.publish(listing);
        let (connected, changed) = (connection.connected(), Arc::clone(&connection.changed));
        self.link.state.send_replace(State::Ready(connected.clone()));
        let reason = loop {
            tokio::select! {
                _ = &mut *stop => {
                    connection.close("stopped").await;
                    return None;
                }
                () = connection.closed() => break "the server closed the connection",
                () = connected.lost.wait() => break "the connection was lost",
                () = changed.notified() => {}
            }
            // A server that announces changes all the time is asked once per interval. A lost connection is noticed afterwards.
            let list = timeout(self.spec.startup_timeout, tools::list(&connected.caller, &self.spec, &self.link));
            match list.await {
                Ok(Ok(listing)) => self.publish(listing),
                Ok(Err(reason)) => tracing::warn!("the MCP server {} cannot list its tools: {reason}", self.spec.name),
                Err(_) => tracing::warn!("the MCP server {} does not list its tools in time", self.spec.name),
            }
            sleep(LIST_INTERVAL).await;
        };
        // Calls wait for the restart from now on.
        self.link.state.send_replace(State::Starting);
        Some(connection.close(reason).await)
    }

    fn publish(&self, listing: Listing) {
        for omitted in &listing.omitted {
            tracing::warn!("the MCP server {}: {omitted}", self.spec.name);
        }
        *self.listing.write().unwrap_or_else(PoisonError::into_inner) = listing;
    }
}

/// Starts a server and lists its tools.
///
/// # Errors
/// The reason, for the operator.
pub(crate) async fn open(spec: &ServerSpec, link: &Arc<Link>) -> Result<(Connection, Listing), String> {
    let opening = async {
        let connection = Connection::open(spec).await?;
        match tools::list(&connection.connected().caller, spec, link).await {
            Ok(listing) => Ok((connection, listing)),
            Err(reason) => Err(connection.close(&format!("its tools cannot be listed: {reason}")).await),
        }
    };
    let seconds = spec.startup_timeout.as_secs();
    timeout(spec.startup_timeout, opening)
        .await
        .unwrap_or_else(|_| Err(format!("the server did not respond within {seconds} s")))
}

/// Returns the part of a reason that models may read: without what the server wrote to its standard error.
fn public_reason(reason: &str) -> String {
    reason.split("; its last line on standard error").next().unwrap_or_default().to_owned()
}
