//! Sweeps, verifies and repairs, one thread at a time.

use threadkeep_core::{DumpEntry, Finding, Positions, Result, Severity, SweepReport, Timestamp, VerifyReport, codec};

use crate::idb::{Database, Range, Transaction};
use crate::keys::{self, index};
use crate::rows::{
    Counters, DeletedRow, RecordRow, ThreadRow, has_expired, is_beyond_window, parse_commit, parse_entry,
    write_dumped_entry,
};

/// How many rows a step handles.
const BATCH: usize = 256;

pub(crate) async fn sweep(database: &Database, now: Timestamp) -> Result<SweepReport> {
    let mut report = SweepReport::default();
    let mut range = keys::all_threads();
    while let Some(row) = next_thread(database, &mut range).await? {
        sweep_thread(database, &row, now, &mut report).await?;
    }
    while sweep_records(database, now, &mut report).await? {}
    sweep_deleted(database, now, &mut report).await?;
    Ok(report)
}

/// Returns the first thread of a range, and removes it from the range.
async fn next_thread(database: &Database, range: &mut Range) -> Result<Option<ThreadRow>> {
    let text = database.read()?.range(range, 1).await?.into_iter().next();
    let row = text.map(|text| ThreadRow::parse(&text)).transpose()?;
    if let Some(row) = &row {
        *range = range.clone().after(&keys::thread(&row.tenant, row.id));
    }
    Ok(row)
}

async fn sweep_thread(database: &Database, row: &ThreadRow, now: Timestamp, report: &mut SweepReport) -> Result<()> {
    if !row.is_live(now) {
        let transaction = database.write()?;
        // The thread may have been replaced since it was listed.
        let current = ThreadRow::find(&transaction, &row.tenant, row.id).await?;
        if let Some(current) = current.filter(|current| !current.is_live(now)) {
            current.delete(&transaction)?;
            transaction.commit().await?;
            report.expired_threads += 1;
        }
        return Ok(());
    }
    // Commits are removed starting with the oldest, so that the remaining log has no gaps.
    let commits = keys::commits(&row.tenant, row.id);
    loop {
        let oldest = database.read()?.range(&commits, 1).await?;
        let oldest = oldest.first().map(|text| parse_commit(text)).transpose()?;
        if !oldest.is_some_and(|commit| is_beyond_window(commit.at, now)) {
            return Ok(());
        }
        let transaction = database.write()?;
        for text in transaction.range(&commits, BATCH).await? {
            let commit = parse_commit(&text)?;
            if !is_beyond_window(commit.at, now) {
                break;
            }
            transaction.delete(&keys::commit(&row.tenant, row.id, commit.change))?;
            report.commit_records += 1;
        }
        transaction.commit().await?;
    }
}

/// Removes some expired records. Returns whether there may be more.
async fn sweep_records(database: &Database, now: Timestamp, report: &mut SweepReport) -> Result<bool> {
    let transaction = database.write()?;
    let texts = transaction.range_indexed(&index::expired(now), BATCH).await?;
    for text in &texts {
        let row = RecordRow::parse(text)?;
        if has_expired(row.record.expires_at, now) {
            transaction.delete(&row.key())?;
            report.expired_records += 1;
        }
    }
    transaction.commit().await?;
    Ok(!texts.is_empty())
}

async fn sweep_deleted(database: &Database, now: Timestamp, report: &mut SweepReport) -> Result<()> {
    let transaction = database.write()?;
    let mut counters = Counters::read(&transaction).await?;
    for text in transaction.range(&keys::all_deleted(), usize::MAX).await? {
        let row = DeletedRow::parse(&text)?;
        if is_beyond_window(row.deleted_at, now) {
            counters.swept_stamp = counters.swept_stamp.max(row.stamp);
            transaction.delete(&keys::deleted(&row.tenant, row.id))?;
            report.deleted_ids += 1;
        }
    }
    counters.write(&transaction)?;
    transaction.commit().await
}

pub(crate) async fn verify(database: &Database) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let mut tenant = None;
    loop {
        let next = database.read()?.range(&keys::tenants_after(tenant.as_ref()), 1).await?;
        let Some(next) = next.first() else { break };
        tenant = Some(crate::rows::KnownOwner::parse(next)?.tenant);
        report.tenants += 1;
    }
    report.records += database.read()?.keys(&keys::all_owned_records(), usize::MAX).await?.len() as u64;
    let mut range = keys::all_threads();
    while let Some(row) = next_thread(database, &mut range).await? {
        let transaction = database.read()?;
        // A thread that was deleted since it was listed has nothing to verify.
        if let Some(row) = ThreadRow::find(&transaction, &row.tenant, row.id).await? {
            verify_thread(&transaction, &row, &mut report).await?;
        }
    }
    Ok(report)
}

async fn verify_thread(transaction: &Transaction, row: &ThreadRow, report: &mut VerifyReport) -> Result<()> {
    let (tenant, id) = (&row.tenant, row.id);
    report.threads += 1;
    let owner = threadkeep_core::RecordOwner::Thread(id);
    let mut findings = Vec::new();
    for text in transaction.range(&keys::records(tenant, &owner, None, ""), usize::MAX).await? {
        report.records += 1;
        findings.extend(RecordRow::parse(&text).err().map(|error| error.to_string()));
    }
    if let Err(error) = codec::decode_thread(&row.thread.body) {
        findings.push(format!("title, metadata or state: {error}"));
    }
    let (mut messages, mut has_gap) = (0, false);
    let Positions { seq: last, change, first_seq, .. } = row.thread.positions;
    let mut expected = first_seq;
    let mut entries = keys::entries(tenant, id, 0, u64::MAX);
    loop {
        let texts = transaction.range(&entries, BATCH).await?;
        let mut read_to = None;
        for text in texts {
            let entry = parse_entry(&text)?;
            has_gap |= entry.seq() != expected;
            expected = entry.seq() + 1;
            read_to = Some(keys::entry(tenant, id, entry.seq()));
            if let DumpEntry::Message { checksum, .. } = &entry {
                messages += 1;
                report.unchecked += u64::from(checksum.is_none());
            }
            findings.extend(entry.damage());
        }
        let Some(read_to) = read_to else { break };
        entries = entries.after(&read_to);
    }
    report.messages += messages;
    if has_gap || expected != last + 1 {
        findings.push("positions have a gap, or do not span the range from the first to the last".to_owned());
    }
    if let Some(newest) = transaction.last_key(&keys::commits(tenant, id)).await?
        && newest != keys::commit(tenant, id, change)
    {
        findings.push("the last change in the log is not the thread's current change".to_owned());
    }
    let damage = |detail| Finding { severity: Severity::Damage, thread: Some(id), detail };
    report.findings.extend(findings.into_iter().map(damage));
    if messages != row.messages {
        let detail = format!("the thread counts {} messages and has {messages}", row.messages);
        report.findings.push(Finding { severity: Severity::Derived, thread: Some(id), detail });
    }
    Ok(())
}

/// Counts the messages of each thread again and writes their index keys again.
pub(crate) async fn repair(database: &Database) -> Result<()> {
    let mut range = keys::all_threads();
    while let Some(row) = next_thread(database, &mut range).await? {
        let transaction = database.write()?;
        let Some(mut row) = ThreadRow::find(&transaction, &row.tenant, row.id).await? else { continue };
        row.messages = 0;
        let mut entries = keys::entries(&row.tenant, row.id, 0, u64::MAX);
        loop {
            let texts = transaction.range(&entries, BATCH).await?;
            let Some(last) = texts.last() else { break };
            let last = keys::entry(&row.tenant, row.id, parse_entry(last)?.seq());
            for text in &texts {
                let entry = parse_entry(text)?;
                row.messages += u64::from(matches!(entry, DumpEntry::Message { .. }));
                write_dumped_entry(&transaction, &row.tenant, row.id, &entry)?;
            }
            entries = entries.after(&last);
        }
        row.write(&transaction)?;
        transaction.commit().await?;
    }
    Ok(())
}
