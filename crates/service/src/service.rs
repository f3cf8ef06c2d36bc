use std::sync::Arc;
use std::time::{Duration, Instant};

use threadkeep::core::{ChatModel, Embedder};
use threadkeep::{Memory, Scope, UserId};
use tokio::sync::watch;

use crate::assistants::Assistants;
use crate::audit::{Act, AuditLog, AuditRecord};
use crate::caller::{Caller, Credential, Sender};
use crate::error::{Error, ErrorKind, Result};
use crate::jwt::TokenIssuer;
use crate::keys::{KeyRecord, Keys};
use crate::metrics::Metrics;
use crate::quota::{Quota, Quotas, Uncounted};
use crate::rate::{RateLimit, RateLimits};
use crate::telemetry::{Telemetry, TelemetryOptions, Watch};
use crate::turns::resuming::{self, Resumed};

/// How a [`Service`] behaves.
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// Whose tokens are taken beside keys.
    pub token_issuers: Vec<TokenIssuer>,
    /// Requests that a caller without a limit of its own may make in a minute.
    pub rate_limit: Option<RateLimit>,
    /// Requests that a caller without a quota of its own may make in a day of UTC.
    pub quota: Option<Quota>,
    /// How long what was accepted may take to finish once the service is asked to stop.
    pub grace: Duration,
    /// Where traces go.
    pub telemetry: Option<TelemetryOptions>,
}

/// What every door has at hand. Cheap to clone; all clones are the same.
#[derive(Clone, Debug)]
pub struct Service {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    memory: Memory,
    options: ServiceOptions,
    keys: Keys,
    rate_limits: RateLimits,
    quotas: Quotas,
    audit: AuditLog,
    watch: Watch,
    model: Option<Arc<dyn ChatModel>>,
    embedder: Option<Arc<dyn Embedder>>,
    assistants: Assistants,
    resumed: Resumed,
    /// How many hold the service.
    holds: watch::Sender<usize>,
    /// Since when it is asked to stop.
    stopping: watch::Sender<Option<tokio::time::Instant>>,
}

/// Whoever has one is waited for when the service stops, until the grace is over.
#[derive(Debug)]
pub struct Hold(Arc<Inner>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.holds.send_modify(|holds| *holds -= 1);
    }
}

impl Service {
    /// Makes the service over a memory. The model, the embedder and the assistants are counted and traced.
    #[must_use]
    pub fn new(
        memory: Memory,
        options: ServiceOptions,
        model: Option<Arc<dyn ChatModel>>,
        embedder: Option<Arc<dyn Embedder>>,
        assistants: Assistants,
    ) -> Self {
        let (keys, audit, watch) = (Keys::new(&memory), AuditLog::new(&memory), assistants.watch().clone());
        watch.telemetry.start(options.telemetry.as_ref());
        let inner = Inner {
            memory,
            options,
            keys,
            rate_limits: RateLimits::default(),
            quotas: Quotas::default(),
            audit,
            model: model.map(|model| watch.model(model)),
            embedder: embedder.map(|embedder| watch.embedder(embedder)),
            watch,
            assistants,
            resumed: Resumed::new(),
            holds: watch::Sender::new(0),
            stopping: watch::Sender::new(None),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The conversations.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.inner.memory
    }

    /// The keys of callers.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.inner.keys
    }

    /// What was done that needs an administrator or an approver.
    #[must_use]
    pub fn audit(&self) -> &AuditLog {
        &self.inner.audit
    }

    /// What was counted.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.inner.watch.metrics
    }

    /// Takes spans.
    #[must_use]
    pub fn telemetry(&self) -> &Telemetry {
        &self.inner.watch.telemetry
    }

    /// What counts and traces calls.
    pub(crate) fn watch(&self) -> &Watch {
        &self.inner.watch
    }

    /// The model that answers, where one is configured.
    #[must_use]
    pub fn model(&self) -> Option<&Arc<dyn ChatModel>> {
        self.inner.model.as_ref()
    }

    /// What makes points of words, where it is configured.
    #[must_use]
    pub fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.inner.embedder.as_ref()
    }

    /// Who can be asked.
    #[must_use]
    pub fn assistants(&self) -> &Assistants {
        &self.inner.assistants
    }

    /// The turns that were cut off and that this instance goes on with.
    pub(crate) fn resumed(&self) -> &Resumed {
        &self.inner.resumed
    }
}

/// Callers.
impl Service {
    /// Says who shows a text, as a key or as a token of an issuer, and counts the request. `user` gives the user whom the
    /// request names. `None` for a text that is neither.
    ///
    /// # Errors
    /// `TooMany` over the caller's limits, `Forbidden` for a user for whom the caller does not act, those of the store.
    pub async fn caller_of(
        &self,
        shown: &str,
        user: impl FnOnce() -> Result<Option<UserId>>,
    ) -> Result<Option<Caller>> {
        if let Some(key) = self.keys().find(shown).await? {
            self.count(&key.id, key.rate_limit, key.quota).await?;
            return of_key(&key, user()?).map(Some);
        }
        let now_seconds = self.memory().now().as_millis().div_euclid(1000);
        for issuer in &self.inner.options.token_issuers {
            // Of tokens there are few: what they take is no part of each request.
            if let Some(caller) = Box::pin(issuer.caller(shown, now_seconds)).await {
                return Box::pin(self.of_token(caller, user()?)).await.map(Some);
            }
        }
        Ok(None)
    }

    /// Lets in whom a door knows by itself, and counts the request.
    ///
    /// # Errors
    /// `TooMany` over the limits, those of the store.
    pub async fn admit(&self, sender: Sender) -> Result<Caller> {
        self.count(&sender.name, None, None).await?;
        Ok(sender.into())
    }

    /// Whether nobody calls without a key or a token of an issuer: there is an issuer, or a key was made at some time.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn needs_key(&self) -> Result<bool> {
        Ok(!self.inner.options.token_issuers.is_empty() || self.keys().is_any_known().await?)
    }

    /// A token is one user's, whom a request may repeat; that of the application may name one.
    async fn of_token(&self, caller: Caller, named: Option<UserId>) -> Result<Caller> {
        let is_user_named = matches!(caller.scope, Scope::Tenant(_));
        let scope = match (caller.scope, named) {
            (Scope::User(_, own), Some(named)) if own != named => return Err(other_user()),
            (Scope::Tenant(tenant), Some(user)) => Scope::User(tenant, user),
            (scope, _) => scope,
        };
        let who = match &scope {
            Scope::Tenant(tenant) => format!("token {tenant}"),
            Scope::User(tenant, user) => format!("token {tenant}\n{user}"),
        };
        self.count(&who, None, None).await?;
        Ok(Caller { scope, is_user_named, ..caller })
    }

    /// Counts a request of a caller against what they may make; without limits of their own, against those of all.
    ///
    /// # Errors
    /// `TooMany` with the time to wait, those of the store.
    pub async fn count(&self, who: &str, rate: Option<RateLimit>, quota: Option<Quota>) -> Result<()> {
        let Inner { options, memory, .. } = &*self.inner;
        if let Some(limit) = rate.or(options.rate_limit)
            && let Err(wait) = self.inner.rate_limits.count(who, limit, Instant::now())
        {
            return Err(too_many("rate_limited", "too many requests", wait));
        }
        let Some(quota) = quota.or(options.quota) else { return Ok(()) };
        match Box::pin(self.inner.quotas.count(memory, who, quota)).await {
            Ok(()) => Ok(()),
            Err(Uncounted::Over(wait)) => Err(too_many("quota_exceeded", "the day's requests are used up", wait)),
            Err(Uncounted::Store(error)) => Err(error.into()),
        }
    }

    /// Writes an act of a caller down, does it, and writes down how it ended, as `outcome` says it. What cannot be written
    /// down is not done.
    ///
    /// # Errors
    /// Those of the store, where nothing was done.
    pub async fn audited<T>(
        &self,
        caller: &Caller,
        act: Act,
        doing: impl Future<Output = T>,
        outcome: impl FnOnce(&T) -> String,
    ) -> Result<T> {
        let begun = AuditRecord::begun(caller, act, self.memory().now());
        self.audit().write(&begun).await?;
        let done = doing.await;
        let ended = AuditRecord { at: self.memory().now(), outcome: outcome(&done), ..begun };
        if let Err(error) = self.audit().write(&ended).await {
            tracing::error!(%error, act = ended.act, "how an act ended is not in the audit log");
        }
        Ok(done)
    }
}

/// The end.
impl Service {
    /// Goes on with turns that were cut off, from now on until the service is asked to stop.
    pub fn resume_turns(&self) -> tokio::task::JoinHandle<()> {
        resuming::start(self)
    }

    /// Has the end wait for whoever holds what this gives: for a turn, for what a door was told and does not do yet.
    #[must_use]
    pub fn hold(&self) -> Hold {
        self.inner.holds.send_modify(|holds| *holds += 1);
        Hold(Arc::clone(&self.inner))
    }

    /// Waits until nobody holds the service and no turn is resumed.
    pub async fn released(&self) {
        // The sender lives as long as this service.
        drop(self.inner.holds.subscribe().wait_for(|holds| *holds == 0).await);
        self.resumed().over().await;
    }

    /// Asks everything to end.
    pub fn stop(&self) {
        self.inner.stopping.send_if_modified(|since| {
            let is_first = since.is_none();
            since.get_or_insert_with(tokio::time::Instant::now);
            is_first
        });
    }

    /// Whether it is asked to stop.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.inner.stopping.borrow().is_some()
    }

    /// Waits until it is asked to stop.
    pub async fn stopped(&self) {
        let mut stopping = self.inner.stopping.subscribe();
        // The sender lives as long as this service.
        drop(stopping.wait_for(Option::is_some).await);
    }

    /// Waits until a service that is asked to stop has hardly any time left: whoever still waits is told so.
    pub async fn out_of_time(&self) {
        self.stopping_for(self.inner.options.grace * 9 / 10).await;
    }

    /// Waits until whoever was told so has had time to hear it: who has not is left behind.
    pub async fn shutdown_timed_out(&self) {
        self.stopping_for(self.inner.options.grace * 19 / 20).await;
    }

    async fn stopping_for(&self, time: Duration) {
        self.stopped().await;
        let since = *self.inner.stopping.borrow();
        tokio::time::sleep_until(since.unwrap_or_else(tokio::time::Instant::now) + time).await;
    }
}

fn of_key(key: &KeyRecord, named: Option<UserId>) -> Result<Caller> {
    let KeyRecord { id, tenant, user, roles, .. } = key;
    let scope = match (user, named) {
        (Some(own), Some(named)) if *own != named => return Err(other_user()),
        (Some(user), _) => Scope::User(tenant.clone(), user.clone()),
        (None, Some(user)) => Scope::User(tenant.clone(), user),
        (None, None) => Scope::Tenant(tenant.clone()),
    };
    let credential = Credential::Key(id.clone());
    Ok(Caller { scope, is_user_named: user.is_none(), roles: roles.clone(), credential })
}

fn other_user() -> Error {
    Error::forbidden("other_user", "this key acts for one user only, and not for that one")
}

/// More than a limit allows.
pub fn too_many(code: &'static str, message: &str, wait: Duration) -> Error {
    Error::new(ErrorKind::TooMany, code, message).retry_after(wait)
}
