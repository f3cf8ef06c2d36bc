//! Collections that an application fills.

use std::collections::BTreeSet;

use threadkeep_core::{
    Collection, Embedding, EntryHit, IndexEntry, Map, Owner, Scope, SearchAnswer, SearchQuery, StoreError, limits, text,
};

use super::search::query_for;
use crate::client::Client;
use crate::conversation::Conversation;
use crate::given::{acme, ana, assert_error, at, ben, user};
use crate::run::{Stage, Subject};

fn statutes() -> Collection {
    Collection::Named("statutes".to_owned())
}

fn entry(id: &str, text: &str) -> IndexEntry {
    IndexEntry { id: id.to_owned(), text: text.to_owned(), fields: Map::new(), embedding: None }
}

fn near(id: &str, text: &str, vector: &[f32]) -> IndexEntry {
    IndexEntry { embedding: Some(embedding(vector)), ..entry(id, text) }
}

fn embedding(vector: &[f32]) -> Embedding {
    Embedding { model: "a model".to_owned(), vector: vector.to_vec() }
}

fn asking(words: &str) -> SearchQuery {
    SearchQuery { collection: statutes(), ..query_for(words) }
}

async fn search(client: &Client, scope: &Scope, query: &SearchQuery) -> SearchAnswer {
    let answer = client.search(scope, query, at(9)).await.expect("searching works");
    assert_eq!((&answer.hits, &answer.behind), (&Vec::new(), &Vec::new()), "a collection has no messages");
    answer
}

async fn ids(client: &Client, scope: &Scope, query: &SearchQuery) -> Vec<String> {
    search(client, scope, query).await.entries.into_iter().map(|found| found.id).collect()
}

async fn put(client: &Client, scope: &Scope, entries: &[IndexEntry]) {
    client.upsert(scope, &statutes(), entries).await.expect("the entries are well formed");
}

/// A store that keeps collections; of one that does not it is checked that it says so.
async fn keeper(stage: &Stage<'_>) -> Option<Subject> {
    let subject = stage.open().await;
    if stage.abilities().named_collections {
        return Some(subject);
    }
    let client = &subject.client;
    assert_error!(client.upsert(&ana(), &statutes(), &[entry("1", "a walrus")]).await, StoreError::Unsupported(_));
    assert_error!(client.remove(&ana(), &statutes(), &["1".to_owned()]).await, StoreError::Unsupported(_));
    assert_error!(client.search(&ana(), &asking("walrus"), at(2)).await, StoreError::Unsupported(_));
    None
}

pub(super) async fn entries_are_found_by_their_words(stage: &Stage<'_>) {
    let Some(subject) = keeper(stage).await else { return };
    let client = &subject.client;
    let fields: Map = serde_json::from_str(r#"{"z":1,"a":[1150.5]}"#).expect("the case writes JSON");
    put(
        client,
        &ana(),
        &[entry("1", "The walrus sleeps"), IndexEntry { fields: fields.clone(), ..entry("2", "Wálruses") }],
    )
    .await;
    put(client, &ana(), &[entry("3", "An amparo is granted")]).await;
    let mut answer = search(client, &ana(), &asking("walruses amparo")).await;
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
    assert_eq!(ids(client, &ana(), &asking("unheard")).await, Vec::<String>::new());
    let other = SearchQuery { collection: Collection::Named("codes".to_owned()), ..query_for("walrus") };
    assert_eq!(ids(client, &ana(), &other).await, Vec::<String>::new());
    // An entry is no message, and a message no entry.
    Conversation::open(client, &ana(), 1, at(0)).await.say(1..=2, at(1)).await;
    client.catch_up_fully().await;
    assert_eq!(client.search(&ana(), &query_for("amparo"), at(9)).await.expect("searching works").hits, []);
    assert_eq!(ids(client, &ana(), &asking("message")).await, Vec::<String>::new());
}

pub(super) async fn an_entry_is_put_over_its_former_self(stage: &Stage<'_>) {
    let Some(subject) = keeper(stage).await else { return };
    let client = &subject.client;
    put(client, &ana(), &[near("1", "a walrus", &[1.0, 0.0]), entry("2", "a narwhal")]).await;
    put(client, &ana(), &[entry("1", "a narwhal as well")]).await;
    assert_eq!(ids(client, &ana(), &asking("walrus")).await, Vec::<String>::new());
    assert_eq!(search(client, &ana(), &asking("narwhal")).await.documents, 2);
    let by_vector = SearchQuery { vector: Some(embedding(&[1.0, 0.0])), ..asking("walrus") };
    assert_eq!(ids(client, &ana(), &by_vector).await, Vec::<String>::new());
    let removed = client.remove(&ana(), &statutes(), &["1".to_owned(), "7".to_owned()]).await;
    // Over a weak store the reply to a removal that was done may be lost, and nothing is left for its repetition.
    assert!(removed.expect("removing works") == 1 || stage.is_weak());
    assert_eq!(ids(client, &ana(), &asking("narwhal")).await, ["2"]);
    assert_eq!(search(client, &ana(), &asking("narwhal")).await.documents, 1);
}

pub(super) async fn collections_belong_to_their_scope(stage: &Stage<'_>) {
    let Some(subject) = keeper(stage).await else { return };
    let client = &subject.client;
    let foreign = user("other", "ana");
    put(client, &acme(), &[entry("1", "shared walrus")]).await;
    put(client, &ana(), &[entry("1", "own walrus")]).await;
    put(client, &foreign, &[entry("1", "foreign walrus")]).await;
    let texts = async |scope: &Scope| {
        let answer = search(client, scope, &asking("walrus")).await;
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
    // A user removes nothing of the tenant's, and nobody anything of another's.
    client.remove(&ben(), &statutes(), &["1".to_owned()]).await.expect("removing works");
    client.remove(&foreign, &statutes(), &["1".to_owned()]).await.expect("removing works");
    assert_eq!(texts(&ana()).await.0, (2, 2));
}

pub(super) async fn the_nearest_are_found(stage: &Stage<'_>) {
    let Some(subject) = keeper(stage).await else { return };
    let client = &subject.client;
    let other = Embedding { model: "another model".to_owned(), vector: vec![1.0, 0.0] };
    put(
        client,
        &ana(),
        &[
            near("far", "one", &[-1.0, 0.0]),
            near("near", "two", &[2.0, 0.5]),
            near("nearer", "three", &[0.5, 0.0]),
            near("longer", "four", &[1.0, 0.0, 0.0]),
            IndexEntry { embedding: Some(other), ..entry("other", "five") },
            entry("none", "a walrus"),
        ],
    )
    .await;
    let query = SearchQuery { vector: Some(embedding(&[1.0, 0.0])), limit: 2, ..asking("walrus") };
    let answer = search(client, &ana(), &query).await;
    let found: Vec<_> = answer.entries.iter().map(|found| (found.id.as_str(), found.similarity)).collect();
    assert_eq!(found[..2], [("none", None), ("nearer", Some(1.0))]);
    assert_eq!((found[2].0, found.len()), ("near", 3));
}

pub(super) async fn entries_have_limits(stage: &Stage<'_>) {
    let Some(subject) = keeper(stage).await else { return };
    let client = &subject.client;
    let put = async |entries: &[IndexEntry]| client.upsert(&ana(), &statutes(), entries).await;
    assert_error!(put(&[entry("", "x")]).await, StoreError::Invalid { .. });
    assert_error!(put(&[entry("1", "a\0b")]).await, StoreError::Invalid { .. });
    assert_error!(put(&[entry("1", "x"), entry("1", "y")]).await, StoreError::Invalid { .. });
    assert_error!(put(&[near("1", "x", &[])]).await, StoreError::Invalid { .. });
    assert_error!(put(&[near("1", "x", &[f32::NAN])]).await, StoreError::Invalid { .. });
    assert_error!(put(&[near("1", "x", &vec![0.5; limits::DIMENSIONS + 1])]).await, StoreError::LimitExceeded { .. });
    let long = "x".repeat(limits::KEY_BYTES + 1);
    assert_error!(put(&[entry(&long, "x")]).await, StoreError::LimitExceeded { .. });
    let many: Vec<IndexEntry> = (0..=limits::COMMIT_MESSAGES).map(|id| entry(&id.to_string(), "walrus")).collect();
    assert_error!(put(&many).await, StoreError::LimitExceeded { .. });
    let nameless = Collection::Named(String::new());
    assert_error!(client.upsert(&ana(), &nameless, &[entry("1", "x")]).await, StoreError::Invalid { .. });
    // One that is refused takes all of its call with it.
    assert_error!(put(&[entry("1", "walrus"), entry("", "x")]).await, StoreError::Invalid { .. });
    assert_eq!(
        search(client, &ana(), &asking("walrus")).await,
        SearchAnswer { frequencies: vec![0], ..SearchAnswer::default() }
    );
    put(&many[1..]).await.expect("as many as are allowed");
    let answer = search(client, &ana(), &SearchQuery { limit: 10, ..asking("walrus") }).await;
    assert_eq!((answer.documents, answer.entries.len()), (1000, 10));
}

pub(super) async fn entries_outlive_a_repair(stage: &Stage<'_>) {
    let Some(subject) = keeper(stage).await else { return };
    put(&subject.client, &ana(), &[entry("1", "a walrus"), near("2", "a narwhal", &[1.0])]).await;
    subject.client.repair(at(3)).await.expect("repairing works");
    let seen = async |client: &Client| {
        let by_words = search(client, &ana(), &asking("walrus narwhal")).await;
        let by_vector = SearchQuery { vector: Some(embedding(&[1.0])), ..asking("nothing") };
        (by_words, search(client, &ana(), &by_vector).await)
    };
    let before = seen(&subject.client).await;
    assert_eq!((before.0.entries.len(), before.1.entries.len()), (2, 1));
    assert_eq!(subject.client.verify().await.expect("verifying works").findings, []);
    if stage.abilities().durable {
        let subject = subject.reopen().await;
        assert_eq!(seen(&subject.client).await, before);
    }
}

pub(super) async fn removed_text_is_gone(stage: &Stage<'_>) {
    let Some(subject) = keeper(stage).await else { return };
    let client = &subject.client;
    let (marker, other) = ("Quixotryzzlings", "Zebrafloofings");
    let stem = |word: &str| text::terms(word).remove(0);
    let filling: Vec<IndexEntry> = (0..100).map(|id| entry(&format!("f{id}"), "a walrus")).collect();
    put(client, &ana(), &filling).await;
    put(client, &ana(), &[entry("1", marker), entry("2", other)]).await;
    for word in [marker, other] {
        assert!(!subject.has_files() || subject.files_hold(stem(word).as_bytes()), "{word} is not in the files");
    }
    client.remove(&ana(), &statutes(), &["1".to_owned()]).await.expect("removing works");
    put(client, &ana(), &[entry("2", "something else")]).await;
    client.sweep(at(50)).await.expect("sweeping works");
    for word in [marker, other] {
        assert!(!subject.files_hold(stem(word).as_bytes()), "bytes of {word} are left in the files");
    }
    assert_eq!(search(client, &ana(), &asking("walrus")).await.entries.len(), 100);
}

/// More entries than one step of any store removes, in several collections.
async fn fill_many(client: &Client, scope: &Scope, collections: &[&str], each: usize) {
    for name in collections {
        let entries: Vec<IndexEntry> =
            (0..each).map(|id| near(&format!("{name} {id}"), "a walrus", &[1.0, id as f32])).collect();
        for entries in entries.chunks(limits::COMMIT_MESSAGES) {
            let collection = Collection::Named((*name).to_owned());
            client.upsert(scope, &collection, entries).await.expect("the entries are well formed");
        }
    }
}

pub(super) async fn all_of_a_scope_goes_and_nothing_of_others(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    assert_eq!(client.remove_collections(&ana()).await.expect("nothing is there"), 0);
    if !stage.abilities().named_collections {
        return;
    }
    let (foreign, names) = (user("other", "ana"), ["statutes", "codes", "letters"]);
    fill_many(client, &ana(), &names, 1_200).await;
    for scope in [&acme(), &ben(), &foreign] {
        fill_many(client, scope, &names, 2).await;
    }
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    conversation.say(1..=2, at(1)).await;
    let removed = client.remove_collections(&ana()).await.expect("removing works");
    // Over a weak store the reply to a removal that was done may be lost, and nothing is left for its repetition.
    assert!(removed == 3_600 || stage.is_weak(), "{removed}");
    assert_eq!(client.remove_collections(&ana()).await.expect("removing works"), 0);
    for name in names {
        let query = SearchQuery {
            collection: Collection::Named(name.to_owned()),
            vector: Some(embedding(&[1.0, 0.0])),
            ..query_for("walrus")
        };
        for (scope, left, owner) in
            [(ana(), 2, Owner::Tenant), (acme(), 2, Owner::Tenant), (foreign.clone(), 2, foreign.default_owner())]
        {
            let answer = search(client, &scope, &query).await;
            assert_eq!((answer.documents, answer.entries.len()), (left, 2), "{name} of {scope:?}");
            assert!(answer.entries.iter().all(|found| found.owner == owner), "{name} of {scope:?}");
        }
        assert_eq!(search(client, &ben(), &query).await.documents, 4);
    }
    assert_eq!(conversation.texts(at(9)).await.len(), 2, "messages are no collection's");
    // A collection comes into being again with its first entry.
    put(client, &ana(), &[entry("1", "a walrus")]).await;
    assert_eq!(search(client, &ana(), &asking("walrus")).await.documents, 3);
    assert_eq!(client.verify().await.expect("verifying works").findings, []);
}

pub(super) async fn all_text_of_a_scope_is_gone(stage: &Stage<'_>) {
    let Some(subject) = keeper(stage).await else { return };
    let client = &subject.client;
    let (text, field, id, name) = ("Quixotryzzlings", "Zanzibaroonings", "Flummoxidating", "Bamboozleations");
    let stem = |word: &str| text::terms(word).remove(0);
    fill_many(client, &acme(), &[name, "walruses"], 1).await;
    client.remove_collections(&acme()).await.expect("removing works");
    fill_many(client, &ana(), &["walruses"], 300).await;
    fill_many(client, &ben(), &["walruses"], 300).await;
    let fields = Map::from_iter([("place".to_owned(), field.into())]);
    let marked = IndexEntry { fields, ..near(id, text, &[1.0, 2.0]) };
    client.upsert(&ana(), &Collection::Named(name.to_owned()), &[marked]).await.expect("it is well formed");
    for word in [stem(text).as_str(), field, id, name] {
        assert!(!subject.has_files() || subject.files_hold(word.as_bytes()), "{word} is not in the files");
    }
    client.remove_collections(&ana()).await.expect("removing works");
    client.sweep(at(50)).await.expect("sweeping works");
    for word in [stem(text).as_str(), text, field, id, name] {
        assert!(!subject.files_hold(word.as_bytes()), "bytes of {word} are left in the files");
    }
}

pub(super) async fn removing_all_and_adding_go_on_together(stage: &Stage<'_>) {
    let Some(subject) = keeper(stage).await else { return };
    let client = &subject.client;
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
    assert_eq!(search(client, &ana(), &asking("walrus narwhal")).await.documents, 0);
    put(client, &ana(), &[entry("1", "a walrus")]).await;
    assert_eq!(search(client, &ana(), &asking("walrus")).await.documents, 1);
}
