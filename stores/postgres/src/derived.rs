use threadkeep_core::{
    Conflict, DerivedWrite, Kind, RecordName, Result, Scope, StoreError, ThreadId, Timestamp, WriteOutcome,
};
use tokio_postgres::types::Type;

use crate::pool::{Caller, Parameter, Shared};
use crate::row::{self, get, signed};

const SQL: &str = "SELECT outcome, actual, tag \
                   FROM threadkeep.write_derived($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

/// Writes a derived record of a thread in one round trip. Changes nothing else in the thread.
pub(crate) async fn write(
    shared: &Shared,
    scope: &Scope,
    thread: ThreadId,
    write: DerivedWrite,
    now: Timestamp,
) -> Result<WriteOutcome> {
    write.check()?;
    let caller = Caller::of(scope);
    let (RecordName { namespace, key }, version) = (write.name(), write.version());
    let values: [Parameter<'_>; 12] = [
        (&caller.tenant, Type::TEXT),
        (&caller.name, Type::TEXT),
        (&thread.0, Type::UUID),
        (&namespace.to_string(), Type::TEXT),
        (&key, Type::TEXT),
        (&signed(write.at_change.number), Type::INT8),
        (&write.expected.map(|expected| signed(expected.number)), Type::INT8),
        (&signed(version), Type::INT8),
        (&write.value.as_str(), Type::TEXT),
        (&now.as_micros(), Type::INT8),
        (&row::stored_tag(write.at_change), Type::INT4),
        (&write.expected.and_then(row::stored_tag), Type::INT4),
    ];
    let rows = shared.write(SQL, &values).await?;
    let row = rows.first().ok_or_else(|| StoreError::corrupt("query result", "no row"))?;
    let actual = get::<Option<i64>>(row, 1)?.map(|actual| row::tagged(row, actual, 2)).transpose()?;
    Err(match (get::<&str>(row, 0)?, actual) {
        ("done", _) => return Ok(WriteOutcome { version, tag: row::tag(row, 2)? }),
        ("thread", _) => StoreError::NotFound(Kind::Thread),
        ("denied", _) => StoreError::Denied("changing a shared thread other than by adding messages"),
        ("change", Some(actual)) => Conflict::Change { expected: write.at_change, actual }.into(),
        ("document", actual) => Conflict::Record { namespace, key, actual }.into(),
        _ => StoreError::corrupt("query result", "unknown outcome"),
    })
}
