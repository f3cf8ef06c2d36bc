//! [`Door`], a value that describes one HTTP API of the server. A door consists of routes, each with its access rule and time
//! limit, an error format, and the requests that test each route for isolation between tenants and users.
//!
//! The built-in APIs are doors like any other; nothing here depends on a particular API.

mod cases;
mod error_format;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use axum::http::request::Parts;
use bytes::Bytes;
use futures::future::BoxFuture;
use threadkeep_service::{KeyRole, Sender, Service};
use utoipa_axum::router::UtoipaMethodRouter;

use crate::app::App;
use crate::error::ApiError;
pub use cases::{OwnedIds, Probe, TenantCase};
pub use error_format::ErrorFormat;

/// The callers that a route admits.
#[derive(Clone, Debug)]
pub(crate) enum RequiredAccess {
    /// Any client, even without credentials.
    Anyone,
    /// A caller with a role.
    Role(KeyRole),
    /// A caller with a role, or with the shared key of the compatibility endpoints.
    Shared(KeyRole),
    /// A sender with a role, whom the door authenticates.
    Sender(KeyRole, Arc<dyn SenderAuthenticator>),
}

/// Authenticates the senders of requests without a key, for example by a signature over the body.
#[async_trait]
pub trait SenderAuthenticator: fmt::Debug + Send + Sync {
    /// Returns the sender of a request. `head` is everything except the body; `body` contains the same bytes that the action will
    /// read.
    ///
    /// # Errors
    /// An error, usually with the status 401, if the sender is not authenticated.
    async fn sender(&self, service: &Service, head: &Parts, body: &Bytes) -> Result<Sender, ApiError>;
}

/// The time limit of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// The action has the limit [`crate::ServerOptions::action_timeout`].
    Action,
    /// The action has no limit, because it streams or waits for a model.
    None,
}

/// The access rule of a route. The rate limits and quotas of the server apply to every route as well.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(crate) required_access: RequiredAccess,
    pub(crate) time_limit: TimeLimit,
    pub(crate) is_audited: bool,
    pub(crate) accepts_token_in_query: bool,
}

impl Rule {
    /// Admits any client, even without credentials.
    #[must_use]
    pub const fn open() -> Self {
        Self::of(RequiredAccess::Anyone)
    }

    /// Admits callers with a role. Requests that need the role `Admin` or `Approve` and are neither GET nor HEAD are written to
    /// the audit log before they are executed.
    #[must_use]
    pub const fn role(role: KeyRole) -> Self {
        Self::of(RequiredAccess::Role(role))
    }

    /// Like [`Rule::role`], but also admits clients with the shared key of the compatibility endpoints.
    #[must_use]
    pub const fn shared(role: KeyRole) -> Self {
        Self::of(RequiredAccess::Shared(role))
    }

    /// Admits senders that the door itself authenticates and that have a role. Keys and tokens of the server are not accepted.
    #[must_use]
    pub fn sender(role: KeyRole, authenticator: Arc<dyn SenderAuthenticator>) -> Self {
        Self::of(RequiredAccess::Sender(role, authenticator))
    }

    const fn of(required_access: RequiredAccess) -> Self {
        Self { required_access, time_limit: TimeLimit::Action, is_audited: false, accepts_token_in_query: false }
    }

    /// Exempts the action from the time limit, because it streams or waits for a model.
    #[must_use]
    pub fn without_time_limit(self) -> Self {
        Self { time_limit: TimeLimit::None, ..self }
    }

    /// Also accepts a short-lived token in the query (`token`), because browsers cannot send headers with server-sent events and
    /// WebSockets.
    #[must_use]
    pub(crate) fn with_token_in_query(self) -> Self {
        Self { accepts_token_in_query: true, ..self }
    }

    /// Writes requests to the audit log regardless of the role that they require.
    #[must_use]
    pub fn audited(self) -> Self {
        Self { is_audited: true, ..self }
    }

    fn required_role(&self) -> Option<KeyRole> {
        match &self.required_access {
            RequiredAccess::Anyone => None,
            RequiredAccess::Role(role) | RequiredAccess::Shared(role) | RequiredAccess::Sender(role, _) => Some(*role),
        }
    }
}

/// A description of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteInfo {
    /// The method in upper case.
    pub method: String,
    /// The path, with `{name}` for each parameter.
    pub path: String,
    /// The role that a caller must have; `None` if any client is admitted.
    pub role: Option<KeyRole>,
}

/// One HTTP API of a server.
#[derive(Clone)]
pub struct Door {
    name: &'static str,
    pub(crate) error_format: ErrorFormat,
    pub(crate) routes: Vec<Route>,
    pub(crate) aliases: Vec<Alias>,
    /// Security schemes: the name, and the header that contains the credentials.
    pub(crate) security_schemes: Vec<(&'static str, &'static str)>,
    background_task: Option<BackgroundTask>,
    cases: fn(&OwnedIds) -> Vec<TenantCase>,
}

/// Creates the background task of a door.
type BackgroundTask = Arc<dyn Fn(Service) -> BoxFuture<'static, ()> + Send + Sync>;

/// A deprecated path that serves the actions of another path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alias {
    pub(crate) path: &'static str,
    /// The path of a route of the same door. Both paths have the same parameters.
    pub(crate) canonical: &'static str,
}

/// The actions of one path, with their access rule.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) rule: Rule,
    infos: Vec<RouteInfo>,
    actions: Arc<dyn Fn() -> UtoipaMethodRouter<App> + Send + Sync>,
}

impl Route {
    fn new(rule: Rule, actions: impl Fn() -> UtoipaMethodRouter<App> + Send + Sync + 'static) -> Self {
        let role = rule.required_role();
        let (_, paths, _) = actions();
        let infos = paths.paths.into_iter().flat_map(|(path, item)| {
            let operations = [
                ("GET", item.get),
                ("POST", item.post),
                ("PUT", item.put),
                ("PATCH", item.patch),
                ("DELETE", item.delete),
            ];
            let methods = operations.into_iter().filter(|(_, operation)| operation.is_some());
            methods.map(move |(method, _)| RouteInfo { method: method.to_owned(), path: path.clone(), role })
        });
        Self { rule, infos: infos.collect(), actions: Arc::new(actions) }
    }

    /// Returns the paths of the actions, with `{name}` for each parameter.
    pub(crate) fn paths(&self) -> BTreeSet<&str> {
        self.infos.iter().map(|info| info.path.as_str()).collect()
    }

    /// Creates the actions with their descriptions.
    pub(crate) fn actions(&self) -> UtoipaMethodRouter<App> {
        (self.actions)()
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("name", &self.name).field("routes", &self.routes()).finish_non_exhaustive()
    }
}

impl Door {
    /// Creates a door without routes that uses the default error format.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            error_format: ErrorFormat::default(),
            routes: Vec::new(),
            aliases: Vec::new(),
            security_schemes: Vec::new(),
            background_task: None,
            cases: |_| Vec::new(),
        }
    }

    /// Sets the error format of all routes.
    #[must_use]
    pub fn error_format(self, error_format: ErrorFormat) -> Self {
        Self { error_format, ..self }
    }

    /// Adds the actions of a path, collected by `|| utoipa_axum::routes!(…)`. Their descriptions become part of the OpenAPI document.
    // A function, because the descriptions of all routes take many megabytes and are only needed for the OpenAPI document.
    #[must_use]
    pub fn route(mut self, rule: Rule, actions: impl Fn() -> UtoipaMethodRouter<App> + Send + Sync + 'static) -> Self {
        self.routes.push(Route::new(rule, actions));
        self
    }

    /// Declares a security scheme in the OpenAPI document. `header` is the header that contains the sender's credentials.
    #[must_use]
    pub fn security_scheme(mut self, name: &'static str, header: &'static str) -> Self {
        self.security_schemes.push((name, header));
        self
    }

    /// Also serves the actions of the path `canonical` at a deprecated path. Access rules and limits are the same; logs, metrics
    /// and traces contain the canonical path.
    #[must_use]
    pub(crate) fn alias(mut self, path: &'static str, canonical: &'static str) -> Self {
        self.aliases.push(Alias { path, canonical });
        self
    }

    /// Runs a background task while the server runs, such as a client of a message queue. The task must end when
    /// [`Service::stopped`] completes; the server waits for it until the grace period ends.
    #[must_use]
    pub fn background_task<F>(self, start: impl Fn(Service) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self { background_task: Some(Arc::new(move |service| Box::pin(start(service)))), ..self }
    }

    /// Sets the function that returns the requests that test each route for isolation between tenants. Every route needs a case.
    #[must_use]
    pub fn cases(self, cases: fn(&OwnedIds) -> Vec<TenantCase>) -> Self {
        Self { cases, ..self }
    }

    /// Creates the future of the background task; `None` if the door has no such task.
    pub(crate) fn start_background_task(&self, service: &Service) -> Option<BoxFuture<'static, ()>> {
        self.background_task.as_ref().map(|start| start(service.clone()))
    }

    /// Returns the name of the door, as logs show it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the routes in the order in which they were added, without aliases.
    #[must_use]
    pub fn routes(&self) -> Vec<RouteInfo> {
        self.routes.iter().flat_map(|route| &route.infos).cloned().collect()
    }

    /// Returns the routes, followed by the routes of aliases.
    pub(crate) fn routes_and_aliases(&self) -> Vec<RouteInfo> {
        let mut routes = self.routes();
        for Alias { path, canonical } in &self.aliases {
            let canonical_routes = routes.iter().filter(|route| route.path == *canonical);
            let alias_routes: Vec<_> =
                canonical_routes.map(|route| RouteInfo { path: (*path).to_owned(), ..route.clone() }).collect();
            routes.extend(alias_routes);
        }
        routes
    }

    /// Returns the tenant cases for resources that the tests have created.
    #[must_use]
    pub fn tenant_cases(&self, ids: &OwnedIds) -> Vec<TenantCase> {
        (self.cases)(ids)
    }

    /// Returns the method and path of each route without a case, and of each case without a route. The list is empty if the door is
    /// valid.
    #[must_use]
    pub fn routes_without_cases(&self) -> Vec<(String, String)> {
        let to_owned = |(method, path): (&str, &str)| (method.to_owned(), path.to_owned());
        let cases = self.tenant_cases(&OwnedIds::nonexistent());
        let tested_routes: BTreeSet<_> = cases.iter().map(|case| to_owned(case.route)).collect();
        let routes: BTreeSet<_> = self.routes().into_iter().map(|route| (route.method, route.path)).collect();
        routes.symmetric_difference(&tested_routes).cloned().collect()
    }
}
