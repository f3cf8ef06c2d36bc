//! Reads all data and reports inconsistencies; rebuilds derived data.

use std::pin::pin;

use deadpool_postgres::Transaction;
use futures::TryStreamExt;
use threadkeep_core::{
    Checksum, DumpEntry, Finding, JsonText, Map, MessageId, Role, Severity, StoreError, ThreadId, VerifyReport, codec,
    message_damage, text,
};
use tokio_postgres::Row;

use crate::error::{PostgresError, Result};
use crate::pool::{Caller, Shared};
use crate::row::{get, unsigned};
use crate::{collections, index, row};

/// The maximum number of findings in a report.
const MAX_FINDINGS: usize = 1_000;

pub(crate) async fn verify(shared: &Shared) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    shared
        .transact(Caller::maintenance(), async |transaction| {
            // One snapshot for all checks, so that concurrent writes cause no findings.
            transaction.batch_execute("COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
            transaction.query_typed("SELECT threadkeep.enter('', 'keeper')", &[]).await?;
            let sql = "SELECT count(*) FROM threadkeep.owners WHERE owner = ''";
            report.tenants = unsigned(&transaction.query_typed(sql, &[]).await?[0], 0)?;
            check_threads(transaction, &mut report).await?;
            check_messages(transaction, &mut report).await?;
            check_log(transaction, &mut report).await?;
            for table in ["documents", "thread_documents"] {
                check_records(transaction, table, &mut report).await?;
            }
            check_index(transaction, &mut report).await?;
            compare_index(transaction, &mut report).await?;
            check_collections(transaction, &mut report).await
        })
        .await?;
    Ok(report)
}

fn add(report: &mut VerifyReport, severity: Severity, thread: Option<ThreadId>, detail: impl Into<String>) {
    if report.findings.len() < MAX_FINDINGS {
        report.findings.push(Finding { severity, thread, detail: detail.into() });
    }
}

/// Calls `visit` with each row as it arrives.
async fn for_each_row(
    transaction: &Transaction<'_>,
    sql: &str,
    mut visit: impl FnMut(&Row) -> Result<()>,
) -> Result<()> {
    let mut rows = pin!(transaction.query_typed_raw(sql, Vec::<(i64, tokio_postgres::types::Type)>::new()).await?);
    while let Some(row) = rows.try_next().await? {
        visit(&row)?;
    }
    Ok(())
}

async fn check_threads(transaction: &Transaction<'_>, report: &mut VerifyReport) -> Result<()> {
    let sql = "SELECT t.id, t.body, t.seq, t.first_seq, s.thread_no IS NULL FROM threadkeep.threads t \
               LEFT JOIN threadkeep.stamps s ON s.thread_no = t.no WHERE NOT t.restoring ORDER BY t.no";
    for_each_row(transaction, sql, |row| {
        let id = ThreadId(get(row, 0)?);
        report.threads += 1;
        if let Err(error) = codec::decode_thread(get(row, 1)?) {
            add(report, Severity::Damage, Some(id), error.to_string());
        }
        let (seq, first_seq) = (unsigned(row, 2)?, unsigned(row, 3)?);
        if first_seq == 0 || first_seq > seq + 1 {
            add(report, Severity::Damage, Some(id), "the thread's first position is after its last");
        }
        if get(row, 4)? {
            add(report, Severity::Derived, Some(id), "the thread's change stamp is missing");
        }
        Ok(())
    })
    .await
}

/// The state of checking one thread's messages.
struct ThreadCheck {
    thread_no: i64,
    id: ThreadId,
    seq: u64,
    /// The position after the last message read.
    expected: u64,
    counted: u64,
    message_count: u64,
}

impl ThreadCheck {
    fn end(&self, report: &mut VerifyReport) {
        self.report_gap(self.seq + 1, report);
        if self.expected > self.seq + 1 {
            let detail = format!("the thread ends at {}, but its last message is at {}", self.seq, self.expected - 1);
            add(report, Severity::Damage, Some(self.id), detail);
        }
        if self.counted != self.message_count {
            let (stored, counted) = (self.message_count, self.counted);
            let detail = format!("the thread's message count is {stored}, but it has {counted} messages");
            add(report, Severity::Derived, Some(self.id), detail);
        }
    }
}

impl ThreadCheck {
    /// Reports the positions before `seq` that have no row.
    fn report_gap(&self, seq: u64, report: &mut VerifyReport) {
        if seq > self.expected {
            let lost = DumpEntry::Lost { seq: self.expected, count: seq - self.expected };
            add(report, Severity::Damage, Some(self.id), lost.damage().unwrap_or_default());
        }
    }
}

/// Returns the damage to a message, if any, and whether it has a checksum.
fn message_damage_of(row: &Row, seq: u64, body: &str) -> Result<(Option<String>, bool)> {
    let id = MessageId(get(row, 7)?);
    let role = get::<Option<i16>>(row, 8)?.and_then(Role::from_stored);
    let created_at = row::timestamp(row, 9)?;
    let external_id: Option<&str> = get(row, 10)?;
    let checksum = get::<Option<i32>>(row, 11)?.map(Checksum::from_stored);
    let computed = || Checksum::of(id, role, created_at, external_id, body);
    Ok((message_damage(seq, id, body, checksum, computed), checksum.is_some()))
}

async fn check_messages(transaction: &Transaction<'_>, report: &mut VerifyReport) -> Result<()> {
    let sql = "SELECT t.id, t.seq, t.first_seq, t.message_count, m.seq, m.body, t.no, m.id, m.role, m.created_at, \
               m.external_id, m.checksum FROM threadkeep.threads t LEFT JOIN threadkeep.messages m ON m.thread_no = t.no \
               AND m.seq >= t.first_seq WHERE NOT t.restoring ORDER BY t.no, m.seq";
    let mut check: Option<ThreadCheck> = None;
    for_each_row(transaction, sql, |row| {
        let (id, thread_no) = (ThreadId(get(row, 0)?), get(row, 6)?);
        if check.as_ref().is_none_or(|check| check.thread_no != thread_no) {
            if let Some(check) = check.take() {
                check.end(report);
            }
            let (seq, first_seq) = (unsigned(row, 1)?, unsigned(row, 2)?);
            check = Some(ThreadCheck {
                thread_no,
                id,
                seq,
                expected: first_seq,
                counted: 0,
                message_count: unsigned(row, 3)?,
            });
        }
        let Some(check) = &mut check else { return Ok(()) };
        let Some(seq) = get::<Option<i64>>(row, 4)?.map(i64::unsigned_abs) else { return Ok(()) };
        check.report_gap(seq, report);
        check.expected = seq + 1;
        let Some(body) = get::<Option<&str>>(row, 5)? else { return Ok(()) };
        check.counted += 1;
        report.messages += 1;
        let (damage, is_checked) = message_damage_of(row, seq, body)?;
        report.unchecked += u64::from(!is_checked);
        if let Some(detail) = damage {
            add(report, Severity::Damage, Some(id), detail);
        }
        Ok(())
    })
    .await?;
    if let Some(check) = check {
        check.end(report);
    }
    Ok(())
}

async fn check_log(transaction: &Transaction<'_>, report: &mut VerifyReport) -> Result<()> {
    let sql = "SELECT t.id, count(*), min(c.change), max(c.change) FROM threadkeep.threads t \
               JOIN threadkeep.commits c ON c.thread_no = t.no WHERE NOT t.restoring GROUP BY t.no \
               HAVING count(*) <> max(c.change) - min(c.change) + 1 OR max(c.change) <> t.change \
               OR min(c.change) <> t.log_from + 1 ORDER BY t.no";
    for_each_row(transaction, sql, |row| {
        let (count, first, last) = (unsigned(row, 1)?, unsigned(row, 2)?, unsigned(row, 3)?);
        let detail =
            format!("the change log has {count} entries from {first} to {last}, which do not match the thread");
        add(report, Severity::Damage, Some(ThreadId(get(row, 0)?)), detail);
        Ok(())
    })
    .await
}

async fn check_records(transaction: &Transaction<'_>, table: &str, report: &mut VerifyReport) -> Result<()> {
    let sql = format!("SELECT namespace, value FROM threadkeep.{table}");
    for_each_row(transaction, &sql, |row| {
        report.records += 1;
        if JsonText::new(get::<&str>(row, 1)?).is_err() {
            let namespace: &str = get(row, 0)?;
            add(report, Severity::Damage, None, format!("the value of a record in {namespace} is not JSON"));
        }
        Ok(())
    })
    .await
}

async fn check_index(transaction: &Transaction<'_>, report: &mut VerifyReport) -> Result<()> {
    let ahead =
        "SELECT t.id FROM threadkeep.indexed i JOIN threadkeep.threads t ON t.no = i.thread_no WHERE i.seq > t.seq";
    for_each_row(transaction, ahead, |row| {
        add(report, Severity::Derived, Some(ThreadId(get(row, 0)?)), "the search index is ahead of the change log");
        Ok(())
    })
    .await?;
    let different = "SELECT t.id, count(*) FROM threadkeep.threads t JOIN threadkeep.indexed i ON i.thread_no = t.no \
                     JOIN threadkeep.messages m ON m.thread_no = t.no AND m.seq BETWEEN t.first_seq AND i.seq \
                     LEFT JOIN threadkeep.message_terms x ON x.thread_no = m.thread_no AND x.seq = m.seq \
                     WHERE NOT t.restoring AND (m.body IS NULL) <> (x.seq IS NULL) GROUP BY t.no ORDER BY t.no";
    for_each_row(transaction, different, |row| {
        let detail = format!("the search index differs from the change log in {} messages", unsigned(row, 1)?);
        add(report, Severity::Derived, Some(ThreadId(get(row, 0)?)), detail);
        Ok(())
    })
    .await
}

/// Compares the terms of the index with the text of the messages.
async fn compare_index(transaction: &Transaction<'_>, report: &mut VerifyReport) -> Result<()> {
    let sql = "SELECT t.id, m.body, tsvector_to_array(x.terms), ARRAY[threadkeep.owner_token(t.tenant, ''), \
               threadkeep.owner_token(t.tenant, t.owner), threadkeep.thread_token(t.no)] \
               FROM threadkeep.threads t JOIN threadkeep.message_terms x ON x.thread_no = t.no AND x.seq >= t.first_seq \
               JOIN threadkeep.messages m ON m.thread_no = t.no AND m.seq = x.seq \
               WHERE NOT t.restoring AND m.body IS NOT NULL ORDER BY t.no";
    let mut different: Option<(ThreadId, u64)> = None;
    let end = |report: &mut VerifyReport, ended: Option<(ThreadId, u64)>| {
        if let Some((id, count)) = ended {
            let detail = format!("the search index differs from the text of {count} messages");
            add(report, Severity::Derived, Some(id), detail);
        }
    };
    for_each_row(transaction, sql, |row| {
        let id = ThreadId(get(row, 0)?);
        let content = codec::decode_content(get(row, 1)?);
        let mut expected = content.map(|content| text::indexed_terms(&content.plain_text())).unwrap_or_default();
        expected.extend(get::<Vec<Option<String>>>(row, 3)?.into_iter().flatten());
        let mut indexed: Vec<String> = get(row, 2)?;
        for terms in [&mut expected, &mut indexed] {
            terms.sort_unstable();
            terms.dedup();
        }
        if expected != indexed {
            different = match different.take() {
                Some((other, count)) if other == id => Some((id, count + 1)),
                ended => {
                    end(report, ended);
                    Some((id, 1))
                }
            };
        }
        Ok(())
    })
    .await?;
    end(report, different);
    Ok(())
}

async fn check_collections(transaction: &Transaction<'_>, report: &mut VerifyReport) -> Result<()> {
    let broken = "SELECT fields FROM threadkeep.entries WHERE fields IS NOT NULL";
    for_each_row(transaction, broken, |row| {
        if serde_json::from_str::<Map>(get(row, 0)?).is_err() {
            add(report, Severity::Damage, None, "the fields of a collection's entry are not a JSON object");
        }
        Ok(())
    })
    .await?;
    let different = "SELECT c.name, c.entry_count, n.entries, n.worded, n.stray \
                     FROM threadkeep.collections c CROSS JOIN LATERAL (SELECT count(e.no) AS entries, \
                     count(t.no) AS worded, count(*) FILTER (WHERE e.no IS NULL) AS stray \
                     FROM (SELECT no FROM threadkeep.entries WHERE collection_no = c.no) AS e \
                     FULL JOIN (SELECT no FROM threadkeep.entry_terms WHERE collection_no = c.no) AS t USING (no)) AS n \
                     WHERE c.entry_count <> n.entries OR n.worded <> n.entries OR n.stray > 0 ORDER BY c.no";
    for_each_row(transaction, different, |row| {
        let (name, stored, counted): (&str, i64, i64) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
        let detail = if stored == counted {
            format!("the search index of the collection {name} differs from its entries")
        } else {
            format!("the entry count of the collection {name} is {stored}, but it has {counted} entries")
        };
        add(report, Severity::Derived, None, detail);
        Ok(())
    })
    .await
}

/// Rebuilds derived data: the counts, the order of changes, and the search index.
pub(crate) async fn repair(shared: &Shared) -> Result<(), StoreError> {
    let rebuilding = shared.transact(Caller::maintenance(), async |transaction| {
        transaction
            .batch_execute(
                "UPDATE threadkeep.threads t SET message_count = c.count FROM (SELECT t.no, count(m.body) AS count
                   FROM threadkeep.threads t LEFT JOIN threadkeep.messages m ON m.thread_no = t.no
                   AND m.seq >= t.first_seq GROUP BY t.no) AS c WHERE c.no = t.no AND c.count <> t.message_count;
                 INSERT INTO threadkeep.stamps (thread_no, tenant, owner, stamp)
                   SELECT no, tenant, owner, threadkeep.stamp() FROM threadkeep.threads WHERE NOT restoring
                   ON CONFLICT (thread_no) DO NOTHING",
            )
            .await?;
        index::reset(transaction).await
    });
    rebuilding.await.map_err(PostgresError::into_write_error)?;
    while !index::catch_up(shared, usize::MAX).await?.done {}
    collections::rebuild(shared).await
}

/// Reads the names in the first column.
pub(crate) fn read_names(rows: &[Row]) -> Result<Vec<String>> {
    rows.iter().map(|row| row::get(row, 0)).collect()
}
