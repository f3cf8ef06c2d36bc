//! API keys: made once, kept as a hash, looked at with every request so that one that is revoked is so at once.
//!
//! They lie in the store as system records of a tenant of their own, which no key can be made for, so that every
//! instance knows the same ones and no door reaches them. A revoked key stays known: a server that had a key is not
//! open to everyone again when the last one goes.

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
/// Keys that are known at a time without reading them again.
const KNOWN: usize = 1_024;

/// What a key lets its holder do, inside its tenant. `Write` and `Approve` include `Read`; `Admin` includes these three.
/// `Operate` is about the whole server: no other role includes it, and it includes none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyRole {
    /// Reading and searching.
    Read,
    /// Adding and changing.
    Write,
    /// Deciding about approvals.
    Approve,
    /// Importing, and erasing what is not the caller's own.
    Admin,
    /// Reading the figures of the whole server, which are those of all tenants together.
    Operate,
}

impl KeyRole {
    /// All roles.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Approve, Self::Admin, Self::Operate];

    /// The role's name.
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
        found.ok_or(KeyError::Invalid("a role is one of read, write, approve, admin, operate"))
    }
}

/// A key that is to be made.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Whose conversations it opens.
    pub tenant: TenantId,
    /// The only user on whose behalf it acts. Without one it acts for the whole tenant, or for the user that a request
    /// names.
    pub user: Option<UserId>,
    /// What people call it.
    pub name: String,
    /// What it lets its holder do; at least one.
    pub roles: Vec<KeyRole>,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// How many requests it may make in a minute.
    pub rate_limit: Option<RateLimit>,
    /// How many requests it may make in a day.
    pub quota: Option<Quota>,
}

/// A key as it is kept: without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// Its id, which is no secret.
    pub id: String,
    /// Whose conversations it opens.
    pub tenant: TenantId,
    /// The only user on whose behalf it acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// What people call it.
    pub name: String,
    /// What it lets its holder do.
    pub roles: Vec<KeyRole>,
    /// The SHA-256 of its secret, in hexadecimal. A secret of 256 random bits needs no slower hash.
    secret_sha256: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// How many requests it may make in a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// How many requests it may make in a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quota>,
}

impl KeyRecord {
    /// Whether it is good at an instant.
    #[must_use]
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires_at| expires_at > now)
    }
}

/// A key's text, told once.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret(String);

impl KeySecret {
    /// The text that a client sends as `Authorization: Bearer …`.
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

/// Why a key was not made or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// What was asked for makes no sense.
    #[error("{0}")]
    Invalid(&'static str),
    /// There is no such key.
    #[error("there is no key {0}")]
    Unknown(String),
    /// The system gives no randomness.
    #[error("the system gives no randomness: {0}")]
    Randomness(getrandom::Error),
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The memory refused or failed.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// The keys of a store.
#[derive(Clone)]
pub struct Keys {
    memory: Memory,
    scope: Scope,
    known: Arc<Mutex<Known>>,
}

/// Keys as they stand while no record of a tenant or a user is written to the store.
#[derive(Default)]
struct Known {
    stamp: u64,
    records: HashMap<String, Arc<KeyRecord>>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Keys {
    /// Opens the keys that lie in a memory's store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        let scope = Scope::Tenant(TenantId::internal());
        Self { memory: memory.clone(), scope, known: Arc::default() }
    }

    /// Makes a key and tells its text, which nobody can tell again.
    ///
    /// # Errors
    /// `Invalid` for a key without a name or role, or for the tenant that keeps the keys; those of the store.
    pub async fn create(&self, new: NewKey) -> Result<(KeyRecord, KeySecret), KeyError> {
        let NewKey { tenant, user, name, mut roles, expires_at, rate_limit, quota } = new;
        if tenant.is_internal() {
            return Err(KeyError::Invalid("this tenant is reserved for keys and the audit log; name another"));
        }
        if name.trim().is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
            return Err(KeyError::Invalid("a key's name is 1 to 200 bytes without control characters"));
        }
        if roles.is_empty() {
            return Err(KeyError::Invalid("a key needs at least one role"));
        }
        roles.sort_unstable();
        roles.dedup();
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

    /// Lists the keys of a tenant, or all, revoked ones included.
    ///
    /// # Errors
    /// Those of the store.
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

    /// Revokes a key at once. One that is revoked already stays so.
    ///
    /// # Errors
    /// `Unknown` for an id that no key of the tenant has; those of the store.
    pub async fn revoke(&self, tenant: &TenantId, id: &str) -> Result<KeyRecord, KeyError> {
        let (mut record, version) = self.get(tenant, id).await?;
        if record.revoked_at.is_none() {
            record.revoked_at = Some(self.memory.now());
            self.write(&record, Some(version)).await?;
        }
        Ok(record)
    }

    /// Gives a key a new secret; the old one is refused at once.
    ///
    /// # Errors
    /// `Unknown` for an id that no key of the tenant has, `Invalid` for a revoked key; those of the store.
    pub async fn rotate(&self, tenant: &TenantId, id: &str) -> Result<(KeyRecord, KeySecret), KeyError> {
        let (mut record, version) = self.get(tenant, id).await?;
        if record.revoked_at.is_some() {
            return Err(KeyError::Invalid("the key is revoked; make another"));
        }
        let (secret_sha256, secret) = mint_secret(&record.id)?;
        record.secret_sha256 = secret_sha256;
        self.write(&record, Some(version)).await?;
        Ok((record, secret))
    }

    /// Whether a key was ever made.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn is_any_known(&self) -> Result<bool, KeyError> {
        let query = RecordQuery { namespace: Some(namespace()), limit: 1, ..RecordQuery::of(RecordOwner::Tenant) };
        let store = &self.memory.backend().store;
        Ok(!store.list_records(&self.scope, &query, self.memory.now()).await?.is_empty())
    }

    /// Finds the key that a text is, if it is good now.
    pub(crate) async fn find(&self, text: &str) -> Result<Option<Arc<KeyRecord>>, KeyError> {
        let parts = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_'));
        let Some((id, secret)) = parts.filter(|(id, _)| id.len() == ID_BYTES * 2) else { return Ok(None) };
        let Some(record) = self.find_current(id).await? else { return Ok(None) };
        let is_same: bool = sha256(secret).as_bytes().ct_eq(record.secret_sha256.as_bytes()).into();
        Ok(Some(record).filter(|record| is_same && record.is_good(self.memory.now())))
    }

    /// The key of an id as it stands. It is read again once anybody wrote a record, so that one that is revoked, here or
    /// elsewhere, is so at once.
    async fn find_current(&self, id: &str) -> Result<Option<Arc<KeyRecord>>, KeyError> {
        // Before the key is read: what is written from now on makes it another one.
        let stamp = self.memory.backend().store.records_stamp();
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stamp) = stamp {
            let known = lock();
            if known.stamp == stamp
                && let Some(record) = known.records.get(id)
            {
                return Ok(Some(Arc::clone(record)));
            }
        }
        let Some((record, _)) = self.find_record(id).await? else { return Ok(None) };
        let record = Arc::new(record);
        if let Some(stamp) = stamp {
            let mut known = lock();
            if known.stamp != stamp || known.records.len() >= KNOWN {
                *known = Known { stamp, records: HashMap::new() };
            }
            known.records.insert(id.to_owned(), Arc::clone(&record));
        }
        Ok(Some(record))
    }

    /// Whether a key that was good when a stream began still is.
    pub(crate) async fn is_good(&self, id: &str) -> Result<bool, KeyError> {
        let found = self.find_record(id).await?;
        Ok(found.is_some_and(|(record, _)| record.is_good(self.memory.now())))
    }

    async fn get(&self, tenant: &TenantId, id: &str) -> Result<(KeyRecord, u64), KeyError> {
        let found = self.find_record(id).await?;
        found.filter(|(record, _)| record.tenant == *tenant).ok_or_else(|| KeyError::Unknown(id.to_owned()))
    }

    async fn find_record(&self, id: &str) -> Result<Option<(KeyRecord, u64)>, KeyError> {
        // Anything but hexadecimal digits is the id of no key.
        if id.len() != ID_BYTES * 2 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let (owner, now) = (RecordOwner::Tenant, self.memory.now());
        let store = &self.memory.backend().store;
        let found = store.find_record(&self.scope, &owner, &namespace(), id, now).await?;
        let read = |record: Record| Ok::<_, StoreError>((record.value.read::<KeyRecord>()?, record.version));
        let found = found.map(read).transpose()?;
        // No key opens the internal tenant, whoever wrote such a record.
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
