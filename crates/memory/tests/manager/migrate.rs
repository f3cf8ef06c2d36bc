use sha2::{Digest as _, Sha256};
use threadkeep_core::{
    Backend, Consistency, Content, JsonText, Namespace, OpenThread, PutRecord, RecordName, RecordOwner, RecordWrite,
    Role, Scope, StoreError, ThreadId, ThreadOrder, ThreadQuery,
};
use threadkeep_memory::migrate::{BackupLines, BackupReader, CopySummary, Item, Migration, Progress, Verification};
use threadkeep_memory::{AppendOptions, Draft, Memory, MemoryError, Retention};

use super::faulty_maintenance::{FaultyMaintenance, Outcome};
use super::test_env::{TestEnv, acme, ana, ben};

/// The numbers of threads, messages and records that `fill` creates, across all tenants.
const FILLED_TOTALS: Progress = Progress { threads: 44, messages: 176, records: 4 };

fn create_envs() -> [TestEnv; 2] {
    [TestEnv::sqlite(), TestEnv::plain()]
}

async fn begin_migration(from: &TestEnv, to: &TestEnv) -> Migration {
    Migration::begin(&from.backend, to.backend.clone(), from.memory.platform()).await.unwrap()
}

fn record_name(namespace: Namespace, key: &str) -> RecordName {
    RecordName { namespace, key: key.to_owned() }
}

/// Creates threads and records for several tenants and users. Returns the id of the last thread, which has every kind of change.
async fn fill(env: &TestEnv) -> ThreadId {
    let memory = &env.memory;
    let globex = Scope::tenant("globex").unwrap();
    for number in 0..40 {
        let scope = [ana(), ben(), acme(), globex.clone()][number % 4].clone();
        let thread = memory.open(&scope).await.unwrap().thread.id;
        let drafts =
            vec![Draft::user(format!("Question {number}?")), Draft::assistant("Wait."), Draft::assistant("No.")];
        memory.append_all(&scope, thread, drafts, &AppendOptions::default()).await.unwrap();
    }
    let expiring = OpenThread {
        expires_at: Some(memory.now().plus_ms(10)),
        ..OpenThread::new(&ana(), memory.generate_thread_id())
    };
    memory.open_thread(&ana(), expiring).await.unwrap();
    env.clock.advance_ms(10);
    memory.set_preference(&ana(), "line", "Victoria").await.unwrap();
    memory.set_preference(&ben(), "line", "Northern").await.unwrap();
    for namespace in [Namespace::app("config").unwrap(), Namespace::system("config").unwrap()] {
        let (owner, key, value) = (RecordOwner::Tenant, "limits".to_owned(), Some(JsonText::of(&17).unwrap()));
        let write = RecordWrite { owner, namespace, key, expected: None, value, expires_at: None };
        env.backend.store.write_record(&globex, write, memory.now()).await.unwrap();
    }
    memory.sweep_if_due(std::time::Duration::from_secs(60)).await.unwrap();
    for _ in 0..3 {
        memory.open(&ben()).await.unwrap();
    }
    create_thread_with_history(memory).await
}

/// Creates a thread with every kind of change.
async fn create_thread_with_history(memory: &Memory) -> ThreadId {
    let thread = memory.open_by_key(&ana(), "slack:T1:C1:17.01").await.unwrap().thread.id;
    for number in 0..60 {
        let draft = Draft::user(format!("Line {number}")).with_external_id(format!("x{number}"));
        let options = AppendOptions { idempotency_key: Some(format!("k{number}")), ..AppendOptions::default() };
        memory.append_all(&ana(), thread, vec![draft], &options).await.unwrap();
    }
    let messages = memory.newest(&ana(), thread, 60).await.unwrap();
    memory.erase_messages(&ana(), thread, &[messages[20].id, messages[21].id]).await.unwrap();
    let edited = Content::text(Role::User, "Edited");
    memory.replace_message(&ana(), thread, messages[30].id, edited, None).await.unwrap();
    memory.retain(&ana(), thread, &Retention { max_messages: Some(56), ttl_minutes: None }).await.unwrap();
    let puts = [("app", Namespace::app("notes").unwrap()), ("system", Namespace::system("run").unwrap())];
    for (text, namespace) in puts {
        let put = PutRecord { name: record_name(namespace, "k"), value: JsonText::of(text).unwrap(), expires_at: None };
        memory.batch().put(put).commit(&ana(), thread).await.unwrap();
    }
    thread
}

/// Verifies a migration, and asserts that the last progress report is complete.
async fn verify(migration: &Migration) -> Verification {
    let mut last = Progress::default();
    let verification = migration.verify(|progress| last = progress).await.unwrap();
    assert_eq!((last.threads, last.records), (verification.source.threads, FILLED_TOTALS.records));
    verification
}

fn assert_no_differences(verification: &Verification) {
    assert!(verification.differences.is_empty(), "{:?}", verification.differences);
    assert_eq!(verification.source, verification.target);
    assert_eq!(
        (verification.source.threads, verification.source.messages),
        (FILLED_TOTALS.threads, FILLED_TOTALS.messages)
    );
    assert_eq!(verification.source.tombstones, 2);
    assert_eq!(verification.only_in_target, 0);
}

#[tokio::test(start_paused = true)]
async fn every_store_can_be_migrated_to_every_other() {
    for from in create_envs() {
        let thread = fill(&from).await;
        for to in create_envs() {
            let migration = begin_migration(&from, &to).await;
            let survey = migration.survey(|_| {}).await.unwrap();
            assert_eq!(
                (survey.total, survey.already_there, survey.conflicts.count),
                (FILLED_TOTALS, Progress::default(), 0)
            );
            let mut last = Progress::default();
            let copied = migration.copy(|progress| last = progress).await.unwrap();
            assert_eq!((copied.copied, last), (FILLED_TOTALS, FILLED_TOTALS));
            assert!(copied.conflicts.is_empty());
            assert_no_differences(&verify(&migration).await);
            assert_eq!(to.backend.maintenance.verify().await.unwrap().findings, []);
            assert_eq!(list_thread_ids(&to).await, list_thread_ids(&from).await);
            // A second copy finds everything in the target.
            assert_eq!(migration.survey(|_| {}).await.unwrap().already_there, FILLED_TOTALS);
            let repeated = migration.copy(|_| {}).await.unwrap();
            assert_eq!(repeated, CopySummary { already_there: FILLED_TOTALS, ..CopySummary::default() });
            assert_usable(&to, thread).await;
        }
    }
}

/// Returns the ids of all threads of the tenant, in creation order.
async fn list_thread_ids(env: &TestEnv) -> Vec<ThreadId> {
    let query = ThreadQuery::new(ThreadOrder::Created, 100);
    let page = env.memory.list_threads(&acme(), &query).await.unwrap();
    page.threads.into_iter().map(|thread| thread.id).collect()
}

/// Asserts that keys and idempotency records were copied, and that the copy accepts writes.
async fn assert_usable(to: &TestEnv, thread: ThreadId) {
    to.clock.advance_ms(100);
    let memory = &to.memory;
    assert_eq!(memory.open_by_key(&ana(), "slack:T1:C1:17.01").await.unwrap().thread.id, thread);
    let options = AppendOptions { idempotency_key: Some("k59".to_owned()), ..AppendOptions::default() };
    let draft = Draft::user("Line 59").with_external_id("x59");
    let repeated = memory.append_all(&ana(), thread, vec![draft], &options).await.unwrap();
    assert_eq!((repeated.replayed, repeated.first_seq), (true, 60));
    assert_eq!(memory.append(&ana(), thread, Draft::user("Line 60")).await.unwrap().first_seq, 61);
    memory.update_preference::<String>(&ana(), "line", |line| line.map(|line| line + "!")).await.unwrap();
    assert_eq!(memory.preference::<String>(&ana(), "line").await.unwrap().as_deref(), Some("Victoria!"));
}

#[tokio::test(start_paused = true)]
async fn conflicting_target_data_is_not_overwritten() {
    for to in create_envs() {
        let from = TestEnv::plain();
        let thread = fill(&from).await;
        let migration = begin_migration(&from, &to).await;
        let scope = ana();
        // The target has a different thread with the same id, a thread with the same key, and a record with a different value.
        let page = from.memory.list_threads(&ana(), &ThreadQuery::new(ThreadOrder::Created, 1)).await.unwrap();
        let id = page.threads[0].id;
        to.memory.open_by_id(&scope, id).await.unwrap();
        to.memory.append(&scope, id, Draft::user("Mine.")).await.unwrap();
        let same_key = to.memory.open_by_key(&scope, "slack:T1:C1:17.01").await.unwrap().thread.id;
        to.memory.set_preference(&ben(), "line", "Central").await.unwrap();

        let survey = migration.survey(|_| {}).await.unwrap();
        let reported: Vec<String> = survey.conflicts.listed.iter().map(ToString::to_string).collect();
        assert_eq!(survey.conflicts.count, 3, "{reported:?}");
        assert!(
            reported[0]
                .starts_with(&format!("tenant acme, thread {id}: it is at message 3, change 1; in the target at")),
            "{reported:?}"
        );
        assert_eq!(
            reported[1],
            format!("tenant acme, thread {thread}: its key belongs to thread {same_key} in the target")
        );
        assert!(reported[2].starts_with("tenant acme, record app/preferences/line of ben: "), "{reported:?}");

        // Copying nevertheless copies the rest, and does not change existing data.
        let copied = migration.copy(|_| {}).await.unwrap();
        assert_eq!((copied.copied.threads, copied.conflicts.count), (FILLED_TOTALS.threads - 2, 3));
        assert_eq!(to.memory.newest(&scope, id, 9).await.unwrap().len(), 1);
        assert_eq!(to.memory.preference::<String>(&ben(), "line").await.unwrap().as_deref(), Some("Central"));
        let verification = migration.verify(|_| {}).await.unwrap();
        assert_eq!((verification.differences.count, verification.only_in_target), (3, 1));
        assert_ne!(verification.source.hash, verification.target.hash);
    }
}

#[tokio::test(start_paused = true)]
async fn verification_reports_differences() {
    let (from, to) = (TestEnv::plain(), TestEnv::plain());
    let thread = fill(&from).await;
    let migration = begin_migration(&from, &to).await;
    migration.copy(|_| {}).await.unwrap();
    let source_memory = &from.memory;
    let newest = to.memory.newest(&ana(), thread, 2).await.unwrap();
    to.memory.erase_messages(&ana(), thread, &[newest[0].id]).await.unwrap();
    source_memory.append(&ana(), thread, Draft::user("Late.")).await.unwrap();
    source_memory.delete_preference(&ben(), "line").await.unwrap();
    source_memory.set_preference(&ben(), "line", "Bakerloo").await.unwrap();
    let new = source_memory.open(&ana()).await.unwrap().thread.id;
    // The migration compares a snapshot of the source, which does not include later writes. A new migration includes them.
    let differences = migration.verify(|_| {}).await.unwrap().differences;
    let reported: Vec<_> =
        differences.listed.iter().map(|difference| (&difference.item, difference.detail.as_str())).collect();
    let thread_difference =
        (&Item::Thread(thread), "it is at message 60, change 65; in the target at message 60, change 66");
    assert_eq!(reported, [thread_difference]);
    let new_migration = begin_migration(&from, &to).await;
    let differences = new_migration.verify(|_| {}).await.unwrap().differences;
    let reported: Vec<_> =
        differences.listed.iter().map(|difference| (&difference.item, difference.detail.as_str())).collect();
    assert_eq!(reported.len(), 3, "{reported:?}");
    assert!(
        reported.contains(&(
            &Item::Thread(thread),
            "it is at message 61, change 66; in the target at message 60, change 66"
        )),
        "{reported:?}"
    );
    assert!(reported.contains(&(&Item::Thread(new), "missing from the target")), "{reported:?}");
    assert!(
        matches!(reported[2], (Item::Record { .. }, detail) if detail.starts_with("it has version")),
        "{reported:?}"
    );
}

/// A chunk is not written twice if the response to its write was lost, and a full disk does not leave an incomplete thread.
#[tokio::test(start_paused = true)]
async fn an_interrupted_migration_is_completed_by_the_next() {
    let from = TestEnv::sqlite();
    fill(&from).await;
    for writes_before_failure in [0, 1, 7, 43, 44, 45] {
        for to in create_envs() {
            let outcomes = std::iter::repeat_n(Outcome::Success, writes_before_failure).chain([Outcome::DiskFull]);
            let interrupted =
                Migration::begin(&from.backend, FaultyMaintenance::wrap(&to.backend, outcomes), from.memory.platform())
                    .await
                    .unwrap();
            interrupted.copy(|_| {}).await.unwrap_err();
            assert_eq!(to.backend.maintenance.verify().await.unwrap().findings, []);
            let lost_responses =
                [Outcome::LostResponse, Outcome::Success, Outcome::LostResponse, Outcome::LostResponse];
            let lossy_target = FaultyMaintenance::wrap(&to.backend, lost_responses.into_iter().cycle().take(64));
            let completing = Migration::begin(&from.backend, lossy_target, from.memory.platform()).await.unwrap();
            let copied = completing.copy(|_| {}).await.unwrap();
            assert_eq!(copied.conflicts.count, 0, "{copied:?}");
            assert_no_differences(&verify(&begin_migration(&from, &to).await).await);
        }
    }
}

/// Returns the source's backend with a wrapper that makes writes of all kinds between the reads of a snapshot.
fn with_concurrent_writes(from: &TestEnv, thread: ThreadId) -> Backend {
    let events = (0..50).map(|number| {
        let memory = from.memory.clone();
        let change = async move {
            memory.append(&ana(), thread, Draft::user(format!("Later {number}"))).await.unwrap();
            let newest = memory.newest(&ana(), thread, 3).await.unwrap();
            memory.erase_messages(&ana(), thread, &[newest[0].id]).await.unwrap();
            memory.set_preference(&ana(), "line", &format!("Line {number}")).await.unwrap();
            let new = memory.open(&ben()).await.unwrap().thread.id;
            memory.append(&ben(), new, Draft::user("Later.")).await.unwrap();
            let oldest = memory.list_threads(&ben(), &ThreadQuery::new(ThreadOrder::Created, 1)).await.unwrap();
            memory.delete_thread(&ben(), oldest.threads[0].id).await.unwrap();
        };
        futures::FutureExt::boxed(change)
    });
    FaultyMaintenance::with_actions(&from.backend, events.collect())
}

/// Writes made after the snapshot was taken are not copied.
#[tokio::test(start_paused = true)]
async fn concurrent_writes_do_not_affect_a_copy() {
    for (from, from_copy) in create_envs().into_iter().zip(create_envs()) {
        let (to, restored) = (TestEnv::plain(), TestEnv::plain());
        let thread = fill(&from).await;
        let copying = begin_migration(&from, &from_copy).await;
        let migration =
            Migration::begin(&with_concurrent_writes(&from, thread), to.backend.clone(), from.memory.platform())
                .await
                .unwrap();
        assert_eq!(migration.survey(|_| {}).await.unwrap().total, FILLED_TOTALS);
        assert_eq!(migration.copy(|_| {}).await.unwrap().copied, FILLED_TOTALS);
        assert_no_differences(&verify(&migration).await);
        assert_ne!(list_thread_ids(&from).await, list_thread_ids(&to).await, "no concurrent writes were made");

        // Concurrent writes do not affect a backup either. Its header contains the consistency of the snapshot.
        copying.copy(|_| {}).await.unwrap();
        // The clock is advanced so that new ids differ from those in `from`.
        from_copy.clock.advance_ms(60_000);
        let lines = back_up(&with_concurrent_writes(&from_copy, thread), &from_copy).await;
        assert!(lines[0].contains(r#""as_of":"store""#), "{}", lines[0]);
        restore(&restored, lines.iter().map(String::as_str)).await.unwrap();
        let restored = Migration::begin(&restored.backend, to.backend.clone(), from.memory.platform()).await.unwrap();
        assert_no_differences(&verify(&restored).await);
    }
}

/// The header of a backup made by an earlier version does not contain a consistency.
#[tokio::test(start_paused = true)]
async fn a_backup_without_a_consistency_field_is_readable() {
    let (from, to) = (TestEnv::plain(), TestEnv::plain());
    fill(&from).await;
    let mut lines = back_up(&from.backend, &from).await;
    let (before, after) = lines[0].split_once(r#","as_of":"store""#).unwrap();
    lines[0] = format!("{before}{after}");
    let all = lines.iter().map(String::as_str);
    // The last line contains the hash of all other lines.
    let error = restore(&TestEnv::plain(), all.clone()).await.unwrap_err();
    assert!(error.to_string().contains("lines were added, removed or changed"), "{error}");
    let end = lines.len() - 1;
    let written: String = lines[..end].iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    let hash: String = Sha256::digest(&written).iter().map(|byte| format!("{byte:02x}")).collect();
    let (counts, _) = lines[end].split_once(r#""hash":"#).unwrap();
    let last = format!(r#"{counts}"hash":"{hash}"}}}}"#);
    restore(&to, lines[..end].iter().map(String::as_str).chain([last.as_str()])).await.unwrap();
    assert_no_differences(&verify(&begin_migration(&from, &to).await).await);
}

/// Creates a backup, and returns its lines.
async fn back_up(backend: &Backend, env: &TestEnv) -> Vec<String> {
    let mut lines = Vec::new();
    let backup = BackupLines::begin(backend, env.memory.platform()).await.unwrap();
    assert_eq!((backup.totals().threads, backup.totals().messages), (FILLED_TOTALS.threads, FILLED_TOTALS.messages));
    let writing = backup.write(|line, _| {
        lines.push(line.to_owned());
        Ok::<(), MemoryError>(())
    });
    let summary = writing.await.unwrap();
    assert_eq!((summary.written, summary.as_of), (FILLED_TOTALS, Consistency::Store));
    lines
}

async fn restore<'a>(to: &TestEnv, lines: impl IntoIterator<Item = &'a str>) -> Result<Progress, MemoryError> {
    let mut reader = BackupReader::into(to.backend.clone(), to.memory.platform());
    for line in lines {
        reader.line(line).await?;
    }
    reader.finish()
}

#[tokio::test(start_paused = true)]
async fn a_backup_preserves_all_data_exactly() {
    let from = TestEnv::sqlite();
    let thread = fill(&from).await;
    // A value may contain line breaks.
    let value = JsonText::new("{\r\n  \"a]\": [\n\n1.0]\n}").unwrap();
    let put = PutRecord { name: record_name(Namespace::app("notes").unwrap(), "k"), value, expires_at: None };
    from.memory.batch().put(put).commit(&ana(), thread).await.unwrap();
    let lines = back_up(&from.backend, &from).await;
    let lines: Vec<_> = lines.iter().flat_map(|line| line.split('\n')).map(str::to_owned).collect();
    for to in create_envs() {
        restore(&to, lines.iter().map(String::as_str)).await.unwrap();
        assert_no_differences(&verify(&begin_migration(&from, &to).await).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_truncated_or_modified_backup_is_rejected() {
    let from = TestEnv::plain();
    fill(&from).await;
    let lines = back_up(&from.backend, &from).await;
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let last = lines.len() - 1;
    let later_version = lines[0].replace(r#""version":1"#, r#""version":2"#);
    let altered = lines[5].replace("Wait.", "Haste");
    assert_ne!(altered, lines[5]);
    let replaced =
        |line: usize, text| lines.iter().enumerate().map(move |(index, old)| if index == line { text } else { *old });
    let removed =
        |line: usize| lines.iter().enumerate().filter(move |(index, _)| *index != line).map(|(_, line)| *line);
    let everything = lines.iter().copied();
    let rejected = [
        (restore(&TestEnv::plain(), lines[..last].iter().copied()).await, "the end is missing"),
        (restore(&TestEnv::plain(), []).await, "the end is missing"),
        (restore(&TestEnv::plain(), removed(0)).await, "line 1: the header of a backup is missing"),
        (restore(&TestEnv::plain(), removed(5)).await, "lines were added, removed or changed"),
        (restore(&TestEnv::plain(), replaced(5, &altered)).await, "lines were added, removed or changed"),
        (restore(&TestEnv::plain(), replaced(5, lines[0])).await, "line 6: unexpected second header"),
        (restore(&TestEnv::plain(), replaced(5, r#"{"meal":{}}"#)).await, "line 6: unknown variant"),
        (restore(&TestEnv::plain(), replaced(5, lines[4])).await, "line 6: conflict: a thread with this id"),
        (restore(&TestEnv::plain(), everything.clone().chain([lines[5]])).await, "data after the end"),
        (restore(&TestEnv::plain(), replaced(0, &later_version)).await, "the backup has version 2"),
    ];
    for (result, reason) in rejected {
        let error = result.unwrap_err();
        assert!(error.to_string().contains(reason), "{error}, not {reason}");
        let is_expected_kind =
            matches!(error, MemoryError::Store(StoreError::Corrupt { .. } | StoreError::Incompatible(_)));
        assert!(is_expected_kind, "{error:?}");
    }
    assert!(restore(&TestEnv::plain(), everything).await.is_ok());
}
