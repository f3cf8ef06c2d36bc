//! What stands before each action: who may call it, how long it may take, and in whose terms errors are told.
//!
//! Its layers are one, and it copies pointers for a request where a stack of axum's own layers copies each other.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use tower::{Layer, Service, ServiceExt};

use crate::app::App;
use crate::compat::access::admit;
use crate::edge::{Answered, RequestId, edge};
use crate::security::authenticate::authenticate;
use crate::security::keys::KeyRole;
use crate::{limits, openai};

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Anyone who reaches the server.
    Nothing,
    /// A caller with a role.
    Role(KeyRole),
    /// A caller with a role, or with the key that clients of the documents' endpoints share.
    Shared(KeyRole),
}

/// How long an action may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    Bounded,
    /// It ends by itself: it streams, or waits for a model.
    Own,
}

/// In whose terms a client is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Ours,
    OpenAi,
}

/// What a route demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) need: Need,
    pub(crate) time: Time,
    pub(crate) wire: Wire,
}

/// Stands before the actions of a route.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    app: App,
    rule: Rule,
}

impl Gate {
    pub(crate) fn new(app: &App, rule: Rule) -> Self {
        Self { app: app.clone(), rule }
    }
}

impl Layer<Route> for Gate {
    type Service = Gated;

    fn layer(&self, route: Route) -> Gated {
        Gated(Arc::new(Guarded { app: self.app.clone(), rule: self.rule, route }))
    }
}

/// An action behind its gate. Cheap to clone, as it is for each request.
#[derive(Clone, Debug)]
pub(crate) struct Gated(Arc<Guarded>);

#[derive(Debug)]
struct Guarded {
    app: App,
    rule: Rule,
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
            Ok(edge(&guarded.app, request, answering).await)
        })
    }
}

impl Guarded {
    async fn answer(&self, request: Request, id: RequestId) -> Answered {
        let next = Next { guarded: self, id };
        match self.rule.need {
            Need::Nothing => next.run(request).await.into(),
            Need::Role(role) => authenticate(&self.app, role, request, next).await,
            Need::Shared(role) => admit(&self.app, role, request, next).await,
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
        let Guarded { app, rule, route } = self.guarded;
        // It stays where it is: what waits for it would be as large once more.
        let acting = std::pin::pin!(async { route.clone().oneshot(request).await.into_response() });
        let response = match rule.time {
            Time::Bounded => limits::bounded_time(app, acting).await,
            Time::Own => limits::own_time(app, acting).await,
        };
        match rule.wire {
            Wire::Ours => response,
            Wire::OpenAi => openai::in_its_terms(response),
        }
    }
}
