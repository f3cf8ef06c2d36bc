use crate::interrupt::Interrupt;

/// Waits for Ctrl-C or SIGTERM. After that, a second signal ends the program immediately.
pub(super) async fn shutdown_requested(interrupt: Interrupt) {
    let mut signals = Signals::listen();
    signals.next().await;
    tokio::spawn(async move {
        signals.next().await;
        interrupt.exit();
    });
}

/// The signals that end the program. Registered once, so that no signal is lost between waits.
#[cfg(unix)]
struct Signals(Vec<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Signals {
    /// Registers the signals. A signal that cannot be registered is ignored.
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self(
            [SignalKind::interrupt(), SignalKind::terminate()]
                .into_iter()
                .filter_map(|kind| signal(kind).ok())
                .collect(),
        )
    }

    async fn next(&mut self) {
        // Signal streams never end. If no signal was registered, the server runs until it is killed.
        std::future::poll_fn(|context| match self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        })
        .await;
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> Self {
        Self
    }

    async fn next(&mut self) {
        // If Ctrl-C cannot be registered, the server runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
