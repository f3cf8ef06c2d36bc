//! Named collections that an application fills.

use std::collections::BTreeSet;

use threadkeep_core::{
    Collection, Embedding, EntryHit, FieldFilter, IndexEntry, Map, Owner, Scope, SearchAnswer, SearchQuery, StoreError,
    limits, text,
};

use super::search::query_for;
use crate::client::Client;
use crate::conversation::Conversation;
use crate::fixtures::{acme, ana, assert_error, at, ben, user};
use crate::run::{TestEnv, TestStore};

fn statutes() -> Collection {
    Collection::Named("statutes".to_owned())
}

fn entry(id: &str, text: &str) -> IndexEntry {
    IndexEntry { id: id.to_owned(), text: text.to_owned(), fields: Map::new(), embedding: None }
}

fn entry_with_vector(id: &str, text: &str, vector: &[f32]) -> IndexEntry {
    IndexEntry { embedding: Some(embedding(vector)), ..entry(id, text) }
}

fn embedding(vector: &[f32]) -> Embedding {
    Embedding { model: "a model".to_owned(), vector: vector.to_vec() }
}

fn statutes_query(words: &str) -> SearchQuery {
    SearchQuery { collection: statutes(), ..query_for(words) }
}

async fn search(client: &Client, scope: &Scope, query: &SearchQuery) -> SearchAnswer {
    let answer = client.search(scope, query, at(9)).await.expect("searching works");
    assert_eq!(
        (&answer.hits, &answer.unindexed),
        (&Vec::new(), &Vec::new()),
        "a search of a collection returned messages"
    );
    answer
}

async fn find_ids(client: &Client, scope: &Scope, query: &SearchQuery) -> Vec<String> {
    search(client, scope, query).await.entries.into_iter().map(|found| found.id).collect()
}

async fn put(client: &Client, scope: &Scope, entries: &[IndexEntry]) {
    client.upsert(scope, &statutes(), entries).await.expect("the entries are valid");
}

/// Creates a store. If it does not support named collections, checks that their methods return `Unsupported`, and
/// returns `None`.
async fn store_with_collections(env: &TestEnv<'_>) -> Option<TestStore> {
    let store = env.open().await;
    if env.capabilities().named_collections {
        return Some(store);
    }
    let client = &store.client;
    assert_error!(client.upsert(&ana(), &statutes(), &[entry("1", "a walrus")]).await, StoreError::Unsupported(_));
    assert_error!(client.remove(&ana(), &statutes(), &["1".to_owned()]).await, StoreError::Unsupported(_));
    assert_error!(client.search(&ana(), &statutes_query("walrus"), at(2)).await, StoreError::Unsupported(_));
    None
}

pub(super) async fn entries_are_found_by_words(env: &TestEnv<'_>) {
    let Some(store) = store_with_collections(env).await else { return };
    let client = &store.client;
    let fields: Map = serde_json::from_str(r#"{"z":1,"a":[1150.5]}"#).expect("valid JSON");
    put(
        client,
        &ana(),
        &[entry("1", "The walrus sleeps"), IndexEntry { fields: fields.clone(), ..entry("2", "Wálruses") }],
    )
    .await;
    put(client, &ana(), &[entry("3", "An amparo is granted")]).await;
    let mut answer = search(client, &ana(), &statutes_query("walruses amparo")).await;
    assert_eq!((answer.documents, answer.frequencies), (3, vec![2, 1]));
    answer.entries.sort_by(|one, other| one.id.cmp(&other.id));
    let found = EntryHit {
        owner: ana().default_owner(),
        id: "2".to_owned(),
        text: "Wálruses".to_owned(),
        fields,
        similarity: None,
    };
    assert_eq!(answer.entries[1], found);
    assert_eq!(answer.entries.len(), 3);
    assert_eq!(find_ids(client, &ana(), &statutes_query("unheard")).await, Vec::<String>::new());
    let other = SearchQuery { collection: Collection::Named("codes".to_owned()), ..query_for("walrus") };
    assert_eq!(find_ids(client, &ana(), &other).await, Vec::<String>::new());
    // A search of messages does not find entries, and vice versa.
    Conversation::open(client, &ana(), 1, at(0)).await.append(1..=2, at(1)).await;
    client.catch_up_fully().await;
    assert_eq!(client.search(&ana(), &query_for("amparo"), at(9)).await.expect("searching works").hits, []);
    assert_eq!(find_ids(client, &ana(), &statutes_query("message")).await, Vec::<String>::new());
}

pub(super) async fn upserting_replaces_an_entry(env: &TestEnv<'_>) {
    let Some(store) = store_with_collections(env).await else { return };
    let client = &store.client;
    put(client, &ana(), &[entry_with_vector("1", "a walrus", &[1.0, 0.0]), entry("2", "a narwhal")]).await;
    put(client, &ana(), &[entry("1", "a narwhal as well")]).await;
    assert_eq!(find_ids(client, &ana(), &statutes_query("walrus")).await, Vec::<String>::new());
    assert_eq!(search(client, &ana(), &statutes_query("narwhal")).await.documents, 2);
    let by_vector = SearchQuery { vector: Some(embedding(&[1.0, 0.0])), ..statutes_query("walrus") };
    assert_eq!(find_ids(client, &ana(), &by_vector).await, Vec::<String>::new());
    let removed = client.remove(&ana(), &statutes(), &["1".to_owned(), "7".to_owned()]).await;
    // With faults, the response to a removal may be lost, and the retry removes nothing.
    assert!(removed.expect("removing works") == 1 || env.has_faults());
    assert_eq!(find_ids(client, &ana(), &statutes_query("narwhal")).await, ["2"]);
    assert_eq!(search(client, &ana(), &statutes_query("narwhal")).await.documents, 1);
}

pub(super) async fn collections_are_scoped(env: &TestEnv<'_>) {
    let Some(store) = store_with_collections(env).await else { return };
    let client = &store.client;
    let other_tenant = user("other", "ana");
    put(client, &acme(), &[entry("1", "shared walrus")]).await;
    put(client, &ana(), &[entry("1", "own walrus")]).await;
    put(client, &other_tenant, &[entry("1", "foreign walrus")]).await;
    let texts = async |scope: &Scope| {
        let answer = search(client, scope, &statutes_query("walrus")).await;
        let count = (answer.documents, answer.frequencies[0]);
        let texts: BTreeSet<(Owner, String)> =
            answer.entries.into_iter().map(|found| (found.owner, found.text)).collect();
        (count, texts)
    };
    let shared = (Owner::Tenant, "shared walrus".to_owned());
    let own = (ana().default_owner(), "own walrus".to_owned());
    assert_eq!(texts(&ana()).await, ((2, 2), BTreeSet::from([shared.clone(), own])));
    assert_eq!(texts(&ben()).await, ((1, 1), BTreeSet::from([shared.clone()])));
    assert_eq!(texts(&acme()).await, ((1, 1), BTreeSet::from([shared])));
    // A user cannot remove entries of the tenant or of another tenant.
    client.remove(&ben(), &statutes(), &["1".to_owned()]).await.expect("removing works");
    client.remove(&other_tenant, &statutes(), &["1".to_owned()]).await.expect("removing works");
    assert_eq!(texts(&ana()).await.0, (2, 2));
}

pub(super) async fn the_nearest_vectors_are_found(env: &TestEnv<'_>) {
    let Some(store) = store_with_collections(env).await else { return };
    let client = &store.client;
    let other = Embedding { model: "another model".to_owned(), vector: vec![1.0, 0.0] };
    put(
        client,
        &ana(),
        &[
            entry_with_vector("far", "one", &[-1.0, 0.0]),
            entry_with_vector("near", "two", &[2.0, 0.5]),
            entry_with_vector("nearer", "three", &[0.5, 0.0]),
            entry_with_vector("longer", "four", &[1.0, 0.0, 0.0]),
            IndexEntry { embedding: Some(other), ..entry("other", "five") },
            entry("none", "a walrus"),
        ],
    )
    .await;
    let query = SearchQuery { vector: Some(embedding(&[1.0, 0.0])), limit: 2, ..statutes_query("walrus") };
    let answer = search(client, &ana(), &query).await;
    let found: Vec<_> = answer.entries.iter().map(|found| (found.id.as_str(), found.similarity)).collect();
    assert_eq!(found[..2], [("none", None), ("nearer", Some(1.0))]);
    assert_eq!((found[2].0, found.len()), ("near", 3));
}

fn entry_with_fields(id: &str, text: &str, json: &str) -> IndexEntry {
    IndexEntry { fields: serde_json::from_str(json).expect("valid JSON"), ..entry_with_vector(id, text, &[1.0, 0.5]) }
}

async fn sorted_ids(client: &Client, scope: &Scope, query: &SearchQuery) -> Vec<String> {
    let mut found = find_ids(client, scope, query).await;
    found.sort();
    found
}

fn filtered_query(words: &str, filters: Vec<FieldFilter>) -> SearchQuery {
    SearchQuery { filters, ..statutes_query(words) }
}

pub(super) async fn entries_are_filtered_by_fields(env: &TestEnv<'_>) {
    let Some(store) = store_with_collections(env).await else { return };
    let client = &store.client;
    let entries = [
        entry_with_fields("1", "a walrus", r#"{"year": 2023, "topics": ["civil", "penal"], "is_binding": true}"#),
        entry_with_fields("2", "a walrus", r#"{"year": 2024, "topics": ["civil"]}"#),
        entry_with_fields("3", "a narwhal", r#"{"year": 2024, "title": "'quoted' \" OR &"}"#),
        entry("4", "a walrus"),
    ];
    put(client, &acme(), &entries).await;
    let civil = || FieldFilter::equal("topics", "civil");
    for (words, filters, expected) in [
        ("walrus", vec![FieldFilter::equal("year", 2024)], vec!["2"]),
        ("walrus", vec![FieldFilter::any("year", [2022, 2023, 2024])], vec!["1", "2"]),
        ("walrus", vec![civil(), FieldFilter::equal("is_binding", true)], vec!["1"]),
        ("walrus", vec![FieldFilter::equal("year", "2024")], vec![]),
        ("walrus", vec![FieldFilter::equal("topics", "civi")], vec![]),
        ("walrus", vec![FieldFilter { field: "year".to_owned(), values: Vec::new() }], vec![]),
        ("narwhal", vec![FieldFilter::equal("title", "'quoted' \" OR &")], vec!["3"]),
        // Without terms, all entries that pass the filters are found.
        ("", vec![FieldFilter::equal("year", 2024)], vec!["2", "3"]),
        ("", vec![FieldFilter::equal("year", 1900)], vec![]),
        ("unheard", vec![FieldFilter::equal("year", 2024)], vec![]),
    ] {
        let query = filtered_query(words, filters);
        assert_eq!(sorted_ids(client, &ana(), &query).await, expected, "{query:?}");
    }
    let answer = search(client, &ana(), &filtered_query("walrus narwhal", vec![civil()])).await;
    assert_eq!(
        (answer.documents, answer.frequencies),
        (4, vec![2, 0]),
        "only entries that pass the filter are counted"
    );
    let nearest = SearchQuery {
        vector: Some(embedding(&[1.0, 0.5])),
        limit: 1,
        ..filtered_query("unheard", vec![FieldFilter::equal("is_binding", true)])
    };
    assert_eq!(find_ids(client, &ana(), &nearest).await, ["1"]);
}

pub(super) async fn filters_follow_replaced_and_removed_entries(env: &TestEnv<'_>) {
    let Some(store) = store_with_collections(env).await else { return };
    let client = &store.client;
    let of_year = |id: &str, year: u32| entry_with_fields(id, "a walrus", &format!(r#"{{"year": {year}}}"#));
    put(client, &acme(), &[of_year("1", 2024), of_year("2", 2024), of_year("3", 2024)]).await;
    put(client, &acme(), &[of_year("2", 1999)]).await;
    client.remove(&acme(), &statutes(), &["3".to_owned()]).await.expect("removing works");
    for (year, expected) in [(2024, "1"), (1999, "2")] {
        let query = filtered_query("", vec![FieldFilter::equal("year", year)]);
        assert_eq!(find_ids(client, &ana(), &query).await, [expected]);
        assert_eq!(
            find_ids(client, &ana(), &SearchQuery { terms: statutes_query("walrus").terms, ..query }).await,
            [expected]
        );
    }
    assert_eq!(client.verify().await.expect("verifying works").findings, []);
}

pub(super) async fn filters_do_not_use_up_the_limit(env: &TestEnv<'_>) {
    let Some(store) = store_with_collections(env).await else { return };
    let client = &store.client;
    let newer = (0..300).map(|number| entry_with_fields(&format!("n{number}"), "a walrus", r#"{"year": 2024}"#));
    put(client, &ana(), &[entry_with_fields("old", "a walrus", r#"{"year": 1999}"#)]).await;
    put(client, &ana(), &newer.collect::<Vec<_>>()).await;
    let query = SearchQuery {
        limit: 5,
        vector: Some(embedding(&[1.0, 0.5])),
        ..filtered_query("walrus", vec![FieldFilter::equal("year", 1999)])
    };
    assert_eq!(find_ids(client, &ana(), &query).await, ["old"]);
    assert_eq!(find_ids(client, &ana(), &SearchQuery { terms: Vec::new(), ..query }).await, ["old"]);
}

pub(super) async fn filters_have_limits(env: &TestEnv<'_>) {
    let Some(store) = store_with_collections(env).await else { return };
    let client = &store.client;
    let years = |count: u32| FieldFilter::any("year", 0..count);
    let find = async |filters: Vec<FieldFilter>| client.search(&ana(), &filtered_query("walrus", filters), at(2)).await;
    assert!(find(vec![years(200); 8]).await.is_ok());
    assert_error!(find(vec![years(201)]).await, StoreError::LimitExceeded { .. });
    assert_error!(find(vec![years(1); 9]).await, StoreError::LimitExceeded { .. });
    assert_error!(find(vec![FieldFilter::equal("year", 0.5)]).await, StoreError::Invalid { .. });
    let messages = SearchQuery { filters: vec![years(1)], ..query_for("walrus") };
    assert_error!(client.search(&ana(), &messages, at(2)).await, StoreError::Unsupported(_));
}

pub(super) async fn entries_have_limits(env: &TestEnv<'_>) {
    let Some(store) = store_with_collections(env).await else { return };
    let client = &store.client;
    let put = async |entries: &[IndexEntry]| client.upsert(&ana(), &statutes(), entries).await;
    assert_error!(put(&[entry("", "x")]).await, StoreError::Invalid { .. });
    assert_error!(put(&[entry("1", "a\0b")]).await, StoreError::Invalid { .. });
    assert_error!(put(&[entry("1", "x"), entry("1", "y")]).await, StoreError::Invalid { .. });
    assert_error!(put(&[entry_with_vector("1", "x", &[])]).await, StoreError::Invalid { .. });
    assert_error!(put(&[entry_with_vector("1", "x", &[f32::NAN])]).await, StoreError::Invalid { .. });
    assert_error!(
        put(&[entry_with_vector("1", "x", &vec![0.5; limits::DIMENSIONS + 1])]).await,
        StoreError::LimitExceeded { .. }
    );
    let long = "x".repeat(limits::KEY_BYTES + 1);
    assert_error!(put(&[entry(&long, "x")]).await, StoreError::LimitExceeded { .. });
    let many: Vec<IndexEntry> = (0..=limits::COMMIT_MESSAGES).map(|id| entry(&id.to_string(), "walrus")).collect();
    assert_error!(put(&many).await, StoreError::LimitExceeded { .. });
    let nameless = Collection::Named(String::new());
    assert_error!(client.upsert(&ana(), &nameless, &[entry("1", "x")]).await, StoreError::Invalid { .. });
    // If an entry is invalid, the whole call fails.
    assert_error!(put(&[entry("1", "walrus"), entry("", "x")]).await, StoreError::Invalid { .. });
    assert_eq!(
        search(client, &ana(), &statutes_query("walrus")).await,
        SearchAnswer { frequencies: vec![0], ..SearchAnswer::default() }
    );
    put(&many[1..]).await.expect("the number of entries is at the limit");
    let answer = search(client, &ana(), &SearchQuery { limit: 10, ..statutes_query("walrus") }).await;
    assert_eq!((answer.documents, answer.entries.len()), (1000, 10));
}

pub(super) async fn entries_survive_a_repair(env: &TestEnv<'_>) {
    let Some(store) = store_with_collections(env).await else { return };
    put(&store.client, &ana(), &[entry("1", "a walrus"), entry_with_vector("2", "a narwhal", &[1.0])]).await;
    store.client.repair(at(3)).await.expect("repairing works");
    let search_both = async |client: &Client| {
        let by_words = search(client, &ana(), &statutes_query("walrus narwhal")).await;
        let by_vector = SearchQuery { vector: Some(embedding(&[1.0])), ..statutes_query("nothing") };
        (by_words, search(client, &ana(), &by_vector).await)
    };
    let before = search_both(&store.client).await;
    assert_eq!((before.0.entries.len(), before.1.entries.len()), (2, 1));
    assert_eq!(store.client.verify().await.expect("verifying works").findings, []);
    if env.capabilities().durable {
        let store = store.reopen().await;
        assert_eq!(search_both(&store.client).await, before);
    }
}

pub(super) async fn removing_an_entry_removes_its_text_from_files(env: &TestEnv<'_>) {
    let Some(store) = store_with_collections(env).await else { return };
    let client = &store.client;
    let (marker, other) = ("Quixotryzzlings", "Zebrafloofings");
    let stem = |word: &str| text::terms(word).remove(0);
    let others: Vec<IndexEntry> = (0..100).map(|id| entry(&format!("f{id}"), "a walrus")).collect();
    put(client, &ana(), &others).await;
    put(client, &ana(), &[entry("1", marker), entry("2", other)]).await;
    for word in [marker, other] {
        assert!(!store.has_files() || store.files_contain(stem(word).as_bytes()), "{word} is not stored in the files");
    }
    client.remove(&ana(), &statutes(), &["1".to_owned()]).await.expect("removing works");
    put(client, &ana(), &[entry("2", "something else")]).await;
    client.sweep(at(50)).await.expect("sweeping works");
    for word in [marker, other] {
        assert!(!store.files_contain(stem(word).as_bytes()), "the files still contain {word}");
    }
    assert_eq!(search(client, &ana(), &statutes_query("walrus")).await.entries.len(), 100);
}

/// Fills each of several collections with `entry_count` entries.
async fn fill_many(client: &Client, scope: &Scope, collections: &[&str], entry_count: usize) {
    for name in collections {
        let entries: Vec<IndexEntry> = (0..entry_count)
            .map(|id| entry_with_vector(&format!("{name} {id}"), "a walrus", &[1.0, id as f32]))
            .collect();
        for entries in entries.chunks(limits::COMMIT_MESSAGES) {
            let collection = Collection::Named((*name).to_owned());
            client.upsert(scope, &collection, entries).await.expect("the entries are valid");
        }
    }
}

pub(super) async fn remove_collections_affects_only_its_scope(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    assert_eq!(client.remove_collections(&ana()).await.expect("removing works"), 0);
    if !env.capabilities().named_collections {
        return;
    }
    let (other_tenant, names) = (user("other", "ana"), ["statutes", "codes", "letters"]);
    fill_many(client, &ana(), &names, 1_200).await;
    for scope in [&acme(), &ben(), &other_tenant] {
        fill_many(client, scope, &names, 2).await;
    }
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    conversation.append(1..=2, at(1)).await;
    let removed = client.remove_collections(&ana()).await.expect("removing works");
    // With faults, the response to a removal may be lost, and the retry removes nothing.
    assert!(removed == 3_600 || env.has_faults(), "{removed}");
    assert_eq!(client.remove_collections(&ana()).await.expect("removing works"), 0);
    for name in names {
        let query = SearchQuery {
            collection: Collection::Named(name.to_owned()),
            vector: Some(embedding(&[1.0, 0.0])),
            ..query_for("walrus")
        };
        for (scope, count, owner) in [
            (ana(), 2, Owner::Tenant),
            (acme(), 2, Owner::Tenant),
            (other_tenant.clone(), 2, other_tenant.default_owner()),
        ] {
            let answer = search(client, &scope, &query).await;
            assert_eq!((answer.documents, answer.entries.len()), (count, 2), "{name} of {scope:?}");
            assert!(answer.entries.iter().all(|found| found.owner == owner), "{name} of {scope:?}");
        }
        assert_eq!(search(client, &ben(), &query).await.documents, 4);
    }
    assert_eq!(conversation.texts(at(9)).await.len(), 2, "messages are not removed with collections");
    // A removed collection can be filled again.
    put(client, &ana(), &[entry("1", "a walrus")]).await;
    assert_eq!(search(client, &ana(), &statutes_query("walrus")).await.documents, 3);
    assert_eq!(client.verify().await.expect("verifying works").findings, []);
}

pub(super) async fn remove_collections_removes_all_text_from_files(env: &TestEnv<'_>) {
    let Some(store) = store_with_collections(env).await else { return };
    let client = &store.client;
    let (text, field, id, name) = ("Quixotryzzlings", "Zanzibaroonings", "Flummoxidating", "Bamboozleations");
    let stem = |word: &str| text::terms(word).remove(0);
    fill_many(client, &acme(), &[name, "walruses"], 1).await;
    client.remove_collections(&acme()).await.expect("removing works");
    fill_many(client, &ana(), &["walruses"], 300).await;
    fill_many(client, &ben(), &["walruses"], 300).await;
    let fields = Map::from_iter([("place".to_owned(), field.into())]);
    let marked = IndexEntry { fields, ..entry_with_vector(id, text, &[1.0, 2.0]) };
    client.upsert(&ana(), &Collection::Named(name.to_owned()), &[marked]).await.expect("the entry is valid");
    for word in [stem(text).as_str(), field, id, name] {
        assert!(!store.has_files() || store.files_contain(word.as_bytes()), "{word} is not stored in the files");
    }
    client.remove_collections(&ana()).await.expect("removing works");
    client.sweep(at(50)).await.expect("sweeping works");
    for word in [stem(text).as_str(), text, field, id, name] {
        assert!(!store.files_contain(word.as_bytes()), "the files still contain {word}");
    }
}

pub(super) async fn removals_run_concurrently_with_upserts(env: &TestEnv<'_>) {
    let Some(store) = store_with_collections(env).await else { return };
    let client = &store.client;
    let adding = async {
        for round in 0..20 {
            put(client, &ana(), &[entry("1", "a walrus"), entry(&format!("n{round}"), "a narwhal")]).await;
        }
    };
    let removing = async {
        for _ in 0..20 {
            client.remove_collections(&ana()).await.expect("removing works");
        }
    };
    futures::join!(adding, removing);
    client.remove_collections(&ana()).await.expect("removing works");
    assert_eq!(search(client, &ana(), &statutes_query("walrus narwhal")).await.documents, 0);
    put(client, &ana(), &[entry("1", "a walrus")]).await;
    assert_eq!(search(client, &ana(), &statutes_query("walrus")).await.documents, 1);
}
