use std::sync::Arc;
use std::time::{Duration, Instant};

use threadkeep::core::{ChatModel, Embedder};
use threadkeep::{Memory, Scope, Timestamp, UserId};
use tokio::sync::watch;

use crate::assistants::Assistants;
use crate::audit::{AuditAction, AuditLog, AuditRecord};
use crate::browser_tokens::BrowserTokens;
use crate::caller::{Caller, Credential, Sender};
use crate::error::{Error, ErrorKind, Result};
use crate::jwt::TrustedIssuer;
use crate::keys::{KeyRecord, KeyRole, Keys};
use crate::metrics::Metrics;
use crate::quota::{CountError, Quota, Quotas};
use crate::rate::{RateLimit, RateLimits, RateStatus};
use crate::telemetry::{Instrumentation, Telemetry, TelemetryOptions};
use crate::turns::resuming::{self, Resumptions};
use crate::webhooks::{WebhookOptions, Webhooks};

/// The options of a [`Service`].
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// The issuers whose tokens are accepted in addition to API keys.
    pub token_issuers: Vec<TrustedIssuer>,
    /// The rate limit of callers that have no limit of their own.
    pub rate_limit: Option<RateLimit>,
    /// The daily quota of callers that have no quota of their own.
    pub quota: Option<Quota>,
    /// How long accepted requests may take to finish after the service is asked to stop.
    pub grace: Duration,
    /// Where to export traces.
    pub telemetry: Option<TelemetryOptions>,
    /// How webhooks are sent.
    pub webhooks: WebhookOptions,
}

/// The services that all doors share. Cheap to clone; clones share their state.
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
    browser_tokens: BrowserTokens,
    webhooks: Webhooks,
    instrumentation: Instrumentation,
    model: Option<Arc<dyn ChatModel>>,
    embedder: Option<Arc<dyn Embedder>>,
    assistants: Assistants,
    resumptions: Resumptions,
    /// The number of shutdown guards.
    guards: watch::Sender<usize>,
    /// When the service was asked to stop.
    stopping: watch::Sender<Option<tokio::time::Instant>>,
}

/// Delays shutdown until the guard is dropped or the grace period ends.
#[derive(Debug)]
pub struct ShutdownGuard(Arc<Inner>);

impl Drop for ShutdownGuard {
    fn drop(&mut self) {
        self.0.guards.send_modify(|count| *count -= 1);
    }
}

impl Service {
    /// Creates a service that uses `memory`. Calls to the model, the embedder and the assistants are counted and traced.
    #[must_use]
    pub fn new(
        memory: Memory,
        options: ServiceOptions,
        model: Option<Arc<dyn ChatModel>>,
        embedder: Option<Arc<dyn Embedder>>,
        assistants: Assistants,
    ) -> Self {
        let (keys, audit) = (Keys::new(&memory), AuditLog::new(&memory));
        let browser_tokens = BrowserTokens::new(&memory);
        let webhooks = Webhooks::new(&memory, options.webhooks.clone());
        let instrumentation = assistants.instrumentation().clone();
        instrumentation.telemetry.start(options.telemetry.as_ref());
        let inner = Inner {
            memory,
            options,
            keys,
            rate_limits: RateLimits::default(),
            quotas: Quotas::default(),
            audit,
            browser_tokens,
            webhooks,
            model: model.map(|model| instrumentation.wrap_model(model)),
            embedder: embedder.map(|embedder| instrumentation.wrap_embedder(embedder)),
            instrumentation,
            assistants,
            resumptions: Resumptions::new(),
            guards: watch::Sender::new(0),
            stopping: watch::Sender::new(None),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the memory.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.inner.memory
    }

    /// Returns the API keys.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.inner.keys
    }

    /// Returns the audit log.
    #[must_use]
    pub fn audit(&self) -> &AuditLog {
        &self.inner.audit
    }

    /// Returns the webhooks.
    #[must_use]
    pub fn webhooks(&self) -> &Webhooks {
        &self.inner.webhooks
    }

    /// Returns the metrics.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.inner.instrumentation.metrics
    }

    /// Returns the tracer.
    #[must_use]
    pub fn telemetry(&self) -> &Telemetry {
        &self.inner.instrumentation.telemetry
    }

    /// Returns the instrumentation, which counts and traces calls.
    pub(crate) fn instrumentation(&self) -> &Instrumentation {
        &self.inner.instrumentation
    }

    /// Returns the configured model, if there is one.
    #[must_use]
    pub fn model(&self) -> Option<&Arc<dyn ChatModel>> {
        self.inner.model.as_ref()
    }

    /// Returns the configured embedder, if there is one.
    #[must_use]
    pub fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.inner.embedder.as_ref()
    }

    /// Returns the assistants.
    #[must_use]
    pub fn assistants(&self) -> &Assistants {
        &self.inner.assistants
    }

    /// Returns the limiter of the turns that this instance resumes concurrently.
    pub(crate) fn resumptions(&self) -> &Resumptions {
        &self.inner.resumptions
    }
}

/// Authentication, limits and auditing of callers.
impl Service {
    /// Authenticates a caller by an API key or by a token of an issuer, and counts the request. `user` returns the user that the
    /// request names. Returns `None` if the credential is neither a valid key nor a valid token.
    ///
    /// # Errors
    /// `TooMany` if a limit of the caller is exceeded, `Forbidden` if the caller may not act for the named user; errors of `user`
    /// and of the store.
    pub async fn authenticate(
        &self,
        credential: &str,
        user: impl FnOnce() -> Result<Option<UserId>>,
    ) -> Result<Option<Caller>> {
        if let Some(key) = self.keys().find(credential).await? {
            let rate = self.count(&key.id, key.rate_limit, key.quota).await?;
            return key_caller(&key, user()?, rate).map(Some);
        }
        if BrowserTokens::is_token(credential) {
            return Box::pin(self.browser_caller(credential, user()?)).await;
        }
        let now_seconds = self.memory().now().as_millis().div_euclid(1000);
        for issuer in &self.inner.options.token_issuers {
            // Boxed: tokens are rare, so the futures that check them should not enlarge those of all requests.
            if let Some(caller) = Box::pin(issuer.authenticate(credential, now_seconds)).await {
                return Box::pin(self.token_caller(caller, user()?)).await.map(Some);
            }
        }
        Ok(None)
    }

    /// Admits a caller that a door authenticated itself, and counts the request.
    ///
    /// # Errors
    /// `TooMany` if a limit is exceeded; errors from the store.
    pub async fn admit(&self, sender: Sender) -> Result<Caller> {
        let rate = self.count(&sender.name, None, None).await?;
        Ok(Caller { rate, ..sender.into() })
    }

    /// Creates a short-lived token that lets a page in a browser act for a caller, with some of the caller's roles. The
    /// lifetime is at most [`MAX_SECONDS`](crate::browser_tokens::MAX_SECONDS). Returns its text and when it expires.
    ///
    /// # Errors
    /// `Forbidden` if the caller lacks a role, or is itself authenticated by such a token; errors from the store.
    pub async fn create_browser_token(
        &self,
        caller: &Caller,
        roles: Vec<KeyRole>,
        seconds: i64,
    ) -> Result<(String, Timestamp)> {
        self.inner.browser_tokens.create(caller, roles, seconds).await
    }

    /// Authenticates a caller by a browser token only. `user` returns the user that the request names.
    ///
    /// # Errors
    /// The same as for [`Service::authenticate`].
    pub async fn authenticate_browser_token(
        &self,
        token: &str,
        user: impl FnOnce() -> Result<Option<UserId>>,
    ) -> Result<Option<Caller>> {
        Box::pin(self.browser_caller(token, user()?)).await
    }

    /// Authenticates a caller by a browser token, and counts the request like those of the caller that created the token.
    async fn browser_caller(&self, token: &str, named_user: Option<UserId>) -> Result<Option<Caller>> {
        let Some(caller) = self.inner.browser_tokens.verify(token).await? else { return Ok(None) };
        let is_own = |user: &UserId| matches!(&caller.scope, Scope::User(_, own_user) if own_user == user);
        if named_user.is_some_and(|user| !is_own(&user)) {
            return Err(other_user_error());
        }
        if !caller.is_still_valid(self).await {
            return Ok(None);
        }
        let mut roles = caller.roles.clone();
        let rate = match caller.key_id() {
            Some(id) => match self.keys().find_valid(id).await? {
                Some(key) => {
                    // The key may have lost roles since the token was created.
                    roles.retain(|role| key.roles.iter().any(|granted| granted.implies(*role)));
                    self.count(&key.id, key.rate_limit, key.quota).await?
                }
                None => return Ok(None),
            },
            None => self.count(&format!("browser {}", caller.scope.tenant_id()), None, None).await?,
        };
        Ok(Some(Caller { roles, rate, ..caller }))
    }

    /// Whether all callers need a key or a token of an issuer. This is the case if an issuer is configured, or if a key was ever
    /// created, even if it has been revoked.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn needs_key(&self) -> Result<bool> {
        Ok(!self.inner.options.token_issuers.is_empty() || self.keys().has_any().await?)
    }

    /// Counts a request with a valid token and sets the scope of its caller. A request with a user's token may select
    /// only that user; a request with a token of the application may select any user.
    async fn token_caller(&self, caller: Caller, named_user: Option<UserId>) -> Result<Caller> {
        let may_select_user = matches!(caller.scope, Scope::Tenant(_));
        let scope = match (caller.scope, named_user) {
            (Scope::User(_, token_user), Some(named)) if token_user != named => return Err(other_user_error()),
            (Scope::Tenant(tenant), Some(user)) => Scope::User(tenant, user),
            (scope, _) => scope,
        };
        let name = match &scope {
            Scope::Tenant(tenant) => format!("token {tenant}"),
            Scope::User(tenant, user) => format!("token {tenant}\n{user}"),
        };
        let rate = self.count(&name, None, None).await?;
        Ok(Caller { scope, may_select_user, rate, ..caller })
    }

    /// Counts a request from the caller with this name against the caller's limits, or against the default limits if the caller has
    /// none. Returns the caller's rate limit after the request; `None` if there is none.
    ///
    /// # Errors
    /// `TooMany` with the time to wait; errors from the store.
    pub async fn count(
        &self,
        caller: &str,
        rate: Option<RateLimit>,
        quota: Option<Quota>,
    ) -> Result<Option<RateStatus>> {
        let Inner { options, memory, .. } = &*self.inner;
        let status = match rate.or(options.rate_limit) {
            Some(limit) => {
                let counted = self.inner.rate_limits.count(caller, limit, Instant::now());
                Some(
                    counted
                        .map_err(|wait| too_many_error("rate_limited", "too many requests", wait).rate_limit(limit))?,
                )
            }
            None => None,
        };
        let Some(quota) = quota.or(options.quota) else { return Ok(status) };
        match Box::pin(self.inner.quotas.count(memory, caller, quota)).await {
            Ok(()) => Ok(status),
            Err(CountError::Exceeded(wait)) => {
                Err(too_many_error("quota_exceeded", "daily request quota exceeded", wait))
            }
            Err(CountError::Store(error)) => Err(error.into()),
        }
    }

    /// Returns how many requests all instances have counted today for a caller with a daily quota.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn requests_today(&self, caller: &str) -> Result<u32> {
        Ok(self.inner.quotas.requests_today(self.memory(), caller).await?)
    }

    /// Performs an action on behalf of a caller. Writes a record to the audit log before the action, and another with the outcome
    /// after it. If the first record cannot be written, the action is not performed.
    ///
    /// # Errors
    /// The errors from the store when writing the first record.
    pub async fn audited<T>(
        &self,
        caller: &Caller,
        action: AuditAction,
        operation: impl Future<Output = T>,
        outcome: impl FnOnce(&T) -> String,
    ) -> Result<T> {
        let started = AuditRecord::started(caller, action, self.memory().now());
        self.audit().write(&started).await?;
        let result = operation.await;
        let ended = AuditRecord { at: self.memory().now(), outcome: outcome(&result), ..started };
        if let Err(error) = self.audit().write(&ended).await {
            tracing::error!(%error, act = ended.act, "cannot write the outcome of an action to the audit log");
        }
        Ok(result)
    }
}

/// Interrupted turns and shutdown.
impl Service {
    /// Resumes interrupted turns periodically until the service is asked to stop.
    pub fn resume_turns(&self) -> tokio::task::JoinHandle<()> {
        resuming::start(self)
    }

    /// Returns a guard that delays shutdown until it is dropped. Doors hold one for each turn and each accepted request.
    #[must_use]
    pub fn delay_shutdown(&self) -> ShutdownGuard {
        self.inner.guards.send_modify(|count| *count += 1);
        ShutdownGuard(Arc::clone(&self.inner))
    }

    /// Waits until all guards are dropped and all resumed turns have ended.
    pub async fn wait_until_drained(&self) {
        // Cannot fail: the service owns the sender.
        drop(self.inner.guards.subscribe().wait_for(|count| *count == 0).await);
        self.resumptions().finished().await;
    }

    /// Asks the service to stop.
    pub fn stop(&self) {
        self.inner.stopping.send_if_modified(|since| {
            let is_first = since.is_none();
            since.get_or_insert_with(tokio::time::Instant::now);
            is_first
        });
    }

    /// Whether the service was asked to stop.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.inner.stopping.borrow().is_some()
    }

    /// Waits until the service is asked to stop.
    pub async fn stopped(&self) {
        let mut stopping = self.inner.stopping.subscribe();
        // Cannot fail: the service owns the sender.
        drop(stopping.wait_for(Option::is_some).await);
    }

    /// Waits until 90% of the grace period has passed. Doors then inform clients that are still waiting.
    pub async fn shutdown_deadline_near(&self) {
        self.wait_after_stop(self.inner.options.grace * 9 / 10).await;
    }

    /// Waits until 95% of the grace period has passed. Doors then close the remaining connections.
    pub async fn shutdown_timed_out(&self) {
        self.wait_after_stop(self.inner.options.grace * 19 / 20).await;
    }

    /// Waits until `duration` has passed since the service was asked to stop.
    async fn wait_after_stop(&self, duration: Duration) {
        self.stopped().await;
        let since = *self.inner.stopping.borrow();
        tokio::time::sleep_until(since.unwrap_or_else(tokio::time::Instant::now) + duration).await;
    }
}

fn key_caller(key: &KeyRecord, named_user: Option<UserId>, rate: Option<RateStatus>) -> Result<Caller> {
    let KeyRecord { id, tenant, user, roles, .. } = key;
    let scope = match (user, named_user) {
        (Some(key_user), Some(named)) if *key_user != named => return Err(other_user_error()),
        (Some(user), _) => Scope::User(tenant.clone(), user.clone()),
        (None, Some(user)) => Scope::User(tenant.clone(), user),
        (None, None) => Scope::Tenant(tenant.clone()),
    };
    let credential = Credential::Key(id.clone());
    Ok(Caller { scope, may_select_user: user.is_none(), roles: roles.clone(), credential, rate })
}

fn other_user_error() -> Error {
    Error::forbidden("other_user", "this key can act only for its own user")
}

/// Creates an error for an exceeded limit. `wait` is the time until the caller may retry.
pub fn too_many_error(code: &'static str, message: &str, wait: Duration) -> Error {
    Error::new(ErrorKind::TooMany, code, message).retry_after(wait)
}
