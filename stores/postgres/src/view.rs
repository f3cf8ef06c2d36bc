//! Reads a thread with its messages and records in one snapshot and one round trip.

use threadkeep_core::{Access, Record, RecordName, Scope, StoreError, ThreadRead, ThreadRef, ThreadView, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::error::Result;
use crate::messages::{self, PageCall};
use crate::pool::{Caller, Parameter, Shared};
use crate::records::{self, ListCall};
use crate::row::{self, get, owner_name, thread_columns};

pub(crate) async fn read_thread(
    shared: &Shared,
    scope: &Scope,
    thread: &ThreadRef,
    read: &ThreadRead,
    now: Timestamp,
) -> Result<Option<ThreadView>> {
    read.check()?;
    let (caller, selector, micros) = (Caller::of(scope), ThreadSelector::of(thread), now.as_micros());
    let (tenant, now_value): (Parameter<'_>, Parameter<'_>) = ((&caller.tenant, Type::TEXT), (&micros, Type::INT8));
    let thread_statement = (thread_sql(&selector), selector.values([tenant.clone(), now_value.clone()]));
    let page_call = read.messages.as_ref().map(|query| PageCall::of(scope, query, now));
    let page_statement =
        page_call.as_ref().map(|call| (PageCall::sql(&selector.id("$3", "$14")), selector.page_values(call)));
    let wanted = WantedRecords::of(&read.records);
    let records_statement = (!read.records.is_empty())
        .then(|| (records_sql(&selector), selector.values([tenant, now_value].into_iter().chain(wanted.values()))));
    let lists: Vec<Option<ListCall<'_>>> = read.lists.iter().map(|query| ListCall::of(scope, query, now)).collect();
    let list_statements = lists.iter().flatten().map(|list| (list.sql(), list.values().to_vec()));
    let statements: Vec<(String, Vec<Parameter<'_>>)> =
        [thread_statement].into_iter().chain(page_statement).chain(records_statement).chain(list_statements).collect();
    let statements: Vec<(&str, &[Parameter<'_>])> =
        statements.iter().map(|(sql, values)| (sql.as_str(), values.as_slice())).collect();

    let mut results = shared.read(&caller, &statements).await?.into_iter();
    let mut next = || results.next().unwrap_or_default();
    let Some(thread) = next().first().map(|row| row::thread(row, 0)).transpose()? else { return Ok(None) };
    if scope.access(&thread.owner) == Access::None {
        return Ok(None);
    }
    let page = read.messages.as_ref().map(|query| messages::page(&next(), query)).transpose()?;
    let records = if read.records.is_empty() { Vec::new() } else { wanted.read(&next())? };
    let lists = lists.iter().map(|list| {
        let rows = if list.is_some() { next() } else { Vec::new() };
        rows.iter().map(records::record).collect()
    });
    Ok(Some(ThreadView { thread, page: page.flatten(), records, lists: lists.collect::<Result<_>>()? }))
}

/// How a statement selects the thread. The first two parameters of each statement are the tenant and the current time. The
/// parameters of the selector come last, except that its first one is `$3` in the statement for a page.
enum ThreadSelector<'a> {
    Id(Uuid),
    Key { owner: &'a str, key: &'a str },
}

impl<'a> ThreadSelector<'a> {
    fn of(reference: &'a ThreadRef) -> Self {
        match reference {
            ThreadRef::Id(id) => Self::Id(id.0),
            ThreadRef::Key(owner, key) => Self::Key { owner: owner_name(owner), key: key.as_str() },
        }
    }

    fn condition(&self, first: &str, second: &str) -> String {
        match self {
            Self::Id(_) => format!("t.tenant = $1 AND t.id = {first}"),
            Self::Key { .. } => format!("t.tenant = $1 AND t.owner = {first} AND t.key = {second}"),
        }
    }

    fn id(&self, first: &str, second: &str) -> String {
        match self {
            Self::Id(_) => first.to_owned(),
            Self::Key { .. } => {
                format!("(SELECT t.id FROM threadkeep.threads t WHERE {})", self.condition(first, second))
            }
        }
    }

    fn first(&self) -> Parameter<'_> {
        match self {
            Self::Id(id) => (id, Type::UUID),
            Self::Key { owner, .. } => (owner, Type::TEXT),
        }
    }

    fn second(&self) -> Option<Parameter<'_>> {
        match self {
            Self::Id(_) => None,
            Self::Key { key, .. } => Some((key, Type::TEXT)),
        }
    }

    fn values<'v>(&'v self, others: impl IntoIterator<Item = Parameter<'v>>) -> Vec<Parameter<'v>> {
        others.into_iter().chain([self.first()]).chain(self.second()).collect()
    }

    fn page_values<'v>(&'v self, call: &'v PageCall) -> Vec<Parameter<'v>> {
        call.values(self.first()).into_iter().chain(self.second()).collect()
    }
}

const ALIVE: &str = "NOT t.restoring AND (t.expires_at IS NULL OR t.expires_at > $2)";

fn thread_sql(selector: &ThreadSelector<'_>) -> String {
    let columns = thread_columns!();
    format!("SELECT {columns} FROM threadkeep.threads t WHERE {} AND {ALIVE}", selector.condition("$3", "$4"))
}

/// Records are in tables whose names contain `documents`.
fn records_sql(selector: &ThreadSelector<'_>) -> String {
    format!(
        "SELECT {}, n.ordinal FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS n (namespace, key, ordinal) \
         JOIN threadkeep.thread_documents d ON d.namespace = n.namespace AND d.key = n.key \
         WHERE d.thread_no = (SELECT t.no FROM threadkeep.threads t WHERE {} AND {ALIVE}) \
         AND (d.expires_at IS NULL OR d.expires_at > $2)",
        records::COLUMNS,
        selector.condition("$5", "$6")
    )
}

/// The names of the records to read.
struct WantedRecords {
    namespaces: Vec<String>,
    keys: Vec<String>,
}

impl WantedRecords {
    fn of(names: &[RecordName]) -> Self {
        // PostgreSQL rejects text that contains a NUL. No record has such a key. The empty key replaces it, because no record has an
        // empty key either.
        let key = |name: &RecordName| if name.key.contains('\0') { String::new() } else { name.key.clone() };
        let namespaces = names.iter().map(|name| name.namespace.to_string()).collect();
        Self { namespaces, keys: names.iter().map(key).collect() }
    }

    fn values(&self) -> [Parameter<'_>; 2] {
        [(&self.namespaces, Type::TEXT_ARRAY), (&self.keys, Type::TEXT_ARRAY)]
    }

    /// Reads the records in the order of their names; `None` for a record that does not exist.
    fn read(&self, rows: &[Row]) -> Result<Vec<Option<Record>>> {
        let mut found = vec![None; self.keys.len()];
        for row in rows {
            let index = usize::try_from(get::<i64>(row, 6)? - 1).unwrap_or(usize::MAX);
            let out_of_range = || StoreError::corrupt("query result", "record index out of range");
            *found.get_mut(index).ok_or_else(out_of_range)? = Some(records::record(row)?);
        }
        Ok(found)
    }
}
