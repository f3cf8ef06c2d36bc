//! Requests that come twice: told from requests that are made twice.
//!
//! A client that sends an `Idempotency-Key` is taken at its word, for as long as the store keeps records of commits. One
//! that sends none but says that it repeats itself (OpenAI's clients do) is believed where nothing has happened since: the
//! same body was appended less than two minutes ago and is still the end of the thread. Whatever tells so lies in the
//! store: an append without a key is committed under a key made of its instant and its body. The change log tells the
//! instant of the thread's last append, so that who repeats it finds the key, and nobody else has to look for anything.
//! The instant comes first, as keys that grow with time are written side by side.
//!
//! Making a thread is never matched by its body: two clients that both begin a conversation would be handed one.

use threadkeep::core::{ChangePage, Effect, Fingerprint, PutRecord};
use threadkeep::memory::Appended;
use threadkeep::{
    AppendOptions, Conflict, Draft, Expected, JsonText, MemoryError, MessageName, Namespace, Positions, Scope,
    StoreError, ThreadId, Timestamp,
};

use crate::error::Result;
use crate::service::Service;

/// How long a repetition without a key is believed.
pub const WINDOW_MS: i64 = 120_000;
/// Changes that are looked through for the append that may be repeated.
const LOOK: usize = 64;
/// How often an append goes for the end of a thread that others keep moving.
const ATTEMPTS: usize = 64;
/// Digits of a body's digest that a key does without: 128 bits tell bodies apart.
const SPARED: usize = 32;

/// What tells a repeated request from another one.
#[derive(Clone, Debug)]
pub struct Attempt {
    key: Option<String>,
    /// Of the route and the body.
    digest: String,
    retries: u64,
}

impl Attempt {
    /// A request to a surface: its own key, where it has one, the digest of what it asks for, and how often its client says it
    /// has sent it before.
    #[must_use]
    pub fn new(surface: &str, key: Option<String>, digest: &str, retries: u64) -> Self {
        Self { key, digest: format!("{surface}:{digest}"), retries }
    }

    /// The `Idempotency-Key` that came with it.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The digest of the route and the body.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Refuses a key that was used for another request.
    pub fn check_same(&self, digest: &str) -> Result<()> {
        if digest == self.digest {
            return Ok(());
        }
        Err(StoreError::from(Conflict::IdempotencyKey).into())
    }

    /// Whether the client says that it repeats itself.
    pub fn is_retry(&self) -> bool {
        self.retries > 0
    }

    /// Whether it may have been sent before: the client says so, or gave it a key.
    pub fn is_repeated(&self) -> bool {
        self.is_retry() || self.key.is_some()
    }

    /// An id for what this request makes: always the same for the same key, `None` without one.
    pub fn named_id(&self, scope: &Scope) -> Option<ThreadId> {
        let key = self.key.as_ref()?;
        let user = match scope {
            Scope::Tenant(_) => "",
            Scope::User(_, user) => user.as_str(),
        };
        let surface = self.digest.split(':').next().unwrap_or_default();
        Some(ThreadId::from_name(format!("http\n{}\n{user}\n{surface}\n{key}", scope.tenant_id()).as_bytes()))
    }

    /// The id of a thread that this request makes: always the same for the same key.
    pub fn thread_id(&self, service: &Service, scope: &Scope) -> ThreadId {
        self.named_id(scope).unwrap_or_else(|| service.memory().mint_thread_id())
    }

    /// Notes what a thread was made by, where a key was given: the same key with another body is a conflict. Says whether
    /// there is such a note.
    pub async fn note_creation(&self, service: &Service, scope: &Scope, thread: ThreadId) -> Result<bool> {
        if self.key.is_none() {
            return Ok(false);
        }
        let name = threadkeep::RecordName { namespace: Namespace::system("server")?, key: "created".to_owned() };
        let put = PutRecord { name, value: JsonText::of(&self.digest)?, expires_at: None };
        let noted = service.memory().batch().idempotency_key("http:created").put(put).commit(scope, thread).await;
        match noted {
            // A user may open a shared thread, and may not write its records.
            Ok(_) => Ok(true),
            Err(MemoryError::Store(StoreError::Denied(_))) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Appends, or tells what an earlier try appended.
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
                if let Some(appended) = self.repeated(service, scope, thread, positions, &drafts).await? {
                    return Ok(appended);
                }
                expected.map_or(Ok(()), |expected| expected.check(positions))?;
                // Where the first try arrives only now, it is found with the next look.
                expected.or(Some(Expected::Seq(positions.seq)))
            } else {
                expected
            };
            let at = later(service.memory().now(), attempt);
            let options = AppendOptions { expected, at: Some(at), ..self.options_at(at) };
            match service.memory().append_all(scope, thread, drafts.clone(), &options).await {
                // Somebody else said the same at the same instant and was first.
                Ok(appended) if appended.replayed => {}
                Err(MemoryError::Store(StoreError::Conflict(Conflict::Seq { .. } | Conflict::Change { .. })))
                    if self.is_retry() => {}
                answer => return Ok(answer?),
            }
        }
        Err(MemoryError::Contended { what: "the thread", attempts: ATTEMPTS }.into())
    }

    /// The key of an append of this body at an instant.
    fn options_at(&self, at: Timestamp) -> AppendOptions {
        let digest = self.digest.get(..self.digest.len().saturating_sub(SPARED)).unwrap_or(&self.digest);
        let idempotency_key = Some(format!("wire:{:016x}:{digest}", at.as_micros()));
        let fingerprint = Some(Fingerprint::of(self.digest.as_bytes()));
        AppendOptions { idempotency_key, fingerprint, ..AppendOptions::default() }
    }

    /// What an earlier try of the same request appended, where that is still the end of the thread.
    async fn repeated(
        &self,
        service: &Service,
        scope: &Scope,
        thread: ThreadId,
        positions: Positions,
        drafts: &[Draft],
    ) -> Result<Option<Appended>> {
        let before = positions.seq.checked_sub(drafts.len() as u64).filter(|_| !drafts.is_empty());
        let Some(before) = before else { return Ok(None) };
        let Some(at) = appended_lately(service, scope, thread, positions, before + 1).await? else { return Ok(None) };
        let options = AppendOptions { expected: Some(Expected::Seq(before)), ..self.options_at(at) };
        match service.memory().append_all(scope, thread, drafts.to_vec(), &options).await {
            Ok(appended) => Ok(Some(appended)),
            // The end is another one's, or has moved.
            Err(MemoryError::Store(StoreError::Conflict(_))) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn later(now: Timestamp, micros: usize) -> Timestamp {
    Timestamp::from_micros(now.as_micros() + micros as i64).unwrap_or(now)
}

/// When one commit appended everything from a position to the end, if it was within the window.
async fn appended_lately(
    service: &Service,
    scope: &Scope,
    thread: ThreadId,
    positions: Positions,
    first: u64,
) -> Result<Option<Timestamp>> {
    let (memory, now) = (service.memory(), service.memory().now());
    let after = positions.change.saturating_sub(LOOK as u64);
    let page = memory.backend().store.list_changes(scope, thread, after.into(), LOOK, now).await?;
    let ChangePage::Changes { changes, .. } = page else { return Ok(None) };
    let appends_it = |effect: &Effect| {
        let Effect::Appended { first_seq, count } = effect else { return false };
        *first_seq == first && first_seq + count == positions.seq + 1
    };
    let found = changes.iter().find(|change| change.effects.iter().any(appends_it));
    Ok(found.map(|change| change.at).filter(|at| at.plus_ms(WINDOW_MS) >= now))
}

/// The messages that an append put into a thread, as they stand.
pub async fn placed(
    service: &Service,
    scope: &Scope,
    thread: ThreadId,
    appended: &Appended,
) -> Result<Vec<threadkeep::Message>> {
    let names: Vec<_> = appended.messages.iter().map(|placed| MessageName::Seq(placed.seq)).collect();
    Ok(service.memory().find_messages(scope, thread, &names).await?)
}
