//! The keys of rows and of the index. They are binary, because IndexedDB compares strings by UTF-16 units and the contract by bytes.
//!
//! A name ends with a zero byte, which no name contains, so that its keys sort like the names.

use threadkeep_core::{
    IdempotencyKey, MessageId, Namespace, Owner, RecordName, RecordOwner, TenantId, ThreadId, ThreadKey, Timestamp,
};

use crate::idb::Range;

/// Builds a key.
#[derive(Clone, Debug)]
pub(crate) struct Key(Vec<u8>);

impl Key {
    const fn empty() -> Self {
        Self(Vec::new())
    }

    fn kind(kind: u8) -> Self {
        Self(vec![kind])
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn name(self, name: &str) -> Self {
        self.bytes(name.as_bytes()).bytes(&[0])
    }

    fn number(self, number: u64) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    fn tenant(kind: u8, tenant: &TenantId) -> Self {
        Self::kind(kind).name(tenant.as_str())
    }

    fn thread(kind: u8, tenant: &TenantId, thread: ThreadId) -> Self {
        Self::tenant(kind, tenant).bytes(thread.0.as_bytes())
    }

    fn owner(self, owner: &Owner) -> Self {
        match owner {
            Owner::Tenant => self.bytes(&[1]),
            Owner::User(user) => self.bytes(&[2]).name(user.as_str()),
        }
    }

    fn namespace(self, namespace: &Namespace) -> Self {
        match namespace {
            Namespace::App(name) => self.bytes(&[1]).name(name),
            Namespace::System(name) => self.bytes(&[2]).name(name),
        }
    }

    fn record_owner(tenant: &TenantId, owner: &RecordOwner) -> Self {
        match owner {
            RecordOwner::Thread(thread) => Self::thread(b'R', tenant, *thread),
            RecordOwner::User(user) => Self::tenant(b'P', tenant).bytes(&[1]).name(user.as_str()),
            RecordOwner::Tenant => Self::tenant(b'P', tenant).bytes(&[2]),
        }
    }
}

impl From<Key> for Vec<u8> {
    fn from(key: Key) -> Self {
        key.0
    }
}

fn all(prefix: Key) -> Range {
    Range::of_prefix(prefix.0)
}

/// The row of counters.
pub(crate) fn counters() -> Vec<u8> {
    Key::kind(b'M').0
}

pub(crate) fn thread(tenant: &TenantId, id: ThreadId) -> Vec<u8> {
    Key::thread(b'T', tenant, id).0
}

pub(crate) fn all_threads() -> Range {
    all(Key::kind(b'T'))
}

pub(crate) fn threads_of(tenant: &TenantId) -> Range {
    all(Key::tenant(b'T', tenant))
}

/// A thread that is being restored.
pub(crate) fn unfinished(tenant: &TenantId, id: ThreadId) -> Vec<u8> {
    Key::thread(b'U', tenant, id).0
}

pub(crate) fn deleted(tenant: &TenantId, id: ThreadId) -> Vec<u8> {
    Key::thread(b'D', tenant, id).0
}

pub(crate) fn all_deleted() -> Range {
    all(Key::kind(b'D'))
}

pub(crate) fn entry(tenant: &TenantId, id: ThreadId, seq: u64) -> Vec<u8> {
    Key::thread(b'E', tenant, id).number(seq).0
}

/// The entries at positions from `start` to before `end`.
pub(crate) fn entries(tenant: &TenantId, id: ThreadId, start: u64, end: u64) -> Range {
    Range { start: entry(tenant, id, start), end: entry(tenant, id, end) }
}

/// Returns the thread and the position in the key of an entry.
pub(crate) fn parse_entry(key: &[u8]) -> Option<(ThreadId, u64)> {
    let (rest, seq) = key.split_last_chunk::<8>()?;
    let (_, id) = rest.split_last_chunk::<16>()?;
    Some((ThreadId(uuid::Uuid::from_bytes(*id)), u64::from_be_bytes(*seq)))
}

pub(crate) fn commit(tenant: &TenantId, id: ThreadId, change: u64) -> Vec<u8> {
    Key::thread(b'C', tenant, id).number(change).0
}

/// The commits after a change.
pub(crate) fn commits_after(tenant: &TenantId, id: ThreadId, change: u64) -> Range {
    let thread = Key::thread(b'C', tenant, id);
    let last = thread.clone().number(change);
    all(thread).after(&last.0)
}

pub(crate) fn commits(tenant: &TenantId, id: ThreadId) -> Range {
    all(Key::thread(b'C', tenant, id))
}

/// All rows that belong to a thread, except its own.
pub(crate) fn parts_of_thread(tenant: &TenantId, id: ThreadId) -> [Range; 3] {
    [b'C', b'E', b'R'].map(|kind| all(Key::thread(kind, tenant, id)))
}

pub(crate) fn record(tenant: &TenantId, owner: &RecordOwner, namespace: &Namespace, key: &str) -> Vec<u8> {
    Key::record_owner(tenant, owner).namespace(namespace).name(key).0
}

pub(crate) fn thread_record(tenant: &TenantId, id: ThreadId, name: &RecordName) -> Vec<u8> {
    record(tenant, &RecordOwner::Thread(id), &name.namespace, &name.key)
}

/// The records of an owner, in one namespace if one is given, with a prefix of their keys.
pub(crate) fn records(tenant: &TenantId, owner: &RecordOwner, namespace: Option<&Namespace>, prefix: &str) -> Range {
    let owner = Key::record_owner(tenant, owner);
    match namespace {
        Some(namespace) => all(owner.namespace(namespace).bytes(prefix.as_bytes())),
        None => all(owner),
    }
}

/// The records of users and tenants.
pub(crate) fn all_owned_records() -> Range {
    all(Key::kind(b'P'))
}

pub(crate) fn known_owner(tenant: &TenantId, owner: &Owner) -> Vec<u8> {
    Key::tenant(b'N', tenant).owner(owner).0
}

pub(crate) fn known_owners(tenant: &TenantId) -> Range {
    all(Key::tenant(b'N', tenant))
}

/// The known owners of the tenants after a tenant.
pub(crate) fn tenants_after(tenant: Option<&TenantId>) -> Range {
    let mut range = all(Key::kind(b'N'));
    if let Some(tenant) = tenant {
        range.start = known_owners(tenant).end;
    }
    range
}

pub(crate) fn collection_entry(tenant: &TenantId, owner: &Owner, collection: &str, id: &str) -> Vec<u8> {
    Key::tenant(b'L', tenant).owner(owner).name(collection).name(id).0
}

pub(crate) fn collection(tenant: &TenantId, owner: &Owner, collection: &str) -> Range {
    all(Key::tenant(b'L', tenant).owner(owner).name(collection))
}

pub(crate) fn collections(tenant: &TenantId, owner: &Owner) -> Range {
    all(Key::tenant(b'L', tenant).owner(owner))
}

/// Keys of the index.
pub(crate) mod index {
    use super::{IdempotencyKey, Key, MessageId, Owner, Range, TenantId, ThreadId, ThreadKey, Timestamp, all};

    /// The thread with a key.
    pub(crate) fn thread_key(tenant: &TenantId, owner: &Owner, key: &ThreadKey) -> Vec<u8> {
        Key::tenant(b'k', tenant).owner(owner).name(key.as_str()).0
    }

    /// A thread in the order of creation.
    pub(crate) fn created(tenant: &TenantId, number: u64) -> Vec<u8> {
        Key::tenant(b'c', tenant).number(number).0
    }

    pub(crate) fn by_creation(tenant: &TenantId) -> Range {
        all(Key::tenant(b'c', tenant))
    }

    /// A thread in the order of recency: the newest first.
    pub(crate) fn recent(tenant: &TenantId, updated_at: Timestamp, id: ThreadId) -> Vec<u8> {
        let number = updated_at.as_micros().cast_unsigned() ^ (1 << 63);
        let id = id.0.as_bytes().map(|byte| !byte);
        Key::tenant(b'r', tenant).number(!number).bytes(&id).0
    }

    pub(crate) fn by_recency(tenant: &TenantId) -> Range {
        all(Key::tenant(b'r', tenant))
    }

    /// A thread in the order of the last change.
    pub(crate) fn changed(tenant: &TenantId, stamp: u64) -> Vec<u8> {
        Key::tenant(b's', tenant).number(stamp).0
    }

    pub(crate) fn changed_after(tenant: &TenantId, stamp: u64) -> Range {
        all(Key::tenant(b's', tenant)).after(&changed(tenant, stamp))
    }

    /// A deleted thread in the order of deletion.
    pub(crate) fn deleted(tenant: &TenantId, stamp: u64) -> Vec<u8> {
        Key::tenant(b'z', tenant).number(stamp).0
    }

    pub(crate) fn deleted_after(tenant: &TenantId, stamp: u64) -> Range {
        all(Key::tenant(b'z', tenant)).after(&deleted(tenant, stamp))
    }

    /// The message or tombstone with an id.
    pub(crate) fn message(tenant: &TenantId, thread: ThreadId, id: MessageId) -> Vec<u8> {
        Key::thread(b'm', tenant, thread).bytes(id.0.as_bytes()).0
    }

    /// The message with an external id.
    pub(crate) fn external(tenant: &TenantId, thread: ThreadId, external_id: &str) -> Vec<u8> {
        Key::thread(b'e', tenant, thread).name(external_id).0
    }

    /// A message that contains a term.
    pub(crate) fn term(tenant: &TenantId, term: &str) -> Vec<u8> {
        Key::tenant(b'w', tenant).name(term).0
    }

    /// A commit with an idempotency key.
    pub(crate) fn idempotency(tenant: &TenantId, thread: ThreadId, key: &IdempotencyKey) -> Vec<u8> {
        let thread = Key::thread(b'i', tenant, thread);
        match key {
            IdempotencyKey::Generated(id) => thread.bytes(&[1]).bytes(id.as_bytes()).0,
            IdempotencyKey::FromCaller(key) => thread.bytes(&[2]).name(key).0,
        }
    }

    /// A thread that has a driver.
    pub(crate) fn driven(tenant: &TenantId, thread: ThreadId) -> Vec<u8> {
        Key::thread(b'd', tenant, thread).0
    }

    pub(crate) fn driven_after(after: Option<(&TenantId, ThreadId)>) -> Range {
        let range = all(Key::kind(b'd'));
        match after {
            Some((tenant, thread)) => range.after(&driven(tenant, thread)),
            None => range,
        }
    }

    /// A record that expires.
    pub(crate) fn expiry(at: Timestamp) -> Vec<u8> {
        Key::kind(b'x').number(at.as_micros().cast_unsigned() ^ (1 << 63)).0
    }

    /// The records that have expired.
    pub(crate) fn expired(now: Timestamp) -> Range {
        let mut range = all(Key::kind(b'x'));
        range.end = Range::of_prefix(expiry(now)).end;
        range
    }

    /// The keys that are equal to an index key.
    pub(crate) fn equal(key: &[u8]) -> Range {
        let end = Key::empty().bytes(key).bytes(&[0]).0;
        Range { start: key.to_vec(), end }
    }
}
