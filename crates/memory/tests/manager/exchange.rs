use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use threadkeep_core::exchange::{ExportLine, ImportItem, ImportedMessage, ImportedThread};
use threadkeep_core::{
    Content, JsonText, Map, MessageQuery, Namespace, Record, RecordOwner, Role, Scope, ThreadId, ThreadKey,
    ThreadOrder, ThreadQuery, Timestamp, limits,
};
use threadkeep_memory::{Draft, EraseOptions, ImportOptions, ImportReport, Memory, ThreadSelection};

use super::probe::{Outcome, Probe};
use super::test_env::{TestEnv, acme, ana, ben, on_all_stores, user_id};

fn thread_item(key: &str) -> ImportItem {
    ImportItem::Thread(Box::new(ImportedThread {
        id: None,
        key: Some(ThreadKey::new(format!("import:test:{key}")).unwrap()),
        title: None,
        metadata: Map::from_iter([("topic".to_owned(), key.into())]),
        state: Map::new(),
        created_at: None,
        expires_at: None,
    }))
}

fn message_item(number: usize) -> ImportItem {
    let role = if number.is_multiple_of(2) { Role::User } else { Role::Assistant };
    message_item_with(number, Content::text(role, format!("message {number}")))
}

fn message_item_with(number: usize, content: Content) -> ImportItem {
    ImportItem::Message(Box::new(ImportedMessage {
        id: None,
        external_id: Some(format!("m{number}")),
        created_at: Some(time_of(number)),
        content,
    }))
}

fn time_of(number: usize) -> Timestamp {
    Timestamp::from_millis(1_000 * i64::try_from(number).unwrap()).unwrap()
}

fn record_item(owner: RecordOwner, namespace: &str, key: &str, value: &str) -> ImportItem {
    let (namespace, value) = (namespace.parse().unwrap(), JsonText::new(value).unwrap());
    ImportItem::Record {
        owner,
        record: Record { namespace, key: key.to_owned(), value, version: 1, tag: None, expires_at: None },
    }
}

async fn import(memory: &Memory, scope: &Scope, items: Vec<ImportItem>) -> ImportReport {
    memory.import(scope, items, ImportOptions::default(), |_| {}).await.unwrap()
}

/// Returns the title, the change number and the message texts of all threads in a scope.
async fn read_all_threads(memory: &Memory, scope: &Scope) -> BTreeMap<ThreadId, (Option<String>, u64, Vec<String>)> {
    let mut all = BTreeMap::new();
    for thread in memory.list_threads(scope, &ThreadQuery::new(ThreadOrder::Created, 1_000)).await.unwrap().threads {
        let mut query = MessageQuery::following(0, 1_000);
        let mut texts = Vec::new();
        loop {
            let page = memory.messages(scope, thread.id, &query).await.unwrap();
            texts.extend(page.messages.iter().map(|message| message.plain_text().into_owned()));
            match page.messages.last() {
                Some(last) if page.more => query = MessageQuery::following(last.seq, 1_000),
                _ => break,
            }
        }
        all.insert(thread.id, (thread.title, thread.positions.change, texts));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn importing_again_changes_nothing() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let items = || {
            let mut items = Vec::new();
            for (key, count) in [("one", 1_203), ("two", 3), ("none", 0), ("three", 2)] {
                items.push(thread_item(key));
                items.extend((0..count).map(message_item));
                let owner = RecordOwner::Thread(ThreadId::from_name(b"another id"));
                items.push(record_item(owner, "app/notes", "n", "{\"a\":  1}"));
            }
            items.push(record_item(RecordOwner::User(user_id("ana")), "app/preferences", "line", "\"Northern\""));
            items
        };
        let report = import(memory, &ana(), items()).await;
        assert_eq!((report.threads_created, report.threads_found), (4, 0));
        assert_eq!((report.messages_added, report.messages_already_there), (1_208, 0));
        assert_eq!((report.records_added, report.records_already_there), (5, 0));
        assert!(report.problems.is_empty(), "{:?}", report.problems);

        let before = read_all_threads(memory, &ana()).await;
        let found = memory.find_thread_by_key(&ana(), "import:test:one").await.unwrap().unwrap();
        let expected: Vec<_> = (0..1_203).map(|number| format!("message {number}")).collect();
        assert_eq!(before[&found.id].2, expected);
        assert_eq!(found.title.as_deref(), Some("message 0"));
        assert_eq!(found.metadata["topic"], "one");
        let last = &memory.newest(&ana(), found.id, 1).await.unwrap()[0];
        assert_eq!((last.created_at, last.external_id.as_deref()), (time_of(1_202), Some("m1202")));
        assert_eq!(memory.preference::<String>(&ana(), "line").await.unwrap().as_deref(), Some("Northern"));

        for process in [memory.clone(), env.another_process()] {
            let report = import(&process, &ana(), items()).await;
            assert_eq!((report.threads_created, report.threads_found), (0, 4));
            assert_eq!((report.messages_added, report.messages_already_there), (0, 1_208));
            assert_eq!((report.records_added, report.records_already_there), (0, 5));
            assert!(report.problems.is_empty(), "{:?}", report.problems);
            assert_eq!(read_all_threads(memory, &ana()).await, before);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_partial_import_is_completed_by_the_next() {
    on_all_stores(async |env: TestEnv| {
        let items = |count| std::iter::once(thread_item("one")).chain((0..count).map(message_item)).collect::<Vec<_>>();
        import(&env.memory, &ana(), items(700)).await;
        let report = import(&env.memory, &ana(), items(1_100)).await;
        assert_eq!((report.messages_added, report.messages_already_there), (400, 700));
        let texts = read_all_threads(&env.memory, &ana()).await.into_values().next().unwrap().2;
        assert_eq!(texts, (0..1_100).map(|number| format!("message {number}")).collect::<Vec<_>>());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_imports_create_no_duplicates() {
    on_all_stores(async |env: TestEnv| {
        let imports = (0..2).map(|_| {
            let memory = env.memory.clone();
            tokio::spawn(async move {
                let items = (0..5)
                    .flat_map(|key| std::iter::once(thread_item(&key.to_string())).chain((0..20).map(message_item)));
                import(&memory, &ana(), items.collect()).await
            })
        });
        let reports = futures::future::try_join_all(imports).await.unwrap();
        let total = |count: fn(&ImportReport) -> u64| reports.iter().map(count).sum::<u64>();
        assert_eq!(total(|report| report.messages_added), 100);
        assert_eq!(total(|report| report.messages_already_there), 100);
        assert_eq!(total(|report| report.problems.len() as u64), 0);
        assert!(read_all_threads(&env.memory, &ana()).await.values().all(|(_, _, texts)| texts.len() == 20));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_conversation_listed_twice_is_imported_once() {
    on_all_stores(async |env: TestEnv| {
        let items = vec![
            thread_item("one"),
            message_item(0),
            message_item(1),
            thread_item("one"),
            message_item(1),
            message_item(2),
        ];
        let report = import(&env.memory, &ana(), items).await;
        assert_eq!((report.threads_created, report.threads_found), (1, 1));
        assert_eq!((report.messages_added, report.messages_already_there), (3, 1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_invalid_item_is_reported_and_the_rest_is_imported() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let large = Content::text(Role::User, "x".repeat(limits::MESSAGE_BYTES));
        let with_long_title = ImportItem::Thread(Box::new(ImportedThread {
            id: None,
            key: Some(ThreadKey::new("import:test:bad").unwrap()),
            title: Some("x".repeat(limits::TITLE_BYTES + 1)),
            metadata: Map::new(),
            state: Map::new(),
            created_at: None,
            expires_at: None,
        }));
        let owner = RecordOwner::Tenant;
        let items = vec![
            message_item(0),
            thread_item("one"),
            message_item(0),
            message_item_with(1, large),
            message_item_with(2, Content::text(Role::User, "nul \0")),
            message_item(3),
            message_item(3),
            record_item(owner.clone(), "system/approvals", "forged", "1"),
            record_item(owner, "app/notes", "not for users", "1"),
            with_long_title,
            thread_item("two"),
            message_item(4),
        ];
        let report = import(memory, &ana(), items).await;
        assert_eq!((report.threads_created, report.messages_added, report.records_added), (2, 3, 0));
        let mut problems: Vec<_> = report
            .problems
            .iter()
            .map(|problem| (problem.item, problem.name.clone().unwrap_or_default(), problem.error.to_string()))
            .collect();
        problems.sort();
        let expected = [
            (1, "m0", "invalid item: there is no conversation before it"),
            (4, "m1", "message bytes: 4194308 exceeds the maximum of 4194304"),
            (5, "m2", "invalid text: contains a NUL character"),
            (7, "m3", "invalid message: its conversation has another message with this id"),
            (8, "forged", "invalid record: its namespace is reserved"),
            (9, "not for users", "not allowed in this scope: "),
            (10, "key import:test:bad", "title: 2001 exceeds the maximum of 2000"),
        ];
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, (item, name, error)) in problems.iter().zip(expected) {
            assert_eq!((problem.0, problem.1.as_str()), (item, name));
            assert!(problem.2.starts_with(error), "{} is not {error}", problem.2);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn erased_messages_are_not_imported_again() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let items = || vec![thread_item("one"), message_item(0), message_item(1), message_item(2)];
        import(memory, &ana(), items()).await;
        let found = memory.find_thread_by_key(&ana(), "import:test:one").await.unwrap().unwrap();
        let erased = memory.newest(&ana(), found.id, 3).await.unwrap()[1].id;
        memory.erase_messages(&ana(), found.id, &[erased]).await.unwrap();
        let report = import(memory, &ana(), items()).await;
        assert_eq!((report.messages_added, report.messages_already_there), (0, 3));
        assert!(report.problems.is_empty());
        assert_eq!(read_all_threads(memory, &ana()).await[&found.id].2, ["message 0", "message 2"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_import_stops_when_the_store_fails() {
    let (probe, env) = Probe::new_env();
    let items = || vec![thread_item("one"), message_item(0), thread_item("two"), message_item(1)];
    probe.script([Outcome::DiskFull]);
    let options = ImportOptions { concurrency: 1, ..ImportOptions::default() };
    assert!(env.memory.import(&ana(), items(), options, |_| {}).await.is_err());
    let mut progress = Vec::new();
    let report =
        env.memory.import(&ana(), items(), options, |report| progress.push(report.messages_added)).await.unwrap();
    assert_eq!((report.messages_added, report.threads_found, progress), (2, 1, vec![1, 2]));
}

#[tokio::test]
async fn importing_a_new_thread_reads_only_what_was_erased() {
    let (probe, env) = Probe::new_env();
    let items = || std::iter::once(thread_item("one")).chain((0..1_000).map(message_item)).collect::<Vec<_>>();
    import(&env.memory, &ana(), items()).await;
    assert_eq!(probe.take_calls(), [("commit", 2), ("list_records", 1), ("open_thread", 1)]);
}

#[tokio::test(start_paused = true)]
async fn deleted_conversations_are_not_imported_again() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let items = || vec![thread_item("one"), message_item(0), thread_item("two"), message_item(1)];
        let counts = |report: ImportReport| (report.threads_created, report.threads_erased, report.messages_added);
        assert_eq!(counts(import(memory, &ana(), items()).await), (2, 0, 2));
        let imported = memory.find_thread_by_key(&ana(), "import:test:one").await.unwrap().unwrap();
        // An administrator deletes the user's thread.
        memory.delete_thread(&acme(), imported.id).await.unwrap();
        assert_eq!(counts(import(memory, &ana(), items()).await), (0, 1, 0));
        assert_eq!(counts(import(memory, &ben(), items()).await), (2, 0, 2), "another user has not deleted it");
        let options = ImportOptions { includes_erased: true, ..ImportOptions::default() };
        let report = memory.import(&ana(), items(), options, |_| {}).await.unwrap();
        assert_eq!(counts(report), (1, 0, 1));
        assert_eq!(counts(import(memory, &ana(), items()).await), (0, 0, 0), "it exists again");
        let imported = memory.find_thread_by_key(&ana(), "import:test:one").await.unwrap().unwrap();
        memory.delete_thread(&ana(), imported.id).await.unwrap();
        assert_eq!(counts(import(memory, &ana(), items()).await), (0, 1, 0));
        memory.erase_user(&acme(), &user_id("ana"), EraseOptions::default()).await.unwrap();
        assert_eq!(counts(import(memory, &ana(), items()).await), (2, 0, 2), "nothing about the user remains");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn exported_threads_can_be_imported_unchanged() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let mut items = vec![thread_item("one")];
        items.extend((0..1_001).map(message_item));
        items.push(record_item(RecordOwner::Thread(ThreadId::from_name(b"any")), "app/notes", "n", "[1,  2]"));
        items.push(record_item(RecordOwner::User(user_id("ana")), "app/preferences", "line", "1"));
        import(memory, &ana(), items).await;
        let second = env.open_thread().await;
        memory.append(&ana(), second, Draft::user("¿Qué?")).await.unwrap();
        let bens_thread = memory.open(&ben()).await.unwrap().thread.id;
        memory.append(&ben(), bens_thread, Draft::user("ben's")).await.unwrap();

        let lines: Vec<_> = memory.export(&ana(), ThreadSelection::All).try_collect().await.unwrap();
        assert!(matches!(lines[0], ExportLine::Threadkeep { version: 1, .. }));
        assert_eq!(lines.len(), 1 + 1 + 1_001 + 1 + 1 + 1 + 1);
        assert!(!serde_json::to_string(&lines).unwrap().contains("ben's"));
        let exported_thread: Vec<_> =
            memory.export(&ana(), ThreadSelection::Thread(second)).try_collect().await.unwrap();
        assert_eq!(exported_thread[1..], lines[1_004..1_006]);
        let tenant_lines: Vec<ExportLine> = memory.export(&acme(), ThreadSelection::All).try_collect().await.unwrap();
        assert_eq!(tenant_lines.len(), lines.len() + 2);

        let copy = TestEnv::plain();
        let report = import(&copy.memory, &ana(), lines.iter().cloned().filter_map(to_import_item).collect()).await;
        assert_eq!((report.threads_created, report.messages_added, report.records_added), (2, 1_002, 2));
        let copied: Vec<_> = copy.memory.export(&ana(), ThreadSelection::All).try_collect().await.unwrap();
        assert_eq!(copied.len(), lines.len());
        let messages = |lines: &[ExportLine]| {
            lines.iter().filter(|line| matches!(line, ExportLine::Message(_))).cloned().collect::<Vec<_>>()
        };
        assert_eq!(messages(&copied), messages(&lines));
    })
    .await;
}

/// Converts an exported line into an item to import, as the reader of the export format does. `None` for the header.
fn to_import_item(line: ExportLine) -> Option<ImportItem> {
    match line {
        ExportLine::Threadkeep { .. } => None,
        ExportLine::Thread(thread) => Some(ImportItem::Thread(Box::new(ImportedThread {
            id: Some(thread.id),
            key: thread.key,
            title: thread.title,
            metadata: thread.metadata,
            state: thread.state,
            created_at: Some(thread.created_at),
            expires_at: thread.expires_at,
        }))),
        ExportLine::Message(message) => Some(ImportItem::Message(Box::new(ImportedMessage {
            id: Some(message.id),
            external_id: message.external_id.clone(),
            created_at: Some(message.created_at),
            content: message.into_content(),
        }))),
        ExportLine::Record { owner, record } => Some(ImportItem::Record { owner, record }),
    }
}

#[tokio::test(start_paused = true)]
async fn system_records_are_not_exported() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let batch = ["app/notes", "system/journal"].into_iter().fold(env.memory.batch(), |batch, namespace| {
            let namespace: Namespace = namespace.parse().unwrap();
            let name = threadkeep_core::RecordName { namespace, key: "k".to_owned() };
            let value = JsonText::new("1").unwrap();
            batch.put(threadkeep_core::PutRecord { name, value, expires_at: None })
        });
        batch.commit(&ana(), thread).await.unwrap();
        let lines: Vec<_> = env.memory.export(&ana(), ThreadSelection::Thread(thread)).try_collect().await.unwrap();
        let exported: Vec<_> = lines
            .iter()
            .filter_map(|line| match line {
                ExportLine::Record { record, .. } => Some(record.namespace.to_string()),
                _ => None,
            })
            .collect();
        assert_eq!(exported, ["app/notes"]);
        let unknown = ThreadSelection::Thread(ThreadId::from_name(b"unknown"));
        let mut lines = env.memory.export(&ana(), unknown);
        assert!(lines.next().await.unwrap().is_ok());
        assert!(lines.next().await.unwrap().unwrap_err().is_not_found());
        assert!(lines.next().await.is_none());
    })
    .await;
}
