use sha2::{Digest as _, Sha256};
use threadkeep_core::{
    Backend, Consistency, Content, JsonText, Namespace, OpenThread, PutRecord, RecordName, RecordOwner, RecordWrite,
    Role, Scope, StoreError, ThreadId, ThreadOrder, ThreadQuery,
};
use threadkeep_memory::migrate::{BackupLines, BackupReader, CopySummary, Item, Migration, Progress, Verification};
use threadkeep_memory::{AppendOptions, Draft, Memory, MemoryError, Retention};

use super::faulty_maintenance::{FaultyMaintenance, Outcome};
use super::test_env::{TestEnv, acme, ana, ben};

/// The totals of the data that `fill` creates, in all tenants.
const FILLED: Progress = Progress { threads: 44, messages: 176, records: 4 };

fn stores() -> [TestEnv; 2] {
    [TestEnv::sqlite(), TestEnv::plain()]
}

async fn migration(from: &TestEnv, to: &TestEnv) -> Migration {
    Migration::begin(&from.backend, to.backend.clone(), from.memory.platform()).await.unwrap()
}

fn name(namespace: Namespace, key: &str) -> RecordName {
    RecordName { namespace, key: key.to_owned() }
}

/// Creates threads and records of several tenants and users, and a thread with every kind of change. Returns its id.
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
    thread_with_history(memory).await
}

async fn thread_with_history(memory: &Memory) -> ThreadId {
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
        let put = PutRecord { name: name(namespace, "k"), value: JsonText::of(text).unwrap(), expires_at: None };
        memory.batch().put(put).commit(&ana(), thread).await.unwrap();
    }
    thread
}

async fn verify(migration: &Migration) -> Verification {
    let mut last = Progress::default();
    let verification = migration.verify(|progress| last = progress).await.unwrap();
    assert_eq!((last.threads, last.records), (verification.source.threads, FILLED.records));
    verification
}

fn assert_same(verification: &Verification) {
    assert!(verification.differences.is_empty(), "{:?}", verification.differences);
    assert_eq!(verification.source, verification.target);
    assert_eq!((verification.source.threads, verification.source.messages), (FILLED.threads, FILLED.messages));
    assert_eq!(verification.source.tombstones, 2);
    assert_eq!(verification.only_in_target, 0);
}

#[tokio::test(start_paused = true)]
async fn any_store_migrates_to_any_other() {
    for from in stores() {
        let thread = fill(&from).await;
        for to in stores() {
            let migration = migration(&from, &to).await;
            let survey = migration.survey(|_| {}).await.unwrap();
            assert_eq!((survey.total, survey.already_there, survey.in_the_way.count), (FILLED, Progress::default(), 0));
            let mut last = Progress::default();
            let copied = migration.copy(|progress| last = progress).await.unwrap();
            assert_eq!((copied.copied, last), (FILLED, FILLED));
            assert!(copied.left_out.is_empty());
            assert_same(&verify(&migration).await);
            assert_eq!(to.backend.maintenance.verify().await.unwrap().findings, []);
            assert_eq!(listed(&to).await, listed(&from).await);
            // A second copy has nothing to do.
            assert_eq!(migration.survey(|_| {}).await.unwrap().already_there, FILLED);
            let again = migration.copy(|_| {}).await.unwrap();
            assert_eq!(again, CopySummary { already_there: FILLED, ..CopySummary::default() });
            assert_usable(&to, thread).await;
        }
    }
}

/// The threads in creation order.
async fn listed(env: &TestEnv) -> Vec<ThreadId> {
    let query = ThreadQuery::new(ThreadOrder::Created, 100);
    let page = env.memory.list_threads(&acme(), &query).await.unwrap();
    page.threads.into_iter().map(|thread| thread.id).collect()
}

/// Asserts that keys and idempotency records were copied and that the copy accepts writes.
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
    for to in stores() {
        let from = TestEnv::plain();
        let thread = fill(&from).await;
        let migration = migration(&from, &to).await;
        let scope = ana();
        // The target has another thread with the same id, one with the same key, and another value of a record.
        let page = from.memory.list_threads(&ana(), &ThreadQuery::new(ThreadOrder::Created, 1)).await.unwrap();
        let id = page.threads[0].id;
        to.memory.open_by_id(&scope, id).await.unwrap();
        to.memory.append(&scope, id, Draft::user("Mine.")).await.unwrap();
        let same_key = to.memory.open_by_key(&scope, "slack:T1:C1:17.01").await.unwrap().thread.id;
        to.memory.set_preference(&ben(), "line", "Central").await.unwrap();

        let survey = migration.survey(|_| {}).await.unwrap();
        let reported: Vec<String> = survey.in_the_way.listed.iter().map(ToString::to_string).collect();
        assert_eq!(survey.in_the_way.count, 3, "{reported:?}");
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

        // A copy nevertheless copies the rest and does not change existing data.
        let copied = migration.copy(|_| {}).await.unwrap();
        assert_eq!((copied.copied.threads, copied.left_out.count), (FILLED.threads - 2, 3));
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
    let migration = migration(&from, &to).await;
    migration.copy(|_| {}).await.unwrap();
    let from_store = &from.memory;
    let newest = to.memory.newest(&ana(), thread, 2).await.unwrap();
    to.memory.erase_messages(&ana(), thread, &[newest[0].id]).await.unwrap();
    from_store.append(&ana(), thread, Draft::user("Late.")).await.unwrap();
    from_store.delete_preference(&ben(), "line").await.unwrap();
    from_store.set_preference(&ben(), "line", "Bakerloo").await.unwrap();
    let new = from_store.open(&ana()).await.unwrap().thread.id;
    // The migration compares its snapshot of the source, without later writes. A new migration includes them.
    let differences = migration.verify(|_| {}).await.unwrap().differences;
    let reported: Vec<_> =
        differences.listed.iter().map(|difference| (&difference.of, difference.detail.as_str())).collect();
    let of_thread = (&Item::Thread(thread), "it is at message 60, change 65; in the target at message 60, change 66");
    assert_eq!(reported, [of_thread]);
    let again = self::migration(&from, &to).await;
    let differences = again.verify(|_| {}).await.unwrap().differences;
    let reported: Vec<_> =
        differences.listed.iter().map(|difference| (&difference.of, difference.detail.as_str())).collect();
    assert_eq!(reported.len(), 3, "{reported:?}");
    assert!(
        reported.contains(&(
            &Item::Thread(thread),
            "it is at message 61, change 66; in the target at message 60, change 66"
        )),
        "{reported:?}"
    );
    assert!(reported.contains(&(&Item::Thread(new), "missing in the target")), "{reported:?}");
    assert!(
        matches!(reported[2], (Item::Record { .. }, detail) if detail.starts_with("it has version")),
        "{reported:?}"
    );
}

/// A chunk whose response was lost is not written twice, and a full disk does not leave an incomplete thread.
#[tokio::test(start_paused = true)]
async fn an_interrupted_migration_is_completed_by_the_next() {
    let from = TestEnv::sqlite();
    fill(&from).await;
    for cut_after in [0, 1, 7, 43, 44, 45] {
        for to in stores() {
            let full = std::iter::repeat_n(Outcome::Success, cut_after).chain([Outcome::DiskFull]);
            let cut =
                Migration::begin(&from.backend, FaultyMaintenance::wrap(&to.backend, full), from.memory.platform())
                    .await
                    .unwrap();
            cut.copy(|_| {}).await.unwrap_err();
            assert_eq!(to.backend.maintenance.verify().await.unwrap().findings, []);
            let lossy = [Outcome::LostResponse, Outcome::Success, Outcome::LostResponse, Outcome::LostResponse];
            let lossy = FaultyMaintenance::wrap(&to.backend, lossy.into_iter().cycle().take(64));
            let whole = Migration::begin(&from.backend, lossy, from.memory.platform()).await.unwrap();
            let copied = whole.copy(|_| {}).await.unwrap();
            assert_eq!(copied.left_out.count, 0, "{copied:?}");
            assert_same(&verify(&migration(&from, &to).await).await);
        }
    }
}

/// The source's backend, with writes of all kinds between the reads of a snapshot.
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
    FaultyMaintenance::with_events(&from.backend, events.collect())
}

/// Writes after the snapshot was taken are not copied.
#[tokio::test(start_paused = true)]
async fn concurrent_writes_do_not_affect_a_copy() {
    for (from, same) in stores().into_iter().zip(stores()) {
        let (to, restored) = (TestEnv::plain(), TestEnv::plain());
        let thread = fill(&from).await;
        let earlier = migration(&from, &same).await;
        let migration =
            Migration::begin(&with_concurrent_writes(&from, thread), to.backend.clone(), from.memory.platform())
                .await
                .unwrap();
        assert_eq!(migration.survey(|_| {}).await.unwrap().total, FILLED);
        assert_eq!(migration.copy(|_| {}).await.unwrap().copied, FILLED);
        assert_same(&verify(&migration).await);
        assert_ne!(listed(&from).await, listed(&to).await, "no concurrent writes were made");

        // The same holds for a backup, whose header contains the consistency.
        earlier.copy(|_| {}).await.unwrap();
        // Advanced so that new ids differ from those in `from`.
        same.clock.advance_ms(60_000);
        let lines = backup(&with_concurrent_writes(&same, thread), &same).await;
        assert!(lines[0].contains(r#""as_of":"store""#), "{}", lines[0]);
        restore(&restored, lines.iter().map(String::as_str)).await.unwrap();
        let restored = Migration::begin(&restored.backend, to.backend.clone(), from.memory.platform()).await.unwrap();
        assert_same(&verify(&restored).await);
    }
}

/// Backups of earlier versions have no consistency in the header.
#[tokio::test(start_paused = true)]
async fn a_backup_without_a_consistency_field_is_readable() {
    let (from, to) = (TestEnv::plain(), TestEnv::plain());
    fill(&from).await;
    let mut lines = backup(&from.backend, &from).await;
    let (before, after) = lines[0].split_once(r#","as_of":"store""#).unwrap();
    lines[0] = format!("{before}{after}");
    let all = lines.iter().map(String::as_str);
    // The last line contains the hash of all other lines.
    let error = restore(&TestEnv::plain(), all.clone()).await.unwrap_err();
    assert!(error.to_string().contains("differ from those that were written"), "{error}");
    let end = lines.len() - 1;
    let written: String = lines[..end].iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    let hash: String = Sha256::digest(&written).iter().map(|byte| format!("{byte:02x}")).collect();
    let (counts, _) = lines[end].split_once(r#""hash":"#).unwrap();
    let last = format!(r#"{counts}"hash":"{hash}"}}}}"#);
    restore(&to, lines[..end].iter().map(String::as_str).chain([last.as_str()])).await.unwrap();
    assert_same(&verify(&migration(&from, &to).await).await);
}

async fn backup(backend: &Backend, env: &TestEnv) -> Vec<String> {
    let mut lines = Vec::new();
    let backup = BackupLines::begin(backend, env.memory.platform()).await.unwrap();
    assert_eq!((backup.totals().threads, backup.totals().messages), (FILLED.threads, FILLED.messages));
    let backed_up = backup.write(|line, _| {
        lines.push(line.to_owned());
        Ok::<(), MemoryError>(())
    });
    let backed_up = backed_up.await.unwrap();
    assert_eq!((backed_up.written, backed_up.as_of), (FILLED, Consistency::Store));
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
async fn a_backup_is_verbatim() {
    let from = TestEnv::sqlite();
    let thread = fill(&from).await;
    // A value may contain line breaks.
    let value = JsonText::new("{\r\n  \"a]\": [\n\n1.0]\n}").unwrap();
    let put = PutRecord { name: name(Namespace::app("notes").unwrap(), "k"), value, expires_at: None };
    from.memory.batch().put(put).commit(&ana(), thread).await.unwrap();
    let lines = backup(&from.backend, &from).await;
    let lines: Vec<_> = lines.iter().flat_map(|line| line.split('\n')).map(str::to_owned).collect();
    for to in stores() {
        restore(&to, lines.iter().map(String::as_str)).await.unwrap();
        assert_same(&verify(&migration(&from, &to).await).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_truncated_or_modified_backup_is_rejected() {
    let from = TestEnv::plain();
    fill(&from).await;
    let lines = backup(&from.backend, &from).await;
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let last = lines.len() - 1;
    let later = lines[0].replace(r#""version":1"#, r#""version":2"#);
    let altered = lines[5].replace("Wait.", "Haste");
    assert_ne!(altered, lines[5]);
    let with = |line: usize, text| lines.iter().enumerate().map(move |(at, old)| if at == line { text } else { *old });
    let without = |line: usize| lines.iter().enumerate().filter(move |(at, _)| *at != line).map(|(_, line)| *line);
    let everything = lines.iter().copied();
    let refused = [
        (restore(&TestEnv::plain(), lines[..last].iter().copied()).await, "the end is missing"),
        (restore(&TestEnv::plain(), []).await, "the end is missing"),
        (restore(&TestEnv::plain(), without(0)).await, "line 1: the header of a backup is missing"),
        (restore(&TestEnv::plain(), without(5)).await, "differ from those that were written"),
        (restore(&TestEnv::plain(), with(5, &altered)).await, "differ from those that were written"),
        (restore(&TestEnv::plain(), with(5, lines[0])).await, "line 6: unexpected second header"),
        (restore(&TestEnv::plain(), with(5, r#"{"meal":{}}"#)).await, "line 6: unknown variant"),
        (restore(&TestEnv::plain(), with(5, lines[4])).await, "line 6: conflict: a thread with this id"),
        (restore(&TestEnv::plain(), everything.clone().chain([lines[5]])).await, "data after the end"),
        (restore(&TestEnv::plain(), with(0, &later)).await, "the backup has version 2"),
    ];
    for (answer, reason) in refused {
        let error = answer.unwrap_err();
        assert!(error.to_string().contains(reason), "{error}, not {reason}");
        let kind = matches!(error, MemoryError::Store(StoreError::Corrupt { .. } | StoreError::Incompatible(_)));
        assert!(kind, "{error:?}");
    }
    assert!(restore(&TestEnv::plain(), everything).await.is_ok());
}
