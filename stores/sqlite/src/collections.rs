//! Collections that an application fills: entries with text, which is indexed, and optionally an embedding.
//!
//! Vector search is a linear scan: comparing 100,000 vectors of 384 dimensions takes about 12 ms, which does not justify an
//! approximate index. Terms are indexed in the transaction that writes the entry, because collections are written rarely.

mod search;

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};
use threadkeep_core::{Collection, Embedding, IndexEntry, Map, Owner, Scope, StoreError, filter_terms, limits, text};

use crate::connection::Shared;
use crate::error::Result;
use crate::residue::{self, Residue};
use crate::{maintenance, owners, writer};
pub(crate) use search::search;

// Marks the number of a collection among the indexed terms of an entry. A private-use character is never part of a term.
const COLLECTION_MARK: char = '\u{e002}';

/// The number of entries that [`remove_all`] removes per transaction.
const ENTRIES_PER_STEP: usize = 200;

pub(crate) async fn upsert(
    shared: &Arc<Shared>,
    scope: &Scope,
    collection: &Collection,
    entries: Vec<IndexEntry>,
) -> Result<(), StoreError> {
    let name = collection.name()?.to_owned();
    IndexEntry::check_all(&entries)?;
    let (tenant, owner) = (scope.tenant_id().clone(), scope.default_owner());
    // Analysing a thousand texts would block the async runtime.
    maintenance::blocking(shared, move |shared| {
        writer::write_blocking(shared, |connection| {
            let owner_no = owners::find_or_insert(shared, connection, tenant.as_str(), owners::stored_name(&owner))?;
            let collection_no = find_or_insert(connection, owner_no, &name)?;
            entries.iter().try_for_each(|entry| put(connection, collection_no, entry))
        })
    })
    .await
}

pub(crate) async fn remove(
    shared: &Arc<Shared>,
    scope: &Scope,
    collection: &Collection,
    ids: &[String],
) -> Result<u64, StoreError> {
    let name = collection.name()?.to_owned();
    limits::check_at_most("ids per call", ids.len(), limits::COMMIT_MESSAGES)?;
    let (tenant, owner, ids) = (scope.tenant_id().clone(), scope.default_owner(), ids.to_vec());
    maintenance::blocking(shared, move |shared| {
        writer::write_blocking(shared, |connection| {
            let owner_no = owners::find(shared, connection, tenant.as_str(), owners::stored_name(&owner))?;
            let Some(collection_no) = find(connection, owner_no, &name)? else { return Ok(0) };
            let mut removed = 0;
            for id in &ids {
                removed += u64::from(delete_entry(connection, collection_no, id)?);
            }
            Ok(removed)
        })
    })
    .await
}

/// Removes all collections of an owner, in steps.
pub(crate) async fn remove_all(shared: &Arc<Shared>, scope: &Scope) -> Result<u64, StoreError> {
    let (tenant, owner) = (scope.tenant_id().clone(), scope.default_owner());
    maintenance::blocking(shared, move |shared| {
        let find =
            |connection: &Connection| owners::find(shared, connection, tenant.as_str(), owners::stored_name(&owner));
        let mut removed = 0;
        loop {
            // This is checked by a read, because a write without effect would wait for the write lock.
            let has_collections = shared.read(|connection| {
                let sql = "SELECT 1 FROM collections WHERE owner_no = ?1";
                Ok(connection.prepare_cached(sql)?.exists([find(connection)?])?)
            })?;
            if !has_collections {
                return Ok(removed);
            }
            removed += writer::write_blocking(shared, |connection| remove_step(connection, find(connection)?))?;
        }
    })
    .await
}

/// Removes some entries of an owner's first collection, and the collection itself when no entries are left.
fn remove_step(connection: &Connection, owner_no: i64) -> Result<u64> {
    let sql = "SELECT no FROM collections WHERE owner_no = ?1 ORDER BY no LIMIT 1";
    let first = connection.prepare_cached(sql)?.query_row([owner_no], |row| row.get::<_, i64>(0)).optional()?;
    let Some(collection_no) = first else { return Ok(0) };
    let sql = "SELECT id FROM entries WHERE collection_no = ?1 LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let ids = statement.query_map(params![collection_no, ENTRIES_PER_STEP as i64], |row| row.get::<_, String>(0))?;
    let ids = ids.collect::<std::result::Result<Vec<_>, _>>()?;
    for id in &ids {
        delete_entry(connection, collection_no, id)?;
    }
    if ids.len() < ENTRIES_PER_STEP {
        connection.prepare_cached("DELETE FROM collections WHERE no = ?1")?.execute([collection_no])?;
        residue::record(connection, Residue::Pages)?;
    }
    Ok(ids.len() as u64)
}

/// Finds the number of an owner's collection.
fn find(connection: &Connection, owner_no: i64, name: &str) -> Result<Option<i64>> {
    let sql = "SELECT no FROM collections WHERE owner_no = ?1 AND name = ?2";
    Ok(connection.prepare_cached(sql)?.query_row(params![owner_no, name], |row| row.get(0)).optional()?)
}

fn find_or_insert(connection: &Connection, owner_no: i64, name: &str) -> Result<i64> {
    if let Some(collection_no) = find(connection, owner_no, name)? {
        return Ok(collection_no);
    }
    let sql = "INSERT INTO collections (owner_no, name) VALUES (?1, ?2)";
    connection.prepare_cached(sql)?.execute(params![owner_no, name])?;
    Ok(connection.last_insert_rowid())
}

fn put(connection: &Connection, collection_no: i64, entry: &IndexEntry) -> Result<()> {
    delete_entry(connection, collection_no, &entry.id)?;
    let fields = match entry.fields.is_empty() {
        true => None,
        false => {
            Some(serde_json::to_string(&entry.fields).map_err(|_| StoreError::invalid("entry fields", "not JSON"))?)
        }
    };
    let (model, vector) = match &entry.embedding {
        Some(embedding) => (Some(&embedding.model), Some(to_blob(&embedding.vector))),
        None => (None, None),
    };
    let sql = "INSERT INTO entries (collection_no, id, text, fields, model, vector) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.prepare_cached(sql)?.execute(params![collection_no, entry.id, entry.text, fields, model, vector])?;
    let entry_no = connection.last_insert_rowid();
    index(connection, entry_no, &indexed_text(collection_no, &entry.text, &entry.fields))
}

fn index(connection: &Connection, entry_no: i64, terms: &str) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO entry_terms (rowid, terms) VALUES (?1, ?2)")?
        .execute(params![entry_no, terms])?;
    Ok(())
}

/// Deletes an entry. Returns whether it existed.
fn delete_entry(connection: &Connection, collection_no: i64, id: &str) -> Result<bool> {
    let sql = "DELETE FROM entries WHERE collection_no = ?1 AND id = ?2 RETURNING no, text, fields";
    let columns = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get(2)?));
    let deleted = connection.prepare_cached(sql)?.query_row(params![collection_no, id], columns).optional()?;
    let Some((entry_no, text, fields)) = deleted else { return Ok(false) };
    // Entries with damaged fields were indexed without them, and can be removed.
    let fields = parse_fields(fields).unwrap_or_default();
    let sql = "INSERT INTO entry_terms (entry_terms, rowid, terms) VALUES ('delete', ?1, ?2)";
    connection.prepare_cached(sql)?.execute(params![entry_no, indexed_text(collection_no, &text, &fields)])?;
    residue::record(connection, Residue::Pages)?;
    residue::record(connection, Residue::Index)?;
    Ok(true)
}

fn indexed_text(collection_no: i64, entry_text: &str, fields: &Map) -> String {
    let mut terms = format!("{COLLECTION_MARK}{collection_no}");
    for term in text::indexed_terms(entry_text).into_iter().chain(filter_terms(fields)) {
        terms.push(' ');
        terms.push_str(&term);
    }
    terms
}

/// Rebuilds the index from the entries.
pub(crate) fn rebuild_index(connection: &Connection) -> Result<()> {
    connection.execute_batch("INSERT INTO entry_terms (entry_terms) VALUES ('delete-all')")?;
    let mut statement = connection.prepare("SELECT no, collection_no, text, fields FROM entries ORDER BY no")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (entry_text, fields): (String, Option<String>) = (row.get(2)?, row.get(3)?);
        // Damaged fields must not prevent opening the file; reading the entry reports them.
        let fields = parse_fields(fields).unwrap_or_default();
        index(connection, row.get(0)?, &indexed_text(row.get(1)?, &entry_text, &fields))?;
    }
    Ok(())
}

/// Reads an entry and its owner from a row of [`SELECT_ENTRY`].
fn read_entry(row: &Row<'_>) -> Result<(Owner, IndexEntry)> {
    let corrupt = |detail: &'static str| StoreError::corrupt("entry", detail);
    let fields = parse_fields(row.get(2)?)?;
    let model: Option<String> = row.get(3)?;
    let vector = row.get_ref(4)?.as_blob_or_null().map_err(|_| corrupt("embedding is not a blob"))?;
    let embedding = model.zip(vector).map(|(model, vector)| Embedding { model, vector: from_blob(vector) });
    Ok((owners::parse_owner(row.get(5)?)?, IndexEntry { id: row.get(0)?, text: row.get(1)?, fields, embedding }))
}

fn parse_fields(fields: Option<String>) -> Result<Map> {
    let fields = fields.map_or(Ok(Map::new()), |fields| serde_json::from_str(&fields));
    Ok(fields.map_err(|_| StoreError::corrupt("entry", "fields are not a JSON object"))?)
}

const SELECT_ENTRY: &str = "SELECT e.id, e.text, e.fields, e.model, e.vector, o.user FROM entries e \
                            JOIN collections c ON c.no = e.collection_no JOIN owners o ON o.no = c.owner_no";

fn to_blob(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn from_blob(blob: &[u8]) -> Vec<f32> {
    blob.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}
