//! The server as a whole.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use threadkeep::Memory;
use threadkeep::core::{ChatModel, Embedder};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::app::{App, ServerOptions};
use crate::assistants::Assistants;
use crate::door::{Door, RouteInfo};
use crate::{connections, operations, routes, turns};

/// A server over one memory.
///
/// Every instance over the same store is the same server: they may stand behind one address.
#[derive(Clone, Debug)]
pub struct Server {
    memory: Memory,
    options: ServerOptions,
    doors: Vec<Door>,
    model: Option<Arc<dyn ChatModel>>,
    embedder: Option<Arc<dyn Embedder>>,
    assistants: Assistants,
}

/// Why a server could not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The listener failed.
    #[error("the listener failed")]
    Listener(#[source] std::io::Error),
    /// Requests were still running when the grace was over, and were cut.
    #[error("{0} connections were cut, as they did not finish in time")]
    Cut(usize),
}

impl Server {
    /// Makes a server.
    #[must_use]
    pub fn new(memory: Memory, options: ServerOptions) -> Self {
        Self { memory, options, doors: Self::doors(), model: None, embedder: None, assistants: Assistants::default() }
    }

    /// Gives it a model that answers on the OpenAI wire.
    #[must_use]
    pub fn with_model(self, model: Arc<dyn ChatModel>) -> Self {
        Self { model: Some(model), ..self }
    }

    /// Gives it an embedder, which joins the ranking of what is recalled.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder: Some(embedder), ..self }
    }

    /// Gives it assistants that can be asked. Others may be added later, or take their place.
    #[must_use]
    pub fn with_assistants(self, assistants: Assistants) -> Self {
        Self { assistants, ..self }
    }

    /// The doors that every server has.
    #[must_use]
    pub fn doors() -> Vec<Door> {
        routes::doors()
    }

    /// Every route of the doors that every server has, in their order.
    #[must_use]
    pub fn routes() -> Vec<RouteInfo> {
        Self::doors().iter().flat_map(Door::routes).collect()
    }

    /// The OpenAPI document of these doors, as JSON.
    #[must_use]
    pub fn openapi() -> String {
        operations::document::text(&Self::doors())
    }

    /// Serves until `shutdown` is over; then finishes what was accepted, and ends every stream with an event.
    ///
    /// # Errors
    /// `Listener` when no connection can be accepted any more, `Cut` when the grace was not enough.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let Self { memory, options, doors, model, embedder, assistants } = self;
        let app = App::new(memory, options, doors, model, embedder, assistants);
        let sweeper = operations::sweep::start(&app);
        let resuming = turns::resuming::start(&app);
        let renewals = app.options().tls.clone().map(|tls| tokio::spawn(tls.follow()));
        let router: Router = routes::router(&app);
        let served = connections::serve(&app, router, listener, shutdown).await;
        app.stop();
        sweeper.abort();
        resuming.abort();
        renewals.inspect(JoinHandle::abort);
        app.telemetry().flush().await;
        served
    }
}

/// The address of a client.
pub(crate) type Peer = SocketAddr;
