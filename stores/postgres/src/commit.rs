//! How a thread changes: one call of `threadkeep.commit`, which makes every check before the first write.

use std::sync::Arc;

use threadkeep_core::decide::patched_words;
use threadkeep_core::{
    Batch, Checksum, CommitOutcome, Conflict, DocumentName, DocumentState, EncodedBatch, Expected, Kind, Result, Scope,
    StoreError, ThreadId, Timestamp, Urgency, limits, text,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::error::{self, PostgresError};
use crate::lanes;
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{self, get, signed, unsigned};
use crate::threads::{self, WINDOW};

/// How often the words of a thread are made anew because somebody else changed them meanwhile.
const ATTEMPTS: usize = 100;

const SQL: &str = "SELECT outcome, change, first_seq, count, place, actual, owner, body, tag FROM threadkeep.commit(\
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, \
    $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46)";

pub(crate) async fn commit(
    shared: &Arc<Shared>,
    scope: &Scope,
    thread: ThreadId,
    batch: Batch,
    now: Timestamp,
) -> Result<CommitOutcome> {
    let mut call = Arc::new(Call::new(scope, thread, batch, now)?);
    for _ in 0..ATTEMPTS {
        let row = lanes::call(shared, &call).await?;
        let outcome: String = get(&row, 0)?;
        match outcome.as_str() {
            "done" | "replayed" => {
                let outcome = CommitOutcome {
                    change: unsigned(&row, 1)?,
                    tag: row::tag(&row, 8)?,
                    first_seq: unsigned(&row, 2)?,
                    count: unsigned(&row, 3)?,
                    replayed: outcome == "replayed",
                };
                if !outcome.replayed && !call.batch.is_empty() {
                    threads::wake(shared, scope, &row::owner(get(&row, 6)?)?, thread, Some(outcome.change));
                }
                return Ok(outcome);
            }
            "words" => {
                let words = Words::patched(get(&row, 7)?, &call.batch)?;
                Arc::make_mut(&mut call).words = words;
            }
            "replaced" => {
                let replaced = Replaced::told(get(&row, 7)?, &call)?;
                Arc::make_mut(&mut call).replaced = replaced;
            }
            _ => return Err(refusal(&outcome, &row, &call.batch)?),
        }
    }
    Err(StoreError::unavailable(threadkeep_core::Reason::Busy))
}

/// Whether another transaction held the thread, so that nothing was done.
pub(crate) fn is_locked(row: &Row) -> bool {
    get::<&str>(row, 0).is_ok_and(|outcome| outcome == "locked")
}

/// What stood in the way.
fn refusal(outcome: &str, row: &Row, batch: &Batch) -> Result<StoreError, PostgresError> {
    let place = || -> Result<usize, PostgresError> { Ok(get::<i32>(row, 4)?.unsigned_abs() as usize - 1) };
    Ok(match outcome {
        "thread" => StoreError::NotFound(Kind::Thread),
        "denied" => StoreError::Denied("changing a shared thread other than by adding messages"),
        "key" => Conflict::IdempotencyKey.into(),
        "seq" | "change" => {
            let actual = row::tagged(row, get(row, 5)?, 8)?;
            match batch.expected {
                Some(Expected::Seq(expected)) => Conflict::Seq { expected, actual: actual.number }.into(),
                Some(Expected::Change(expected)) => Conflict::Change { expected, actual }.into(),
                None => StoreError::corrupt("answer", "an expectation that was not given"),
            }
        }
        "document" => {
            let DocumentName { namespace, key } = batch.require[place()?].name.clone();
            let actual: Option<i64> = get(row, 5)?;
            let actual = actual.map(|actual| row::tagged(row, actual, 8)).transpose()?;
            Conflict::Document { namespace, key, actual }.into()
        }
        "message_id" => Conflict::MessageId { id: batch.append[place()?].id, seq: unsigned(row, 5)? }.into(),
        "external_id" => Conflict::ExternalId { seq: unsigned(row, 5)? }.into(),
        "message" => StoreError::NotFound(Kind::Message),
        "trim" => StoreError::invalid("trim_below", "beyond the end of the thread"),
        "positions" => StoreError::LimitExceeded {
            limit: "positions of a thread",
            max: limits::LAST_POSITION,
            actual: unsigned(row, 5)?,
        },
        _ => StoreError::corrupt("answer", "of no kind that this version knows"),
    })
}

/// A thread's own words before and after a patch. The store makes the new ones from what it finds, and the function takes
/// them only while it finds the same.
#[derive(Clone, Default)]
struct Words {
    old: Option<String>,
    new: Option<String>,
}

impl Words {
    fn patched(body: String, batch: &Batch) -> Result<Self> {
        Ok(Self { new: Some(patched_words(&body, &batch.patch)?), old: Some(body) })
    }
}

/// What stays of messages that are replaced, as the store tells it, and their checksums over that. The function takes them
/// only while it finds the same.
#[derive(Clone, Default)]
struct Replaced {
    facts: String,
    checksums: Vec<i32>,
}

impl Replaced {
    fn told(facts: String, call: &Call) -> Result<Self> {
        let told: Vec<(i64, Option<String>)> =
            serde_json::from_str(&facts).map_err(|_| StoreError::corrupt("answer", "not what stays of a message"))?;
        let new = call.batch.replace.iter().zip(&call.columns.replaced_bodies);
        let checksums = new.zip(told).map(|((replacement, body), (created_at, external_id))| {
            let created_at =
                Timestamp::from_micros(created_at).map_err(|_| StoreError::corrupt("instant", "outside its range"))?;
            Ok(replacement.checksum(created_at, external_id.as_deref(), body).to_stored())
        });
        Ok(Self { checksums: checksums.collect::<Result<_>>()?, facts })
    }
}

/// A batch as arrays, one for each column.
#[derive(Clone)]
struct Columns {
    require: Names,
    required_versions: Vec<i64>,
    required_tags: Vec<Option<i32>>,
    ids: Vec<Uuid>,
    roles: Vec<i16>,
    instants: Vec<i64>,
    external_ids: Vec<Option<String>>,
    bodies: Vec<String>,
    checksums: Vec<i32>,
    replaced_ids: Vec<Uuid>,
    replaced_roles: Vec<i16>,
    replaced_bodies: Vec<String>,
    replaced_terms: Vec<String>,
    erased_ids: Vec<Uuid>,
    put: Names,
    put_values: Vec<String>,
    put_expiries: Vec<Option<i64>>,
    delete: Names,
}

impl Columns {
    fn new(encoded: EncodedBatch, batch: &Batch) -> Result<Self> {
        let version = |state: DocumentState| match state {
            DocumentState::Absent => -1,
            DocumentState::Version(version) => signed(version.number),
        };
        let tag = |state: DocumentState| match state {
            DocumentState::Absent => None,
            DocumentState::Version(version) => row::stored_tag(version),
        };
        Ok(Self {
            require: Names::of(batch.require.iter().map(|condition| &condition.name))?,
            required_versions: batch.require.iter().map(|condition| version(condition.state)).collect(),
            required_tags: batch.require.iter().map(|condition| tag(condition.state)).collect(),
            ids: batch.append.iter().map(|message| message.id.0).collect(),
            roles: batch.append.iter().map(|message| message.content.role.to_stored().into()).collect(),
            instants: batch.append.iter().map(|message| message.created_at.as_micros()).collect(),
            external_ids: batch.append.iter().map(|message| message.external_id.clone()).collect(),
            bodies: encoded.append,
            checksums: encoded.checksums.into_iter().map(Checksum::to_stored).collect(),
            replaced_ids: batch.replace.iter().map(|replacement| replacement.id.0).collect(),
            replaced_roles: batch
                .replace
                .iter()
                .map(|replacement| replacement.content.role.to_stored().into())
                .collect(),
            replaced_terms: batch
                .replace
                .iter()
                .map(|replacement| text::indexed_terms(&replacement.content.plain_text()).join(" "))
                .collect(),
            replaced_bodies: encoded.replace,
            erased_ids: batch.erase.iter().map(|id| id.0).collect(),
            put: Names::of(batch.put.iter().map(|put| &put.name))?,
            put_values: batch.put.iter().map(|put| put.value.as_str().to_owned()).collect(),
            put_expiries: batch.put.iter().map(|put| put.expires_at.map(Timestamp::as_micros)).collect(),
            delete: Names::of(batch.delete.iter())?,
        })
    }
}

/// Documents' names, in columns and as the change log has them.
#[derive(Clone)]
struct Names {
    namespaces: Vec<String>,
    keys: Vec<String>,
    json: Vec<String>,
}

impl Names {
    fn of<'a>(names: impl Iterator<Item = &'a DocumentName> + Clone) -> Result<Self> {
        let json = names.clone().map(|name| {
            serde_json::to_string(name).map_err(|error| StoreError::invalid("document name", error.to_string()))
        });
        Ok(Self {
            json: json.collect::<Result<_>>()?,
            namespaces: names.clone().map(|name| name.namespace.to_string()).collect(),
            keys: names.map(|name| name.key.clone()).collect(),
        })
    }
}

/// All that the function is given.
#[derive(Clone)]
pub(crate) struct Call {
    caller: Caller,
    pub(crate) thread: ThreadId,
    now: i64,
    batch: Batch,
    key: Vec<u8>,
    fingerprint: i64,
    expected_seq: Option<i64>,
    expected_change: Option<i64>,
    expected_tag: Option<i32>,
    trim_below: Option<i64>,
    expires_at: Option<i64>,
    /// What the function itself asks of a batch: whether it appends only, is empty, patches, patches words or the expiry.
    traits: [bool; 5],
    columns: Columns,
    words: Words,
    replaced: Replaced,
}

impl Call {
    fn new(scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<Self> {
        let (expected_seq, expected_change, expected_tag) = match batch.expected {
            Some(Expected::Seq(seq)) => (Some(signed(seq)), None, None),
            Some(Expected::Change(change)) => (None, Some(signed(change.number)), row::stored_tag(change)),
            None => (None, None, None),
        };
        let patch = &batch.patch;
        Ok(Self {
            caller: Caller::of(scope),
            thread,
            now: now.as_micros(),
            key: batch.key.to_bytes(),
            fingerprint: i64::from_be_bytes(batch.fingerprint.0),
            expected_seq,
            expected_change,
            expected_tag,
            trim_below: batch.trim_below.map(signed),
            expires_at: patch.expires_at.flatten().map(Timestamp::as_micros),
            traits: [
                batch.is_append_only(),
                batch.is_empty(),
                !patch.is_empty(),
                patch.changes_words(),
                patch.expires_at.is_some(),
            ],
            columns: Columns::new(batch.encode()?, &batch)?,
            words: Words::default(),
            replaced: Replaced::default(),
            batch,
        })
    }

    pub(crate) fn is_deferred(&self) -> bool {
        self.batch.urgency == Urgency::Deferred
    }

    /// How many rows of messages it brings.
    pub(crate) fn weight(&self) -> usize {
        self.columns.ids.len()
    }

    /// The statement's values; how it meets a lock that another holds, and whether the disk may learn of it later, is said
    /// for the flight that it is part of.
    fn parameters<'a>(&'a self, waits: &'a bool, is_deferred: &'a bool) -> [Parameter<'a>; 46] {
        let (columns, words) = (&self.columns, &self.words);
        let [is_append_only, is_empty, patches, patches_words, patches_expiry] = &self.traits;
        [
            (&self.caller.tenant, Type::TEXT),
            (&self.caller.name, Type::TEXT),
            (&self.thread.0, Type::UUID),
            (&self.now, Type::INT8),
            (&WINDOW, Type::INT8),
            (&self.key, Type::BYTEA),
            (&self.fingerprint, Type::INT8),
            (is_append_only, Type::BOOL),
            (is_empty, Type::BOOL),
            (&self.expected_seq, Type::INT8),
            (&self.expected_change, Type::INT8),
            (&columns.require.namespaces, Type::TEXT_ARRAY),
            (&columns.require.keys, Type::TEXT_ARRAY),
            (&columns.required_versions, Type::INT8_ARRAY),
            (&columns.ids, Type::UUID_ARRAY),
            (&columns.roles, Type::INT2_ARRAY),
            (&columns.instants, Type::INT8_ARRAY),
            (&columns.external_ids, Type::TEXT_ARRAY),
            (&columns.bodies, Type::TEXT_ARRAY),
            (&columns.replaced_ids, Type::UUID_ARRAY),
            (&columns.replaced_roles, Type::INT2_ARRAY),
            (&columns.replaced_bodies, Type::TEXT_ARRAY),
            (&columns.replaced_terms, Type::TEXT_ARRAY),
            (&columns.erased_ids, Type::UUID_ARRAY),
            (&self.trim_below, Type::INT8),
            (&columns.put.namespaces, Type::TEXT_ARRAY),
            (&columns.put.keys, Type::TEXT_ARRAY),
            (&columns.put.json, Type::TEXT_ARRAY),
            (&columns.put_values, Type::TEXT_ARRAY),
            (&columns.put_expiries, Type::INT8_ARRAY),
            (&columns.delete.namespaces, Type::TEXT_ARRAY),
            (&columns.delete.keys, Type::TEXT_ARRAY),
            (&columns.delete.json, Type::TEXT_ARRAY),
            (patches, Type::BOOL),
            (patches_words, Type::BOOL),
            (&words.old, Type::TEXT),
            (&words.new, Type::TEXT),
            (patches_expiry, Type::BOOL),
            (&self.expires_at, Type::INT8),
            (waits, Type::BOOL),
            (is_deferred, Type::BOOL),
            (&columns.checksums, Type::INT4_ARRAY),
            (&self.replaced.facts, Type::TEXT),
            (&self.replaced.checksums, Type::INT4_ARRAY),
            (&self.expected_tag, Type::INT4),
            (&columns.required_tags, Type::INT4_ARRAY),
        ]
    }
}

/// Makes one call in a transaction of its own, and waits for whoever holds the thread if that is wanted.
pub(crate) async fn fly_alone(shared: &Shared, call: &Call, waits: bool) -> Result<Row> {
    let rows = shared.write(SQL, &call.parameters(&waits, &call.is_deferred())).await?;
    rows.into_iter().next().ok_or_else(|| StoreError::corrupt("answer", "of no row"))
}

/// Makes several calls in one transaction: all of them or none.
pub(crate) async fn fly_together(shared: &Shared, calls: &[Arc<Call>]) -> error::Result<Vec<Row>> {
    // A commit that must be on the disk takes along what it is with.
    let is_deferred = calls.iter().all(|call| call.is_deferred());
    let values: Vec<_> = calls.iter().map(|call| call.parameters(&false, &is_deferred)).collect();
    let values: Vec<&[Parameter<'_>]> = values.iter().map(<[_; 46]>::as_slice).collect();
    shared.write_together(SQL, &values).await
}
