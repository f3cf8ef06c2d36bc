use std::sync::{Arc, OnceLock};
use std::time::Duration;

use threadkeep::core::{ChatModel, Embedder};
use threadkeep::{Memory, Scope};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::assistants::Assistants;
use crate::compat::access::SharedKey;
use crate::door::Door;
use crate::live::telling::Tellings;
use crate::operations::document;
use crate::operations::metrics::Metrics;
use crate::security::audit::AuditLog;
use crate::security::guesses::Guesses;
use crate::security::jwt::TokenIssuer;
use crate::security::keys::Keys;
use crate::security::local::LocalAccess;
use crate::security::quota::{Quota, Quotas};
use crate::security::rate::{RateLimit, RateLimits};
use crate::telemetry::{Telemetry, TelemetryOptions, Watch};
use crate::tls::Tls;
use crate::turns::resuming::Resumed;

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

/// What every action has at hand: the state of the routes of a [`Door`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    memory: Memory,
    options: ServerOptions,
    doors: Vec<Door>,
    /// The OpenAPI document of the doors, once it was asked for.
    document: OnceLock<String>,
    keys: Keys,
    rate_limits: RateLimits,
    guesses: Guesses,
    local_guesses: Guesses,
    quotas: Quotas,
    audit: AuditLog,
    watch: Watch,
    model: Option<Arc<dyn ChatModel>>,
    embedder: Option<Arc<dyn Embedder>>,
    assistants: Assistants,
    resumed: Resumed,
    tellings: Tellings,
    /// Since when it is asked to stop.
    stopping: watch::Sender<Option<Instant>>,
}

impl App {
    pub(crate) fn new(
        memory: Memory,
        options: ServerOptions,
        doors: Vec<Door>,
        model: Option<Arc<dyn ChatModel>>,
        embedder: Option<Arc<dyn Embedder>>,
        assistants: Assistants,
    ) -> Self {
        let keys = Keys::new(&memory);
        let (rate_limits, quotas) = (RateLimits::default(), Quotas::default());
        let (audit, watch) = (AuditLog::new(&memory), assistants.watch().clone());
        watch.telemetry.start(options.telemetry.as_ref());
        let model = model.map(|model| watch.model(model));
        let embedder = embedder.map(|embedder| watch.embedder(embedder));
        let stopping = watch::Sender::new(None);
        let inner = Inner {
            memory,
            options,
            doors,
            document: OnceLock::new(),
            keys,
            rate_limits,
            guesses: Guesses::default(),
            local_guesses: Guesses::default(),
            quotas,
            audit,
            watch,
            model,
            embedder,
            assistants,
            resumed: Resumed::new(),
            tellings: Tellings::default(),
            stopping,
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.inner.memory
    }

    pub(crate) fn options(&self) -> &ServerOptions {
        &self.inner.options
    }

    pub(crate) fn doors(&self) -> &[Door] {
        &self.inner.doors
    }

    /// The OpenAPI document of the doors.
    pub(crate) fn document(&self) -> &str {
        self.inner.document.get_or_init(|| document::text(&self.inner.doors))
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.inner.keys
    }

    pub(crate) fn rate_limits(&self) -> &RateLimits {
        &self.inner.rate_limits
    }

    /// Wrong guesses of the shared key.
    pub(crate) fn guesses(&self) -> &Guesses {
        &self.inner.guesses
    }

    /// Wrong guesses of the token of this machine's user.
    pub(crate) fn local_guesses(&self) -> &Guesses {
        &self.inner.local_guesses
    }

    pub(crate) fn quotas(&self) -> &Quotas {
        &self.inner.quotas
    }

    pub(crate) fn audit(&self) -> &AuditLog {
        &self.inner.audit
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.watch.metrics
    }

    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.inner.watch.telemetry
    }

    /// What counts and traces calls.
    pub(crate) fn watch(&self) -> &Watch {
        &self.inner.watch
    }

    /// The model that answers, where one is configured.
    pub(crate) fn model(&self) -> Option<&Arc<dyn ChatModel>> {
        self.inner.model.as_ref()
    }

    pub(crate) fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.inner.embedder.as_ref()
    }

    /// Who can be asked.
    pub(crate) fn assistants(&self) -> &Assistants {
        &self.inner.assistants
    }

    /// The turns that were cut off and that this instance goes on with.
    pub(crate) fn resumed(&self) -> &Resumed {
        &self.inner.resumed
    }

    pub(crate) fn tellings(&self) -> &Tellings {
        &self.inner.tellings
    }

    /// Asks every stream to end.
    pub(crate) fn stop(&self) {
        self.inner.stopping.send_if_modified(|since| {
            let is_first = since.is_none();
            since.get_or_insert_with(Instant::now);
            is_first
        });
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.inner.stopping.borrow().is_some()
    }

    /// Waits until the server is asked to stop.
    pub(crate) async fn stopped(&self) {
        let mut stopping = self.inner.stopping.subscribe();
        // The sender lives as long as this app.
        drop(stopping.wait_for(Option::is_some).await);
    }

    /// Waits until a server that is asked to stop has hardly any time left: whoever still waits is told so.
    pub(crate) async fn out_of_time(&self) {
        self.stopping_for(self.options().grace * 9 / 10).await;
    }

    /// Waits until whoever was told so has had time to hear it: who has not is left behind.
    pub(crate) async fn left_behind(&self) {
        self.stopping_for(self.options().grace * 19 / 20).await;
    }

    async fn stopping_for(&self, time: Duration) {
        self.stopped().await;
        let since = *self.inner.stopping.borrow();
        tokio::time::sleep_until(since.unwrap_or_else(Instant::now) + time).await;
    }
}
