//! The middleware of each route, which applies the access rule and the time limit, and runs the action within
//! [`crate::middleware`].
//!
//! All of this is in one layer, which clones one `Arc` for each request. A stack of axum layers would clone every layer.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use threadkeep_service::{AuditAction, KeyRole};
use tower::{Layer, Service, ServiceExt};

use crate::app::App;
use crate::compat::access::admit;
use crate::door::{ErrorFormat, RequiredAccess, Rule, TimeLimit};
use crate::limits;
use crate::middleware::{LoggedResponse, RequestId, handle};
use crate::security::authenticate::{authenticate, authenticate_sender};

/// Wraps the actions of a route.
#[derive(Clone, Debug)]
pub(crate) struct RouteLayer {
    app: App,
    rule: Rule,
    error_format: ErrorFormat,
}

impl RouteLayer {
    pub(crate) fn new(app: &App, rule: Rule, error_format: ErrorFormat) -> Self {
        Self { app: app.clone(), rule, error_format }
    }
}

impl Layer<Route> for RouteLayer {
    type Service = RouteService;

    fn layer(&self, route: Route) -> RouteService {
        let Self { app, rule, error_format } = self.clone();
        RouteService(Arc::new(Inner { app, rule, error_format, route }))
    }
}

/// An action with its middleware. Cheap to clone, because it is cloned for each request.
#[derive(Clone, Debug)]
pub(crate) struct RouteService(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    app: App,
    rule: Rule,
    error_format: ErrorFormat,
    route: Route,
}

impl Service<Request> for RouteService {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let respond = |request, id| inner.respond(request, id);
            Ok(handle(&inner.app, inner.error_format, request, respond).await)
        })
    }
}

impl Inner {
    async fn respond(&self, request: Request, id: RequestId) -> LoggedResponse {
        let next = Next { inner: self, id };
        match &self.rule.required_access {
            RequiredAccess::Anyone => next.run(request).await.into(),
            RequiredAccess::Role(role) => authenticate(&self.app, *role, request, next).await,
            RequiredAccess::Shared(role) => admit(&self.app, *role, request, next).await,
            // Boxed, so that the futures of all other routes stay small.
            RequiredAccess::Sender(role, authenticator) => {
                Box::pin(authenticate_sender(&self.app, *role, authenticator.as_ref(), request, next)).await
            }
        }
    }
}

/// The action of a request, which authentication runs if it admits the caller.
pub(crate) struct Next<'a> {
    inner: &'a Inner,
    pub(crate) id: RequestId,
}

impl Next<'_> {
    pub(crate) async fn run(self, request: Request) -> Response {
        let Inner { app, rule, route, .. } = self.inner;
        // Pinned here, because moving it into another future would double its size.
        let action = std::pin::pin!(async { route.clone().oneshot(request).await.into_response() });
        match rule.time_limit {
            TimeLimit::Action => limits::with_time_limit(app, action).await,
            TimeLimit::None => limits::without_time_limit(app, action).await,
        }
    }

    /// Whether the route accepts a token in the query.
    pub(crate) fn accepts_token_in_query(&self) -> bool {
        self.inner.rule.accepts_token_in_query
    }

    /// Returns the description of a request for the audit log; `None` if the request is not audited.
    pub(crate) fn audit_action(&self, role: KeyRole, request: &Request) -> Option<AuditAction> {
        let is_audited = self.inner.rule.is_audited || matches!(role, KeyRole::Admin | KeyRole::Approve);
        if !is_audited || matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        let route =
            request.extensions().get::<MatchedPath>().map_or("", |route| self.inner.app.canonical_path(route.as_str()));
        let path = request.uri().path();
        Some(AuditAction {
            act: format!("{} {route}", request.method()),
            target: (path != route).then(|| redact_names(path, route)),
            request_id: Some(self.id.as_str().to_owned()),
        })
    }
}

/// Returns a path without names that callers chose: parameters that are not ids are replaced by their placeholders in the route.
fn redact_names(path: &str, route: &str) -> String {
    let is_id = |segment: &str| segment.parse::<threadkeep::ThreadId>().is_ok();
    let segments = path.split('/').zip(route.split('/'));
    let segments = segments.map(|(segment, placeholder)| if is_id(segment) { segment } else { placeholder });
    segments.collect::<Vec<_>>().join("/")
}
