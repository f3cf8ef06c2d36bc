//! Detection of retried requests.
//!
//! Requests with the same `Idempotency-Key` are retries for as long as the store retains idempotency records. A request without a
//! key that the client marks as a retry (as OpenAI's clients do) is treated as a retry only if nothing has happened since the
//! first attempt: the same body was appended at most two minutes ago, and its messages are still the end of the thread.
//!
//! Detection uses stored data only. An append without a key is committed with a key derived from its time and its body. A retry
//! reads the time of the last append from the change log and derives the same key; other requests read nothing. The time is the
//! first component because increasing keys are adjacent in indexes.
//!
//! The creation of a thread is never matched by its body: otherwise two clients that both start a conversation would get the
//! same thread.

use threadkeep::core::{ChangePage, Effect, Fingerprint, PutRecord};
use threadkeep::memory::Appended;
use threadkeep::{
    AppendOptions, Conflict, Draft, Expected, JsonText, MemoryError, MessageRef, Namespace, Positions, Scope,
    StoreError, ThreadId, Timestamp,
};

use crate::error::Result;
use crate::service::Service;

/// How long after an append a request without a key may be a retry of it, in milliseconds.
pub const RETRY_WINDOW_MS: i64 = 120_000;
/// The number of changes at the end of the change log that are searched for the first attempt.
const CHANGES: usize = 64;
/// The maximum number of attempts at an append that conflicts with others.
const ATTEMPTS: usize = 64;
/// The number of hexadecimal digits of the digest that are omitted from derived keys: the remaining 128 bits are sufficient.
const OMITTED_DIGITS: usize = 32;

/// The identity of a request that may be repeated: the data that all attempts have in common, and the number of earlier attempts.
#[derive(Clone, Debug)]
pub struct RequestIdentity {
    key: Option<String>,
    /// The name of the API, and the digest of the route and the body, separated by a colon.
    digest: String,
    /// The number of earlier attempts, as stated by the client.
    retries: u64,
}

impl RequestIdentity {
    /// Creates the identity of a request to an API. `key` is its `Idempotency-Key`, `digest` the digest of its route and body, and
    /// `retries` the number of earlier attempts, as stated by the client.
    #[must_use]
    pub fn new(api: &str, key: Option<String>, digest: &str, retries: u64) -> Self {
        Self { key, digest: format!("{api}:{digest}"), retries }
    }

    /// Returns the `Idempotency-Key` of the request.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Returns the digest of the API, the route and the body.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Checks that an earlier request with the same key had the same digest.
    ///
    /// # Errors
    /// `Conflict::IdempotencyKey` if `digest` differs from the digest of this request.
    pub fn check_same(&self, digest: &str) -> Result<()> {
        if digest == self.digest {
            return Ok(());
        }
        Err(StoreError::from(Conflict::IdempotencyKey).into())
    }

    /// Whether the client marked the request as a retry.
    pub fn is_retry(&self) -> bool {
        self.retries > 0
    }

    /// Whether the request may be a retry: the client marked it as a retry, or sent a key.
    pub fn may_be_retry(&self) -> bool {
        self.is_retry() || self.key.is_some()
    }

    /// Returns the id for a resource that the request creates. The id is derived from the key, so that it is the same for all
    /// attempts; `None` if there is no key.
    pub fn named_id(&self, scope: &Scope) -> Option<ThreadId> {
        let key = self.key.as_ref()?;
        let user = match scope {
            Scope::Tenant(_) => "",
            Scope::User(_, user) => user.as_str(),
        };
        let api = self.digest.split(':').next().unwrap_or_default();
        Some(ThreadId::from_name(format!("http\n{}\n{user}\n{api}\n{key}", scope.tenant_id()).as_bytes()))
    }

    /// Returns the id for a thread that the request creates: the same id for all attempts with the same key, or a random id
    /// without a key.
    pub fn thread_id(&self, service: &Service, scope: &Scope) -> ThreadId {
        self.named_id(scope).unwrap_or_else(|| service.memory().generate_thread_id())
    }

    /// Stores the digest of the request that created a thread, if the request has a key, so that the same key with another body
    /// is a conflict. Returns whether the digest is stored.
    pub async fn record_creation(&self, service: &Service, scope: &Scope, thread: ThreadId) -> Result<bool> {
        if self.key.is_none() {
            return Ok(false);
        }
        let name = threadkeep::RecordName { namespace: Namespace::system("server")?, key: "created".to_owned() };
        let put = PutRecord { name, value: JsonText::of(&self.digest)?, expires_at: None };
        let stored = service.memory().batch().idempotency_key("http:created").put(put).commit(scope, thread).await;
        match stored {
            // A user may open a shared thread, but not write its records.
            Ok(_) => Ok(true),
            Err(MemoryError::Store(StoreError::Denied(_))) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Appends messages, or returns the result of an earlier attempt.
    pub async fn append(
        &self,
        service: &Service,
        scope: &Scope,
        thread: ThreadId,
        drafts: Vec<Draft>,
        expected: Option<Expected>,
    ) -> Result<Appended> {
        if let Some(key) = &self.key {
            let idempotency_key = Some(format!("key:{key}"));
            let options = AppendOptions { idempotency_key, expected, ..AppendOptions::default() };
            return Ok(service.memory().append_all(scope, thread, drafts, &options).await?);
        }
        for attempt in 0..ATTEMPTS {
            let expected = if self.is_retry() {
                let positions = service.memory().get_thread(scope, thread).await?.positions;
                if let Some(appended) = self.find_earlier_append(service, scope, thread, positions, &drafts).await? {
                    return Ok(appended);
                }
                expected.map_or(Ok(()), |expected| expected.check(positions))?;
                // If the first attempt is applied only now, this append conflicts with it, and the next iteration finds it.
                expected.or(Some(Expected::Seq(positions.seq)))
            } else {
                expected
            };
            let at = plus_micros(service.memory().now(), attempt);
            let options = AppendOptions { expected, at: Some(at), ..self.options_at(at) };
            match service.memory().append_all(scope, thread, drafts.clone(), &options).await {
                // Another request with the same body was appended at the same time, so this append was not applied.
                Ok(appended) if appended.replayed => {}
                Err(MemoryError::Store(StoreError::Conflict(Conflict::Seq { .. } | Conflict::Change { .. })))
                    if self.is_retry() => {}
                result => return Ok(result?),
            }
        }
        Err(MemoryError::Contended { what: "the thread", attempts: ATTEMPTS }.into())
    }

    /// Returns the idempotency key and fingerprint for appending this body at a time.
    fn options_at(&self, at: Timestamp) -> AppendOptions {
        let digest = self.digest.get(..self.digest.len().saturating_sub(OMITTED_DIGITS)).unwrap_or(&self.digest);
        let idempotency_key = Some(format!("wire:{:016x}:{digest}", at.as_micros()));
        let fingerprint = Some(Fingerprint::of(self.digest.as_bytes()));
        AppendOptions { idempotency_key, fingerprint, ..AppendOptions::default() }
    }

    /// Returns the result of an earlier attempt of the same request, if its messages are still the end of the thread.
    async fn find_earlier_append(
        &self,
        service: &Service,
        scope: &Scope,
        thread: ThreadId,
        positions: Positions,
        drafts: &[Draft],
    ) -> Result<Option<Appended>> {
        let before = positions.seq.checked_sub(drafts.len() as u64).filter(|_| !drafts.is_empty());
        let Some(before) = before else { return Ok(None) };
        let Some(at) = find_append_time(service, scope, thread, positions, before + 1).await? else { return Ok(None) };
        let options = AppendOptions { expected: Some(Expected::Seq(before)), ..self.options_at(at) };
        match service.memory().append_all(scope, thread, drafts.to_vec(), &options).await {
            Ok(appended) => Ok(Some(appended)),
            // Another request appended the last messages, or the thread has changed since.
            Err(MemoryError::Store(StoreError::Conflict(_))) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn plus_micros(time: Timestamp, micros: usize) -> Timestamp {
    Timestamp::from_micros(time.as_micros() + micros as i64).unwrap_or(time)
}

/// Returns the time at which a single commit appended all messages from the position `first` to the end of the thread. Returns
/// `None` if there is no such commit within [`RETRY_WINDOW_MS`].
async fn find_append_time(
    service: &Service,
    scope: &Scope,
    thread: ThreadId,
    positions: Positions,
    first: u64,
) -> Result<Option<Timestamp>> {
    let (memory, now) = (service.memory(), service.memory().now());
    let after = positions.change.saturating_sub(CHANGES as u64);
    let page = memory.backend().store.list_changes(scope, thread, after.into(), CHANGES, now).await?;
    let ChangePage::Changes { changes, .. } = page else { return Ok(None) };
    let is_append = |effect: &Effect| {
        let Effect::Appended { first_seq, count } = effect else { return false };
        *first_seq == first && first_seq + count == positions.seq + 1
    };
    let found = changes.iter().find(|change| change.effects.iter().any(is_append));
    Ok(found.map(|change| change.at).filter(|at| at.plus_ms(RETRY_WINDOW_MS) >= now))
}

/// Reads appended messages with their current content.
pub async fn appended_messages(
    service: &Service,
    scope: &Scope,
    thread: ThreadId,
    appended: &Appended,
) -> Result<Vec<threadkeep::Message>> {
    let names: Vec<_> = appended.messages.iter().map(|message| MessageRef::Seq(message.seq)).collect();
    Ok(service.memory().find_messages(scope, thread, &names).await?)
}
