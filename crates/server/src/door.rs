//! What the server mounts: a [`Door`] is one surface as one value. Its routes come each with what a caller needs, how long it may
//! take and in whose terms errors are written; with it come the cases that hold its routes against other tenants and users.
//!
//! The server's own surfaces are doors as any other is: nothing here knows one by name.

mod cases;
mod wire;

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
pub use cases::{Owned, Probe, TenantCase};
pub use wire::Wire;

/// Who may call a route.
#[derive(Clone, Debug)]
pub(crate) enum Need {
    /// Anyone who reaches the server.
    Nothing,
    /// A caller with a role.
    Role(KeyRole),
    /// A caller with a role, or with the key that clients of the documents' endpoints share.
    Shared(KeyRole),
    /// A sender with a role, whom the door recognises.
    Recognised(KeyRole, Arc<dyn Recognise>),
}

/// Recognises who sent a request without a key: by a signature over the bytes of its body, for example.
#[async_trait]
pub trait Recognise: fmt::Debug + Send + Sync {
    /// Says who sent a request, from its head and from its body as it came. The action finds the same bytes.
    ///
    /// # Errors
    /// Why the sender is not recognised, `Unauthenticated` for most.
    async fn sender(&self, service: &Service, head: &Parts, body: &Bytes) -> Result<Sender, ApiError>;
}

/// How long an action may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    Bounded,
    /// It ends by itself: it streams, or waits for a model.
    Own,
}

/// What a route demands. The server's limits hold for every route.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(crate) need: Need,
    pub(crate) time: Time,
    pub(crate) is_act: bool,
}

impl Rule {
    /// Anyone who reaches the server may call.
    #[must_use]
    pub const fn open() -> Self {
        Self::of(Need::Nothing)
    }

    /// A caller with a role may call. What changes something and needs an administrator or an approver is written to the audit
    /// log before it is done.
    #[must_use]
    pub const fn role(role: KeyRole) -> Self {
        Self::of(Need::Role(role))
    }

    /// As [`Rule::role`], and whoever shows the key that clients of the documents' endpoints share.
    #[must_use]
    pub const fn shared(role: KeyRole) -> Self {
        Self::of(Need::Shared(role))
    }

    /// A sender with a role may call, whom the door recognises by itself. Nobody else may, with a key or without.
    #[must_use]
    pub fn recognised(role: KeyRole, by: Arc<dyn Recognise>) -> Self {
        Self::of(Need::Recognised(role, by))
    }

    const fn of(need: Need) -> Self {
        Self { need, time: Time::Bounded, is_act: false }
    }

    /// The action ends by itself, as it streams or waits for a model: it is not cut after the time that others have.
    #[must_use]
    pub fn own_time(self) -> Self {
        Self { time: Time::Own, ..self }
    }

    /// The action is written to the audit log, whatever role it needs.
    #[must_use]
    pub fn act(self) -> Self {
        Self { is_act: true, ..self }
    }

    fn needed_role(&self) -> Option<KeyRole> {
        match &self.need {
            Need::Nothing => None,
            Need::Role(role) | Need::Shared(role) | Need::Recognised(role, _) => Some(*role),
        }
    }
}

/// A route, as a test or an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteInfo {
    /// The method, in capitals.
    pub method: String,
    /// The path, with `{name}` for what varies.
    pub path: String,
    /// The role that a caller needs; `None` where anyone may call.
    pub role: Option<KeyRole>,
}

/// One surface of a server. Cheap enough to make again whenever its list is wanted.
#[derive(Clone)]
pub struct Door {
    name: &'static str,
    pub(crate) wire: Wire,
    pub(crate) routes: Vec<Route>,
    pub(crate) aliases: Vec<Alias>,
    listener: Option<Listener>,
    cases: fn(&Owned) -> Vec<TenantCase>,
}

/// What a door does beside its routes until the service stops.
type Listener = Arc<dyn Fn(Service) -> BoxFuture<'static, ()> + Send + Sync>;

/// A deprecated path, which has the actions of another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alias {
    pub(crate) path: &'static str,
    /// The path of a route of the same door, with the same names for what varies.
    pub(crate) canonical: &'static str,
}

/// A path of a door with its actions.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) rule: Rule,
    pub(crate) actions: UtoipaMethodRouter<App>,
}

impl Route {
    fn infos(&self) -> impl Iterator<Item = RouteInfo> {
        let role = self.rule.needed_role();
        self.actions.1.paths.iter().flat_map(move |(path, item)| {
            let operations = [
                ("GET", &item.get),
                ("POST", &item.post),
                ("PUT", &item.put),
                ("PATCH", &item.patch),
                ("DELETE", &item.delete),
            ];
            let methods = operations.into_iter().filter(|(_, operation)| operation.is_some());
            methods.map(move |(method, _)| RouteInfo { method: method.to_owned(), path: path.clone(), role })
        })
    }

    /// Its paths, with `{name}` for what varies.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &String> {
        self.actions.1.paths.keys()
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("name", &self.name).field("routes", &self.routes()).finish_non_exhaustive()
    }
}

impl Door {
    /// Makes a door without a route, whose errors are written as the server's own are.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            wire: Wire::default(),
            routes: Vec::new(),
            aliases: Vec::new(),
            listener: None,
            cases: |_| Vec::new(),
        }
    }

    /// Writes the errors of its routes in the terms of another wire.
    #[must_use]
    pub fn wire(self, wire: Wire) -> Self {
        Self { wire, ..self }
    }

    /// Adds the actions of a path, as `utoipa_axum::routes!` gathers them. What each says of itself joins the OpenAPI document.
    #[must_use]
    pub fn route(mut self, rule: Rule, actions: UtoipaMethodRouter<App>) -> Self {
        self.routes.push(Route { rule, actions });
        self
    }

    /// Serves the actions of a path at a deprecated path too. Permissions and limits are those of the canonical path, which
    /// logs, metrics and traces name.
    #[must_use]
    pub(crate) fn alias(mut self, path: &'static str, canonical: &'static str) -> Self {
        self.aliases.push(Alias { path, canonical });
        self
    }

    /// Runs a task for as long as the server serves: what holds a connection of its own, or reads lines. It ends once
    /// [`Service::stopped`] does, and is waited for until the grace is over.
    #[must_use]
    pub fn listener<F>(self, listen: impl Fn(Service) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self { listener: Some(Arc::new(move |service| Box::pin(listen(service)))), ..self }
    }

    /// Says how each of its routes is asked for what somebody owns. Every route needs a case.
    #[must_use]
    pub fn cases(self, cases: fn(&Owned) -> Vec<TenantCase>) -> Self {
        Self { cases, ..self }
    }

    /// What it runs beside its routes, begun; `None` where it has no such task.
    pub(crate) fn listen(&self, service: &Service) -> Option<BoxFuture<'static, ()>> {
        self.listener.as_ref().map(|listen| listen(service.clone()))
    }

    /// What it is called in the log.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its routes, in the order in which they were added. Aliases are left out.
    #[must_use]
    pub fn routes(&self) -> Vec<RouteInfo> {
        self.routes.iter().flat_map(Route::infos).collect()
    }

    /// Its routes, and again each that has an alias, with the path of that.
    pub(crate) fn routes_and_aliases(&self) -> Vec<RouteInfo> {
        let mut routes = self.routes();
        for Alias { path, canonical } in &self.aliases {
            let of_alias = routes.iter().filter(|route| route.path == *canonical);
            let of_alias: Vec<_> =
                of_alias.map(|route| RouteInfo { path: (*path).to_owned(), ..route.clone() }).collect();
            routes.extend(of_alias);
        }
        routes
    }

    /// How its routes are asked for what a user owns.
    #[must_use]
    pub fn tenant_cases(&self, owned: &Owned) -> Vec<TenantCase> {
        (self.cases)(owned)
    }

    /// Routes without a case, and cases without a route, each as a method and a path. A door that is complete has none.
    #[must_use]
    pub fn uncased(&self) -> Vec<(String, String)> {
        let named = |(method, path): (&str, &str)| (method.to_owned(), path.to_owned());
        let cases = self.tenant_cases(&Owned::nobody());
        let cased: BTreeSet<_> = cases.iter().map(|case| named(case.route)).collect();
        let routes: BTreeSet<_> = self.routes().into_iter().map(|route| (route.method, route.path)).collect();
        routes.symmetric_difference(&cased).cloned().collect()
    }
}
