use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::FromRef;
use threadkeep::Scope;
use threadkeep_service::{GuessLimiter, Quota, RateLimit, Service, ServiceOptions, TelemetryOptions, TokenIssuer};

use crate::compat::access::SharedKey;
use crate::door::Door;
use crate::live::encoding::UpdateCache;
use crate::operations::document;
use crate::security::local::LocalAccess;
use crate::tls::Tls;

/// Options of a [`crate::Server`].
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The scope of local callers, which are admitted as long as no key has ever been created. Default: the user `me` of the
    /// tenant `local`.
    pub local_scope: Scope,
    /// Who may call as long as no key has ever been created. Default: no one.
    pub local_access: LocalAccess,
    /// Maximum size of a request body in bytes. Default: 20 MiB, enough for the largest commit.
    pub body_bytes: usize,
    /// Time limit for receiving the headers of a request, and a separate one for its body. Default: 30 s.
    pub read_timeout: Duration,
    /// Time limit for an action; streams and calls of models are exempt. Default: 60 s.
    pub action_timeout: Duration,
    /// How long a write to a connection may stall before the connection is closed. Default: 60 s.
    pub write_timeout: Duration,
    /// Interval of heartbeats on an idle stream. Default: 15 s.
    pub heartbeat: Duration,
    /// How long a subscriber may lag behind before its stream is ended. Default: 10 s.
    pub slow_reader: Duration,
    /// Shutdown grace period: how long accepted requests may take to finish. Default: 30 s.
    pub grace: Duration,
    /// Maximum number of open connections; further ones wait to be accepted. Default: 10,000.
    pub connections: usize,
    /// Issuers of tokens that are accepted in addition to keys. If there are any, every caller needs credentials. Default: none.
    pub token_issuers: Vec<TokenIssuer>,
    /// Requests per minute, unless a key has its own limit. All local callers share one limit, as do all clients of the shared
    /// key. Default: unlimited; 600 for the shared key.
    pub rate_limit: Option<RateLimit>,
    /// The key that all clients of the compatibility endpoints share. Without one, these endpoints require the same credentials
    /// as all others. Default: none.
    pub shared_key: Option<SharedKey>,
    /// Requests per UTC day, unless a key has its own quota; shared as `rate_limit` is. Default: unlimited; 100,000 for the
    /// shared key.
    pub quota: Option<Quota>,
    /// The certificate for TLS. Without one, connections are not encrypted, for use behind a proxy. Default: none.
    pub tls: Option<Tls>,
    /// Export of traces. Default: none.
    pub telemetry: Option<TelemetryOptions>,
    /// How often expired data is swept from the store; `None` disables sweeping by this server. Default: 10 minutes.
    pub sweep_every: Option<Duration>,
    /// Whether interrupted turns of the served assistants are resumed automatically, including those of other instances.
    /// Default: true.
    pub resume_turns: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            local_scope: Scope::user("local", "me").expect("both names are names"),
            local_access: LocalAccess::Disabled,
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
    /// Returns the options of the service.
    pub(crate) fn service_options(&self) -> ServiceOptions {
        let Self { token_issuers, rate_limit, quota, grace, telemetry, .. } = self.clone();
        ServiceOptions { token_issuers, rate_limit, quota, grace, telemetry }
    }
}

/// The shared state of all actions of [`Door`]s: the [`Service`] and what HTTP needs in addition. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    service: Service,
    options: ServerOptions,
    doors: Vec<Door>,
    /// The OpenAPI document of the doors, generated on first use.
    document: OnceLock<String>,
    shared_key_guesses: GuessLimiter,
    local_guesses: GuessLimiter,
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
        let inner = Inner {
            service,
            options,
            doors,
            document: OnceLock::new(),
            shared_key_guesses: GuessLimiter::default(),
            local_guesses: GuessLimiter::default(),
            update_cache: UpdateCache::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the service, which does not depend on HTTP.
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

    /// Returns the canonical path of a route. Any path that is not an alias is canonical.
    pub(crate) fn canonical<'a>(&'a self, route: &'a str) -> &'a str {
        let mut aliases = self.inner.doors.iter().flat_map(|door| &door.aliases);
        aliases.find(|alias| alias.path == route).map_or(route, |alias| alias.canonical)
    }

    /// Returns the OpenAPI document of the doors.
    pub(crate) fn document(&self) -> &str {
        self.inner.document.get_or_init(|| document::text(&self.inner.doors))
    }

    /// Returns the counters of wrong guesses at the shared key.
    pub(crate) fn shared_key_guesses(&self) -> &GuessLimiter {
        &self.inner.shared_key_guesses
    }

    /// Returns the counters of wrong guesses at the local token.
    pub(crate) fn local_guesses(&self) -> &GuessLimiter {
        &self.inner.local_guesses
    }

    pub(crate) fn update_cache(&self) -> &UpdateCache {
        &self.inner.update_cache
    }
}
