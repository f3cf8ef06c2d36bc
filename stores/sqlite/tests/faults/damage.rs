//! Damaged files: damage is reported, readable data is salvaged, and damaged data is never returned as valid.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use threadkeep_core::{
    Batch, Content, Dump, DumpEntry, Fingerprint, IdempotencyKey, JsonText, MessageId, Namespace, NewMessage,
    OpenThread, RecordOwner, RecordWrite, Role, Scope, Severity, StoreError, ThreadId, ThreadKey, VerifyReport,
};
use threadkeep_store_sqlite::{Durability, Salvage, SalvagedItem, SqliteOptions, SqliteStore, examine};

use crate::{now, open, scope};

const THREADS: u64 = 4;
const MESSAGES: u64 = 60;
const PAGE: usize = 4096;

fn thread_id(number: u64) -> ThreadId {
    ThreadId::from_name(format!("damage {number}").as_bytes())
}

fn text(thread: u64, number: u64) -> String {
    format!("msg<{thread:02}{number:02}> {}", "and so on ".repeat(30))
}

/// Writes a store with several threads and a record, and closes it, so that all data is in one file.
async fn create_store(folder: &Path) -> PathBuf {
    let path = folder.join("store.db");
    // Without background work, dropping the last clone closes the file and truncates its log.
    let options = SqliteOptions { background: false, ..SqliteOptions::default() };
    let store = SqliteStore::open(&path, options).unwrap();
    let backend = store.backend();
    for thread in 0..THREADS {
        let id = thread_id(thread);
        let key = ThreadKey::new(format!("web:{thread}")).unwrap();
        let open = OpenThread { title: Some(format!("title {thread}")), ..OpenThread::new(&scope(), id).with_key(key) };
        backend.store.open_thread(&scope(), open, now()).await.unwrap();
        let key = format!("all {thread}");
        let mut batch = Batch::new(IdempotencyKey::FromCaller(key.clone()), Fingerprint::of(key.as_bytes()));
        batch.append = (0..MESSAGES)
            .map(|number| NewMessage {
                id: MessageId::from_name(text(thread, number).as_bytes()),
                external_id: None,
                created_at: now(),
                content: Content::text(Role::User, text(thread, number)),
            })
            .collect();
        backend.store.commit(&scope(), id, batch, now()).await.unwrap();
    }
    let write = RecordWrite {
        owner: RecordOwner::Tenant,
        namespace: Namespace::app("notes").unwrap(),
        key: "k".to_owned(),
        value: Some(JsonText::new("[1]").unwrap()),
        expected: None,
        expires_at: None,
    };
    backend.store.write_record(&Scope::tenant("acme").unwrap(), write, now()).await.unwrap();
    backend.search.catch_up(usize::MAX).await.unwrap();
    drop((backend, store));
    path
}

async fn verify(path: &Path) -> VerifyReport {
    match open(path) {
        Ok(store) => store.backend().maintenance.verify().await.unwrap(),
        Err(_) => examine(path).unwrap(),
    }
}

fn damage_details(report: &VerifyReport) -> Vec<String> {
    let damage = report.findings.iter().filter(|finding| finding.severity == Severity::Damage);
    damage.map(|finding| finding.detail.clone()).collect()
}

/// Replaces bytes of the file. They must occur exactly once.
fn edit(path: &Path, old: &str, new: &str) {
    let mut bytes = fs::read(path).unwrap();
    let offsets: Vec<usize> = bytes
        .windows(old.len())
        .enumerate()
        .filter(|(_, window)| *window == old.as_bytes())
        .map(|(offset, _)| offset)
        .collect();
    assert_eq!(offsets.len(), 1, "{old} occurs {} times", offsets.len());
    bytes[offsets[0]..offsets[0] + new.len()].copy_from_slice(new.as_bytes());
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn verify_finds_changed_bytes_of_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = create_store(folder.path()).await;
    assert_eq!(verify(&path).await.findings, []);
    edit(&path, "msg<0321>", "msg<9999>");
    let report = verify(&path).await;
    let found = damage_details(&report);
    assert_eq!(found.len(), 1, "{report:?}");
    assert!(found[0].contains("position 22, message ") && !found[0].contains("msg<"), "{found:?}");
    assert_eq!(report.findings[0].thread, Some(thread_id(3)));
    // The index still contains the original terms.
    let derived: Vec<_> = report.findings.iter().filter(|finding| finding.severity == Severity::Derived).collect();
    assert_eq!(derived.iter().map(|finding| finding.thread).collect::<Vec<_>>(), [Some(thread_id(3))], "{report:?}");
}

#[tokio::test]
async fn checksum_covers_every_field_of_a_message() {
    for (change, findings) in [
        ("UPDATE messages SET role = 0 WHERE position & 4294967295 = 5", THREADS as usize),
        ("UPDATE messages SET created_at = created_at + 1 WHERE position & 4294967295 = 5", THREADS as usize),
        ("UPDATE messages SET external_id = 'x' || position WHERE position & 4294967295 = 5", THREADS as usize),
        (
            "UPDATE messages SET body = (SELECT o.body FROM messages o WHERE o.position = messages.position + 1) \
             WHERE position & 4294967295 = 5",
            THREADS as usize,
        ),
        ("UPDATE messages SET checksum = checksum + 1 WHERE position & 4294967295 = 5", THREADS as usize),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = create_store(folder.path()).await;
        Connection::open(&path).unwrap().execute_batch(change).unwrap();
        assert_eq!(damage_details(&verify(&path).await).len(), findings, "{change}");
    }
}

#[tokio::test]
async fn repair_rebuilds_an_index_that_differs_from_the_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = create_store(folder.path()).await;
    let connection = Connection::open(&path).unwrap();
    // Inserts a term that no text contains, at the position of a message in the second thread.
    let sql = "INSERT INTO message_terms (rowid, terms) SELECT max(position), 'walrus' FROM messages WHERE position >> 32 = 2";
    connection.execute_batch(sql).unwrap();
    drop(connection);
    let report = verify(&path).await;
    assert!(!report.findings.is_empty(), "nothing was found");
    assert!(report.findings.iter().all(|finding| finding.severity == Severity::Derived), "{report:?}");
    assert!(report.findings.iter().any(|finding| finding.thread == Some(thread_id(1))), "{report:?}");
    let store = open(&path).unwrap();
    store.backend().maintenance.repair(now()).await.unwrap();
    assert_eq!(store.backend().maintenance.verify().await.unwrap().findings, []);
}

async fn dump(store: &SqliteStore, thread: ThreadId) -> Vec<Dump> {
    let (mut chunks, mut after) = (Vec::new(), None);
    loop {
        let chunk = store.backend().maintenance.dump_thread(scope().tenant_id(), thread, after, 7).await.unwrap();
        after = chunk.next;
        chunks.push(chunk);
        if after.is_none() {
            return chunks;
        }
    }
}

#[tokio::test]
async fn dump_skips_unreadable_rows() {
    for (change, seqs) in [
        ("UPDATE messages SET body = CAST(x'3175ff22' AS TEXT) WHERE position = (1 << 32) + 20", vec![20]),
        ("UPDATE messages SET id = substr(id, 1, 8) WHERE position IN ((1 << 32) + 1, (1 << 32) + 60)", vec![1, 60]),
        (
            "UPDATE messages SET created_at = 'late' WHERE position BETWEEN (1 << 32) + 7 AND (1 << 32) + 9",
            vec![7, 8, 9],
        ),
        ("DELETE FROM messages WHERE position = (1 << 32) + 8", vec![8]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = create_store(folder.path()).await;
        Connection::open(&path).unwrap().execute_batch(change).unwrap();
        let store = open(&path).unwrap();
        let chunks = dump(&store, thread_id(0)).await;
        let mut lost = BTreeSet::new();
        let mut messages = 0;
        for entry in chunks.iter().flat_map(|chunk| &chunk.entries) {
            match entry {
                DumpEntry::Lost { seq, .. } => lost.extend(*seq..=entry.last_seq()),
                DumpEntry::Message { .. } => messages += 1,
                DumpEntry::Tombstone { .. } => {}
            }
        }
        assert_eq!(lost.into_iter().collect::<Vec<u64>>(), seqs, "{change}");
        assert_eq!(messages, MESSAGES - seqs.len() as u64, "{change}");
        assert!(chunks.iter().flat_map(Dump::damage).count() >= 1, "{change}");
        // A restored copy has no messages at these positions, and its dump also reports them as lost.
        let copy = open(&folder.path().join("copy.db")).unwrap();
        let (maintenance, scope) = (copy.backend().maintenance, scope());
        for chunk in &chunks {
            maintenance.restore_thread(scope.tenant_id(), thread_id(0), chunk.clone()).await.unwrap();
        }
        let entries = |chunks: Vec<Dump>| chunks.into_iter().flat_map(|chunk| chunk.entries).collect::<Vec<_>>();
        assert_eq!(entries(dump(&copy, thread_id(0)).await), entries(chunks), "{change}");
    }
}

/// The outcome of a salvage.
struct SalvageOutcome {
    /// The messages by thread and position.
    texts: Vec<(ThreadId, u64, String)>,
    threads: BTreeSet<String>,
    records: usize,
    /// The number of threads with a title.
    threads_with_title: usize,
    lost: u64,
}

async fn salvage(path: &Path, into: &Path) -> Result<SalvageOutcome, StoreError> {
    let options = SqliteOptions { durability: Durability::Process, background: false, ..SqliteOptions::default() };
    let target = SqliteStore::open(into, options).unwrap();
    let maintenance = target.backend().maintenance;
    let mut salvage = Salvage::open(path)?;
    let mut outcome =
        SalvageOutcome { texts: Vec::new(), threads: BTreeSet::new(), records: 0, threads_with_title: 0, lost: 0 };
    while let Some(salvaged) = salvage.next().unwrap() {
        match salvaged {
            SalvagedItem::Chunk { tenant, thread, dump } => {
                outcome.threads.insert(thread.to_string());
                outcome.threads_with_title += dump.thread.iter().filter(|thread| thread.body.contains("title")).count();
                for entry in &dump.entries {
                    if let DumpEntry::Message { seq, body, .. } = entry {
                        assert_eq!(entry.damage(), None, "a damaged message was salvaged");
                        let content = threadkeep_core::codec::decode_content(body).unwrap();
                        outcome.texts.push((thread, *seq, content.plain_text().into_owned()));
                    }
                }
                maintenance.restore_thread(&tenant, thread, *dump).await.unwrap();
            }
            SalvagedItem::Record { tenant, owner, record } => {
                outcome.records += 1;
                maintenance.restore_record(&tenant, &owner, record).await.unwrap();
            }
        }
    }
    outcome.lost = salvage.lost().1;
    Ok(outcome)
}

#[tokio::test]
async fn salvage_of_an_intact_file_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = create_store(folder.path()).await;
    let outcome = salvage(&path, &folder.path().join("new.db")).await.unwrap();
    assert_eq!((outcome.threads.len() as u64, outcome.texts.len() as u64), (THREADS, THREADS * MESSAGES));
    assert_eq!((outcome.records, outcome.threads_with_title as u64, outcome.lost), (1, THREADS, 0));
    let (old, new) = (open(&path).unwrap(), open(&folder.path().join("new.db")).unwrap());
    for thread in 0..THREADS {
        assert_eq!(dump(&new, thread_id(thread)).await, dump(&old, thread_id(thread)).await);
    }
}

/// Overwrites each page in turn: the damage is always found, and exactly the data in the other pages is salvaged.
#[tokio::test]
async fn salvage_recovers_data_of_undamaged_pages() {
    let folder = tempfile::tempdir().unwrap();
    let path = create_store(folder.path()).await;
    let intact = fs::read(&path).unwrap();
    let (mut partial, mut complete, mut without_rows, mut without_schema) = (0, 0, 0, 0);
    for page in 1..intact.len() / PAGE {
        let mut damaged = intact.clone();
        damaged[page * PAGE..(page + 1) * PAGE].fill(0xa5);
        let copy = folder.path().join(format!("{page}.db"));
        fs::write(&copy, &damaged).unwrap();
        assert!(!verify(&copy).await.findings.is_empty(), "the damage to page {page} was not found");
        let Ok(outcome) = salvage(&copy, &folder.path().join(format!("{page}-new.db"))).await else {
            without_schema += 1;
            continue;
        };
        for (thread, seq, salvaged) in &outcome.texts {
            let number = (0..THREADS).find(|number| thread_id(*number) == *thread).expect("a thread that was written");
            assert_eq!(*salvaged, text(number, seq - 1), "page {page}");
        }
        let lost = THREADS * MESSAGES - outcome.texts.len() as u64;
        complete += usize::from(lost == 0);
        // A leaf page contains few messages. If the root page of the table is damaged, all messages are lost.
        partial += usize::from((1..=16).contains(&lost));
        without_rows +=
            usize::from(outcome.threads.len() as u64 == THREADS && (outcome.threads_with_title as u64) < THREADS);
        assert!(lost == 0 || outcome.lost > 0, "the loss of {lost} messages on page {page} was not reported");
    }
    assert!(without_schema <= 3, "{without_schema} damaged pages made the schema unreadable");
    assert!(
        partial > 10 && complete > 10 && without_rows >= 1,
        "{partial} partial, {complete} complete, {without_rows} without rows"
    );
}

#[tokio::test]
async fn salvage_recovers_the_rest_of_a_truncated_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = create_store(folder.path()).await;
    let intact = fs::read(&path).unwrap();
    let pages = intact.len() / PAGE;
    fs::write(&path, &intact[..pages * 2 / 3 * PAGE]).unwrap();
    assert!(!damage_details(&verify(&path).await).is_empty());
    let outcome = salvage(&path, &folder.path().join("new.db")).await.unwrap();
    assert!(outcome.lost > 0 && !outcome.texts.is_empty(), "{} texts, {} lost", outcome.texts.len(), outcome.lost);
}

#[tokio::test]
async fn backup_copies_a_damaged_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = create_store(folder.path()).await;
    edit(&path, "msg<0321>", "msg<9999>");
    let copy = folder.path().join("copy.db");
    open(&path).unwrap().backup_to(&copy, |_, _| {}).unwrap();
    assert_eq!(damage_details(&verify(&copy).await).len(), 1);
}
