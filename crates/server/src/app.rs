use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::FromRef;
use threadkeep::Scope;
use threadkeep_service::webhooks::WebhookOptions;
use threadkeep_service::{GuessLimiter, Quota, RateLimit, Service, ServiceOptions, TelemetryOptions, TrustedIssuer};
use tokio::sync::Semaphore;

use crate::compat::access::SharedKey;
use crate::door::Door;
use crate::live::encoding::UpdateCache;
use crate::live::notices::NoticePollers;
use crate::operations::document;
use crate::page::Page;
use crate::security::local::LocalAccess;
use crate::tls::Tls;

/// The maximum number of uploaded documents that are processed at the same time.
const CONCURRENT_UPLOADS: usize = 4;

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
    /// Time limit for receiving the headers of a request, and again for receiving its body. Default: 30 s.
    pub read_timeout: Duration,
    /// Time limit for an action. Actions that stream or call models are exempt. Default: 60 s.
    pub action_timeout: Duration,
    /// How long a write to a connection may stall before the connection is closed. Default: 60 s.
    pub write_timeout: Duration,
    /// Time between heartbeats on an idle stream. Default: 15 s.
    pub heartbeat: Duration,
    /// How long the head of a streamed answer is held back until the model sends something, so that a failure before that gets
    /// its own status. Default: 10 s.
    pub stream_head: Duration,
    /// Whether the OpenAI API rejects model names that it does not list. Otherwise the server's model answers requests for any
    /// model. Default: false.
    pub strict_models: bool,
    /// How long the response to an upload waits until the document is processed. Default: 5 s.
    pub upload_wait: Duration,
    /// The origins of web pages that may call this server from a browser, such as `https://app.example`. Their pages can sign in
    /// with short-lived tokens. Default: none.
    pub browser_origins: Vec<String>,
    /// How long a subscriber may lag behind before its stream is ended. Default: 10 s.
    pub slow_reader: Duration,
    /// Shutdown grace period: how long accepted requests may take to finish. Default: 30 s.
    pub grace: Duration,
    /// Maximum number of open connections. Further connections wait to be accepted. Default: 10,000.
    pub connections: usize,
    /// Issuers of tokens that are accepted in addition to keys. If there are any, every caller needs credentials. Default: none.
    pub token_issuers: Vec<TrustedIssuer>,
    /// Requests per minute, unless a key has its own limit. All local callers share one limit, as do all clients of the shared
    /// key. Default: unlimited; 600 for the shared key.
    pub rate_limit: Option<RateLimit>,
    /// The key that all clients of the compatibility endpoints share. Without a shared key, these endpoints require the same
    /// credentials as all other endpoints. Default: none.
    pub shared_key: Option<SharedKey>,
    /// Requests per UTC day, unless a key has its own quota. Callers share the quota as they share `rate_limit`. Default:
    /// unlimited; 100,000 for the shared key.
    pub quota: Option<Quota>,
    /// The certificate for TLS. Without a certificate, connections are not encrypted, which is intended for use behind a proxy.
    /// Default: none.
    pub tls: Option<Tls>,
    /// Export of traces. Default: none.
    pub telemetry: Option<TelemetryOptions>,
    /// How often expired data is swept, that is, deleted from the store. With `None`, this server does not sweep. Default: 10
    /// minutes.
    pub sweep_every: Option<Duration>,
    /// Whether this server automatically resumes interrupted turns of its assistants, including turns that other instances
    /// started. Default: true.
    pub resume_turns: bool,
    /// How webhooks are sent.
    pub webhooks: WebhookOptions,
    /// The page at `/`. Default: none; `/` then shows the chat page of the server's assistant, or a plain page if there are
    /// several.
    pub page: Option<Page>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            local_scope: Scope::user("local", "me").expect("both names are valid"),
            local_access: LocalAccess::Disabled,
            body_bytes: 20 * 1024 * 1024,
            read_timeout: Duration::from_secs(30),
            action_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            heartbeat: Duration::from_secs(15),
            stream_head: Duration::from_secs(10),
            strict_models: false,
            upload_wait: Duration::from_secs(5),
            browser_origins: Vec::new(),
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
            webhooks: WebhookOptions::default(),
            page: None,
        }
    }
}

impl ServerOptions {
    /// Returns the options of the service.
    pub(crate) fn service_options(&self) -> ServiceOptions {
        let Self { token_issuers, rate_limit, quota, grace, telemetry, webhooks, .. } = self.clone();
        ServiceOptions { token_issuers, rate_limit, quota, grace, telemetry, webhooks }
    }
}

/// The state that all actions of [`Door`]s share: the [`Service`], and the state that only HTTP needs. Cheap to clone.
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
    openapi_json: OnceLock<String>,
    shared_key_guesses: GuessLimiter,
    local_guesses: GuessLimiter,
    update_cache: UpdateCache,
    notice_pollers: NoticePollers,
    upload_permits: Semaphore,
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
            openapi_json: OnceLock::new(),
            shared_key_guesses: GuessLimiter::default(),
            local_guesses: GuessLimiter::default(),
            update_cache: UpdateCache::default(),
            notice_pollers: NoticePollers::default(),
            upload_permits: Semaphore::new(CONCURRENT_UPLOADS),
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

    /// Returns the canonical path of a route. Every path that is not an alias is canonical.
    pub(crate) fn canonical_path<'a>(&'a self, route: &'a str) -> &'a str {
        let mut aliases = self.inner.doors.iter().flat_map(|door| &door.aliases);
        aliases.find(|alias| alias.path == route).map_or(route, |alias| alias.canonical)
    }

    /// Returns the OpenAPI document of the doors as JSON.
    pub(crate) fn openapi_json(&self) -> &str {
        self.inner.openapi_json.get_or_init(|| document::openapi_json(&self.inner.doors))
    }

    /// Returns the limiter of wrong guesses at the shared key.
    pub(crate) fn shared_key_guesses(&self) -> &GuessLimiter {
        &self.inner.shared_key_guesses
    }

    /// Returns the limiter of wrong guesses at the local token.
    pub(crate) fn local_guesses(&self) -> &GuessLimiter {
        &self.inner.local_guesses
    }

    /// Returns the permits to process uploaded documents.
    pub(crate) fn upload_permits(&self) -> &Semaphore {
        &self.inner.upload_permits
    }

    pub(crate) fn notice_pollers(&self) -> &NoticePollers {
        &self.inner.notice_pollers
    }

    pub(crate) fn update_cache(&self) -> &UpdateCache {
        &self.inner.update_cache
    }
}
