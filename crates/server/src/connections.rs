//! Connections: accepted, bounded, and closed when the server stops.

mod bounded_write;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt;

use crate::app::App;
use crate::server::{Peer, ServeError};
use bounded_write::BoundedWrite;

/// Headers of a request at most.
const HEADERS: usize = 100;
/// Bytes of a request's line and headers at most.
const HEAD_BYTES: usize = 64 * 1024;
/// Failures of the listener in a row after which it is given up.
const FAILURES: u32 = 100;

/// Serves connections until `shutdown` is over, then lets them finish.
pub(crate) async fn serve(
    app: &App,
    router: Router,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let permits = Arc::new(Semaphore::new(app.options().connections));
    let mut shutdown = std::pin::pin!(shutdown);
    let mut failures = 0;
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        match accepted {
            Ok((stream, peer, permit)) => {
                failures = 0;
                let connection = Connection { app: app.clone(), router: router.clone(), peer, permit };
                tokio::spawn(connection.run(stream));
            }
            // A client that went away, or no descriptor left for this one: others may still come.
            Err(error) if failures < FAILURES => {
                failures += 1;
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(ServeError::Listener(error)),
        }
    }
    drop(listener);
    tracing::info!("stopping: what was accepted is finished");
    app.stop();
    // Whatever still runs, an upgraded connection too, holds its permit.
    let all = u32::try_from(app.options().connections).unwrap_or(u32::MAX);
    let all_over = futures::future::join(permits.acquire_many(all), app.released());
    match tokio::time::timeout(app.options().grace, all_over).await {
        Ok(_) => Ok(()),
        Err(_) => Err(ServeError::Cut(app.options().connections - permits.available_permits())),
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, Peer, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.expect("the semaphore is never closed");
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, permit))
}

/// Held as long as anything of a connection runs.
#[derive(Clone, Debug)]
pub(crate) struct Held(Arc<(Peer, OwnedSemaphorePermit)>);

impl Held {
    /// The address of the client.
    pub(crate) fn peer(&self) -> Peer {
        self.0.0
    }
}

struct Connection {
    app: App,
    router: Router,
    peer: Peer,
    permit: OwnedSemaphorePermit,
}

impl Connection {
    async fn run(self, stream: TcpStream) {
        let Self { app, router, peer, permit } = self;
        // Small answers and events go out at once.
        drop(stream.set_nodelay(true));
        let options = app.options();
        let _counted = app.metrics().count_connection();
        let stream = BoundedWrite::new(stream, options.write_timeout);
        let Some(tls) = &options.tls else { return speak(&app, router, peer, permit, stream).await };
        match tokio::time::timeout(options.read_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => speak(&app, router, peer, permit, stream).await,
            Ok(Err(error)) => tracing::debug!(%error, "a connection broke"),
            Err(_) => tracing::debug!("a connection began no TLS"),
        }
    }
}

/// Answers the requests of a connection until it ends.
async fn speak(
    app: &App,
    router: Router,
    peer: Peer,
    permit: OwnedSemaphorePermit,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let options = app.options();
    let held = Held(Arc::new((peer, permit)));
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(held.clone());
        let answering = router.clone().oneshot(request.map(axum::body::Body::new));
        async move {
            let answer = answering.await;
            // Answers that are ready together go out together: a client, or a proxy, that listens to many connections is
            // woken for all of them and not for each, which costs the two of them more than the answer itself.
            tokio::task::yield_now().await;
            answer
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(options.read_timeout)
        .max_headers(HEADERS)
        .max_header_size(HEAD_BYTES)
        .max_buf_size(HEAD_BYTES);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = app.stopped() => {
            // What was accepted is answered; then the connection closes.
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                biased;
                served = connection => served,
                () = app.shutdown_timed_out() => {
                    tracing::info!("a client was left behind: it did not send, or not take, what was its to");
                    Ok(())
                }
            }
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection broke");
    }
}
