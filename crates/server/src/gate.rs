//! What stands before each action: who may call it, how long it may take, and in whose terms errors are told.
//!
//! Its layers are one, and it copies pointers for a request where a stack of axum's own layers copies each other.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use threadkeep_service::{Act, KeyRole};
use tower::{Layer, Service, ServiceExt};

use crate::app::App;
use crate::compat::access::admit;
use crate::door::{Need, Rule, Time, Wire};
use crate::edge::{Answered, RequestId, edge};
use crate::limits;
use crate::security::authenticate::{authenticate, recognise};

/// Stands before the actions of a route.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    app: App,
    rule: Rule,
    wire: Wire,
}

impl Gate {
    pub(crate) fn new(app: &App, rule: Rule, wire: Wire) -> Self {
        Self { app: app.clone(), rule, wire }
    }
}

impl Layer<Route> for Gate {
    type Service = Gated;

    fn layer(&self, route: Route) -> Gated {
        let Self { app, rule, wire } = self.clone();
        Gated(Arc::new(Guarded { app, rule, wire, route }))
    }
}

/// An action behind its gate. Cheap to clone, as it is for each request.
#[derive(Clone, Debug)]
pub(crate) struct Gated(Arc<Guarded>);

#[derive(Debug)]
struct Guarded {
    app: App,
    rule: Rule,
    wire: Wire,
    route: Route,
}

impl Service<Request> for Gated {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let guarded = Arc::clone(&self.0);
        Box::pin(async move {
            let answering = |request, id| guarded.answer(request, id);
            Ok(edge(&guarded.app, guarded.wire, request, answering).await)
        })
    }
}

impl Guarded {
    async fn answer(&self, request: Request, id: RequestId) -> Answered {
        let next = Next { guarded: self, id };
        match &self.rule.need {
            Need::Nothing => next.run(request).await.into(),
            Need::Role(role) => authenticate(&self.app, *role, request, next).await,
            Need::Shared(role) => admit(&self.app, *role, request, next).await,
            // Boxed: others do not carry what few need.
            Need::Recognised(role, by) => Box::pin(recognise(&self.app, *role, by.as_ref(), request, next)).await,
        }
    }
}

/// The action, for a caller who was let in.
pub(crate) struct Next<'a> {
    guarded: &'a Guarded,
    /// What the request is called.
    pub(crate) id: RequestId,
}

impl Next<'_> {
    pub(crate) async fn run(self, request: Request) -> Response {
        let Guarded { app, rule, route, .. } = self.guarded;
        // It stays where it is: what waits for it would be as large once more.
        let acting = std::pin::pin!(async { route.clone().oneshot(request).await.into_response() });
        match rule.time {
            Time::Bounded => limits::bounded_time(app, acting).await,
            Time::Own => limits::own_time(app, acting).await,
        }
    }

    /// What a request is going to do, where that is written down.
    pub(crate) fn act(&self, role: KeyRole, request: &Request) -> Option<Act> {
        let is_act = self.guarded.rule.is_act || matches!(role, KeyRole::Admin | KeyRole::Approve);
        if !is_act || matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        let route =
            request.extensions().get::<MatchedPath>().map_or("", |route| self.guarded.app.canonical(route.as_str()));
        let path = request.uri().path();
        Some(Act {
            act: format!("{} {route}", request.method()),
            target: (path != route).then(|| named_by_id(path, route)),
            request_id: Some(self.id.as_str().to_owned()),
        })
    }
}

/// A path without what callers name as they like: of what varies in its route ids alone are kept.
fn named_by_id(path: &str, route: &str) -> String {
    let is_kept = |part: &str, of_route: &str| part == of_route || part.parse::<threadkeep::ThreadId>().is_ok();
    let parts = path.split('/').zip(route.split('/'));
    let parts = parts.map(|(part, of_route)| if is_kept(part, of_route) { part } else { of_route });
    parts.collect::<Vec<_>>().join("/")
}
