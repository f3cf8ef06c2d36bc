//! Random operations. They use only a few ids and keys, so that they often collide.

use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::{Just, Strategy, any};
use proptest::{prop_oneof, sample};
use threadkeep_core::{
    Batch, Bound, Content, DerivedWrite, Expected, Fingerprint, IdempotencyKey, MessageQuery, Namespace, NewMessage,
    OnCorrupt, OpenThread, OrderBy, Owner, Positions, PutRecord, RangeEnd, RecordCondition, RecordName, RecordOwner,
    RecordState, RecordWrite, Replacement, Role, Scope, TaggedNumber, ThreadId, ThreadPatch, Timestamp,
};

use super::model::Model;
use crate::fixtures::{app, at, json, message_id, record_name, system, tenant, thread_id, thread_key, user, user_id};

/// The number of threads in each tenant.
pub(super) const THREAD_COUNT: u128 = 3;

/// The key of the derived record of each thread.
pub(super) const DERIVED_KEY: &str = "k";

#[derive(Clone, Debug)]
pub(super) enum Operation {
    Open(Scope, OpenThread),
    Commit(Scope, ThreadId, Commit),
    Delete(Scope, ThreadId),
    Write(Scope, Write),
    Derive(Scope, ThreadId, Derive),
    Read(Scope, ThreadId, MessageQuery),
    Wait(i64),
    Sweep,
}

pub(super) fn thread_of(number: u128) -> ThreadId {
    thread_id(number)
}

pub(super) fn scopes() -> Vec<Scope> {
    let scopes_of = |name: &str| [Scope::Tenant(tenant(name)), user(name, "ana"), user(name, "ben")];
    ["acme", "globex"].iter().flat_map(|name| scopes_of(name)).collect()
}

pub(super) fn record_owners() -> [RecordOwner; 3] {
    [RecordOwner::Tenant, RecordOwner::User(user_id("ana")), RecordOwner::User(user_id("ben"))]
}

pub(super) fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (any_scope(), any_open()).prop_map(|(scope, open)| Operation::Open(scope.clone(), open.open(&scope))),
        12 => (any_scope(), any_thread(), any_commit()).prop_map(|(s, t, commit)| Operation::Commit(s, t, commit)),
        1 => (any_scope(), any_thread()).prop_map(|(scope, thread)| Operation::Delete(scope, thread)),
        3 => (any_scope(), any_write()).prop_map(|(scope, write)| Operation::Write(scope, write)),
        3 => (any_scope(), any_thread(), any_derive()).prop_map(|(s, t, derive)| Operation::Derive(s, t, derive)),
        3 => (any_scope(), any_thread(), any_query()).prop_map(|(s, t, query)| Operation::Read(s, t, query)),
        1 => sample::select(vec![1, 60_000, 4 * DAY_MS, 8 * DAY_MS]).prop_map(Operation::Wait),
        1 => Just(Operation::Sweep),
    ]
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn any_scope() -> impl Strategy<Value = Scope> {
    sample::select(scopes())
}

fn any_thread() -> impl Strategy<Value = ThreadId> {
    (0..THREAD_COUNT).prop_map(thread_of)
}

/// Generates the seconds until an expiry.
fn any_expiry() -> impl Strategy<Value = Option<i64>> {
    weighted(0.1, 1_i64..30)
}

fn from_now(seconds: i64, now: Timestamp) -> Timestamp {
    now.plus_ms(seconds * 1000 + 500)
}

#[derive(Clone, Debug)]
struct Open {
    thread: ThreadId,
    owner: Option<Owner>,
    key: Option<u8>,
    expires_second: Option<i64>,
}

impl Open {
    fn open(self, scope: &Scope) -> OpenThread {
        let open = OpenThread::new(scope, self.thread);
        OpenThread {
            owner: self.owner.unwrap_or_else(|| scope.default_owner()),
            key: self.key.map(|key| thread_key(&format!("key {key}"))),
            expires_at: self.expires_second.map(at),
            ..open
        }
    }
}

fn any_open() -> impl Strategy<Value = Open> {
    let owners = vec![Owner::Tenant, Owner::User(user_id("ana")), Owner::User(user_id("ben"))];
    let expires_second = weighted(0.1, 20_i64..60);
    (any_thread(), weighted(0.3, sample::select(owners)), weighted(0.3, 0_u8..2), expires_second)
        .prop_map(|(thread, owner, key, expires_second)| Open { thread, owner, key, expires_second })
}

/// A batch whose positions are relative to the current positions of the thread.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    key: u8,
    /// Which of two fingerprints the batch has.
    fingerprint: bool,
    /// Whether the expected value is a position (otherwise a change), and whether it is the actual value.
    expected: Option<(bool, bool)>,
    require: Option<(RecordName, Option<u64>)>,
    append: Vec<(u128, Option<u8>, i64)>,
    replace: Vec<u128>,
    erase: Vec<u128>,
    trim_back: Option<u64>,
    put: Vec<(RecordName, Option<i64>)>,
    delete: Vec<RecordName>,
    title: Option<Option<u8>>,
    expiry: Option<Option<i64>>,
}

fn any_name() -> impl Strategy<Value = RecordName> {
    sample::select(vec![
        record_name(app("a"), "k"),
        record_name(app("a"), "l"),
        record_name(system("a"), "k"),
        record_name(Namespace::derived(), DERIVED_KEY),
    ])
}

fn any_commit() -> impl Strategy<Value = Commit> {
    let message = || 0_u128..12;
    let guards = (
        0_u8..24,
        proptest::bool::weighted(0.95),
        weighted(0.2, (any::<bool>(), proptest::bool::weighted(0.7))),
        weighted(0.1, (any_name(), of(0_u64..6))),
    );
    let messages = (
        vec((message(), weighted(0.3, 0_u8..4), 0_i64..6), 0..3),
        weighted(0.15, vec(message(), 1..3)),
        weighted(0.15, vec(message(), 1..3)),
        weighted(0.1, 0_u64..8),
    );
    let rest = (
        weighted(0.2, vec((any_name(), any_expiry()), 1..3)),
        weighted(0.1, vec(any_name(), 1..3)),
        weighted(0.1, of(0_u8..3)),
        weighted(0.05, of(1_i64..30)),
    );
    (guards, messages, rest).prop_map(|(guards, messages, rest)| Commit {
        key: guards.0,
        fingerprint: guards.1,
        expected: guards.2,
        require: guards.3,
        append: messages.0,
        replace: messages.1.unwrap_or_default(),
        erase: messages.2.unwrap_or_default(),
        trim_back: messages.3,
        put: rest.0.unwrap_or_default(),
        delete: rest.1.unwrap_or_default(),
        title: rest.2,
        expiry: rest.3,
    })
}

impl Commit {
    pub(super) fn batch(self, positions: Positions, now: Timestamp) -> Batch {
        let fingerprint = Fingerprint::of(if self.fingerprint { b"one" } else { b"other" });
        let end = positions.seq + self.append.len() as u64 + 2;
        let expected = self.expected.map(|(by_seq, is_actual)| match by_seq {
            true => Expected::Seq(positions.seq + u64::from(!is_actual)),
            false => {
                Expected::Change(TaggedNumber { number: positions.change + u64::from(!is_actual), tag: positions.tag })
            }
        });
        let require = self.require.map(|(name, version)| {
            let state = version.map_or(RecordState::Absent, |version| RecordState::Version(version.into()));
            RecordCondition { name, state }
        });
        let append = self.append.into_iter().map(|(number, external_id, second)| NewMessage {
            id: message_id(number),
            external_id: external_id.map(|external_id| format!("x{external_id}")),
            created_at: at(second),
            content: Content::text(role(number), format!("message {number}")),
        });
        let replace = self.replace.into_iter().map(|number| Replacement {
            id: message_id(number),
            content: Content::text(role(number + 1), format!("replaced {now}")),
        });
        let put = self.put.into_iter().map(|(name, expiry)| PutRecord {
            name,
            value: json(&format!("\"{now}\"")),
            expires_at: expiry.map(|seconds| from_now(seconds, now)),
        });
        Batch {
            expected,
            require: require.into_iter().collect(),
            append: append.collect(),
            replace: replace.collect(),
            erase: self.erase.into_iter().map(message_id).collect(),
            trim_below: self.trim_back.map(|back| end.saturating_sub(back)),
            put: put.collect(),
            delete: self.delete,
            patch: ThreadPatch {
                title: self.title.map(|title| title.map(|title| format!("title {title}"))),
                metadata: None,
                state: None,
                expires_at: self.expiry.map(|expiry| expiry.map(|seconds| from_now(seconds, now))),
            },
            ..Batch::new(IdempotencyKey::FromCaller(format!("key {}", self.key)), fingerprint)
        }
    }
}

fn role(number: u128) -> Role {
    if number.is_multiple_of(3) { Role::Assistant } else { Role::User }
}

/// A write whose expected version is relative to the actual version.
#[derive(Clone, Debug)]
pub(super) struct Write {
    write: RecordWrite,
    expected: Option<Version>,
}

#[derive(Clone, Copy, Debug)]
enum Version {
    Absent,
    Actual,
    Wrong,
}

impl Write {
    pub(super) fn with_version(self, model: &Model, scope: &Scope) -> RecordWrite {
        let actual = model.record_version(scope.tenant_id(), &self.write);
        let expected = self.expected.map(|expected| match expected {
            Version::Absent => 0,
            Version::Actual => actual.unwrap_or(0),
            Version::Wrong => actual.unwrap_or(0) + 1,
        });
        RecordWrite { expected, ..self.write }
    }
}

fn any_write() -> impl Strategy<Value = Write> {
    let owner = sample::select(record_owners().to_vec());
    let expected = of(sample::select(vec![Version::Absent, Version::Actual, Version::Actual, Version::Wrong]));
    (owner, any_name(), weighted(0.8, 0_u8..9), expected, weighted(0.1, 20_i64..90)).prop_map(
        |(owner, RecordName { namespace, key }, value, expected, expires_second)| {
            let value = value.map(|value| json(&format!("{value}")));
            let expires_at = expires_second.map(at);
            Write { write: RecordWrite { owner, namespace, key, expected: None, value, expires_at }, expected }
        },
    )
}

/// A derived write whose change and expected version are relative to the actual ones.
#[derive(Clone, Debug)]
pub(super) struct Derive {
    is_at_actual_change: bool,
    expected: Version,
    value: u8,
}

impl Derive {
    pub(super) fn write(self, model: &Model, scope: &Scope, thread: ThreadId) -> DerivedWrite {
        let actual = model.derived_version(scope.tenant_id(), thread);
        let expected = match self.expected {
            Version::Absent => None,
            Version::Actual => actual,
            Version::Wrong => Some(increment(actual.unwrap_or_default())),
        };
        let actual = model.positions(scope.tenant_id(), thread).tagged();
        let at_change = if self.is_at_actual_change { actual } else { increment(actual) };
        DerivedWrite { key: DERIVED_KEY.to_owned(), at_change, expected, value: json(&self.value.to_string()) }
    }
}

fn increment(tagged: TaggedNumber) -> TaggedNumber {
    TaggedNumber { number: tagged.number + 1, ..tagged }
}

fn any_derive() -> impl Strategy<Value = Derive> {
    let expected =
        sample::select(vec![Version::Absent, Version::Actual, Version::Actual, Version::Actual, Version::Wrong]);
    (proptest::bool::weighted(0.8), expected, any::<u8>()).prop_map(|(is_at_actual_change, expected, value)| Derive {
        is_at_actual_change,
        expected,
        value,
    })
}

fn any_query() -> impl Strategy<Value = MessageQuery> {
    let bound = || {
        weighted(
            0.3,
            prop_oneof![(0_u64..15).prop_map(Bound::Seq), (0_i64..7).prop_map(|second| Bound::Time(at(second)))],
        )
    };
    let roles = weighted(0.2, sample::select(Role::ALL.to_vec()));
    (bound(), bound(), roles, any::<(bool, bool)>(), 1_usize..6).prop_map(
        |(before, after, role, (by_seq, newest), limit)| MessageQuery {
            before,
            after,
            roles: role.into_iter().collect(),
            order: if by_seq { OrderBy::Seq } else { OrderBy::Time },
            take: if newest { RangeEnd::Newest } else { RangeEnd::Oldest },
            limit,
            on_corrupt: OnCorrupt::Fail,
        },
    )
}
