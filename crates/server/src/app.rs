use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::FromRef;
use threadkeep::Scope;
use threadkeep_service::{Guesses, Quota, RateLimit, Service, ServiceOptions, TelemetryOptions, TokenIssuer};

use crate::compat::access::SharedKey;
use crate::door::Door;
use crate::live::encoding::UpdateCache;
use crate::operations::document;
use crate::security::local::LocalAccess;
use crate::tls::Tls;

/// How a [`crate::Server`] behaves.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// On whose behalf callers act while no key was ever made. Default: the user `me` of the tenant `local`.
    pub local_scope: Scope,
    /// Who may call while no key was ever made. Default: nobody.
    pub local_access: LocalAccess,
    /// Bytes of a request's body at most. Default: 20 MiB, which holds the largest commit.
    pub body_bytes: usize,
    /// How long a client may take to send headers, and again to send a body. Default: 30 s.
    pub read_timeout: Duration,
    /// How long an action may take, streams and models left out. Default: 60 s.
    pub action_timeout: Duration,
    /// How long a connection may take nothing of what is sent to it, before it is cut. Default: 60 s.
    pub write_timeout: Duration,
    /// How often a silent stream shows that it lives. Default: 15 s.
    pub heartbeat: Duration,
    /// How long a subscriber may be behind before its stream ends. Default: 10 s.
    pub slow_reader: Duration,
    /// How long requests that were accepted may take to finish once the server is asked to stop. Default: 30 s.
    pub grace: Duration,
    /// Connections at a time; others wait to be accepted. Default: 10,000.
    pub connections: usize,
    /// Whose tokens are taken beside keys. With any, nobody calls without credentials. Default: nobody's.
    pub token_issuers: Vec<TokenIssuer>,
    /// Requests that a key without a limit of its own may make in a minute; all programs of this machine together, where
    /// none is needed; and all clients of the shared key together. Default: no bound, 600 for the shared key.
    pub rate_limit: Option<RateLimit>,
    /// What clients of the documents' endpoints show, as all of them share it. Without one these are open as all other
    /// routes are. Default: none.
    pub shared_key: Option<SharedKey>,
    /// Requests that a key without a quota of its own may make in a day of UTC, and the others as with `rate_limit`. Default:
    /// no bound, 100,000 for the shared key.
    pub quota: Option<Quota>,
    /// Encrypts connections; none leaves that to a proxy. Default: none.
    pub tls: Option<Tls>,
    /// Where traces go. Default: nowhere.
    pub telemetry: Option<TelemetryOptions>,
    /// How often what is over is swept out of the store; `None` leaves that to others. Default: 10 minutes.
    pub sweep_every: Option<Duration>,
    /// Whether turns that were cut off, here or elsewhere, are gone on with by themselves, where their assistants are served.
    /// Default: yes.
    pub resume_turns: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            local_scope: Scope::user("local", "me").expect("both names are names"),
            local_access: LocalAccess::Nobody,
            body_bytes: 20 * 1024 * 1024,
            read_timeout: Duration::from_secs(30),
            action_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            heartbeat: Duration::from_secs(15),
            slow_reader: Duration::from_secs(10),
            grace: Duration::from_secs(30),
            connections: 10_000,
            token_issuers: Vec::new(),
            rate_limit: None,
            shared_key: None,
            quota: None,
            tls: None,
            telemetry: None,
            sweep_every: Some(Duration::from_secs(600)),
            resume_turns: true,
        }
    }
}

impl ServerOptions {
    /// What of it no door is without.
    pub(crate) fn of_service(&self) -> ServiceOptions {
        let Self { token_issuers, rate_limit, quota, grace, telemetry, .. } = self.clone();
        ServiceOptions { token_issuers, rate_limit, quota, grace, telemetry }
    }
}

/// What every action has at hand: the state of the routes of a [`Door`]. It is the [`Service`], and what HTTP needs beside it.
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct App {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    service: Service,
    options: ServerOptions,
    doors: Vec<Door>,
    /// The OpenAPI document of the doors, once it was asked for.
    document: OnceLock<String>,
    guesses: Guesses,
    local_guesses: Guesses,
    update_cache: UpdateCache,
}

impl Deref for App {
    type Target = Service;

    fn deref(&self) -> &Service {
        self.service()
    }
}

impl FromRef<App> for Service {
    fn from_ref(app: &App) -> Self {
        app.service().clone()
    }
}

impl App {
    pub(crate) fn new(service: Service, options: ServerOptions, doors: Vec<Door>) -> Self {
        let (guesses, local_guesses, update_cache) = (Guesses::default(), Guesses::default(), UpdateCache::default());
        let document = OnceLock::new();
        Self { inner: Arc::new(Inner { service, options, doors, document, guesses, local_guesses, update_cache }) }
    }

    /// What does not know that it is asked over HTTP.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.inner.service
    }

    pub(crate) fn options(&self) -> &ServerOptions {
        &self.inner.options
    }

    pub(crate) fn doors(&self) -> &[Door] {
        &self.inner.doors
    }

    /// Returns the canonical path of a route, which may be an alias.
    pub(crate) fn canonical<'a>(&'a self, route: &'a str) -> &'a str {
        let mut aliases = self.inner.doors.iter().flat_map(|door| &door.aliases);
        aliases.find(|alias| alias.path == route).map_or(route, |alias| alias.canonical)
    }

    /// The OpenAPI document of the doors.
    pub(crate) fn document(&self) -> &str {
        self.inner.document.get_or_init(|| document::text(&self.inner.doors))
    }

    /// Wrong guesses of the shared key.
    pub(crate) fn guesses(&self) -> &Guesses {
        &self.inner.guesses
    }

    /// Wrong guesses of the token of this machine's user.
    pub(crate) fn local_guesses(&self) -> &Guesses {
        &self.inner.local_guesses
    }

    pub(crate) fn update_cache(&self) -> &UpdateCache {
        &self.inner.update_cache
    }
}
