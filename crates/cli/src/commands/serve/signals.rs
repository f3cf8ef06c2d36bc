use crate::interrupt::Interrupt;

/// Waits until somebody asks the program to end: by Ctrl-C, or as a service manager does. Whoever asks again means at once.
pub(super) async fn asked_to_stop(interrupt: Interrupt) {
    let mut signals = Signals::listen();
    signals.next().await;
    tokio::spawn(async move {
        signals.next().await;
        interrupt.end();
    });
}

/// What asks a program to end, heard from the beginning: none is lost between two waits.
#[cfg(unix)]
struct Signals(Vec<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Signals {
    /// Begins to listen. A signal that cannot be heard is none that comes.
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
        // None of them ends; without any the server runs until it is killed.
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
        // Where signals cannot be heard, the server runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
