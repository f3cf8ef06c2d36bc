//! Filters on the metadata of threads.

use std::collections::BTreeSet;

use threadkeep_core::{
    Batch, Map, MetadataFilter, MetadataValue, OpenThread, Owner, Scope, SearchQuery, StoreError, ThreadId,
    ThreadOrder, ThreadPatch, ThreadQuery, Timestamp,
};

use super::dump_restore::restore;
use super::search::{find_matches, query_for};
use crate::client::Client;
use crate::conversation::Conversation;
use crate::fixtures::{acme, ana, appending, assert_error, at, batch, ben, thread_id, user, user_message};
use crate::run::TestEnv;

fn map(json: &str) -> Map {
    serde_json::from_str(json).expect("the metadata is valid")
}

fn filter(json: &str) -> MetadataFilter {
    MetadataFilter::from_map(&map(json)).expect("the filter is valid")
}

async fn open(client: &Client, scope: &Scope, number: u128, metadata: &str) -> Conversation {
    let open = OpenThread { metadata: map(metadata), ..OpenThread::new(scope, thread_id(number)) };
    Conversation::open_as(client, scope, &open, at(0)).await
}

/// Lists all threads that a query selects, page by page.
async fn list_all(client: &Client, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Vec<ThreadId> {
    let (mut query, mut ids) = (query.clone(), Vec::new());
    loop {
        let page = client.list_threads(scope, &query, now).await.expect("reading works");
        assert!(page.threads.len() == query.limit || page.next.is_none(), "a page before the last one is not full");
        assert!(page.next.is_none() || !page.threads.is_empty(), "an empty page is not the last one");
        ids.extend(page.threads.iter().map(|thread| thread.id));
        query.after = page.next;
        if query.after.is_none() {
            return ids;
        }
    }
}

fn filtered_query(metadata: MetadataFilter, order: ThreadOrder, limit: usize) -> ThreadQuery {
    ThreadQuery { metadata, ..ThreadQuery::new(order, limit) }
}

async fn filtered_ids(client: &Client, scope: &Scope, json: &str) -> Vec<ThreadId> {
    list_all(client, scope, &filtered_query(filter(json), ThreadOrder::Created, 2), at(50)).await
}

fn ids<const N: usize>(numbers: [u128; N]) -> Vec<ThreadId> {
    numbers.map(thread_id).to_vec()
}

pub(super) async fn threads_are_filtered_by_metadata(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let quoted = r#"{"it's a \"key\" %_\\": "O'Brien \u0001 ' \" \\ 東京 \ud83d\ude00", "s": "s", "true": "true"}"#;
    for (number, metadata) in (1..).zip([
        r#"{"env": "prod", "n": 3, "on": true}"#,
        r#"{"env": "test", "n": "3", "on": "true"}"#,
        r#"{"env": ["prod"], "n": 3.0, "on": null, "deep": {"env": "prod"}}"#,
        "{}",
        r#"{"env": "prod", "n": -3, "on": false, "big": 18446744073709551615, "last": -9223372036854775808}"#,
        quoted,
        r#"{"env": "Prod", "empty": "", "metadata": "x"}"#,
    ]) {
        open(client, &ana(), number, metadata).await;
    }
    for (json, expected) in [
        (r#"{"env": "prod"}"#, ids([1, 5])),
        (r#"{"env": "prod", "n": 3}"#, ids([1])),
        (r#"{"env": "prod", "n": 4}"#, vec![]),
        (r#"{"n": 3}"#, ids([1])),
        (r#"{"n": "3"}"#, ids([2])),
        (r#"{"n": -3}"#, ids([5])),
        (r#"{"on": true}"#, ids([1])),
        (r#"{"on": "true"}"#, ids([2])),
        (r#"{"on": false}"#, ids([5])),
        (r#"{"last": -9223372036854775808}"#, ids([5])),
        (r#"{"big": 9223372036854775807}"#, vec![]),
        (r#"{"empty": ""}"#, ids([7])),
        (r#"{"metadata": "x"}"#, ids([7])),
        (r#"{"deep": "prod"}"#, vec![]),
        (r#"{"absent": "prod"}"#, vec![]),
        (r#"{"title": "prod"}"#, vec![]),
        (r#"{"s": "s", "true": "true"}"#, ids([6])),
        (r#"{"it's a \"key\" %_\\": "O'Brien \u0001 ' \" \\ 東京 \ud83d\ude00"}"#, ids([6])),
    ] {
        assert_eq!(filtered_ids(client, &ana(), json).await, expected, "{json}");
    }
    let text = MetadataFilter::default().with_text("n", "3");
    let query = filtered_query(text, ThreadOrder::Created, 10);
    assert_eq!(list_all(client, &ana(), &query, at(50)).await, ids([1, 2]), "text matches every type");
    let everything = ThreadQuery::new(ThreadOrder::Created, 10);
    assert_eq!(list_all(client, &ana(), &everything, at(50)).await.len(), 7);
}

pub(super) async fn long_values_are_compared_exactly(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let value = |bytes: usize, end: &str| format!("{}{end}", "é".repeat((bytes - end.len()) / 2));
    for (number, text) in (1..).zip([value(2_048, "aa"), value(2_048, "ab"), value(2_050, "aa")]) {
        open(client, &ana(), number, &format!(r#"{{"text": "{text}"}}"#)).await;
    }
    let json = |text: String| format!(r#"{{"text": "{text}"}}"#);
    assert_eq!(filtered_ids(client, &ana(), &json(value(2_048, "aa"))).await, ids([1]));
    assert_eq!(filtered_ids(client, &ana(), &json(value(2_048, "ab"))).await, ids([2]));
    let too_long = MetadataFilter::default().with("text", MetadataValue::Text(value(2_050, "aa")));
    let query = filtered_query(too_long, ThreadOrder::Created, 2);
    assert_error!(client.list_threads(&ana(), &query, at(1)).await, StoreError::LimitExceeded { .. });
}

pub(super) async fn filtered_pages_are_full_in_both_orders(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let mut sixth = None;
    for number in 1..=17 {
        let env = if number % 3 == 0 { "prod" } else { "test" };
        let opened = open(client, &ana(), number, &format!(r#"{{"env": "{env}", "all": true}}"#)).await;
        sixth = if number == 6 { Some(opened) } else { sixth };
    }
    sixth.expect("the thread was opened").append(1..=1, at(10)).await;
    for limit in [1, 2, 4, 5, 6, 1000] {
        let query = |order| filtered_query(filter(r#"{"env": "prod", "all": true}"#), order, limit);
        let found = list_all(client, &ana(), &query(ThreadOrder::Created), at(50)).await;
        assert_eq!(found, ids([3, 6, 9, 12, 15]), "in pages of {limit}");
        let found = list_all(client, &ana(), &query(ThreadOrder::Recent), at(50)).await;
        assert_eq!((found[0], found.len()), (thread_id(6), 5), "in pages of {limit}");
        let others: BTreeSet<_> = found.into_iter().collect();
        assert_eq!(others, ids([3, 6, 9, 12, 15]).into_iter().collect(), "in pages of {limit}");
    }
}

pub(super) async fn restored_threads_are_filtered(env: &TestEnv<'_>) {
    let (from, to) = (env.open().await, env.open().await);
    let source = open(&from.client, &ana(), 1, r#"{"env": "prod"}"#).await;
    source.append(1..=3, at(1)).await;
    let chunks = source.dump(2).await;
    let (last, first) = chunks.split_last().expect("a dump has a chunk");
    restore(&to.client, first).await;
    assert_eq!(filtered_ids(&to.client, &ana(), r#"{"env": "prod"}"#).await, vec![]);
    restore(&to.client, std::slice::from_ref(last)).await;
    assert_eq!(filtered_ids(&to.client, &ana(), r#"{"env": "prod"}"#).await, ids([1]));
}

// S0.7
pub(super) async fn filters_stay_in_the_scope(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let globex = user("globex", "ana");
    for (number, scope) in (1..).zip([ana(), ben(), acme(), globex.clone()]) {
        open(client, &scope, number, r#"{"env": "prod"}"#).await;
    }
    for (scope, expected) in [
        (ana(), ids([1])),
        (ben(), ids([2])),
        (acme(), ids([1, 2, 3])),
        (globex, ids([4])),
        (user("initech", "ana"), vec![]),
    ] {
        assert_eq!(filtered_ids(client, &scope, r#"{"env": "prod"}"#).await, expected, "{scope:?}");
    }
    let shared = ThreadQuery {
        owner: Some(Owner::Tenant),
        ..filtered_query(filter(r#"{"env": "prod"}"#), ThreadOrder::Recent, 10)
    };
    assert_eq!(list_all(client, &ana(), &shared, at(50)).await, ids([3]));
    assert_eq!(list_all(client, &acme(), &shared, at(50)).await, ids([3]));
}

pub(super) async fn filters_follow_changes_of_metadata(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let first = open(client, &ana(), 1, r#"{"env": "prod", "kept": 1}"#).await;
    let second = open(client, &ana(), 2, "{}").await;
    let patch = async |conversation: &Conversation, key: &str, patch: ThreadPatch| {
        conversation.commit(&Batch { patch, ..batch(key) }, at(1)).await;
    };
    let state = ThreadPatch { state: Some(map(r#"{"env": "state"}"#)), ..ThreadPatch::default() };
    patch(&first, "state", state).await;
    assert_eq!(filtered_ids(client, &ana(), r#"{"env": "prod"}"#).await, ids([1]));
    assert_eq!(filtered_ids(client, &ana(), r#"{"env": "state"}"#).await, vec![]);
    let metadata = |json| ThreadPatch { metadata: Some(map(json)), ..ThreadPatch::default() };
    patch(&first, "first", metadata(r#"{"env": "test", "kept": 1}"#)).await;
    patch(&second, "second", metadata(r#"{"env": "prod"}"#)).await;
    assert_eq!(filtered_ids(client, &ana(), r#"{"env": "prod"}"#).await, ids([2]));
    assert_eq!(filtered_ids(client, &ana(), r#"{"env": "test", "kept": 1}"#).await, ids([1]));
    patch(&first, "none", metadata("{}")).await;
    assert_eq!(filtered_ids(client, &ana(), r#"{"kept": 1}"#).await, vec![]);
    client.delete_thread(&ana(), second.id, at(2)).await.expect("the thread exists");
    assert_eq!(filtered_ids(client, &ana(), r#"{"env": "prod"}"#).await, vec![]);
    let expiring = OpenThread {
        expires_at: Some(at(10)),
        metadata: map(r#"{"env": "prod"}"#),
        ..OpenThread::new(&ana(), thread_id(3))
    };
    Conversation::open_as(client, &ana(), &expiring, at(0)).await;
    let query = filtered_query(filter(r#"{"env": "prod"}"#), ThreadOrder::Created, 2);
    assert_eq!(list_all(client, &ana(), &query, at(9)).await, ids([3]));
    assert_eq!(list_all(client, &ana(), &query, at(10)).await, vec![]);
}

pub(super) async fn searches_are_filtered_by_metadata(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let globex = user("globex", "ana");
    for (number, (scope, metadata)) in (1..).zip([
        (ana(), r#"{"env": "prod", "n": 1}"#),
        (ana(), r#"{"env": "test"}"#),
        (ben(), r#"{"env": "prod"}"#),
        (acme(), r#"{"env": "prod"}"#),
        (globex, r#"{"env": "prod"}"#),
        (ana(), r#"{"env": "prod", "n": 2}"#),
    ]) {
        let conversation = open(client, &scope, number, metadata).await;
        conversation.commit(&appending(vec![user_message(1, "a walrus"), user_message(2, "a heron")]), at(1)).await;
    }
    let walrus = |json: &str| SearchQuery { metadata: filter(json), ..query_for("walrus") };
    for caught_up in [false, true] {
        for (scope, json, expected) in [
            (ana(), r#"{"env": "prod"}"#, ids([1, 6])),
            (ana(), r#"{"env": "prod", "n": 2}"#, ids([6])),
            (ana(), r#"{"env": "prod", "n": "2"}"#, vec![]),
            (ana(), r#"{"env": "test"}"#, ids([2])),
            (ana(), r#"{"env": "none"}"#, vec![]),
            (acme(), r#"{"env": "prod"}"#, ids([1, 3, 4, 6])),
        ] {
            let threads: Vec<_> = find_matches(client, &scope, &walrus(json), at(2))
                .await
                .into_iter()
                .map(|(thread, _)| thread)
                .collect();
            assert_eq!(threads, expected, "{scope:?} {json}, caught up: {caught_up}");
        }
        // A search in one thread finds nothing if the thread does not pass.
        for (scope, number, json, expected) in [
            (ana(), 1, r#"{"n": 1}"#, 1),
            (ana(), 1, r#"{"n": 2}"#, 0),
            (ana(), 4, r#"{"env": "prod"}"#, 1),
            (ana(), 4, r#"{"env": "test"}"#, 0),
            (ben(), 1, r#"{"n": 1}"#, 0),
        ] {
            let query = SearchQuery { thread: Some(thread_id(number)), ..walrus(json) };
            assert_eq!(find_matches(client, &scope, &query, at(2)).await.len(), expected, "{scope:?} {number} {json}");
        }
        client.catch_up_fully().await;
    }
}

/// Messages of other threads do not use up the limits of a filtered search, even if all of them contain the word.
pub(super) async fn other_threads_do_not_use_up_the_limit_of_a_search(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let wanted = open(client, &ana(), 1, r#"{"env": "prod"}"#).await;
    wanted.commit(&appending(vec![user_message(1, "a walrus"), user_message(2, "a walrus")]), at(1)).await;
    for number in 2..=7 {
        let other = open(client, &ana(), number, r#"{"env": "test"}"#).await;
        for part in 0..2 {
            let messages = (part * 400 + 1..=part * 400 + 400).map(|number| user_message(number, "a walrus"));
            other.commit(&appending(messages.collect()), at(2)).await;
        }
    }
    client.catch_up_fully().await;
    let query = SearchQuery { metadata: filter(r#"{"env": "prod"}"#), limit: 10, ..query_for("walrus") };
    let hits = find_matches(client, &ana(), &query, at(3)).await;
    assert_eq!(hits, BTreeSet::from([(wanted.id, 1), (wanted.id, 2)]));
}
