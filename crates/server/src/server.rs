//! The server as a whole.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use threadkeep::Memory;
use threadkeep::core::{ChatModel, Embedder};
use threadkeep_service::{AssistantNameError, Assistants, Service};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::app::{App, ServerOptions};
use crate::door::{Door, RouteInfo};
use crate::{connections, operations, routes};

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

/// Why a door cannot be mounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoorError {
    /// Another door has this route, or one of its shape.
    #[error("{method} {path} of the door {door} collides with a route of another door")]
    Taken {
        /// The door.
        door: &'static str,
        /// The method.
        method: String,
        /// The path.
        path: String,
    },
    /// Nothing holds this route against other tenants and users.
    #[error("{method} {path} of the door {door} has no tenant case, or a case has no such route")]
    Uncased {
        /// The door.
        door: &'static str,
        /// The method.
        method: String,
        /// The path.
        path: String,
    },
}

/// Why a server could not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The listener failed.
    #[error("the listener failed")]
    Listener(#[source] std::io::Error),
    /// A path of a door begins with the name of an assistant.
    #[error(transparent)]
    AssistantName(#[from] AssistantNameError),
    /// Requests were still running when the grace was over, and were cut.
    #[error("{0} connections were cut, as they did not finish in time")]
    Cut(usize),
}

impl Server {
    /// Makes a server.
    #[must_use]
    pub fn new(memory: Memory, options: ServerOptions) -> Self {
        Self { memory, options, doors: Self::doors(), model: None, embedder: None, assistants: Self::assistants() }
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

    /// Mounts a door beside those that every server has.
    ///
    /// # Errors
    /// `Taken` for a route that collides with another door's, `Uncased` for one without a tenant case.
    pub fn with_door(mut self, door: Door) -> Result<Self, DoorError> {
        if let Some((method, path)) = door.uncased().into_iter().next() {
            return Err(DoorError::Uncased { door: door.name(), method, path });
        }
        if let Some(RouteInfo { method, path, .. }) = routes::collision(&self.doors, &door) {
            return Err(DoorError::Taken { door: door.name(), method, path });
        }
        self.doors.push(door);
        Ok(self)
    }

    /// A list of assistants that takes none whose name the paths of the doors begin with that every server has.
    #[must_use]
    pub fn assistants() -> Assistants {
        let assistants = Assistants::default();
        let reserved = assistants.reserve(routes::beginnings(&Self::doors()));
        reserved.expect("an empty list has no names");
        assistants
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
    /// `AssistantName` for an assistant that a door's paths collide with, `Listener` when no connection can be accepted any more, `Cut` when the grace was not enough.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let Self { memory, options, doors, model, embedder, assistants } = self;
        assistants.reserve(routes::beginnings(&doors))?;
        let service = Service::new(memory, options.of_service(), model, embedder, assistants);
        let app = App::new(service, options, doors);
        let sweeper = operations::sweep::start(&app);
        let resuming = app.options().resume_turns.then(|| app.resume_turns());
        let renewals = app.options().tls.clone().map(|tls| tokio::spawn(tls.follow()));
        let router: Router = routes::router(&app);
        let listeners = listen(&app);
        let served = connections::serve(&app, router, listener, shutdown).await;
        app.stop();
        sweeper.abort();
        resuming.inspect(JoinHandle::abort);
        renewals.inspect(JoinHandle::abort);
        listeners.iter().for_each(JoinHandle::abort);
        app.telemetry().flush().await;
        served
    }
}

/// Begins what doors do beside their routes.
fn listen(app: &App) -> Vec<JoinHandle<()>> {
    let listen = |door: &Door| {
        let (name, app, listening) = (door.name(), app.clone(), door.listen(app)?);
        Some(tokio::spawn(async move {
            let _hold = app.hold();
            listening.await;
            if !app.is_stopping() {
                tracing::error!(door = name, "the listener of a door has ended, though the server goes on");
            }
        }))
    };
    app.doors().iter().filter_map(listen).collect()
}

/// The address of a client.
pub(crate) type Peer = SocketAddr;
