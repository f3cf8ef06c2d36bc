//! Finds threads by their metadata, in the table `thread_metadata`.

use std::collections::HashSet;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use threadkeep_core::{MetadataFilter, MetadataValue, codec};

use crate::error::Result;
use crate::owners::ScopeNumbers;

/// A statement with the values of its parameters. It selects the numbers of the threads that pass a filter, as `thread_no`.
pub(crate) struct Selection {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
}

/// Returns the statement for a filter that has conditions. It searches the threads of the given owner, or of the whole tenant. Its
/// parameters are numbered from `first`.
pub(crate) fn selection(
    filter: &MetadataFilter,
    numbers: ScopeNumbers,
    owner_no: Option<i64>,
    first: usize,
) -> Selection {
    let (mut parts, mut values) = (Vec::new(), vec![Value::Integer(numbers.tenant_no)]);
    let owner = owner_no.map_or_else(String::new, |owner_no| format!(" AND owner_no = {owner_no}"));
    for condition in filter.conditions() {
        values.push(Value::Text(condition.key.clone()));
        let key = first + values.len() - 1;
        for value in &condition.values {
            values.push(stored_value(value));
            let value = first + values.len() - 1;
            parts.push(format!(
                "SELECT thread_no FROM thread_metadata WHERE tenant_no = ?{first} AND key = ?{key} AND value = ?{value}{owner}"
            ));
        }
    }
    // A thread has one value for each key, so it appears once for each condition that it meets.
    let count = filter.conditions().len();
    let sql =
        format!("SELECT thread_no FROM ({}) GROUP BY thread_no HAVING count(*) = {count}", parts.join(" UNION ALL "));
    Selection { sql, values }
}

/// Returns a value as the triggers store it.
fn stored_value(value: &MetadataValue) -> Value {
    match value {
        MetadataValue::Text(text) => Value::Text(format!("s{text}")),
        MetadataValue::Integer(integer) => Value::Integer(*integer),
        MetadataValue::Bool(bool) => Value::Text(bool.to_string()),
    }
}

/// Returns the numbers of the threads that pass a filter.
pub(crate) fn passing_threads(
    connection: &Connection,
    filter: &MetadataFilter,
    numbers: ScopeNumbers,
) -> Result<HashSet<i64>> {
    let Selection { sql, values } = selection(filter, numbers, numbers.user_no, 1);
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_map(params_from_iter(values), |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Whether the metadata of a thread passes a filter. A thread that cannot be decoded passes only the empty filter.
pub(crate) fn thread_passes(connection: &Connection, thread_no: i64, filter: &MetadataFilter) -> Result<bool> {
    if filter.is_empty() {
        return Ok(true);
    }
    let sql = "SELECT body FROM threads WHERE no = ?1";
    let body: String = connection.prepare_cached(sql)?.query_row([thread_no], |row| row.get(0))?;
    Ok(codec::decode_thread(&body).is_ok_and(|attributes| filter.matches(&attributes.metadata)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SqliteOptions, SqliteStore};

    /// Without its index, a filter would read every row of the table.
    #[test]
    fn filters_use_the_index() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let options = SqliteOptions { background: false, ..SqliteOptions::default() };
        drop(SqliteStore::open(&path, options).unwrap());
        let connection = Connection::open(&path).unwrap();
        let filter = MetadataFilter::default().with_text("env", "prod").with_text("ticket", "42");
        for user_no in [None, Some(2)] {
            let numbers = ScopeNumbers { tenant_no: 1, user_no };
            let Selection { sql, values } = selection(&filter, numbers, user_no, 1);
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let plan = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
            let plan: Vec<String> = plan.collect::<Result<_, _>>().unwrap();
            let reads: Vec<&String> = plan.iter().filter(|step| step.contains("thread_metadata")).collect();
            assert!(!reads.is_empty(), "{plan:?}");
            for step in reads {
                assert!(step.contains("USING COVERING INDEX thread_metadata_by_value"), "{plan:?}");
            }
        }
    }
}
