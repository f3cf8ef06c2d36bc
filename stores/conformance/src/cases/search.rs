use std::collections::BTreeSet;

use threadkeep_core::{
    Batch, Collection, Content, ImageReference, MessageQuery, MetadataFilter, OpenThread, Part, Replacement, Role,
    Scope, SearchAnswer, SearchHit, SearchQuery, ThreadId, Timestamp, limits, text,
};

use crate::client::Client;
use crate::conversation::Conversation;
use crate::fixtures::{acme, ana, appending, at, batch, ben, message_id, message_with, thread_id, user, user_message};
use crate::run::TestEnv;
use crate::tasks::yield_now;

pub(super) fn query_for(words: &str) -> SearchQuery {
    SearchQuery {
        collection: Collection::Messages,
        terms: text::distinct_terms(words),
        alternatives: Vec::new(),
        vector: None,
        filters: Vec::new(),
        metadata: MetadataFilter::default(),
        thread: None,
        limit: 1000,
        reads_messages: false,
    }
}

async fn search(client: &Client, scope: &Scope, query: &SearchQuery, now: Timestamp) -> SearchAnswer {
    client.search(scope, query, now).await.expect("searching works")
}

/// Finds all messages that contain one of the terms: the hits, and the matching messages that are not indexed yet.
pub(super) async fn find_matches(
    client: &Client,
    scope: &Scope,
    query: &SearchQuery,
    now: Timestamp,
) -> BTreeSet<(ThreadId, u64)> {
    let answer = search(client, scope, query, now).await;
    let mut found = BTreeSet::new();
    for SearchHit { thread, seq } in answer.hits {
        let behind = answer.unindexed.iter().find(|behind| behind.thread == thread);
        assert!(behind.is_none_or(|behind| seq <= behind.indexed_seq), "a hit after the indexed position");
        found.insert((thread, seq));
    }
    for behind in answer.unindexed {
        assert!(query.thread.is_none_or(|thread| thread == behind.thread), "a thread outside the query is reported");
        let rest = MessageQuery::following(behind.indexed_seq, limits::PAGE);
        let rest = client.list_messages(scope, behind.thread, &rest, now).await.expect("the thread is in the scope");
        for message in rest.messages {
            let message_terms = text::distinct_terms(&message.plain_text());
            if query.terms.iter().any(|term| message_terms.contains(term)) {
                found.insert((behind.thread, message.seq));
            }
        }
    }
    found
}

async fn find_seqs(conversation: &Conversation, words: &str, now: Timestamp) -> Vec<u64> {
    let found = find_matches(&conversation.client, &conversation.scope, &query_for(words), now).await;
    found.into_iter().filter(|(thread, _)| *thread == conversation.id).map(|(_, seq)| seq).collect()
}

/// Creates a thread with the given messages.
async fn thread_with_texts(client: &Client, scope: &Scope, number: u128, texts: &[&str]) -> Conversation {
    let conversation = Conversation::open(client, scope, number, at(0)).await;
    let messages = (1..).zip(texts).map(|(number, text)| user_message(number, text)).collect();
    conversation.commit(&appending(messages), at(1)).await;
    conversation
}

// S0.43
pub(super) async fn words_are_found(env: &TestEnv<'_>) {
    let store = env.open().await;
    let texts = [
        "The trains to Córdoba run late",
        "Is there a train?",
        "CORDOBA, perhaps",
        "Nothing of the sort",
        "¿Cómo está mi tía en 東京?",
        "don't panic: 42",
    ];
    let conversation = thread_with_texts(&store.client, &ana(), 1, &texts).await;
    // The results are the same before and after the index has caught up.
    for _ in 0..2 {
        for (words, expected) in [
            ("train", vec![1, 2]),
            ("TRAINS", vec![1, 2]),
            ("córdoba", vec![1, 3]),
            ("sorted running", vec![1, 4]),
            ("tia", vec![5]),
            ("東京", vec![5]),
            ("42", vec![6]),
            ("Panics", vec![6]),
            ("aeroplane", vec![]),
            ("", vec![]),
            ("tra", vec![]),
        ] {
            assert_eq!(find_seqs(&conversation, words, at(2)).await, expected, "{words}");
        }
        store.client.catch_up_fully().await;
    }
}

pub(super) async fn terms_are_not_query_syntax(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = thread_with_texts(&store.client, &ana(), 1, &["alpha beta", "or", "gamma not near"]).await;
    store.client.catch_up_fully().await;
    let query_terms = |terms: &[&str]| {
        let terms = terms.iter().map(|term| (*term).to_owned()).collect();
        SearchQuery { terms, ..query_for("") }
    };
    for (terms, expected) in [
        (vec!["alpha", "not", "beta"], vec![1, 3]),
        (vec!["or"], vec![2]),
        (vec!["near", "alpha"], vec![1, 3]),
        (vec!["and"], vec![]),
    ] {
        let found = find_matches(&store.client, &ana(), &query_terms(&terms), at(2)).await;
        let seqs: Vec<_> = found.into_iter().map(|(_, seq)| seq).collect();
        assert_eq!(seqs, expected, "{terms:?} in {}", conversation.id);
    }
    // A term that text analysis never produces is not an error and does not match other scopes.
    thread_with_texts(&store.client, &ben(), 2, &["delta"]).await;
    store.client.catch_up_fully().await;
    for term in ["\"alpha", "alp*", "alpha beta", "NEAR(", "'; --", ")", "", "alpha OR delta", "*", "a\0b", "^", "x:y"]
    {
        let hits = search(&store.client, &ana(), &query_terms(&[term]), at(2)).await.hits;
        assert!(hits.iter().all(|hit| hit.thread == conversation.id), "{term}");
    }
}

pub(super) async fn only_the_scope_is_searched(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let globex = user("globex", "ana");
    for (number, scope) in (1..).zip([ana(), ben(), acme(), globex.clone()]) {
        thread_with_texts(client, &scope, number, &["a common walrus", "nothing"]).await;
    }
    for caught_up in [false, true] {
        for (scope, expected) in [
            (ana(), vec![1]),
            (ben(), vec![2]),
            (acme(), vec![1, 2, 3]),
            (globex.clone(), vec![4]),
            (user("acme", "unknown"), vec![]),
            (user("initech", "ana"), vec![]),
        ] {
            let query = query_for("walrus");
            let threads: Vec<_> =
                find_matches(client, &scope, &query, at(2)).await.into_iter().map(|(thread, _)| thread).collect();
            let expected: Vec<_> = expected.into_iter().map(thread_id).collect();
            assert_eq!(threads, expected, "{scope:?}");
            if caught_up {
                let frequencies = search(client, &scope, &query, at(2)).await.frequencies;
                assert_eq!(frequencies, [expected.len() as u64], "the frequencies include other scopes: {scope:?}");
            }
        }
        client.catch_up_fully().await;
    }
}

pub(super) async fn a_search_can_be_limited_to_a_thread(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let first = thread_with_texts(client, &ana(), 1, &["a walrus", "a zebra", "a walrus"]).await;
    thread_with_texts(client, &ana(), 2, &["a walrus"]).await;
    let shared = thread_with_texts(client, &acme(), 3, &["a walrus"]).await;
    for _ in 0..2 {
        let query = SearchQuery { thread: Some(first.id), ..query_for("walrus") };
        assert_eq!(find_matches(client, &ana(), &query, at(2)).await, BTreeSet::from([(first.id, 1), (first.id, 3)]));
        // A user can search a shared thread by naming it.
        let query = SearchQuery { thread: Some(shared.id), ..query };
        assert_eq!(find_matches(client, &ana(), &query, at(2)).await, BTreeSet::from([(shared.id, 1)]));
        for (scope, thread) in [(ben(), first.id), (user("globex", "ana"), shared.id), (ana(), thread_id(9))] {
            let query = SearchQuery { thread: Some(thread), ..query.clone() };
            assert_eq!(find_matches(client, &scope, &query, at(2)).await, BTreeSet::new(), "{scope:?}");
        }
        client.catch_up_fully().await;
    }
}

pub(super) async fn removed_messages_are_not_found(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    for caught_up in [true, false] {
        let number = if caught_up { 1 } else { 11 };
        let texts = ["walrus 1", "walrus 2", "walrus 3", "walrus 4", "walrus 5"];
        let kept = thread_with_texts(client, &ana(), number, &texts).await;
        let deleted = thread_with_texts(client, &ana(), number + 1, &texts).await;
        let expiring = OpenThread { expires_at: Some(at(10)), ..OpenThread::new(&ana(), thread_id(number + 2)) };
        let expiring = Conversation::open_as(client, &ana(), &expiring, at(0)).await;
        expiring.commit(&appending(vec![user_message(1, "walrus")]), at(1)).await;
        if caught_up {
            client.catch_up_fully().await;
        }
        kept.commit(&Batch { trim_below: Some(2), ..batch("trim") }, at(2)).await;
        kept.commit(&Batch { erase: vec![message_id(3)], ..batch("erase") }, at(3)).await;
        let content = Content::text(Role::User, "a zebra");
        let replace = vec![Replacement { id: message_id(4), content }];
        kept.commit(&Batch { replace, ..batch("replace") }, at(4)).await;
        client.delete_thread(&ana(), deleted.id, at(5)).await.expect("the thread exists");

        let removed = [(kept.id, 1), (kept.id, 3)];
        let answer = search(client, &ana(), &query_for("walrus"), at(10)).await;
        for hit in answer.hits {
            assert!(hit.thread != deleted.id && hit.thread != expiring.id, "a hit in a deleted or expired thread");
            assert!(!removed.contains(&(hit.thread, hit.seq)), "a removed message was found");
        }
        client.catch_up_fully().await;
        for now in [at(10), at(11)] {
            assert_eq!(find_seqs(&kept, "walrus", now).await, [2, 5]);
            assert_eq!(find_seqs(&kept, "zebra", now).await, [4]);
            client.sweep(now).await.expect("sweeping works");
        }
        let answer = search(client, &ana(), &query_for("walrus"), at(12)).await;
        assert!(answer.hits.iter().all(|hit| hit.thread != deleted.id && hit.thread != expiring.id));
    }
}

pub(super) async fn a_new_thread_does_not_inherit_hits(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let open = OpenThread { expires_at: Some(at(10)), ..OpenThread::new(&ana(), thread_id(1)) };
    let old = Conversation::open_as(client, &ana(), &open, at(0)).await;
    old.commit(&appending(vec![user_message(1, "walrus"), user_message(2, "walrus")]), at(1)).await;
    client.catch_up_fully().await;
    let new = Conversation::open(client, &ana(), 1, at(11)).await;
    new.commit(&appending(vec![user_message(1, "a zebra"), user_message(2, "walrus")]), at(12)).await;
    for _ in 0..2 {
        assert_eq!(find_seqs(&new, "walrus", at(13)).await, [2]);
        assert_eq!(find_seqs(&new, "zebra", at(13)).await, [1]);
        client.catch_up_fully().await;
    }
}

pub(super) async fn rarer_terms_rank_first(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let mut texts = vec!["a common zebra"; 6];
    texts[2] = "a rare walrus";
    texts[4] = "a common walrus and yak";
    let conversation = thread_with_texts(client, &ana(), 1, &texts).await;
    client.catch_up_fully().await;
    let answer = search(client, &ana(), &query_for("zebra walrus yak aeroplane"), at(2)).await;
    assert_eq!(answer.frequencies, [4, 2, 1, 0]);
    assert!(answer.documents >= 4, "the document count {} is less than a frequency", answer.documents);
    if !env.has_faults() {
        let seqs: Vec<_> = answer.hits.iter().map(|hit| hit.seq).collect();
        assert_eq!((seqs[0], seqs[1], seqs.len()), (5, 3, 6), "hits are not ranked by the rarest term");
        let few = SearchQuery { limit: 2, ..query_for("zebra walrus yak") };
        let few = search(client, &ana(), &few, at(2)).await.hits;
        assert_eq!(few, [5, 3].map(|seq| SearchHit { thread: conversation.id, seq }));
    }
}

pub(super) async fn image_descriptions_are_indexed(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let image = ImageReference {
        url: "https://example.org/heron".to_owned(),
        description: Some("a walrus".to_owned()),
        detail: None,
    };
    let parts = vec![Part::Text("see".to_owned()), Part::Image(image), Part::Reasoning("heron".to_owned())];
    conversation
        .commit(&appending(vec![message_with(1, Content { parts, ..Content::empty(Role::User) })]), at(1))
        .await;
    for _ in 0..2 {
        assert_eq!(find_seqs(&conversation, "walrus", at(2)).await, [1]);
        assert_eq!(
            find_seqs(&conversation, "heron", at(2)).await,
            [] as [u64; 0],
            "reasoning and image addresses are indexed"
        );
        store.client.catch_up_fully().await;
    }
}

pub(super) async fn searches_run_concurrently_with_commits(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let indexer = {
        let client = store.client.clone();
        env.spawn(async move {
            for _ in 0..20 {
                client.catch_up(3).await.expect("the index catches up");
                yield_now().await;
            }
        })
    };
    for number in 1..=30 {
        let message = user_message(number, &format!("walrus {number}"));
        conversation.commit(&appending(vec![message]), at(1)).await;
        let expected: Vec<u64> = (1..=u64::try_from(number).expect("a small number")).collect();
        assert_eq!(find_seqs(&conversation, "walrus", at(2)).await, expected, "a committed message is not found");
    }
    indexer.await.expect("the indexer does not panic");
}

pub(super) async fn the_number_of_terms_is_limited(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = thread_with_texts(&store.client, &ana(), 1, &["walrus"]).await;
    store.client.catch_up_fully().await;
    let mut terms: Vec<String> = (0..31).map(|number| format!("word{number}")).collect();
    terms.push("walrus".to_owned());
    let query = SearchQuery { terms: terms.clone(), ..query_for("") };
    let answer = search(&store.client, &ana(), &query, at(2)).await;
    assert_eq!((answer.frequencies.len(), answer.frequencies[31]), (32, 1), "in {}", conversation.id);
    terms.insert(0, "word99".to_owned());
    let query = SearchQuery { terms, ..query };
    let answer = search(&store.client, &ana(), &query, at(2)).await;
    assert_eq!((answer.frequencies, answer.hits), (vec![0; 33], Vec::new()));
}

pub(super) async fn alternatives_count_as_one_term(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let texts = ["a common zebra", "a walrus", "a yak", "a walrus and yak and zebra", "a heron"];
    let conversation = thread_with_texts(client, &ana(), 1, &texts).await;
    thread_with_texts(client, &ben(), 2, &["a walrus", "a yak"]).await;
    client.catch_up_fully().await;
    let alternatives = [&["walrus", "yak", "aeroplane"][..], &["aeroplane"], &[]];
    let alternatives = alternatives.map(|list| list.iter().map(|term| (*term).to_owned()).collect());
    let query = SearchQuery { alternatives: alternatives.to_vec(), ..query_for("zebra") };
    let in_thread = SearchQuery { thread: Some(conversation.id), ..query.clone() };
    for query in [&query, &in_thread] {
        let answer = search(client, &ana(), query, at(2)).await;
        assert_eq!(answer.frequencies, [2, 3, 0, 0]);
        if !env.has_faults() {
            let seqs: Vec<_> = answer.hits.iter().map(|hit| hit.seq).collect();
            assert_eq!(seqs, [4, 1, 3, 2]);
        }
    }
}

pub(super) async fn messages_with_the_same_terms_are_found_newest_first(env: &TestEnv<'_>) {
    let store = env.open().await;
    let texts = ["a walrus", "a yak", "a walrus", "a heron", "a yak", "a walrus and yak", "a heron"];
    let conversation = thread_with_texts(&store.client, &ana(), 1, &texts).await;
    store.client.catch_up_fully().await;
    let find = async |query: &SearchQuery| -> Vec<u64> {
        let hits = search(&store.client, &ana(), query, at(2)).await.hits;
        hits.iter().filter(|hit| hit.thread == conversation.id).map(|hit| hit.seq).collect()
    };
    let either = vec![["walrus", "yak"].map(str::to_owned).to_vec()];
    let either = SearchQuery { alternatives: either, ..query_for("") };
    if !env.has_faults() {
        assert_eq!(find(&query_for("walrus")).await, [6, 3, 1]);
        assert_eq!(find(&SearchQuery { limit: 2, ..query_for("walrus") }).await, [6, 3]);
        assert_eq!(find(&either).await, [6, 5, 3, 2, 1]);
        assert_eq!(find(&SearchQuery { limit: 3, ..either }).await, [6, 5, 3]);
    }
}

pub(super) async fn the_number_of_alternatives_is_limited(env: &TestEnv<'_>) {
    let store = env.open().await;
    thread_with_texts(&store.client, &ana(), 1, &["walrus"]).await;
    store.client.catch_up_fully().await;
    let numbered = |count: usize| -> Vec<String> { (0..count).map(|number| format!("word{number}")).collect() };
    let walrus = || vec!["walrus".to_owned()];
    let query = SearchQuery { alternatives: vec![numbered(31), walrus()], ..query_for("") };
    assert_eq!(search(&store.client, &ana(), &query, at(2)).await.frequencies, [0, 1]);
    let query = SearchQuery { alternatives: vec![numbered(32), walrus()], ..query_for("") };
    assert_eq!(search(&store.client, &ana(), &query, at(2)).await.frequencies, [0, 0]);
}
