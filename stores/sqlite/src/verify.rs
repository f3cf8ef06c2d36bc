//! Reads everything and reports inconsistencies; rebuilds derived data.

use std::ops::ControlFlow;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use threadkeep_core::{
    Checksum, DumpEntry, Finding, JsonText, MessageId, Role, Severity, ThreadId, VerifyReport, codec, message_damage,
};

use crate::connection::{Shared, lock};
use crate::error::{Result, SqliteError};
use crate::row::{self, ThreadRow, thread_columns};
use crate::{collections, index, salvage, skip_damage, threads};

/// The maximum number of findings in a report.
const MAX_FINDINGS: usize = 1_000;

pub(crate) fn verify(shared: &Shared) -> Result<VerifyReport> {
    let mut report = shared.read(examine)?;
    if !shared.options.read_only {
        check_index(shared, &mut report);
    }
    compare_index(shared, &mut report)?;
    Ok(report)
}

/// Checks all primary data in one snapshot. Unreadable data is reported as a finding and skipped.
pub(crate) fn examine(connection: &Connection) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let transaction = connection.unchecked_transaction()?;
    let pages = check_pages(connection, &mut report);
    report_damage(&mut report, "the pages of the file", pages)?;
    let threads = check_threads(connection, &mut report);
    report_damage(&mut report, "the threads", threads)?;
    let records = check_records(connection, &mut report);
    report_damage(&mut report, "the records", records)?;
    let sql = "SELECT count(*) FROM owners WHERE user = ''";
    let tenants = connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(SqliteError::from);
    report.tenants = report_damage(&mut report, "the owners", tenants)?.unwrap_or(0).unsigned_abs();
    // The transaction wrote nothing, so it does not have to be committed.
    drop(transaction);
    Ok(report)
}

/// Converts an error caused by damage into a finding, so that the checks continue.
fn report_damage<T>(report: &mut VerifyReport, what: &str, result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_damage() => {
            add_finding(report, Severity::Damage, None, format!("{what} cannot be read: {}", error.detail()));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn add_finding(report: &mut VerifyReport, severity: Severity, thread: Option<ThreadId>, detail: impl Into<String>) {
    if report.findings.len() < MAX_FINDINGS {
        report.findings.push(Finding { severity, thread, detail: detail.into() });
    }
}

fn check_pages(connection: &Connection, report: &mut VerifyReport) -> Result<()> {
    let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let line: String = row.get(0)?;
        if line != "ok" {
            // SQLite can rebuild its indexes from their tables.
            let is_index = line.contains("missing from index") || line.contains("wrong # of entries in index");
            let line = with_table_name(connection, &line);
            add_finding(report, if is_index { Severity::Derived } else { Severity::Damage }, None, line);
        }
    }
    Ok(())
}

/// Adds the name of the table or index to a message in which SQLite identifies it only by the number of its root page.
fn with_table_name(connection: &Connection, line: &str) -> String {
    let Some((before, after)) = line.split_once("Tree ") else { return line.to_owned() };
    let digits = after.split(|character: char| !character.is_ascii_digit()).next().unwrap_or_default();
    let sql = "SELECT type || ' ' || name FROM sqlite_schema WHERE rootpage = ?1";
    let name = digits.parse::<i64>().ok().and_then(|page| {
        let mut statement = connection.prepare_cached(sql).ok()?;
        statement.query_row([page], |row| row.get::<_, String>(0)).optional().ok()?
    });
    match name {
        Some(name) => format!("{before}{name}: Tree {after}"),
        None => line.to_owned(),
    }
}

fn check_threads(connection: &Connection, report: &mut VerifyReport) -> Result<()> {
    let sql = concat!(
        "SELECT ",
        thread_columns!(),
        ", id, body FROM threads WHERE no BETWEEN ?1 AND ?2 \
               AND restoring = 0 ORDER BY no"
    );
    let unread = skip_damage::read(connection, sql, 1..=salvage::last_thread_no(connection), |row| {
        let thread = row::thread_row(row).and_then(|thread| Ok((thread, ThreadId(row::uuid(row, 8)?))));
        report.threads += 1;
        let (thread, id) = match thread {
            Ok(thread) => thread,
            Err(error) if error.is_damage() => {
                add_finding(report, Severity::Damage, None, format!("thread row: {}", error.detail()));
                return Ok(ControlFlow::Continue(()));
            }
            Err(error) => return Err(error),
        };
        if let Err(error) = row::text(row, 9).and_then(|body| Ok(codec::decode_thread(body)?)) {
            add_finding(report, Severity::Damage, Some(id), error.detail());
        }
        check_messages(connection, &thread, id, report)?;
        let log = check_log(connection, &thread, id, report);
        report_thread_damage(report, id, "the change log", log)?;
        Ok(ControlFlow::Continue(()))
    })?;
    for range in unread {
        let lost = salvage::thread_ids(connection, &range);
        for id in &lost {
            add_finding(report, Severity::Damage, Some(*id), "the thread's row cannot be read");
        }
        if lost.is_empty() {
            let (first, last) = (range.start(), range.end());
            add_finding(
                report,
                Severity::Damage,
                None,
                format!("rows {first} to {last} of the table threads cannot be read"),
            );
        }
    }
    Ok(())
}

fn report_thread_damage(report: &mut VerifyReport, id: ThreadId, what: &str, result: Result<()>) -> Result<()> {
    match result {
        Err(error) if error.is_damage() => {
            add_finding(report, Severity::Damage, Some(id), format!("{what} cannot be read: {}", error.detail()));
            Ok(())
        }
        result => result,
    }
}

fn check_messages(connection: &Connection, thread: &ThreadRow, id: ThreadId, report: &mut VerifyReport) -> Result<()> {
    let positions = thread.positions;
    if positions.first_seq == 0 || positions.first_seq > positions.seq + 1 {
        add_finding(report, Severity::Damage, Some(id), "the thread's first position is after its last");
        return Ok(());
    }
    let sql = "SELECT position, body, role, id, created_at, external_id, checksum FROM messages \
               WHERE position BETWEEN ?1 AND ?2 ORDER BY position";
    let first = row::key(thread.number, positions.first_seq);
    let last = row::key(thread.number, positions.seq.min(u64::from(u32::MAX)));
    let (mut expected, mut count) = (positions.first_seq, 0);
    let unread = skip_damage::read(connection, sql, first..=last, |row| {
        let seq = row::position_of_key(row.get(0)?);
        add_gap(report, id, expected, seq);
        expected = seq + 1;
        if row.get_ref(1)? == ValueRef::Null {
            return Ok(ControlFlow::Continue(()));
        }
        count += 1;
        match message_damage_of(row, seq) {
            Ok((damage, is_checked)) => {
                report.unchecked += u64::from(!is_checked);
                if let Some(detail) = damage {
                    add_finding(report, Severity::Damage, Some(id), detail);
                }
            }
            Err(error) if error.is_damage() => {
                add_finding(report, Severity::Damage, Some(id), format!("position {seq}: {}", error.detail()));
            }
            Err(error) => return Err(error),
        }
        Ok(ControlFlow::Continue(()))
    })?;
    report.messages += count;
    add_gap(report, id, expected, positions.seq + 1);
    check_end(connection, thread, id, report)?;
    if count != thread.message_count && unread.is_empty() {
        let detail = format!("the thread's message count is {}, but it has {count} messages", thread.message_count);
        add_finding(report, Severity::Derived, Some(id), detail);
    }
    Ok(())
}

fn add_gap(report: &mut VerifyReport, id: ThreadId, expected: u64, seq: u64) {
    if seq > expected {
        let lost = DumpEntry::Lost { seq: expected, count: seq - expected };
        add_finding(report, Severity::Damage, Some(id), lost.damage().unwrap_or_default());
    }
}

/// Reports messages after the thread's last position.
fn check_end(connection: &Connection, thread: &ThreadRow, id: ThreadId, report: &mut VerifyReport) -> Result<()> {
    let seq = thread.positions.seq;
    let sql = "SELECT max(position) FROM messages WHERE position BETWEEN ?1 AND ?2";
    let range = params![row::key(thread.number, 0), row::last_key(thread.number)];
    let last = connection.prepare_cached(sql)?.query_row(range, |row| row.get::<_, Option<i64>>(0));
    match last.map_err(SqliteError::from) {
        Ok(Some(last)) if row::position_of_key(last) > seq => {
            let detail = format!("the thread ends at {seq}, but its last message is at {}", row::position_of_key(last));
            add_finding(report, Severity::Damage, Some(id), detail);
        }
        Err(error) if !error.is_damage() => return Err(error),
        // Unreadable pages are already reported.
        _ => {}
    }
    Ok(())
}

/// Returns the damage to a message, if any, and whether it has a checksum.
fn message_damage_of(row: &Row<'_>, seq: u64) -> Result<(Option<String>, bool)> {
    let (body, id, checksum) = (row::text(row, 1)?, MessageId(row::uuid(row, 3)?), row::checksum(row, 6)?);
    let role = row.get::<_, Option<i64>>(2)?.and_then(Role::from_stored);
    let created_at = row::timestamp(row.get(4)?)?;
    let external_id: Option<String> = row.get(5)?;
    let computed = || Checksum::of(id, role, created_at, external_id.as_deref(), body);
    Ok((message_damage(seq, id, body, checksum, computed), checksum.is_some()))
}

fn check_log(connection: &Connection, thread: &ThreadRow, id: ThreadId, report: &mut VerifyReport) -> Result<()> {
    let sql = "SELECT count(*), coalesce(min(position), 0), coalesce(max(position), 0) FROM commits \
               WHERE position BETWEEN ?1 AND ?2";
    let range = params![row::key(thread.number, 0), row::last_key(thread.number)];
    let (count, first, last): (i64, i64, i64) =
        connection.prepare_cached(sql)?.query_row(range, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if count == 0 {
        return Ok(());
    }
    let (first, last) = (row::position_of_key(first), row::position_of_key(last));
    let is_gapless = count.unsigned_abs() == last - first + 1;
    if !is_gapless || last != thread.positions.change || first != thread.log_from + 1 {
        let detail =
            format!("the change log has {count} entries from {first} to {last}, which do not match the thread");
        add_finding(report, Severity::Damage, Some(id), detail);
    }
    Ok(())
}

fn check_records(connection: &Connection, report: &mut VerifyReport) -> Result<()> {
    let sql = "SELECT no, namespace, value FROM documents WHERE no BETWEEN ?1 AND ?2 ORDER BY no";
    let unread = skip_damage::read(connection, sql, 1..=salvage::last_record_no(connection), |row| {
        report.records += 1;
        if row::text(row, 2).and_then(|value| Ok(JsonText::new(value)?)).is_err() {
            let namespace = row::text(row, 1).unwrap_or("an unreadable namespace");
            add_finding(report, Severity::Damage, None, format!("the value of a record in {namespace} is not JSON"));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    for range in unread {
        let (first, last) = (range.start(), range.end());
        add_finding(
            report,
            Severity::Damage,
            None,
            format!("rows {first} to {last} of the table documents cannot be read"),
        );
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
        let detail = format!("the search index is inconsistent: {}", error.detail());
        add_finding(report, Severity::Derived, None, detail);
    }
    let ahead = shared.read(|connection| {
        let sql = "SELECT count(*) FROM indexed i JOIN threads t ON t.no = i.thread_no WHERE i.seq > t.seq";
        Ok(connection.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    if !matches!(ahead, Ok(0)) {
        add_finding(report, Severity::Derived, None, "the search index is ahead of the change log");
    }
}

/// Compares the index with the text, on a connection that allows temporary tables.
fn compare_index(shared: &Shared, report: &mut VerifyReport) -> Result<()> {
    match shared.connect().and_then(|connection| index::compare::compare(&connection)) {
        Ok(found) => {
            for thread in found.threads {
                add_finding(
                    report,
                    Severity::Derived,
                    thread,
                    "the search index differs from the text of the messages",
                );
            }
            if found.has_orphans {
                add_finding(
                    report,
                    Severity::Derived,
                    None,
                    "the search index has terms of messages that do not exist",
                );
            }
        }
        // Unreadable pages are already reported.
        Err(error) if error.is_damage() && !report.findings.is_empty() => {}
        Err(error) if error.is_damage() => {
            let detail = format!("the search index cannot be compared with the text: {}", error.detail());
            add_finding(report, Severity::Derived, None, detail);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Rebuilds derived data: SQLite's indexes, the message counts and the index of collections. Clears the search index of messages, which
/// must then catch up.
pub(crate) fn repair(connection: &Connection) -> Result<()> {
    connection.execute_batch("REINDEX")?;
    let sql = "UPDATE threads SET message_count = (SELECT count(*) FROM messages m WHERE m.body IS NOT NULL \
               AND m.position BETWEEN (threads.no << 32) + threads.first_seq AND (threads.no << 32) + 4294967295)";
    connection.execute(sql, [])?;
    index::reset(connection)?;
    collections::rebuild_index(connection)?;
    // The highest stamp may be that of a deletion; the next commit needs a higher one.
    let stamp = threads::next_stamp(connection)? - 1;
    let sql = "INSERT INTO marks (name, value) VALUES ('stamp', ?1) ON CONFLICT DO UPDATE SET value = max(value, ?1)";
    connection.execute(sql, [stamp])?;
    Ok(())
}
