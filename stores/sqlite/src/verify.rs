//! Reads everything and says what does not hold together; rebuilds what is derived.

use rusqlite::{Connection, params};
use threadkeep_core::{Finding, JsonText, Severity, ThreadId, VerifyReport, codec};

use crate::connection::{Shared, lock};
use crate::error::{Result, SqliteError};
use crate::row::{self, ThreadRow, thread_columns};
use crate::{collections, index, threads};

/// Findings after which verification stops telling single ones.
const FINDINGS: usize = 1_000;

pub(crate) fn verify(shared: &Shared) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    shared.read(|connection| {
        let transaction = connection.unchecked_transaction()?;
        check_pages(connection, &mut report)?;
        check_threads(connection, &mut report)?;
        check_documents(connection, &mut report)?;
        let sql = "SELECT count(*) FROM owners WHERE user = ''";
        report.tenants = connection.query_row(sql, [], |row| row.get::<_, i64>(0))?.unsigned_abs();
        transaction.commit()?;
        Ok(())
    })?;
    if !shared.options.read_only {
        check_index(shared, &mut report);
    }
    Ok(report)
}

fn add(report: &mut VerifyReport, severity: Severity, thread: Option<ThreadId>, detail: impl Into<String>) {
    if report.findings.len() < FINDINGS {
        report.findings.push(Finding { severity, thread, detail: detail.into() });
    }
}

fn check_pages(connection: &Connection, report: &mut VerifyReport) -> Result<()> {
    let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let line: String = row.get(0)?;
        if line != "ok" {
            // SQLite's own indexes can be built again from their tables.
            let is_index = line.contains("missing from index") || line.contains("wrong # of entries in index");
            add(report, if is_index { Severity::Derived } else { Severity::Damage }, None, line);
        }
    }
    Ok(())
}

fn check_threads(connection: &Connection, report: &mut VerifyReport) -> Result<()> {
    let sql = concat!("SELECT ", thread_columns!(), ", id, body FROM threads WHERE restoring = 0");
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let thread = row::thread_row(row)?;
        let id = ThreadId(row::uuid(row, 8)?);
        report.threads += 1;
        if let Err(error) = row::text(row, 9).and_then(|body| Ok(codec::decode_thread(body)?)) {
            add(report, Severity::Damage, Some(id), threadkeep_core::StoreError::from(error).to_string());
        }
        check_messages(connection, &thread, id, report)?;
        check_log(connection, &thread, id, report)?;
    }
    Ok(())
}

fn check_messages(connection: &Connection, thread: &ThreadRow, id: ThreadId, report: &mut VerifyReport) -> Result<()> {
    let positions = thread.positions;
    if positions.first_seq == 0 || positions.first_seq > positions.seq + 1 {
        add(report, Severity::Damage, Some(id), "the first position is beyond the end");
        return Ok(());
    }
    let sql = "SELECT position, body, role FROM messages WHERE position BETWEEN ?1 AND ?2 ORDER BY position";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([row::key(thread.no, positions.first_seq), row::last_key(thread.no)])?;
    let (mut expected, mut count) = (positions.first_seq, 0);
    while let Some(row) = rows.next()? {
        let seq = row::position(row.get(0)?);
        if seq != expected {
            let detail = format!("positions {expected} to {} are missing", seq.saturating_sub(1));
            add(report, Severity::Damage, Some(id), detail);
        }
        expected = seq + 1;
        if row.get_ref(1)? == rusqlite::types::ValueRef::Null {
            continue;
        }
        count += 1;
        if let Err(error) = row::text(row, 1).and_then(|body| Ok(codec::decode_content(body)?)) {
            let detail = format!("position {seq}: {}", threadkeep_core::StoreError::from(error));
            add(report, Severity::Damage, Some(id), detail);
        }
    }
    report.messages += count;
    if expected != positions.seq + 1 {
        let detail = format!("the thread says it ends at {}, its messages at {}", positions.seq, expected - 1);
        add(report, Severity::Damage, Some(id), detail);
    }
    if count != thread.message_count {
        let detail = format!("the thread counts {} messages and holds {count}", thread.message_count);
        add(report, Severity::Derived, Some(id), detail);
    }
    Ok(())
}

fn check_log(connection: &Connection, thread: &ThreadRow, id: ThreadId, report: &mut VerifyReport) -> Result<()> {
    let sql = "SELECT count(*), coalesce(min(position), 0), coalesce(max(position), 0) FROM commits \
               WHERE position BETWEEN ?1 AND ?2";
    let range = params![row::key(thread.no, 0), row::last_key(thread.no)];
    let (count, first, last): (i64, i64, i64) =
        connection.prepare_cached(sql)?.query_row(range, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if count == 0 {
        return Ok(());
    }
    let (first, last) = (row::position(first), row::position(last));
    let is_gapless = count.unsigned_abs() == last - first + 1;
    if !is_gapless || last != thread.positions.change || first != thread.log_from + 1 {
        let detail =
            format!("the change log holds {count} entries from {first} to {last}, and does not fit the thread");
        add(report, Severity::Damage, Some(id), detail);
    }
    Ok(())
}

fn check_documents(connection: &Connection, report: &mut VerifyReport) -> Result<()> {
    let mut statement = connection.prepare("SELECT namespace, value FROM documents")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        report.documents += 1;
        if row::text(row, 1).and_then(|value| Ok(JsonText::new(value)?)).is_err() {
            add(report, Severity::Damage, None, format!("a document of {} is not JSON", row.get::<_, String>(0)?));
        }
    }
    Ok(())
}

fn check_index(shared: &Shared, report: &mut VerifyReport) {
    let sql = "INSERT INTO message_terms (message_terms) VALUES ('integrity-check'); \
               INSERT INTO entry_terms (entry_terms) VALUES ('integrity-check')";
    let checked = lock(&shared.writer).execute_batch(sql).map_err(SqliteError::from);
    if let Err(error) = checked
        && !error.is_busy()
    {
        let detail = format!("the search index does not hold together: {}", threadkeep_core::StoreError::from(error));
        add(report, Severity::Derived, None, detail);
    }
    let ahead = shared.read(|connection| {
        let sql = "SELECT count(*) FROM indexed i JOIN threads t ON t.no = i.thread_no WHERE i.seq > t.seq";
        Ok(connection.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    if !matches!(ahead, Ok(0)) {
        add(report, Severity::Derived, None, "the search index is ahead of the log");
    }
}

/// Rebuilds what is derived: SQLite's indexes, the counts, the search index (which then has to be caught up).
pub(crate) fn repair(connection: &Connection) -> Result<()> {
    connection.execute_batch("REINDEX")?;
    let sql = "UPDATE threads SET message_count = (SELECT count(*) FROM messages m WHERE m.body IS NOT NULL \
               AND m.position BETWEEN (threads.no << 32) + threads.first_seq AND (threads.no << 32) + 4294967295)";
    connection.execute(sql, [])?;
    index::reset(connection)?;
    collections::rebuild_index(connection)?;
    // A deletion's stamp may be the highest; the next commit must still be above it.
    let stamp = threads::next_stamp(connection)? - 1;
    let sql = "INSERT INTO marks (name, value) VALUES ('stamp', ?1) ON CONFLICT DO UPDATE SET value = max(value, ?1)";
    connection.execute(sql, [stamp])?;
    Ok(())
}
