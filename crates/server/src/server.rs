//! [`Server`], which combines doors, assistants and connections.

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

/// A server for one [`Memory`].
///
/// All instances that use the same store are interchangeable, so that they can be load-balanced behind one address.
#[derive(Clone, Debug)]
pub struct Server {
    memory: Memory,
    options: ServerOptions,
    doors: Vec<Door>,
    model: Option<Arc<dyn ChatModel>>,
    embedder: Option<Arc<dyn Embedder>>,
    assistants: Assistants,
}

/// The reason why a door, an API of the server as a [`Door`] value, cannot be mounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoorError {
    /// Another door has this route, or a route that differs only in the names of parameters.
    #[error("the route {method} {path} of the door `{door}` conflicts with a route of another door")]
    RouteCollision {
        /// The door.
        door: &'static str,
        /// The method.
        method: String,
        /// The path.
        path: String,
    },
    /// The door has no case that tests this route for tenant isolation, or has a case for this route but not the route itself.
    #[error(
        "the door `{door}` must have both the route {method} {path} and a tenant-isolation test case for it, or neither"
    )]
    TenantCaseMismatch {
        /// The door.
        door: &'static str,
        /// The method.
        method: String,
        /// The path.
        path: String,
    },
}

/// The reason why a server stopped with an error, or could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The listener failed.
    #[error("the listener failed")]
    Listener(#[source] std::io::Error),
    /// A path of a door begins with the name of an assistant.
    // Checked when the server starts, because doors can be mounted after assistants were added.
    #[error(transparent)]
    AssistantName(#[from] AssistantNameError),
    /// Requests were still running when the grace period ended. Their connections were closed.
    #[error("{0} connections did not finish during the shutdown grace period and were closed")]
    ShutdownTimedOut(usize),
}

impl Server {
    /// Creates a server.
    #[must_use]
    pub fn new(memory: Memory, options: ServerOptions) -> Self {
        Self { memory, options, doors: Self::doors(), model: None, embedder: None, assistants: Self::assistants() }
    }

    /// Sets the model that the OpenAI API offers.
    #[must_use]
    pub fn with_model(self, model: Arc<dyn ChatModel>) -> Self {
        Self { model: Some(model), ..self }
    }

    /// Sets the embedder, which contributes to the ranking of recalled messages.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder: Some(embedder), ..self }
    }

    /// Mounts a door in addition to the built-in ones.
    ///
    /// # Errors
    /// `RouteCollision` if a route collides with a route of another door, `TenantCaseMismatch` if a route has no tenant case or a
    /// tenant case has no route.
    pub fn with_door(mut self, door: Door) -> Result<Self, DoorError> {
        if let Some((method, path)) = door.routes_without_cases().into_iter().next() {
            return Err(DoorError::TenantCaseMismatch { door: door.name(), method, path });
        }
        if let Some(RouteInfo { method, path, .. }) = routes::find_collision(&self.doors, &door) {
            return Err(DoorError::RouteCollision { door: door.name(), method, path });
        }
        self.doors.push(door);
        Ok(self)
    }

    /// Returns an empty list of assistants that rejects the first segments of the paths of built-in doors.
    #[must_use]
    pub fn assistants() -> Assistants {
        let assistants = Assistants::default();
        let reserved = assistants.reserve(routes::reserved_names().iter().cloned());
        reserved.expect("an empty list contains no reserved name");
        assistants
    }

    /// Sets the assistants. The list is shared: assistants can be added and replaced while the server runs.
    #[must_use]
    pub fn with_assistants(self, assistants: Assistants) -> Self {
        Self { assistants, ..self }
    }

    /// Returns the built-in doors, which every server has.
    #[must_use]
    pub fn doors() -> Vec<Door> {
        routes::doors()
    }

    /// Returns the routes of the built-in doors.
    #[must_use]
    pub fn routes() -> Vec<RouteInfo> {
        Self::doors().iter().flat_map(Door::routes).collect()
    }

    /// Returns the OpenAPI document of the built-in doors as JSON.
    #[must_use]
    pub fn openapi() -> String {
        operations::document::openapi_json(&Self::doors())
    }

    /// Serves requests until `shutdown` completes. Then finishes the accepted requests, and ends each stream with a final event.
    ///
    /// # Errors
    /// `AssistantName` if a path of a door begins with the name of an assistant, `Listener` if the listener keeps failing,
    /// `ShutdownTimedOut` if requests did not finish within the grace period.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let Self { memory, options, doors, model, embedder, assistants } = self;
        assistants.reserve(routes::first_segments(&doors))?;
        let service = Service::new(memory, options.service_options(), model, embedder, assistants);
        let app = App::new(service, options, doors);
        let sweeper = operations::sweep::start(&app);
        let resuming = app.options().resume_turns.then(|| app.resume_turns());
        let certificate_reload = app.options().tls.clone().map(|tls| tokio::spawn(tls.reload_changes()));
        let router: Router = routes::router(&app);
        let background_tasks = start_background_tasks(&app);
        let result = connections::serve(&app, router, listener, shutdown).await;
        app.stop();
        sweeper.abort();
        resuming.inspect(JoinHandle::abort);
        certificate_reload.inspect(JoinHandle::abort);
        background_tasks.iter().for_each(JoinHandle::abort);
        app.telemetry().flush().await;
        result
    }
}

/// Starts the background tasks of the doors.
fn start_background_tasks(app: &App) -> Vec<JoinHandle<()>> {
    let start = |door: &Door| {
        let (name, app, task) = (door.name(), app.clone(), door.start_background_task(app)?);
        Some(tokio::spawn(async move {
            let _guard = app.delay_shutdown();
            task.await;
            if !app.is_stopping() {
                tracing::error!(door = name, "the background task of a door ended while the server is running");
            }
        }))
    };
    app.doors().iter().filter_map(start).collect()
}

/// The address of a client.
pub(crate) type Peer = SocketAddr;
