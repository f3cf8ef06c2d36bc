use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use threadkeep_core::exchange::{ExportLine, ImportItem, ImportedMessage, ImportedThread};
use threadkeep_core::{
    Content, JsonText, Map, MessageQuery, Namespace, Record, RecordOwner, Role, Scope, ThreadId, ThreadKey,
    ThreadOrder, ThreadQuery, Timestamp, limits,
};
use threadkeep_memory::{Draft, ImportOptions, ImportReport, Memory, ThreadSelection};

use super::probe::{Fate, Probe};
use super::world::{World, acme, ana, ben, everywhere, user_id};

fn thread(key: &str) -> ImportItem {
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

fn message(number: usize) -> ImportItem {
    let role = if number.is_multiple_of(2) { Role::User } else { Role::Assistant };
    said(number, Content::text(role, format!("message {number}")))
}

fn said(number: usize, content: Content) -> ImportItem {
    ImportItem::Message(Box::new(ImportedMessage {
        id: None,
        external_id: Some(format!("m{number}")),
        created_at: Some(at(number)),
        content,
    }))
}

fn at(number: usize) -> Timestamp {
    Timestamp::from_millis(1_000 * i64::try_from(number).unwrap()).unwrap()
}

fn record(owner: RecordOwner, namespace: &str, key: &str, value: &str) -> ImportItem {
    let (namespace, value) = (namespace.parse().unwrap(), JsonText::new(value).unwrap());
    ImportItem::Record {
        owner,
        record: Record { namespace, key: key.to_owned(), value, version: 1, tag: None, expires_at: None },
    }
}

async fn import(memory: &Memory, scope: &Scope, items: Vec<ImportItem>) -> ImportReport {
    memory.import(scope, items, ImportOptions::default(), |_| {}).await.unwrap()
}

/// What a scope has, as one can compare it.
async fn all(memory: &Memory, scope: &Scope) -> BTreeMap<ThreadId, (Option<String>, u64, Vec<String>)> {
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
    everywhere(async |world: World| {
        let memory = &world.memory;
        let items = || {
            let mut items = Vec::new();
            for (key, count) in [("one", 1_203), ("two", 3), ("none", 0), ("three", 2)] {
                items.push(thread(key));
                items.extend((0..count).map(message));
                let owner = RecordOwner::Thread(ThreadId::from_name(b"another id"));
                items.push(record(owner, "app/notes", "n", "{\"a\":  1}"));
            }
            items.push(record(RecordOwner::User(user_id("ana")), "app/preferences", "line", "\"Northern\""));
            items
        };
        let report = import(memory, &ana(), items()).await;
        assert_eq!((report.threads_created, report.threads_found), (4, 0));
        assert_eq!((report.messages_added, report.messages_already_there), (1_208, 0));
        assert_eq!((report.records_added, report.records_already_there), (5, 0));
        assert!(report.problems.is_empty(), "{:?}", report.problems);

        let before = all(memory, &ana()).await;
        let found = memory.find_thread_by_key(&ana(), "import:test:one").await.unwrap().unwrap();
        let expected: Vec<_> = (0..1_203).map(|number| format!("message {number}")).collect();
        assert_eq!(before[&found.id].2, expected);
        assert_eq!(found.title.as_deref(), Some("message 0"));
        assert_eq!(found.metadata["topic"], "one");
        let last = &memory.newest(&ana(), found.id, 1).await.unwrap()[0];
        assert_eq!((last.created_at, last.external_id.as_deref()), (at(1_202), Some("m1202")));
        assert_eq!(memory.preference::<String>(&ana(), "line").await.unwrap().as_deref(), Some("Northern"));

        for process in [memory.clone(), world.another_process()] {
            let report = import(&process, &ana(), items()).await;
            assert_eq!((report.threads_created, report.threads_found), (0, 4));
            assert_eq!((report.messages_added, report.messages_already_there), (0, 1_208));
            assert_eq!((report.records_added, report.records_already_there), (0, 5));
            assert!(report.problems.is_empty(), "{:?}", report.problems);
            assert_eq!(all(memory, &ana()).await, before);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_import_that_was_cut_short_is_completed_by_the_next() {
    everywhere(async |world: World| {
        let items = |count| std::iter::once(thread("one")).chain((0..count).map(message)).collect::<Vec<_>>();
        import(&world.memory, &ana(), items(700)).await;
        let report = import(&world.memory, &ana(), items(1_100)).await;
        assert_eq!((report.messages_added, report.messages_already_there), (400, 700));
        let texts = all(&world.memory, &ana()).await.into_values().next().unwrap().2;
        assert_eq!(texts, (0..1_100).map(|number| format!("message {number}")).collect::<Vec<_>>());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn two_imports_at_once_double_nothing() {
    everywhere(async |world: World| {
        let imports = (0..2).map(|_| {
            let memory = world.memory.clone();
            tokio::spawn(async move {
                let items =
                    (0..5).flat_map(|key| std::iter::once(thread(&key.to_string())).chain((0..20).map(message)));
                import(&memory, &ana(), items.collect()).await
            })
        });
        let reports = futures::future::try_join_all(imports).await.unwrap();
        let sum = |count: fn(&ImportReport) -> u64| reports.iter().map(count).sum::<u64>();
        assert_eq!(sum(|report| report.messages_added), 100);
        assert_eq!(sum(|report| report.messages_already_there), 100);
        assert_eq!(sum(|report| report.problems.len() as u64), 0);
        assert!(all(&world.memory, &ana()).await.values().all(|(_, _, texts)| texts.len() == 20));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_comes_twice_in_a_file_is_one() {
    everywhere(async |world: World| {
        let items = vec![thread("one"), message(0), message(1), thread("one"), message(1), message(2)];
        let report = import(&world.memory, &ana(), items).await;
        assert_eq!((report.threads_created, report.threads_found), (1, 1));
        assert_eq!((report.messages_added, report.messages_already_there), (3, 1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_kept_is_told_and_the_rest_goes_on() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        let large = Content::text(Role::User, "x".repeat(limits::MESSAGE_BYTES));
        let titled = ImportItem::Thread(Box::new(ImportedThread {
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
            message(0),
            thread("one"),
            message(0),
            said(1, large),
            said(2, Content::text(Role::User, "nul \0")),
            message(3),
            message(3),
            record(owner.clone(), "system/approvals", "forged", "1"),
            record(owner, "app/notes", "not for users", "1"),
            titled,
            thread("two"),
            message(4),
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
            (1, "m0", "invalid item: no conversation begins before it"),
            (4, "m1", "message bytes is limited to 4194304, but 4194308 was given"),
            (5, "m2", "invalid text: holds a NUL character"),
            (7, "m3", "invalid message: its conversation has another one of this name"),
            (8, "forged", "invalid document: it belongs to Threadkeep itself"),
            (9, "not for users", "not allowed in this scope: "),
            (10, "key import:test:bad", "title is limited to 2000, but 2001 was given"),
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
async fn what_was_erased_does_not_come_back() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        let items = || vec![thread("one"), message(0), message(1), message(2)];
        import(memory, &ana(), items()).await;
        let found = memory.find_thread_by_key(&ana(), "import:test:one").await.unwrap().unwrap();
        let erased = memory.newest(&ana(), found.id, 3).await.unwrap()[1].id;
        memory.erase_messages(&ana(), found.id, &[erased]).await.unwrap();
        let report = import(memory, &ana(), items()).await;
        assert_eq!((report.messages_added, report.messages_already_there), (0, 3));
        assert!(report.problems.is_empty());
        assert_eq!(all(memory, &ana()).await[&found.id].2, ["message 0", "message 2"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_import_ends_where_the_store_does() {
    let (probe, world) = Probe::world();
    let items = || vec![thread("one"), message(0), thread("two"), message(1)];
    probe.will_end([Fate::DiskFull]);
    let options = ImportOptions { concurrency: 1 };
    assert!(world.memory.import(&ana(), items(), options, |_| {}).await.is_err());
    let mut seen = Vec::new();
    let report =
        world.memory.import(&ana(), items(), options, |report| seen.push(report.messages_added)).await.unwrap();
    assert_eq!((report.messages_added, report.threads_found, seen), (2, 1, vec![1, 2]));
}

#[tokio::test]
async fn a_new_thread_is_not_searched_for_its_messages() {
    let (probe, world) = Probe::world();
    let items = || std::iter::once(thread("one")).chain((0..1_000).map(message)).collect::<Vec<_>>();
    import(&world.memory, &ana(), items()).await;
    assert_eq!(probe.take_calls(), [("commit", 2), ("open_thread", 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_export_imports_as_the_same_threads() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        let mut items = vec![thread("one")];
        items.extend((0..1_001).map(message));
        items.push(record(RecordOwner::Thread(ThreadId::from_name(b"any")), "app/notes", "n", "[1,  2]"));
        items.push(record(RecordOwner::User(user_id("ana")), "app/preferences", "line", "1"));
        import(memory, &ana(), items).await;
        let second = world.thread().await;
        memory.append(&ana(), second, Draft::user("¿Qué?")).await.unwrap();
        let foreign = memory.open(&ben()).await.unwrap().thread.id;
        memory.append(&ben(), foreign, Draft::user("ben's")).await.unwrap();

        let lines: Vec<_> = memory.export(&ana(), ThreadSelection::All).try_collect().await.unwrap();
        assert!(matches!(lines[0], ExportLine::Threadkeep { version: 1, .. }));
        assert_eq!(lines.len(), 1 + 1 + 1_001 + 1 + 1 + 1 + 1);
        assert!(!serde_json::to_string(&lines).unwrap().contains("ben's"));
        let one: Vec<_> = memory.export(&ana(), ThreadSelection::Thread(second)).try_collect().await.unwrap();
        assert_eq!(one[1..], lines[1_004..1_006]);
        let overall: Vec<ExportLine> = memory.export(&acme(), ThreadSelection::All).try_collect().await.unwrap();
        assert_eq!(overall.len(), lines.len() + 2);

        let copy = World::plain();
        let report = import(&copy.memory, &ana(), lines.iter().cloned().filter_map(item).collect()).await;
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

/// As the reader of our own format does.
fn item(line: ExportLine) -> Option<ImportItem> {
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
async fn records_of_threadkeep_itself_are_not_exported() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        let batch = ["app/notes", "system/journal"].into_iter().fold(world.memory.batch(), |batch, namespace| {
            let namespace: Namespace = namespace.parse().unwrap();
            let name = threadkeep_core::RecordName { namespace, key: "k".to_owned() };
            let value = JsonText::new("1").unwrap();
            batch.put(threadkeep_core::PutRecord { name, value, expires_at: None })
        });
        batch.commit(&ana(), thread).await.unwrap();
        let lines: Vec<_> = world.memory.export(&ana(), ThreadSelection::Thread(thread)).try_collect().await.unwrap();
        let exported: Vec<_> = lines
            .iter()
            .filter_map(|line| match line {
                ExportLine::Record { record, .. } => Some(record.namespace.to_string()),
                _ => None,
            })
            .collect();
        assert_eq!(exported, ["app/notes"]);
        let unknown = ThreadSelection::Thread(ThreadId::from_name(b"unknown"));
        let mut lines = world.memory.export(&ana(), unknown);
        assert!(lines.next().await.unwrap().is_ok());
        assert!(lines.next().await.unwrap().unwrap_err().is_not_found());
        assert!(lines.next().await.is_none());
    })
    .await;
}
