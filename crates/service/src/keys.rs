//! API keys. Only hashes of their secrets are stored. Keys are checked with every request, so that revoking a key takes effect
//! immediately.
//!
//! Keys are stored as system records of the internal tenant, so that all instances share them. No API exposes these records,
//! because no key can be created for the internal tenant. Revoked keys remain stored, so that a server still rejects requests
//! without a key after the last key is revoked.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use threadkeep::core::{RecordQuery, RecordWrite};
use threadkeep::{
    JsonText, Memory, MemoryError, Namespace, Record, RecordOwner, Scope, StoreError, TenantId, Timestamp, UserId,
};

use crate::hex::hex;
use crate::quota::Quota;
use crate::rate::RateLimit;

const PREFIX: &str = "tk_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;
/// The maximum number of cached keys.
const CACHED_KEYS: usize = 1_024;

/// A role of a key in its tenant. `Write` and `Approve` include `Read`; `Admin` includes these three. `Operate` applies to the
/// whole server: no other role includes it, and it includes none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyRole {
    /// Reading and searching.
    Read,
    /// Creating and changing.
    Write,
    /// Deciding on approvals.
    Approve,
    /// Importing, and erasing other users' data.
    Admin,
    /// Reading the metrics of the whole server and the names of its tenants.
    Operate,
}

impl KeyRole {
    /// All roles.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Approve, Self::Admin, Self::Operate];

    /// Returns the name of the role.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Approve => "approve",
            Self::Admin => "admin",
            Self::Operate => "operate",
        }
    }

    pub(crate) fn implies(self, other: Self) -> bool {
        match (self, other) {
            (Self::Operate, _) | (_, Self::Operate) => self == other,
            _ => self == other || self == Self::Admin || other == Self::Read,
        }
    }
}

impl fmt::Display for KeyRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for KeyRole {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or(KeyError::Invalid("a role must be one of read, write, approve, admin, operate"))
    }
}

/// A key to create.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// The tenant.
    pub tenant: TenantId,
    /// The only user on whose behalf the key may be used. A key without a user is valid for the whole tenant, and its requests
    /// may select any user.
    pub user: Option<UserId>,
    /// A name for people.
    pub name: String,
    /// The roles; at least one.
    pub roles: Vec<KeyRole>,
    /// When the key expires; `None` if it does not expire.
    pub expires_at: Option<Timestamp>,
    /// The rate limit of the key's requests; `None` for the server's default.
    pub rate_limit: Option<RateLimit>,
    /// The daily quota of the key's requests; `None` for the server's default.
    pub quota: Option<Quota>,
}

/// The changes to a key. A field that is `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct KeyChanges {
    /// The name for people.
    pub name: Option<String>,
    /// The roles; at least one.
    pub roles: Option<Vec<KeyRole>>,
    /// When the key expires; `Some(None)` if it does not expire.
    pub expires_at: Option<Option<Timestamp>>,
    /// The rate limit; `Some(None)` for the server's default.
    pub rate_limit: Option<Option<RateLimit>>,
    /// The daily quota; `Some(None)` for the server's default.
    pub quota: Option<Option<Quota>>,
}

/// A stored key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The id, which is not a secret.
    pub id: String,
    /// The tenant.
    pub tenant: TenantId,
    /// The only user on whose behalf the key may be used; `None` if its requests may select any user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// A name for people.
    pub name: String,
    /// The roles.
    pub roles: Vec<KeyRole>,
    /// The SHA-256 of the secret, in hexadecimal. For 256 random bits, a slow password hash is not necessary.
    secret_sha256: String,
    /// When the key was created.
    pub created_at: Timestamp,
    /// When the key expires; `None` if it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When the key was revoked; `None` if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// The rate limit of the key's requests; `None` for the server's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// The daily quota of the key's requests; `None` for the server's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quota>,
}

impl KeyRecord {
    /// Whether the key is neither revoked nor expired.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires_at| expires_at > now)
    }
}

/// The full text of a key, which is available only when the key is created or rotated.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret(String);

impl KeySecret {
    /// Returns the text that clients send as `Authorization: Bearer …`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(…)")
    }
}

/// An error when creating or changing a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The request is invalid.
    #[error("{0}")]
    Invalid(&'static str),
    /// The key does not exist.
    #[error("key {0} not found")]
    Unknown(String),
    /// The operating system provided no random bytes.
    #[error("cannot get random bytes from the operating system: {0}")]
    Randomness(getrandom::Error),
    /// An error from the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An error of [`Memory`].
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// The keys in a store.
#[derive(Clone)]
pub struct Keys {
    memory: Memory,
    scope: Scope,
    cache: Arc<Mutex<KeyCache>>,
}

/// Cached keys. They are valid while the records stamp, which the store changes with every write of a record, is unchanged.
#[derive(Default)]
struct KeyCache {
    stamp: u64,
    records: HashMap<String, Arc<KeyRecord>>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Keys {
    /// Opens the keys in the store that `memory` uses.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        let scope = Scope::Tenant(TenantId::internal());
        Self { memory: memory.clone(), scope, cache: Arc::default() }
    }

    /// Creates a key. Returns its record and its full text, which cannot be read later.
    ///
    /// # Errors
    /// `Invalid` for an invalid name, no roles, or the internal tenant; errors from the store.
    pub async fn create(&self, new: NewKey) -> Result<(KeyRecord, KeySecret), KeyError> {
        let NewKey { tenant, user, name, mut roles, expires_at, rate_limit, quota } = new;
        if tenant.is_internal() {
            return Err(KeyError::Invalid("this tenant is reserved for keys and the audit log; use another one"));
        }
        check_name(&name)?;
        normalize_roles(&mut roles)?;
        let id = random_hex::<ID_BYTES>()?;
        let (secret_sha256, secret) = mint_secret(&id)?;
        let created_at = self.memory.now();
        let revoked_at = None;
        let record = KeyRecord {
            id,
            tenant,
            user,
            name,
            roles,
            secret_sha256,
            created_at,
            expires_at,
            revoked_at,
            rate_limit,
            quota,
        };
        self.write(&record, Some(0)).await?;
        Ok((record, secret))
    }

    /// Lists the keys of a tenant, or of all tenants, including revoked keys.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn list(&self, tenant: Option<&TenantId>) -> Result<Vec<KeyRecord>, KeyError> {
        let mut query = RecordQuery { namespace: Some(namespace()), ..RecordQuery::of(RecordOwner::Tenant) };
        let mut records = Vec::new();
        loop {
            let store = &self.memory.backend().store;
            let page = store.list_records(&self.scope, &query, self.memory.now()).await?;
            let is_last = page.len() < query.limit;
            query.after = page.last().map(|last| (last.namespace.clone(), last.key.clone()));
            for record in page {
                records.push(record.value.read::<KeyRecord>()?);
            }
            if is_last {
                break;
            }
        }
        records.retain(|record| tenant.is_none_or(|tenant| record.tenant == *tenant));
        records.sort_by_key(|record| record.created_at);
        Ok(records)
    }

    /// Revokes a key, with immediate effect. Revoking it again has no effect.
    ///
    /// # Errors
    /// `Unknown` if the tenant has no key with the id; errors from the store.
    pub async fn revoke(&self, tenant: &TenantId, id: &str) -> Result<KeyRecord, KeyError> {
        let (mut record, version) = self.get(tenant, id).await?;
        if record.revoked_at.is_none() {
            record.revoked_at = Some(self.memory.now());
            self.write(&record, Some(version)).await?;
        }
        Ok(record)
    }

    /// Changes a key, with effect from the next request on. Returns the changed record.
    ///
    /// # Errors
    /// `Unknown` if the tenant has no key with the id, `Invalid` for a revoked key or invalid changes; errors from the store, such as
    /// a conflict if the key was changed at the same time.
    pub async fn update(&self, tenant: &TenantId, id: &str, changes: KeyChanges) -> Result<KeyRecord, KeyError> {
        let KeyChanges { name, roles, expires_at, rate_limit, quota } = changes;
        let (mut record, version) = self.get(tenant, id).await?;
        if record.revoked_at.is_some() {
            return Err(KeyError::Invalid("the key is revoked; create a new one"));
        }
        if let Some(name) = name {
            check_name(&name)?;
            record.name = name;
        }
        if let Some(mut roles) = roles {
            normalize_roles(&mut roles)?;
            record.roles = roles;
        }
        record.expires_at = expires_at.unwrap_or(record.expires_at);
        record.rate_limit = rate_limit.unwrap_or(record.rate_limit);
        record.quota = quota.unwrap_or(record.quota);
        self.write(&record, Some(version)).await?;
        Ok(record)
    }

    /// Replaces the secret of a key. The old secret becomes invalid immediately.
    ///
    /// # Errors
    /// `Unknown` if the tenant has no key with the id, `Invalid` for a revoked key; errors from the store.
    pub async fn rotate(&self, tenant: &TenantId, id: &str) -> Result<(KeyRecord, KeySecret), KeyError> {
        let (mut record, version) = self.get(tenant, id).await?;
        if record.revoked_at.is_some() {
            return Err(KeyError::Invalid("the key is revoked; create a new one"));
        }
        let (secret_sha256, secret) = mint_secret(&record.id)?;
        record.secret_sha256 = secret_sha256;
        self.write(&record, Some(version)).await?;
        Ok((record, secret))
    }

    /// Whether the store contains any key, even a revoked one.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn has_any(&self) -> Result<bool, KeyError> {
        let query = RecordQuery { namespace: Some(namespace()), limit: 1, ..RecordQuery::of(RecordOwner::Tenant) };
        let store = &self.memory.backend().store;
        Ok(!store.list_records(&self.scope, &query, self.memory.now()).await?.is_empty())
    }

    /// Finds the key with this full text. Returns `None` unless the key exists and is valid.
    pub(crate) async fn find(&self, text: &str) -> Result<Option<Arc<KeyRecord>>, KeyError> {
        let parts = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_'));
        let Some((id, secret)) = parts.filter(|(id, _)| id.len() == ID_BYTES * 2) else { return Ok(None) };
        let Some(record) = self.find_current(id).await? else { return Ok(None) };
        let is_same: bool = sha256(secret).as_bytes().ct_eq(record.secret_sha256.as_bytes()).into();
        Ok(Some(record).filter(|record| is_same && record.is_valid(self.memory.now())))
    }

    /// Finds the current record of a key by id. The cache is valid only until any record is written, so that revoking a key takes
    /// effect immediately in all instances.
    async fn find_current(&self, id: &str) -> Result<Option<Arc<KeyRecord>>, KeyError> {
        // The stamp is read before the key, so that a write in between invalidates the cache.
        let stamp = self.memory.backend().store.records_stamp();
        let lock = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stamp) = stamp {
            let cache = lock();
            if cache.stamp == stamp
                && let Some(record) = cache.records.get(id)
            {
                return Ok(Some(Arc::clone(record)));
            }
        }
        let Some((record, _)) = self.find_record(id).await? else { return Ok(None) };
        let record = Arc::new(record);
        if let Some(stamp) = stamp {
            let mut cache = lock();
            if cache.stamp != stamp || cache.records.len() >= CACHED_KEYS {
                *cache = KeyCache { stamp, records: HashMap::new() };
            }
            cache.records.insert(id.to_owned(), Arc::clone(&record));
        }
        Ok(Some(record))
    }

    /// Whether the key with this id is still valid. Long-lived connections check this periodically.
    pub(crate) async fn is_valid(&self, id: &str) -> Result<bool, KeyError> {
        let found = self.find_record(id).await?;
        Ok(found.is_some_and(|(record, _)| record.is_valid(self.memory.now())))
    }

    /// Finds a valid key by its id.
    pub(crate) async fn find_valid(&self, id: &str) -> Result<Option<Arc<KeyRecord>>, KeyError> {
        Ok(self.find_current(id).await?.filter(|record| record.is_valid(self.memory.now())))
    }

    async fn get(&self, tenant: &TenantId, id: &str) -> Result<(KeyRecord, u64), KeyError> {
        let found = self.find_record(id).await?;
        found.filter(|(record, _)| record.tenant == *tenant).ok_or_else(|| KeyError::Unknown(id.to_owned()))
    }

    async fn find_record(&self, id: &str) -> Result<Option<(KeyRecord, u64)>, KeyError> {
        // Every id has a fixed number of hexadecimal digits.
        if id.len() != ID_BYTES * 2 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let (owner, now) = (RecordOwner::Tenant, self.memory.now());
        let store = &self.memory.backend().store;
        let found = store.find_record(&self.scope, &owner, &namespace(), id, now).await?;
        let decode = |record: Record| Ok::<_, StoreError>((record.value.read::<KeyRecord>()?, record.version));
        let found = found.map(decode).transpose()?;
        // No key is valid for the internal tenant, even if such a record was written.
        Ok(found.filter(|(record, _)| !record.tenant.is_internal()))
    }

    async fn write(&self, record: &KeyRecord, expected: Option<u64>) -> Result<(), KeyError> {
        let write = RecordWrite {
            owner: RecordOwner::Tenant,
            namespace: namespace(),
            key: record.id.clone(),
            expected,
            value: Some(JsonText::of(record)?),
            expires_at: None,
        };
        self.memory.backend().store.write_record(&self.scope, write, self.memory.now()).await?;
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), KeyError> {
    if name.trim().is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
        return Err(KeyError::Invalid("the name of a key must be 1 to 200 bytes without control characters"));
    }
    Ok(())
}

fn normalize_roles(roles: &mut Vec<KeyRole>) -> Result<(), KeyError> {
    if roles.is_empty() {
        return Err(KeyError::Invalid("a key needs at least one role"));
    }
    roles.sort_unstable();
    roles.dedup();
    Ok(())
}

fn namespace() -> Namespace {
    Namespace::System("server.keys".to_owned())
}

fn mint_secret(id: &str) -> Result<(String, KeySecret), KeyError> {
    let secret = random_hex::<SECRET_BYTES>()?;
    Ok((sha256(&secret), KeySecret(format!("{PREFIX}{id}_{secret}"))))
}

fn random_hex<const N: usize>() -> Result<String, KeyError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(KeyError::Randomness)?;
    Ok(hex(&bytes))
}

fn sha256(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}
