//! Restores threads and records verbatim.

use deadpool_postgres::Transaction;
use threadkeep_core::{
    ChangeTag, Checksum, Conflict, Dump, DumpEntry, DumpedThread, JsonText, Record, StoreError, TenantId, ThreadId,
    ThreadKey, Timestamp, codec,
};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::error::{PostgresError, Result};
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{get, owner_name, signed};

pub(crate) async fn thread(
    shared: &Shared,
    tenant: &TenantId,
    thread: ThreadId,
    chunk: &Dump,
) -> Result<(), StoreError> {
    chunk.check()?;
    shared.note_activity();
    let restored = shared.transact(Caller::maintenance(), async |transaction| {
        if let Some(dumped) = &chunk.thread {
            create_hidden_thread(transaction, tenant.as_str(), thread, dumped).await?;
        }
        let restoring = RestoringThread::find(transaction, tenant.as_str(), thread).await?;
        restoring.write_records(transaction, &chunk.records).await?;
        restoring.write_commits(transaction, chunk).await?;
        restoring.write_entries(transaction, &chunk.entries).await?;
        if chunk.next.is_none() { restoring.finish(transaction).await } else { Ok(()) }
    });
    restored.await.map_err(PostgresError::into_write_error)
}

/// Creates the thread's row, which is hidden until the last chunk is restored.
async fn create_hidden_thread(
    transaction: &Transaction<'_>,
    tenant: &str,
    thread: ThreadId,
    dumped: &DumpedThread,
) -> Result<()> {
    let thread_id: [Parameter<'_>; 2] = [(&tenant, Type::TEXT), (&thread.0, Type::UUID)];
    let sql = "SELECT threadkeep.remove_thread(no) FROM threadkeep.threads WHERE tenant = $1 AND id = $2 AND restoring";
    transaction.query_typed(sql, &thread_id).await?;
    let sql = "DELETE FROM threadkeep.deleted_threads WHERE tenant = $1 AND id = $2";
    transaction.query_typed(sql, &thread_id).await?;
    let owner = owner_name(&dumped.owner);
    let owner_values: [Parameter<'_>; 2] = [(&tenant, Type::TEXT), (&owner, Type::TEXT)];
    transaction.query_typed("SELECT threadkeep.remember_owner($1, $2)", &owner_values).await?;
    // Inserts nothing if a thread with the same id or key exists.
    let sql = "INSERT INTO threadkeep.threads AS t (tenant, owner, id, seq, change, first_seq, log_from, restoring, \
               created_at, updated_at, expires_at, key, body, tag) \
               VALUES ($1, $2, $3, $4, $5, $6, $5, true, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING RETURNING t.no";
    let positions = dumped.positions;
    let values: [Parameter<'_>; 12] = [
        (&tenant, Type::TEXT),
        (&owner, Type::TEXT),
        (&thread.0, Type::UUID),
        (&signed(positions.seq), Type::INT8),
        (&signed(positions.change), Type::INT8),
        (&signed(positions.first_seq), Type::INT8),
        (&dumped.created_at.as_micros(), Type::INT8),
        (&dumped.updated_at.as_micros(), Type::INT8),
        (&dumped.expires_at.map(Timestamp::as_micros), Type::INT8),
        (&dumped.key.as_ref().map(ThreadKey::as_str), Type::TEXT),
        (&dumped.body, Type::TEXT),
        (&positions.tag.map(ChangeTag::to_stored), Type::INT4),
    ];
    if transaction.query_typed(sql, &values).await?.is_empty() {
        return Err(StoreError::from(Conflict::Thread).into());
    }
    Ok(())
}

/// A thread that is being restored.
///
/// A chunk is sent again if its response was lost, so its rows may already exist: inserts ignore conflicts.
struct RestoringThread {
    thread_no: i64,
    tenant: String,
    owner: String,
}

impl RestoringThread {
    async fn find(transaction: &Transaction<'_>, tenant: &str, thread: ThreadId) -> Result<Self> {
        let sql = "SELECT no, tenant, owner FROM threadkeep.threads WHERE tenant = $1 AND id = $2 AND restoring \
                   FOR NO KEY UPDATE";
        let thread_id: [Parameter<'_>; 2] = [(&tenant, Type::TEXT), (&thread.0, Type::UUID)];
        let rows = transaction.query_typed(sql, &thread_id).await?;
        let not_started =
            || StoreError::invalid("dump", "the thread's first chunk was not restored; restore the chunks in order");
        let row = rows.first().ok_or_else(not_started)?;
        Ok(Self { thread_no: get(row, 0)?, tenant: get(row, 1)?, owner: get(row, 2)? })
    }

    fn values(&self) -> [Parameter<'_>; 3] {
        [(&self.thread_no, Type::INT8), (&self.tenant, Type::TEXT), (&self.owner, Type::TEXT)]
    }

    async fn write_records(&self, transaction: &Transaction<'_>, records: &[Record]) -> Result<()> {
        let sql = "INSERT INTO threadkeep.thread_documents (thread_no, tenant, owner, namespace, key, version, expires_at, \
                   value, tag) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING";
        for record in records {
            let [number, tenant, owner] = self.values();
            let namespace = record.namespace.to_string();
            let expires_at = record.expires_at.map(Timestamp::as_micros);
            let version = signed(record.version);
            let (value, tag) = (record.value.as_str(), record.tag.map(ChangeTag::to_stored));
            let values: [Parameter<'_>; 9] = [
                number,
                tenant,
                owner,
                (&namespace, Type::TEXT),
                (&record.key, Type::TEXT),
                (&version, Type::INT8),
                (&expires_at, Type::INT8),
                (&value, Type::TEXT),
                (&tag, Type::INT4),
            ];
            transaction.query_typed(sql, &values).await?;
        }
        Ok(())
    }

    async fn write_commits(&self, transaction: &Transaction<'_>, chunk: &Dump) -> Result<()> {
        let Some(first) = chunk.commits.first() else { return Ok(()) };
        let numbers = |number: fn(&threadkeep_core::DumpedCommit) -> i64| -> Vec<i64> {
            chunk.commits.iter().map(number).collect()
        };
        let changes = numbers(|commit| signed(commit.change));
        let times = numbers(|commit| commit.at.as_micros());
        let fingerprints = numbers(|commit| i64::from_be_bytes(commit.fingerprint.0));
        let (first_seqs, counts) = (numbers(|commit| signed(commit.first_seq)), numbers(|commit| signed(commit.count)));
        let keys: Vec<Vec<u8>> = chunk.commits.iter().map(|commit| commit.key.to_bytes()).collect();
        let effects = chunk.commits.iter().map(|commit| match commit.effects.as_slice() {
            [] => Ok(None),
            effects => JsonText::of(&effects).map(|text| Some(text.as_str().to_owned())),
        });
        let effects = effects.collect::<Result<Vec<Option<String>>, StoreError>>()?;
        let sql = "INSERT INTO threadkeep.commits (thread_no, tenant, owner, change, at, key, fingerprint, first_seq, count, \
                   effects) SELECT $1, $2, $3, c.* FROM unnest($4::bigint[], $5::bigint[], $6::bytea[], $7::bigint[], \
                   $8::bigint[], $9::bigint[], $10::text[]) AS c ON CONFLICT DO NOTHING";
        let [number, tenant, owner] = self.values();
        let values: [Parameter<'_>; 10] = [
            number,
            tenant,
            owner,
            (&changes, Type::INT8_ARRAY),
            (&times, Type::INT8_ARRAY),
            (&keys, Type::BYTEA_ARRAY),
            (&fingerprints, Type::INT8_ARRAY),
            (&first_seqs, Type::INT8_ARRAY),
            (&counts, Type::INT8_ARRAY),
            (&effects, Type::TEXT_ARRAY),
        ];
        transaction.query_typed(sql, &values).await?;
        let log_from = signed(first.change.saturating_sub(1));
        let values: [Parameter<'_>; 2] = [(&self.thread_no, Type::INT8), (&log_from, Type::INT8)];
        transaction.query_typed("UPDATE threadkeep.threads SET log_from = $2 WHERE no = $1", &values).await?;
        Ok(())
    }

    async fn write_entries(&self, transaction: &Transaction<'_>, entries: &[DumpEntry]) -> Result<()> {
        let mut columns = EntryColumns::default();
        entries.iter().for_each(|entry| columns.add(entry));
        let sql = "INSERT INTO threadkeep.messages (thread_no, tenant, owner, seq, id, role, revision, created_at, \
                   external_id, body, checksum) SELECT $1, $2, $3, m.* FROM unnest($4::bigint[], $5::uuid[], $6::smallint[], \
                   $7::integer[], $8::bigint[], $9::text[], $10::text[], $11::integer[]) AS m \
                   ON CONFLICT DO NOTHING";
        let [number, tenant, owner] = self.values();
        let values: [Parameter<'_>; 11] = [
            number,
            tenant,
            owner,
            (&columns.seqs, Type::INT8_ARRAY),
            (&columns.ids, Type::UUID_ARRAY),
            (&columns.roles, Type::INT2_ARRAY),
            (&columns.revisions, Type::INT4_ARRAY),
            (&columns.times, Type::INT8_ARRAY),
            (&columns.external_ids, Type::TEXT_ARRAY),
            (&columns.bodies, Type::TEXT_ARRAY),
            (&columns.checksums, Type::INT4_ARRAY),
        ];
        transaction.query_typed(sql, &values).await?;
        Ok(())
    }

    async fn finish(&self, transaction: &Transaction<'_>) -> Result<()> {
        let number: [Parameter<'_>; 1] = [(&self.thread_no, Type::INT8)];
        let sql = "UPDATE threadkeep.threads SET restoring = false, message_count = \
                   (SELECT count(*) FROM threadkeep.messages WHERE thread_no = $1 AND body IS NOT NULL) WHERE no = $1";
        transaction.query_typed(sql, &number).await?;
        // The stamp makes other instances revalidate what they have cached of the thread.
        let sql =
            "INSERT INTO threadkeep.stamps (thread_no, tenant, owner, stamp) VALUES ($1, $2, $3, threadkeep.stamp())";
        transaction.query_typed(sql, &self.values()).await?;
        Ok(())
    }
}

/// Messages and tombstones as columns.
#[derive(Default)]
struct EntryColumns<'a> {
    seqs: Vec<i64>,
    ids: Vec<Uuid>,
    roles: Vec<Option<i16>>,
    revisions: Vec<i32>,
    /// The time of creation, or of erasure for a tombstone.
    times: Vec<i64>,
    external_ids: Vec<Option<&'a str>>,
    bodies: Vec<Option<&'a str>>,
    checksums: Vec<Option<i32>>,
}

impl<'a> EntryColumns<'a> {
    fn add(&mut self, entry: &'a DumpEntry) {
        match entry {
            DumpEntry::Message { seq, id, external_id, revision, created_at, body, checksum } => {
                self.seqs.push(signed(*seq));
                self.ids.push(id.0);
                // A message that cannot be decoded has no role. Queries that filter by role return it for every role.
                self.roles.push(codec::decode_content(body).ok().map(|content| content.role.to_stored().into()));
                self.revisions.push(i32::try_from(*revision).unwrap_or(i32::MAX));
                self.times.push(created_at.as_micros());
                self.external_ids.push(external_id.as_deref());
                self.bodies.push(Some(body));
                self.checksums.push(checksum.map(Checksum::to_stored));
            }
            DumpEntry::Tombstone { seq, id, erased_at } => {
                self.seqs.push(signed(*seq));
                self.ids.push(id.0);
                self.roles.push(None);
                self.revisions.push(0);
                self.times.push(erased_at.as_micros());
                self.external_ids.push(None);
                self.bodies.push(None);
                self.checksums.push(None);
            }
            // Nothing is stored for a lost position.
            DumpEntry::Lost { .. } => {}
        }
    }
}

/// Writes a record of an owner, replacing an existing one, and raises the owner's version counter to
/// the record's version if the counter is lower.
pub(crate) async fn record(shared: &Shared, tenant: &TenantId, owner: &str, record: &Record) -> Result<(), StoreError> {
    let restored = shared.transact(Caller::maintenance(), async |transaction| {
        let (tenant, namespace) = (tenant.as_str(), record.namespace.to_string());
        let version = signed(record.version);
        let expires_at = record.expires_at.map(Timestamp::as_micros);
        let value = record.value.as_str();
        let values: [Parameter<'_>; 7] = [
            (&tenant, Type::TEXT),
            (&owner, Type::TEXT),
            (&version, Type::INT8),
            (&namespace, Type::TEXT),
            (&record.key, Type::TEXT),
            (&expires_at, Type::INT8),
            (&value, Type::TEXT),
        ];
        transaction.query_typed("SELECT threadkeep.remember_owner($1, $2)", &values[..2]).await?;
        let sql = "UPDATE threadkeep.owners SET document_version = greatest(document_version, $3) \
                   WHERE tenant = $1 AND owner = $2";
        transaction.query_typed(sql, &values[..3]).await?;
        let sql = "INSERT INTO threadkeep.documents (tenant, owner, version, namespace, key, expires_at, value) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (tenant, owner, namespace, key) DO UPDATE SET \
                   version = excluded.version, expires_at = excluded.expires_at, value = excluded.value";
        transaction.query_typed(sql, &values).await?;
        Ok(())
    });
    restored.await.map_err(PostgresError::into_write_error)
}
