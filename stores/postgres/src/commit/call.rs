//! The parameters of `threadkeep.commit`: a batch in groups of columns, each of which the statement converts into a composite.

use threadkeep_core::decide::patch_thread_body;
use threadkeep_core::{
    Batch, Checksum, EncodedBatch, Expected, PutRecord, RecordCondition, RecordName, RecordState, Result, Scope,
    StoreError, SyncPolicy, TaggedNumber, ThreadId, ThreadPatch, Timestamp, text,
};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::pool::{Caller, Parameter};
use crate::row::{self, signed};
use crate::threads::IDEMPOTENCY_WINDOW_MICROS;

// Binds only arrays and scalars, whose type OIDs are the same in every database. The OID of a composite would have to be queried,
// and behind a pooler could not be cached per connection.
pub(super) const SQL: &str = "\
    SELECT outcome, change, first_seq, count, place, actual, owner, body, tag FROM threadkeep.commit(\
    $1, $2, $3, $4, \
    ROW($5, $6, $7)::threadkeep.idempotency, \
    ROW($8, $9, $10, $11, $12, $13, $14)::threadkeep.conditions, \
    ROW($15, $16, $17, $18, $19, $20)::threadkeep.new_messages, \
    ROW($21, $22, $23, $24, $25, $26)::threadkeep.replacements, \
    $27, \
    $28, \
    ROW($29, $30, $31, $32)::threadkeep.new_documents, \
    ROW($33, $34)::threadkeep.document_names, \
    ROW($35, $36, $37, $38, $39)::threadkeep.patch, \
    $40, $41)";

/// The parameters of a call.
#[derive(Clone)]
pub(crate) struct CommitCall {
    pub(super) batch: Batch,
    caller: Caller,
    pub(crate) thread: ThreadId,
    now: i64,
    key: Vec<u8>,
    fingerprint: i64,
    conditions: Conditions,
    append: NewMessages,
    replace: Replacements,
    erase: Vec<Uuid>,
    trim_below: Option<i64>,
    put: NewRecords,
    delete: RecordNames,
    patch: PatchColumns,
}

impl CommitCall {
    pub(super) fn new(scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<Self> {
        let EncodedBatch { append, checksums, replace } = batch.encode()?;
        Ok(Self {
            caller: Caller::of(scope),
            thread,
            now: now.as_micros(),
            key: batch.key.to_bytes(),
            fingerprint: i64::from_be_bytes(batch.fingerprint.0),
            conditions: Conditions::new(batch.expected, &batch.require),
            append: NewMessages::new(&batch, append, checksums),
            replace: Replacements::new(&batch, replace),
            erase: batch.erase.iter().map(|id| id.0).collect(),
            trim_below: batch.trim_below.map(signed),
            put: NewRecords::new(&batch.put),
            delete: RecordNames::of(batch.delete.iter()),
            patch: PatchColumns::new(&batch.patch),
            batch,
        })
    }

    pub(super) fn is_deferred(&self) -> bool {
        self.batch.sync_policy == SyncPolicy::Deferred
    }

    /// Returns the number of messages that the call appends.
    pub(crate) fn message_count(&self) -> usize {
        self.append.ids.len()
    }

    /// Computes the patched body from the thread's current body. The SQL function writes it only if the body has not changed in the
    /// meantime.
    pub(super) fn patch_body(&mut self, body: String) -> Result<()> {
        self.patch.new_body = Some(patch_thread_body(&body, &self.batch.patch)?);
        self.patch.old_body = Some(body);
        Ok(())
    }

    /// Computes the checksums of replacements, which cover the messages' fields that do not change. The SQL function writes
    /// them only if it finds the same fields.
    pub(super) fn set_replacement_checksums(&mut self, unchanged_fields: String) -> Result<()> {
        let fields: Vec<(i64, Option<String>)> = serde_json::from_str(&unchanged_fields)
            .map_err(|_| StoreError::corrupt("query result", "unchanged fields cannot be decoded"))?;
        let new = self.batch.replace.iter().zip(&self.replace.bodies);
        let checksums = new.zip(fields).map(|((replacement, body), (created_at, external_id))| {
            let created_at =
                Timestamp::from_micros(created_at).map_err(|_| StoreError::corrupt("instant", "outside its range"))?;
            Ok(replacement.checksum(created_at, external_id.as_deref(), body).to_stored())
        });
        self.replace.checksums = checksums.collect::<Result<_>>()?;
        self.replace.unchanged_fields = unchanged_fields;
        Ok(())
    }

    /// Returns the parameters of [`SQL`]. `waits` (whether to wait for locks of other transactions) and `is_deferred` (whether not
    /// to wait for the disk) apply to the whole transaction.
    pub(super) fn parameters<'a>(&'a self, waits: &'a bool, is_deferred: &'a bool) -> Vec<Parameter<'a>> {
        let groups: [&[Parameter<'a>]; 10] = [
            &[
                (&self.caller.tenant, Type::TEXT),
                (&self.caller.name, Type::TEXT),
                (&self.thread.0, Type::UUID),
                (&self.now, Type::INT8),
            ],
            &[(&self.key, Type::BYTEA), (&self.fingerprint, Type::INT8), (&IDEMPOTENCY_WINDOW_MICROS, Type::INT8)],
            &self.conditions.values(),
            &self.append.values(),
            &self.replace.values(),
            &[(&self.erase, Type::UUID_ARRAY), (&self.trim_below, Type::INT8)],
            &self.put.values(),
            &self.delete.values(),
            &self.patch.values(),
            &[(waits, Type::BOOL), (is_deferred, Type::BOOL)],
        ];
        groups.concat()
    }
}

/// The conditions on the thread.
#[derive(Clone)]
struct Conditions {
    seq: Option<i64>,
    change: Option<i64>,
    tag: Option<i32>,
    records: RecordNames,
    versions: Vec<Option<i64>>,
    tags: Vec<Option<i32>>,
}

impl Conditions {
    fn new(expected: Option<Expected>, require: &[RecordCondition]) -> Self {
        let (seq, change) = match expected {
            Some(Expected::Seq(seq)) => (Some(signed(seq)), None),
            Some(Expected::Change(change)) => (None, Some(change)),
            None => (None, None),
        };
        let version = |condition: &RecordCondition| match condition.state {
            RecordState::Absent => None,
            RecordState::Version(version) => Some(version),
        };
        let versions: Vec<Option<TaggedNumber>> = require.iter().map(version).collect();
        Self {
            seq,
            change: change.map(|change| signed(change.number)),
            tag: change.and_then(row::stored_tag),
            records: RecordNames::of(require.iter().map(|condition| &condition.name)),
            versions: versions.iter().map(|version| version.map(|version| signed(version.number))).collect(),
            tags: versions.into_iter().map(|version| version.and_then(row::stored_tag)).collect(),
        }
    }

    fn values(&self) -> [Parameter<'_>; 7] {
        let [namespaces, keys] = self.records.values();
        [
            (&self.seq, Type::INT8),
            (&self.change, Type::INT8),
            (&self.tag, Type::INT4),
            namespaces,
            keys,
            (&self.versions, Type::INT8_ARRAY),
            (&self.tags, Type::INT4_ARRAY),
        ]
    }
}

#[derive(Clone)]
struct NewMessages {
    ids: Vec<Uuid>,
    roles: Vec<i16>,
    created_at: Vec<i64>,
    external_ids: Vec<Option<String>>,
    bodies: Vec<String>,
    checksums: Vec<i32>,
}

impl NewMessages {
    fn new(batch: &Batch, bodies: Vec<String>, checksums: Vec<Checksum>) -> Self {
        let messages = &batch.append;
        Self {
            ids: messages.iter().map(|message| message.id.0).collect(),
            roles: messages.iter().map(|message| message.content.role.to_stored().into()).collect(),
            created_at: messages.iter().map(|message| message.created_at.as_micros()).collect(),
            external_ids: messages.iter().map(|message| message.external_id.clone()).collect(),
            bodies,
            checksums: checksums.into_iter().map(Checksum::to_stored).collect(),
        }
    }

    fn values(&self) -> [Parameter<'_>; 6] {
        [
            (&self.ids, Type::UUID_ARRAY),
            (&self.roles, Type::INT2_ARRAY),
            (&self.created_at, Type::INT8_ARRAY),
            (&self.external_ids, Type::TEXT_ARRAY),
            (&self.bodies, Type::TEXT_ARRAY),
            (&self.checksums, Type::INT4_ARRAY),
        ]
    }
}

#[derive(Clone)]
struct Replacements {
    ids: Vec<Uuid>,
    roles: Vec<i16>,
    bodies: Vec<String>,
    terms: Vec<String>,
    /// Empty, like `unchanged_fields`, until the store has returned the messages' unchanged fields.
    checksums: Vec<i32>,
    unchanged_fields: String,
}

impl Replacements {
    fn new(batch: &Batch, bodies: Vec<String>) -> Self {
        let new = &batch.replace;
        Self {
            ids: new.iter().map(|replacement| replacement.id.0).collect(),
            roles: new.iter().map(|replacement| replacement.content.role.to_stored().into()).collect(),
            bodies,
            terms: new
                .iter()
                .map(|replacement| text::indexed_terms(&replacement.content.plain_text()).join(" "))
                .collect(),
            checksums: Vec::new(),
            unchanged_fields: String::new(),
        }
    }

    fn values(&self) -> [Parameter<'_>; 6] {
        [
            (&self.ids, Type::UUID_ARRAY),
            (&self.roles, Type::INT2_ARRAY),
            (&self.bodies, Type::TEXT_ARRAY),
            (&self.terms, Type::TEXT_ARRAY),
            (&self.checksums, Type::INT4_ARRAY),
            (&self.unchanged_fields, Type::TEXT),
        ]
    }
}

#[derive(Clone)]
struct NewRecords {
    names: RecordNames,
    values: Vec<String>,
    expiries: Vec<Option<i64>>,
}

impl NewRecords {
    fn new(records: &[PutRecord]) -> Self {
        Self {
            names: RecordNames::of(records.iter().map(|record| &record.name)),
            values: records.iter().map(|record| record.value.as_str().to_owned()).collect(),
            expiries: records.iter().map(|record| record.expires_at.map(Timestamp::as_micros)).collect(),
        }
    }

    fn values(&self) -> [Parameter<'_>; 4] {
        let [namespaces, keys] = self.names.values();
        [namespaces, keys, (&self.values, Type::TEXT_ARRAY), (&self.expiries, Type::INT8_ARRAY)]
    }
}

#[derive(Clone)]
struct RecordNames {
    namespaces: Vec<String>,
    keys: Vec<String>,
}

impl RecordNames {
    fn of<'a>(names: impl Iterator<Item = &'a RecordName>) -> Self {
        let (namespaces, keys) = names.map(|name| (name.namespace.to_string(), name.key.clone())).unzip();
        Self { namespaces, keys }
    }

    fn values(&self) -> [Parameter<'_>; 2] {
        [(&self.namespaces, Type::TEXT_ARRAY), (&self.keys, Type::TEXT_ARRAY)]
    }
}

/// The changes to the thread's row. Without changes, all columns are NULL, which PostgreSQL treats as a NULL composite.
#[derive(Clone)]
struct PatchColumns {
    changes_body: Option<bool>,
    /// `None`, like `new_body`, until the store has returned the current body.
    old_body: Option<String>,
    new_body: Option<String>,
    changes_expiry: Option<bool>,
    expires_at: Option<i64>,
}

impl PatchColumns {
    fn new(patch: &ThreadPatch) -> Self {
        let unless_empty = |changes: bool| (!patch.is_empty()).then_some(changes);
        Self {
            changes_body: unless_empty(patch.changes_thread_body()),
            old_body: None,
            new_body: None,
            changes_expiry: unless_empty(patch.expires_at.is_some()),
            expires_at: patch.expires_at.flatten().map(Timestamp::as_micros),
        }
    }

    fn values(&self) -> [Parameter<'_>; 5] {
        [
            (&self.changes_body, Type::BOOL),
            (&self.old_body, Type::TEXT),
            (&self.new_body, Type::TEXT),
            (&self.changes_expiry, Type::BOOL),
            (&self.expires_at, Type::INT8),
        ]
    }
}
