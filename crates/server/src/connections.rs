//! Accepts connections, limits their number, and closes them on shutdown.

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

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 100;
/// Maximum size of the request line and the headers, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The server stops after this many consecutive failures to accept a connection.
const MAX_ACCEPT_FAILURES: u32 = 100;

/// Serves connections until `shutdown` completes, then waits until they finish.
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
            // The error may be transient: the client disconnected, or the process is out of file descriptors.
            Err(error) if failures < MAX_ACCEPT_FAILURES => {
                failures += 1;
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(ServeError::Listener(error)),
        }
    }
    drop(listener);
    tracing::info!("shutting down: finishing accepted requests");
    app.stop();
    // Each connection holds a permit while any part of it runs, including upgraded connections.
    let permit_count = u32::try_from(app.options().connections).unwrap_or(u32::MAX);
    let all_finished = futures::future::join(permits.acquire_many(permit_count), app.wait_until_drained());
    match tokio::time::timeout(app.options().grace, all_finished).await {
        Ok(_) => Ok(()),
        Err(_) => Err(ServeError::ShutdownTimedOut(app.options().connections - permits.available_permits())),
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

/// Holds the permit of a connection while anything that the connection started runs, such as a turn.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionGuard(Arc<(Peer, OwnedSemaphorePermit)>);

impl ConnectionGuard {
    /// Returns the address of the client.
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
        // Makes the system send small responses and events without delay.
        drop(stream.set_nodelay(true));
        let options = app.options();
        let _counted = app.metrics().count_connection();
        let stream = BoundedWrite::new(stream, options.write_timeout);
        let Some(tls) = &options.tls else { return serve_http(&app, router, peer, permit, stream).await };
        match tokio::time::timeout(options.read_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => serve_http(&app, router, peer, permit, stream).await,
            Ok(Err(error)) => tracing::debug!(%error, "a connection failed"),
            Err(_) => tracing::debug!("the TLS handshake timed out"),
        }
    }
}

/// Serves the requests of a connection until it closes.
async fn serve_http(
    app: &App,
    router: Router,
    peer: Peer,
    permit: OwnedSemaphorePermit,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let options = app.options();
    let guard = ConnectionGuard(Arc::new((peer, permit)));
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(guard.clone());
        let response = router.clone().oneshot(request.map(axum::body::Body::new));
        async move {
            let response = response.await;
            // Yields until other responses are ready, so that all of them are sent together. Waking up a client or proxy for every
            // response, instead of once for many connections, costs more than the response itself.
            tokio::task::yield_now().await;
            response
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(options.read_timeout)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(MAX_HEAD_BYTES);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = app.stopped() => {
            // Responds to accepted requests, then closes the connection.
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                biased;
                result = connection => result,
                () = app.shutdown_timed_out() => {
                    tracing::info!("closing the connection of a client that stalled during shutdown");
                    Ok(())
                }
            }
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection failed");
    }
}
