use threadkeep_core::{
    Batch, Conflict, Namespace, Record, RecordCondition, RecordOwner, RecordQuery, RecordState, RecordWrite, Scope,
    TaggedNumber, WriteOutcome,
};

use crate::client::Client;
use crate::conversation::Conversation;
use crate::fixtures::{
    acme, ana, app, at, batch, ben, conflict_of, json, note_write, put, record_name, system, user_id,
};
use crate::run::TestEnv;

fn ana_owner() -> RecordOwner {
    RecordOwner::User(user_id("ana"))
}

async fn find(client: &Client, owner: &RecordOwner, namespace: &Namespace, key: &str) -> Option<Record> {
    client.find_record(&acme(), owner, namespace, key, at(50)).await.expect("reading works")
}

async fn write_record(client: &Client, scope: &Scope, write: &RecordWrite) -> u64 {
    client.write_record(scope, write, at(2)).await.expect("writing works").version
}

pub(super) async fn users_have_records(env: &TestEnv<'_>) {
    let store = env.open().await;
    let write =
        RecordWrite { expires_at: Some(at(99)), ..note_write(ana_owner(), "line", r#"{"usual":  "Northern"}"#) };
    let version = write_record(&store.client, &ana(), &write).await;
    assert!(version > 0);
    let expected = Record {
        namespace: app("notes"),
        key: "line".to_owned(),
        value: json(r#"{"usual":  "Northern"}"#),
        version,
        tag: None,
        expires_at: Some(at(99)),
    };
    assert_eq!(find(&store.client, &ana_owner(), &app("notes"), "line").await, Some(expected));
    assert_eq!(find(&store.client, &ana_owner(), &app("notes"), "lin").await, None);
    assert_eq!(find(&store.client, &RecordOwner::Tenant, &app("notes"), "line").await, None);
    assert_eq!(find(&store.client, &RecordOwner::User(user_id("ben")), &app("notes"), "line").await, None);
}

pub(super) async fn records_support_compare_and_set(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    for (scope, owner) in [(ana(), ana_owner()), (acme(), RecordOwner::Tenant)] {
        let write = |expected, value: &str| RecordWrite { expected, ..note_write(owner.clone(), "k", value) };
        let conflict = |actual: Option<u64>| {
            let actual = actual.map(TaggedNumber::from);
            Conflict::Record { namespace: app("notes"), key: "k".to_owned(), actual }
        };
        let refused = client.write_record(&scope, &write(Some(7), "0"), at(1)).await;
        assert_eq!(conflict_of(refused), conflict(None));
        let first = write_record(client, &scope, &write(Some(0), "1")).await;
        let refused = client.write_record(&scope, &write(Some(0), "0"), at(1)).await;
        assert_eq!(conflict_of(refused), conflict(Some(first)));
        let second = write_record(client, &scope, &write(Some(first), "2")).await;
        assert!(second > first);
        let refused = client.write_record(&scope, &write(Some(first), "0"), at(1)).await;
        assert_eq!(conflict_of(refused), conflict(Some(second)));
        let third = write_record(client, &scope, &write(None, "3")).await;
        assert!(third > second);
        let found = find(client, &owner, &app("notes"), "k").await.expect("the record exists");
        assert_eq!((found.value, found.version), (json("3"), third));
    }
}

pub(super) async fn versions_are_never_reused(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let delete = |expected| RecordWrite { expected, value: None, ..note_write(ana_owner(), "k", "1") };
    let mut last = 0;
    for round in 0..5 {
        let version = write_record(client, &ana(), &note_write(ana_owner(), "k", "1")).await;
        assert!(version > last, "a version was reused after a deletion");
        last = version;
        if round == 2 {
            let refused = client.write_record(&ana(), &delete(Some(last + 1)), at(2)).await;
            let (namespace, key) = (app("notes"), "k".to_owned());
            assert_eq!(conflict_of(refused), Conflict::Record { namespace, key, actual: Some(last.into()) });
        }
        let deleted = client.write_record(&ana(), &delete(Some(last)), at(2)).await;
        assert_eq!(deleted.expect("writing works"), WriteOutcome { version: 0, tag: None });
        assert_eq!(find(client, &ana_owner(), &app("notes"), "k").await, None);
        client.sweep(at(3)).await.expect("sweeping works");
    }
    let deleted = client.write_record(&ana(), &delete(None), at(2)).await;
    assert_eq!(
        deleted.expect("writing works"),
        WriteOutcome { version: 0, tag: None },
        "deleting an absent record fails"
    );

    // The version of a thread's record is the number of the change.
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let owner = RecordOwner::Thread(conversation.id);
    for round in 0..3 {
        let write = Batch { put: vec![put(app("notes"), "k", "1")], ..batch(&format!("put {round}")) };
        let change = conversation.commit(&write, at(1)).await.change;
        let found = find(client, &owner, &app("notes"), "k").await.expect("the record exists");
        assert_eq!((found.version, change), (change, 2 * round + 1));
        let delete = Batch { delete: vec![record_name(app("notes"), "k")], ..batch(&format!("delete {round}")) };
        conversation.commit(&delete, at(1)).await;
    }
}

pub(super) async fn one_concurrent_writer_wins(env: &TestEnv<'_>) {
    let store = env.open().await;
    let mut version = 0;
    for _ in 0..5 {
        let writers = (0..16).map(|writer| {
            let client = store.client.clone();
            let write = RecordWrite { expected: Some(version), ..note_write(ana_owner(), "k", &writer.to_string()) };
            env.spawn(async move { client.write_record(&ana(), &write, at(1)).await })
        });
        let answers = futures::future::join_all(writers).await;
        let (won, lost): (Vec<_>, Vec<_>) =
            answers.into_iter().map(|answer| answer.expect("the writer does not panic")).partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 15));
        version = find(&store.client, &ana_owner(), &app("notes"), "k").await.expect("the record exists").version;
        let won: Vec<_> = won.into_iter().flatten().collect();
        assert_eq!(won, [WriteOutcome { version, tag: None }]);
        for answer in lost {
            let (namespace, key) = (app("notes"), "k".to_owned());
            assert_eq!(conflict_of(answer), Conflict::Record { namespace, key, actual: Some(version.into()) });
        }
    }
}

pub(super) async fn one_concurrent_commit_meets_its_condition(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let mut state = RecordState::Absent;
    for round in 0..5 {
        let writers = (0..16).map(|writer| {
            let conversation = conversation.clone();
            let fenced = Batch {
                require: vec![RecordCondition { name: record_name(system("run"), "lease"), state }],
                put: vec![put(system("run"), "lease", &writer.to_string())],
                ..batch(&format!("{round} {writer}"))
            };
            env.spawn(async move { conversation.try_commit(&fenced, at(1)).await })
        });
        let answers = futures::future::join_all(writers).await;
        let (won, lost): (Vec<_>, Vec<_>) =
            answers.into_iter().map(|answer| answer.expect("the writer does not panic")).partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 15), "several drivers acquired the lease");
        assert!(lost.into_iter().all(|answer| matches!(conflict_of(answer), Conflict::Record { .. })));
        state = RecordState::Version((round + 1).into());
    }
    assert_eq!(conversation.thread(at(2)).await.positions.change, 5);
}

pub(super) async fn namespaces_are_separate(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let namespaces = [app("a"), app("b"), app("system/a"), system("a"), system("app/a")];
    let puts = namespaces.iter().zip(1..).map(|(namespace, value)| put(namespace.clone(), "k", &format!("{value}")));
    conversation.commit(&Batch { put: puts.collect(), ..batch("put") }, at(1)).await;
    for (namespace, value) in namespaces.iter().zip(1..) {
        let write = RecordWrite { namespace: namespace.clone(), ..note_write(ana_owner(), "k", &format!("{value}")) };
        write_record(client, &ana(), &write).await;
    }
    for owner in [RecordOwner::Thread(conversation.id), ana_owner()] {
        for (namespace, value) in namespaces.iter().zip(1..) {
            let found = find(client, &owner, namespace, "k").await.expect("the record exists");
            assert_eq!((found.namespace, found.value), (namespace.clone(), json(&format!("{value}"))));
            let query = RecordQuery { namespace: Some(namespace.clone()), ..RecordQuery::of(owner.clone()) };
            assert_eq!(client.list_records(&ana(), &query, at(2)).await.expect("reading works").len(), 1);
        }
    }
}

pub(super) async fn records_are_listed_in_byte_order(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let keys = ["a", "a%", "a_", "aA", "ab", "a\u{e9}", "a🚇", "b", "B", "é"];
    let mut expected = Vec::new();
    for namespace in [system("x"), app("y"), app("x"), app("x!")] {
        for key in keys {
            let write = RecordWrite { namespace: namespace.clone(), ..note_write(ana_owner(), key, "1") };
            write_record(client, &ana(), &write).await;
            expected.push((namespace.clone(), key.to_owned()));
        }
        let puts = keys.iter().map(|key| put(namespace.clone(), key, "1")).collect();
        conversation.commit(&Batch { put: puts, ..batch(&namespace.to_string()) }, at(1)).await;
    }
    expected.sort();
    for owner in [ana_owner(), RecordOwner::Thread(conversation.id)] {
        for limit in [1, 3, 40, 1000] {
            let query = RecordQuery { limit, ..RecordQuery::of(owner.clone()) };
            assert_eq!(list_names(client, query).await, expected, "in pages of {limit}");
        }
        let prefixed = RecordQuery { key_prefix: "a".to_owned(), limit: 2, ..RecordQuery::of(owner.clone()) };
        let with_prefix: Vec<_> = expected.iter().filter(|(_, key)| key.starts_with('a')).cloned().collect();
        assert_eq!(list_names(client, prefixed.clone()).await, with_prefix);
        for special in ["a%", "a_", "a\u{e9}", "a🚇"] {
            let query = RecordQuery { key_prefix: special.to_owned(), ..prefixed.clone() };
            assert_eq!(list_names(client, query).await.len(), 4, "a prefix is used as a pattern: {special}");
        }
    }
}

async fn list_names(client: &Client, mut query: RecordQuery) -> Vec<(Namespace, String)> {
    let mut all: Vec<(Namespace, String)> = Vec::new();
    loop {
        let page = client.list_records(&ana(), &query, at(3)).await.expect("reading works");
        assert!(page.len() <= query.limit);
        if page.is_empty() {
            return all;
        }
        let page = page.into_iter().map(|record| (record.namespace, record.key));
        for name in page {
            assert!(all.last().is_none_or(|last| *last < name), "pages overlap");
            all.push(name);
        }
        query.after = all.last().cloned();
    }
}

pub(super) async fn deleting_an_absent_record_succeeds(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let delete = Batch { delete: vec![record_name(app("notes"), "never")], ..batch("delete") };
    assert_eq!(conversation.commit(&delete, at(1)).await.change, 1);
    let threadkeep_core::ChangePage::Changes { changes, .. } = conversation.changes(0, at(2)).await else {
        panic!("unexpected reset")
    };
    assert_eq!(changes[0].effects, [], "deleting an absent record is not an effect");
}

pub(super) async fn each_user_has_separate_records(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let ben_owner = RecordOwner::User(user_id("ben"));
    write_record(client, &ana(), &note_write(ana_owner(), "k", "1")).await;
    write_record(client, &ben(), &note_write(ben_owner.clone(), "k", "2")).await;
    write_record(client, &acme(), &note_write(RecordOwner::Tenant, "k", "3")).await;
    for (owner, value) in [(ana_owner(), "1"), (ben_owner, "2"), (RecordOwner::Tenant, "3")] {
        let found = find(client, &owner, &app("notes"), "k").await.expect("the record exists");
        assert_eq!(found.value, json(value));
        let listed = client.list_records(&acme(), &RecordQuery::of(owner), at(3)).await;
        assert_eq!(listed.expect("reading works"), [found]);
    }
    // All users of a tenant can read its records.
    let shared = client.find_record(&ben(), &RecordOwner::Tenant, &app("notes"), "k", at(3)).await;
    assert_eq!(shared.expect("reading works").map(|record| record.value), Some(json("3")));
}
