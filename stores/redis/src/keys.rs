//! Names of keys. All keys of a thread have the same part in braces, so that they are in one hash slot.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};
use threadkeep_core::{Owner, RecordName, RecordOwner, TenantId, ThreadId, ThreadKey};

/// The number of parts of a tenant's index, each in a hash slot of its own.
pub(crate) const INDEX_PARTS: u32 = 16;
/// The number of index parts across which the threads of one owner are distributed.
pub(crate) const PARTS_OF_OWNER: u32 = 4;

/// The number of channels of wake-ups in a cluster, each in a hash slot of its own.
pub(crate) const CHANNELS: u8 = 16;

/// Creates the names of the keys of one store.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// The prefix of a thread's keys.
    pub(crate) fn thread(&self, tenant: &TenantId, thread: ThreadId) -> String {
        format!("{}:{{{thread}/{}}}", self.prefix, tenant.as_str())
    }

    /// The prefix of the keys of a tenant's lists.
    pub(crate) fn tenant(&self, tenant: &TenantId) -> String {
        format!("{}:{{tenant/{}}}", self.prefix, tenant.as_str())
    }

    /// The list of tenants.
    pub(crate) fn tenants(&self) -> String {
        format!("{}:{{tenants}}", self.prefix)
    }

    /// The key of the store's description.
    pub(crate) fn about(&self) -> String {
        format!("{}:{{about}}", self.prefix)
    }

    /// The key that stores a claim: the id of the thread with the given thread key.
    pub(crate) fn claim(&self, tenant: &TenantId, owner: &Owner, key: &ThreadKey) -> String {
        format!("{}:{{key/{}/{}/{}}}", self.prefix, tenant.as_str(), owner_name(owner), key.as_str())
    }

    /// The prefix of the keys that hold the records of a user or a tenant.
    pub(crate) fn owner(&self, tenant: &TenantId, owner: &Owner) -> String {
        format!("{}:{{owner/{}/{}}}", self.prefix, tenant.as_str(), owner_name(owner))
    }

    /// The prefix of a collection's keys.
    pub(crate) fn collection(&self, tenant: &TenantId, owner: &Owner, name: &str) -> String {
        format!("{}:{{collection/{}/{}/{name}}}", self.prefix, tenant.as_str(), owner_name(owner))
    }

    /// The prefix of the keys of one part of a tenant's index.
    pub(crate) fn index(&self, tenant: &TenantId, part: u32) -> String {
        format!("{}:{{index/{part}/{}}}", self.prefix, tenant.as_str())
    }

    /// A pattern that matches all keys with a suffix.
    pub(crate) fn all(&self, ending: &str) -> String {
        // A prefix contains no characters that are special in patterns.
        format!("{}:{{*}}{ending}", self.prefix)
    }

    /// The channel of wake-ups on one node.
    pub(crate) fn channel(&self) -> String {
        format!("{}:changes", self.prefix)
    }

    /// A channel of wake-ups in a cluster.
    pub(crate) fn shard_channel(&self, number: u8) -> String {
        format!("{}:{{changes/{number}}}", self.prefix)
    }
}

/// The part of the index that contains a thread.
pub(crate) fn index_part(owner: &Owner, thread: ThreadId) -> u32 {
    let bucket = u32::from(thread.0.as_bytes()[15]) % PARTS_OF_OWNER;
    (first_part(owner) + bucket * (INDEX_PARTS / PARTS_OF_OWNER)) % INDEX_PARTS
}

/// The parts of the index that contain the threads of an owner.
pub(crate) fn parts_of_owner(owner: &Owner) -> impl Iterator<Item = u32> {
    let first = first_part(owner);
    (0..PARTS_OF_OWNER).map(move |bucket| (first + bucket * (INDEX_PARTS / PARTS_OF_OWNER)) % INDEX_PARTS)
}

fn first_part(owner: &Owner) -> u32 {
    u32::from(digest(owner_name(owner).as_bytes())[0]) % INDEX_PARTS
}

/// The text form of an owner. Sorts like the owner.
pub(crate) fn owner_name(owner: &Owner) -> String {
    match owner {
        Owner::Tenant => "t".to_owned(),
        Owner::User(user) => format!("u/{}", user.as_str()),
    }
}

/// Parses [`owner_name`].
pub(crate) fn parse_owner(name: &str) -> Option<Owner> {
    match name.split_once('/') {
        None if name == "t" => Some(Owner::Tenant),
        Some(("u", user)) => threadkeep_core::UserId::new(user).ok().map(Owner::User),
        _ => None,
    }
}

/// The short form of an owner in the index.
pub(crate) fn owner_hash(owner: &Owner) -> [u8; 8] {
    digest(owner_name(owner).as_bytes())
}

/// Stands for all owners in the index.
pub(crate) const EVERYONE: [u8; 8] = [0; 8];

/// The short form of a term in an index. An index contains no text.
pub(crate) fn term_hash(term: &str) -> [u8; 8] {
    digest(term.as_bytes())
}

/// The short form of a term in the index of messages. Only its first byte is 128 or higher, and it is never 255, so that `index.lua` can find
/// it with a plain search.
pub(crate) type MessageTerm = [u8; 5];

/// Returns the short form of a term in the index of messages.
pub(crate) fn message_term(term: &str) -> MessageTerm {
    let [first, second, third, fourth, fifth, ..] = digest(term.as_bytes());
    [128 + first % 127, second % 128, third % 128, fourth % 128, fifth % 128]
}

/// Returns the terms of the text as the index of messages stores them.
pub(crate) fn message_terms(text: &str) -> BTreeSet<MessageTerm> {
    threadkeep_core::text::indexed_terms(text).iter().map(|term| message_term(term)).collect()
}

/// The incarnation of a thread in the index of messages.
pub(crate) type Incarnation = [u8; 16];

/// Returns the short form of a thread's incarnation ([`crate::row::Row::born`]), which is a UUID.
pub(crate) fn incarnation(born: &str) -> Incarnation {
    uuid::Uuid::try_parse(born).map(uuid::Uuid::into_bytes).unwrap_or_else(|_| {
        let digest = Sha256::digest(born.as_bytes());
        std::array::from_fn(|at| digest[at])
    })
}

/// Terms as an index stores them, without duplicates.
pub(crate) fn hashes_of(terms: impl IntoIterator<Item = String>) -> Vec<u8> {
    let terms: BTreeSet<String> = terms.into_iter().collect();
    terms.iter().flat_map(|term| term_hash(term)).collect()
}

fn digest(bytes: &[u8]) -> [u8; 8] {
    let digest = Sha256::digest(bytes);
    let mut short = [0; 8];
    short.copy_from_slice(&digest[..8]);
    short
}

/// The field of a record. Sorts like the name of the record, because names contain no control characters.
pub(crate) fn record_field(name: &RecordName) -> Vec<u8> {
    [name.namespace.to_string().as_bytes(), b"\0", name.key.as_bytes()].concat()
}

/// The tenant or user that owns records; `None` if a thread owns them.
pub(crate) fn record_owner(owner: &RecordOwner) -> Option<Owner> {
    owner.as_owner()
}
