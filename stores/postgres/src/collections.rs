//! Collections that an application fills: entries with text, which is indexed, and optionally an embedding.
//!
//! Vectors are stored as arrays. With the pgvector extension, the server finds the nearest vectors; without it, they are compared
//! here, up to a limit. Either way the result is exact and the same as in any other store.

mod search;

use deadpool_postgres::Transaction;
use threadkeep_core::{Collection, IndexEntry, Map, Result, Scope, StoreError, filter_terms, limits, text};
use tokio_postgres::types::Type;

use crate::error::{self, PostgresError};
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{get, owner_name, signed};
pub(crate) use search::search;

/// The number of entries that are removed or reindexed in one transaction.
const STEP: i64 = 500;

pub(crate) async fn upsert(
    shared: &Shared,
    scope: &Scope,
    collection: &Collection,
    entries: Vec<IndexEntry>,
) -> Result<()> {
    let name = collection.name()?;
    IndexEntry::check_all(&entries)?;
    let (caller, owner) = (Caller::of(scope), scope.default_owner());
    let columns = EntryColumns::of(&entries)?;
    let sql = "SELECT threadkeep.put_entries($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let values: [Parameter<'_>; 10] = [
        (&caller.tenant, Type::TEXT),
        (&caller.name, Type::TEXT),
        (&owner_name(&owner), Type::TEXT),
        (&name, Type::TEXT),
        (&columns.ids, Type::TEXT_ARRAY),
        (&columns.texts, Type::TEXT_ARRAY),
        (&columns.fields, Type::TEXT_ARRAY),
        (&columns.terms, Type::TEXT_ARRAY),
        (&columns.models, Type::TEXT_ARRAY),
        (&columns.vectors, Type::TEXT_ARRAY),
    ];
    shared.write(sql, &values).await.map(drop)
}

/// Entries as columns, for `threadkeep.put_entries`.
#[derive(Default)]
struct EntryColumns<'a> {
    ids: Vec<&'a str>,
    texts: Vec<&'a str>,
    fields: Vec<Option<String>>,
    terms: Vec<String>,
    models: Vec<Option<&'a str>>,
    vectors: Vec<Option<String>>,
}

impl<'a> EntryColumns<'a> {
    fn of(entries: &'a [IndexEntry]) -> Result<Self> {
        let mut columns = Self::default();
        for entry in entries {
            columns.ids.push(&entry.id);
            columns.texts.push(&entry.text);
            columns.fields.push(match entry.fields.is_empty() {
                true => None,
                false => Some(
                    serde_json::to_string(&entry.fields)
                        .map_err(|_| StoreError::invalid("entry fields", "not JSON"))?,
                ),
            });
            columns.terms.push(terms_of(&entry.text, &entry.fields));
            // A zero vector is similar to nothing, so it is not stored.
            let embedding = entry.embedding.as_ref();
            let vector = embedding.and_then(|embedding| Some((embedding.model.as_str(), scale(&embedding.vector)?)));
            columns.models.push(vector.as_ref().map(|(model, _)| *model));
            columns.vectors.push(vector.map(|(_, vector)| array_text(&vector)));
        }
        Ok(columns)
    }
}

/// Formats a vector as a PostgreSQL array. Each number is written as the shortest text that parses to the same number.
fn array_text(vector: &[f32]) -> String {
    let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
    format!("{{{}}}", numbers.join(","))
}

/// Returns the terms to index for an entry, separated by spaces.
fn terms_of(entry_text: &str, fields: &Map) -> String {
    let mut terms = text::indexed_terms(entry_text);
    terms.extend(filter_terms(fields));
    terms.join(" ")
}

/// Scales a vector so that its largest component is between 0.5 and 2, which avoids overflow and underflow when it is compared
/// in single precision. The factor is a power of two, so that no precision is lost. `None` for a zero vector.
fn scale(vector: &[f32]) -> Option<Vec<f32>> {
    let largest = vector.iter().map(|number| f64::from(number.abs())).fold(0.0, f64::max);
    let exponent = if largest > 0.0 { largest.log2().floor() as i32 } else { return None };
    let factor = 2.0_f64.powi(-exponent);
    Some(vector.iter().map(|number| (f64::from(*number) * factor) as f32).collect())
}

pub(crate) async fn remove(shared: &Shared, scope: &Scope, collection: &Collection, ids: &[String]) -> Result<u64> {
    let name = collection.name()?;
    limits::check_at_most("ids per call", ids.len(), limits::COMMIT_MESSAGES)?;
    let (caller, owner) = (Caller::of(scope), scope.default_owner());
    // PostgreSQL rejects text with a NUL, and no entry has such an id.
    let ids: Vec<&str> = ids.iter().map(String::as_str).filter(|id| !id.contains('\0')).collect();
    let values: [Parameter<'_>; 5] = [
        (&caller.tenant, Type::TEXT),
        (&caller.name, Type::TEXT),
        (&owner_name(&owner), Type::TEXT),
        (&name, Type::TEXT),
        (&ids, Type::TEXT_ARRAY),
    ];
    let rows = shared.write("SELECT threadkeep.remove_entries($1, $2, $3, $4, $5)", &values).await?;
    let row = rows.first().ok_or_else(|| StoreError::corrupt("query result", "no row"))?;
    Ok(get::<i64>(row, 0)?.unsigned_abs())
}

/// Removes all collections of an owner, in steps.
pub(crate) async fn remove_all(shared: &Shared, scope: &Scope) -> Result<u64> {
    let (tenant, owner) = (scope.tenant_id().as_str(), scope.default_owner());
    let owner = owner_name(&owner);
    let mut removed = 0;
    loop {
        let values: [Parameter<'_>; 3] = [(&tenant, Type::TEXT), (&owner, Type::TEXT), (&STEP, Type::INT8)];
        let removing = shared.transact(Caller::of(scope), async |transaction| {
            let rows = transaction.query_typed(REMOVE_ENTRIES, &values).await?;
            rows.first().map_or(Ok(0), |row| get::<i64>(row, 0))
        });
        match removing.await.map_err(PostgresError::into_write_error)? {
            0 => break,
            step => removed += step.unsigned_abs(),
        }
    }
    let has_collections = "SELECT EXISTS (SELECT 1 FROM threadkeep.collections WHERE tenant = $1 AND owner = $2)";
    let values: [Parameter<'_>; 2] = [(&tenant, Type::TEXT), (&owner, Type::TEXT)];
    let answers = shared.read(&Caller::of(scope), &[(has_collections, &values)]).await?;
    if answers[0].first().map_or(Ok(false), |row| get(row, 0))? {
        let removing = shared.transact(Caller::of(scope), async |transaction| {
            transaction.batch_execute(LOCK_COLLECTIONS).await?;
            transaction.query_typed(REMOVE_EMPTY, &values).await?;
            Ok(())
        });
        removing.await.map_err(PostgresError::into_write_error)?;
    }
    Ok(removed)
}

// Locks the collection's row, so that writers wait.
const REMOVE_ENTRIES: &str = "WITH part AS MATERIALIZED ( \
       SELECT c.no FROM threadkeep.collections c WHERE c.tenant = $1 AND c.owner = $2 \
       AND EXISTS (SELECT 1 FROM threadkeep.entries e WHERE e.collection_no = c.no) ORDER BY c.no LIMIT 1 FOR NO KEY UPDATE \
     ), removed AS MATERIALIZED ( \
       SELECT p.no, threadkeep.take_entries(p.no, ARRAY( \
         SELECT id FROM threadkeep.entries WHERE collection_no = p.no ORDER BY no LIMIT $3)) AS count FROM part p \
     ), counted AS ( \
       UPDATE threadkeep.collections c SET entry_count = c.entry_count - r.count FROM removed r WHERE c.no = r.no \
     ) SELECT count FROM removed";
// A writer inserts the collection's row if it is missing and then reads it, which fails if the row is deleted in
// between. The lock therefore waits for current writers and blocks later ones.
const LOCK_COLLECTIONS: &str = "LOCK TABLE threadkeep.collections IN EXCLUSIVE MODE";
const REMOVE_EMPTY: &str = "DELETE FROM threadkeep.collections c WHERE c.tenant = $1 AND c.owner = $2 \
     AND NOT EXISTS (SELECT 1 FROM threadkeep.entries e WHERE e.collection_no = c.no)";

/// Rebuilds the data that is derived from entries: their terms and counts.
pub(crate) async fn rebuild(shared: &Shared) -> Result<()> {
    let mut after = (0, 0);
    while let Some(last) = rebuild_terms(shared, after).await? {
        after = last;
    }
    let counting =
        shared.transact(Caller::maintenance(), async |transaction| Ok(transaction.batch_execute(RECOUNT).await?));
    counting.await.map_err(PostgresError::into_write_error)
}

// Locks the collections' rows, so that writers wait.
const RECOUNT: &str = "SELECT 1 FROM threadkeep.collections ORDER BY no FOR NO KEY UPDATE;
    DELETE FROM threadkeep.entry_terms t WHERE NOT EXISTS
      (SELECT 1 FROM threadkeep.entries e WHERE e.collection_no = t.collection_no AND e.no = t.no);
    DELETE FROM threadkeep.entry_points p WHERE NOT EXISTS
      (SELECT 1 FROM threadkeep.entries e WHERE e.collection_no = p.collection_no AND e.no = p.no);
    UPDATE threadkeep.collections c SET entry_count = n.count
      FROM (SELECT c.no, count(e.no) AS count FROM threadkeep.collections c
      LEFT JOIN threadkeep.entries e ON e.collection_no = c.no GROUP BY c.no) AS n
      WHERE n.no = c.no AND n.count <> c.entry_count";

/// Rebuilds the terms of the next entries after the given one, at most [`STEP`]. Returns the last of these entries, or `None`
/// if no more entries follow.
async fn rebuild_terms(shared: &Shared, after: (i64, i64)) -> Result<Option<(i64, i64)>> {
    let rebuilding = shared.transact(Caller::maintenance(), async |transaction| rebuild_step(transaction, after).await);
    rebuilding.await.map_err(PostgresError::into_write_error)
}

async fn rebuild_step(transaction: &Transaction<'_>, after: (i64, i64)) -> error::Result<Option<(i64, i64)>> {
    let sql = "SELECT collection_no, no, text, fields FROM threadkeep.entries WHERE (collection_no, no) > ($1, $2) \
               ORDER BY collection_no, no LIMIT $3 FOR KEY SHARE";
    let values: [Parameter<'_>; 3] = [(&after.0, Type::INT8), (&after.1, Type::INT8), (&STEP, Type::INT8)];
    let rows = transaction.query_typed(sql, &values).await?;
    let (mut collections, mut numbers, mut terms): (Vec<i64>, Vec<i64>, Vec<String>) = Default::default();
    for row in &rows {
        collections.push(get(row, 0)?);
        numbers.push(get(row, 1)?);
        // Damaged fields must not prevent opening the database; reading the entry reports them.
        let fields = get::<Option<&str>>(row, 3)?.map(serde_json::from_str).transpose();
        terms.push(terms_of(get(row, 2)?, &fields.ok().flatten().unwrap_or_default()));
    }
    let sql = "INSERT INTO threadkeep.entry_terms AS t (collection_no, no, tenant, owner, terms) \
               SELECT e.collection_no, e.no, e.tenant, e.owner, threadkeep.terms_of_entry(e.collection_no, n.terms) \
               FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS n (collection_no, no, terms) \
               JOIN threadkeep.entries e USING (collection_no, no) \
               ON CONFLICT (collection_no, no) DO UPDATE SET terms = excluded.terms WHERE t.terms <> excluded.terms";
    let values: [Parameter<'_>; 3] =
        [(&collections, Type::INT8_ARRAY), (&numbers, Type::INT8_ARRAY), (&terms, Type::TEXT_ARRAY)];
    transaction.query_typed(sql, &values).await?;
    let is_last = signed(rows.len() as u64) < STEP;
    Ok(collections.last().copied().zip(numbers.last().copied()).filter(|_| !is_last))
}

#[cfg(test)]
mod tests {
    use threadkeep_core::similarity;

    use super::*;

    #[test]
    fn scale_preserves_direction_exactly() {
        assert_eq!(scale(&[0.0, -0.0]), None);
        assert_eq!(scale(&[1.5, -0.25]), Some(vec![1.5, -0.25]));
        for factor in [f32::MIN_POSITIVE, 1e-30, 0.1, 1.0, 3.0, 1e30] {
            let vector: Vec<f32> = [0.3, -0.7, 2.9, 0.001].map(|number: f32| number * factor).to_vec();
            let scaled = scale(&vector).unwrap();
            assert!(scaled.iter().any(|number| (0.5..=2.0).contains(&number.abs())), "{scaled:?}");
            let other = [0.9, 0.2, -0.4, 7.0];
            assert_eq!(similarity(&scaled, &other), similarity(&vector, &other));
        }
        assert!(scale(&[f32::MAX, f32::MIN]).unwrap().iter().all(|number| number.is_finite()));
    }
}
