use threadkeep_core::{Content, Map, MetadataFilter, Role, ThreadPatch, Timestamp};
use threadkeep_memory::{AppendOptions, Correction, Draft, MemoryOptions, RecallOptions, SearchOptions, SearchResults};

use super::test_env::{TestEnv, acme, ana, ben, on_all_stores, on_database_stores};

fn hit_texts(results: &SearchResults) -> Vec<String> {
    results.hits.iter().map(|hit| hit.message.plain_text().into_owned()).collect()
}

// S0.43
#[tokio::test(start_paused = true)]
async fn search_is_limited_to_the_scope() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let (first, second) = (env.open_thread().await, env.open_thread().await);
        memory.append(&ana(), first, Draft::user("When is the next train to Brixton?")).await.unwrap();
        memory.append(&ana(), first, Draft::assistant("Victoria line, in two minutes.")).await.unwrap();
        memory.append(&ana(), second, Draft::user("Trains are delayed")).await.unwrap();
        let bens_thread = memory.open(&ben()).await.unwrap().thread.id;
        memory.append(&ben(), bens_thread, Draft::user("my train secret")).await.unwrap();

        let results = memory.search(&ana(), "TRAIN", &SearchOptions::default()).await.unwrap();
        let mut found = hit_texts(&results);
        found.sort();
        assert_eq!(found, ["Trains are delayed", "When is the next train to Brixton?"]);
        assert!(!results.truncated && results.unsearched.is_empty());
        let hit = &results.hits[0];
        assert!(hit.score > 0.0 && hit.message.seq == 1 && [first, second].contains(&hit.thread));
        assert_eq!(&hit.snippet.text[hit.snippet.matches[0].clone()].to_lowercase()[..5], "train");

        let in_first = SearchOptions { thread: Some(first), ..SearchOptions::default() };
        assert_eq!(hit_texts(&memory.search(&ana(), "train", &in_first).await.unwrap()).len(), 1);
        let in_bens_thread = SearchOptions { thread: Some(bens_thread), ..SearchOptions::default() };
        assert!(memory.search(&ana(), "train", &in_bens_thread).await.unwrap().hits.is_empty());
        assert_eq!(memory.search(&acme(), "train", &SearchOptions::default()).await.unwrap().hits.len(), 3);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn hits_are_ranked_by_score_then_recency() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        for text in ["circle line", "circle line", "delays, circle line", "delays", "nothing"] {
            env.clock.advance_ms(1_000);
            memory.append(&ana(), thread, Draft::user(text)).await.unwrap();
        }
        let results = memory.search(&ana(), "delays circle", &SearchOptions::default()).await.unwrap();
        let found: Vec<_> = results.hits.iter().map(|hit| hit.message.seq).collect();
        assert_eq!(found, [3, 4, 2, 1]);
        assert_eq!(results.hits[2].score, results.hits[3].score);
        let limited = SearchOptions { limit: 2, ..SearchOptions::default() };
        let results = memory.search(&ana(), "delays circle", &limited).await.unwrap();
        assert_eq!(results.hits.iter().map(|hit| hit.message.seq).collect::<Vec<_>>(), [3, 4]);
    })
    .await;
}

/// The command line and the server read pages by searching for more hits. Not on a store whose index lags at random.
#[tokio::test(start_paused = true)]
async fn the_first_hits_are_the_same_for_each_limit() {
    on_database_stores(async |env: TestEnv| {
        let memory = &env.memory;
        for thread in 0..3 {
            let id = env.open_thread().await;
            let text = |number: usize| {
                let (trains, hay) = (" train".repeat(1 + number % 3), " hay".repeat(number * 7 % 40));
                format!("{number} of {thread}:{trains}{hay}{}", if number.is_multiple_of(5) { " circle" } else { "" })
            };
            env.clock.advance_ms(1_000);
            let drafts = (0..150).map(|number| Draft::user(text(number))).collect();
            memory.append_all(&ana(), id, drafts, &AppendOptions::default()).await.unwrap();
        }
        while !memory.backend().search.catch_up(1_000).await.unwrap().done {}
        for query in ["train", "train circle"] {
            let hits = async |limit| {
                let options = SearchOptions { limit, ..SearchOptions::default() };
                hit_texts(&memory.search(&ana(), query, &options).await.unwrap())
            };
            let all = hits(400).await;
            assert_eq!(all.len(), 400);
            for limit in [1, 20, 21, 22, 40, 41, 61, 181, 182, 201, 301, 399] {
                let first = hits(limit).await;
                let difference = first.iter().zip(&all).position(|(hit, other)| hit != other);
                assert_eq!((first.len(), difference), (limit, None), "{query}");
            }
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn search_filters_by_role_and_time() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        let time_at = |minute: u32| -> Timestamp { format!("2026-11-21T08:{minute:02}:00Z").parse().unwrap() };
        for (minute, role) in [(1, Role::User), (2, Role::Assistant), (3, Role::User)] {
            let draft = Draft::new(Content::text(role, format!("train {minute}"))).with_created_at(time_at(minute));
            memory.append(&ana(), thread, draft).await.unwrap();
        }
        let search = async |options: SearchOptions| hit_texts(&memory.search(&ana(), "train", &options).await.unwrap());
        let roles = SearchOptions { roles: vec![Role::Assistant], ..SearchOptions::default() };
        assert_eq!(search(roles).await, ["train 2"]);
        let since = SearchOptions { since: Some(time_at(2)), ..SearchOptions::default() };
        assert_eq!(search(since).await, ["train 3", "train 2"]);
        let until = SearchOptions { until: Some(time_at(2)), ..SearchOptions::default() };
        assert_eq!(search(until).await, ["train 1"]);
        assert_eq!(search(SearchOptions::default()).await.len(), 3);
        assert!(memory.search(&ana(), " … ", &SearchOptions::default()).await.unwrap().hits.is_empty());
        let zero_limit = SearchOptions { limit: 0, ..SearchOptions::default() };
        let error = memory.search(&ana(), "train", &zero_limit).await.unwrap_err();
        assert_eq!(error.to_string(), "invalid limit: must be at least 1");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn search_is_complete_while_the_index_lags() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let mut expected = 0;
        for _ in 0..4 {
            let thread = env.open_thread().await;
            let drafts = (0..30)
                .map(|number| Draft::user(if number % 3 == 0 { format!("needle {number}") } else { "hay".to_owned() }));
            memory.append_all(&ana(), thread, drafts.collect(), &AppendOptions::default()).await.unwrap();
            expected += 10;
        }
        let options = SearchOptions { limit: 100, ..SearchOptions::default() };
        let results = memory.search(&ana(), "needle", &options).await.unwrap();
        assert_eq!(results.hits.len(), expected);
        assert!(results.unsearched.is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn erased_and_trimmed_messages_are_not_found() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        let mut ids = Vec::new();
        for text in ["secret one", "secret two", "secret three"] {
            ids.push(memory.append(&ana(), thread, Draft::user(text)).await.unwrap().messages[0].id);
        }
        memory.erase_messages(&ana(), thread, &ids[1..2]).await.unwrap();
        let newest_only = threadkeep_memory::Retention { max_messages: Some(1), ttl_minutes: None };
        memory.retain(&ana(), thread, &newest_only).await.unwrap();
        let results = memory.search(&ana(), "secret", &SearchOptions::default()).await.unwrap();
        assert_eq!(hit_texts(&results), ["secret three"]);
        memory.delete_thread(&ana(), thread).await.unwrap();
        assert!(memory.search(&ana(), "secret", &SearchOptions::default()).await.unwrap().hits.is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn search_and_recall_filter_by_metadata() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let map = |json: &str| -> Map { serde_json::from_str(json).unwrap() };
        let filter = |json: &str| MetadataFilter::from_map(&map(json)).unwrap();
        let mut threads = Vec::new();
        for name in ["prod", "test"] {
            let thread = env.open_thread().await;
            let metadata = Some(map(&format!(r#"{{"env": "{name}", "n": 3}}"#)));
            let patch = ThreadPatch { metadata, ..ThreadPatch::default() };
            memory.patch_thread(&ana(), thread, patch, None).await.unwrap();
            for topic in ["line", "fare"] {
                let content = Content {
                    metadata: map(&format!(r#"{{"topic": "{topic}"}}"#)),
                    ..Content::text(Role::User, format!("train {name} {topic}"))
                };
                memory.append(&ana(), thread, Draft::new(content)).await.unwrap();
            }
            threads.push(thread);
        }
        let both = ["train test fare", "train test line"];
        for (thread_filter, message_filter, thread, expected) in [
            ("{}", "{}", None, vec!["train prod fare", "train prod line", both[0], both[1]]),
            (r#"{"env": "test", "n": 3}"#, "{}", None, both.to_vec()),
            (r#"{"env": "test", "n": 4}"#, "{}", None, vec![]),
            (r#"{"env": "test"}"#, r#"{"topic": "fare"}"#, None, vec![both[0]]),
            ("{}", r#"{"topic": "fare"}"#, Some(threads[1]), vec![both[0]]),
            (r#"{"env": "test"}"#, "{}", Some(threads[0]), vec![]),
        ] {
            let (metadata, message_metadata) = (filter(thread_filter), filter(message_filter));
            let options = SearchOptions { thread, metadata, message_metadata, ..SearchOptions::default() };
            let mut found = hit_texts(&memory.search(&ana(), "train", &options).await.unwrap());
            found.sort();
            assert_eq!(found, expected, "{options:?}");
            let SearchOptions { metadata, message_metadata, .. } = options;
            let options = RecallOptions { thread, metadata, message_metadata, ..RecallOptions::default() };
            let recalled = memory.recall(&ana(), "Which train?", &options).await.unwrap().messages;
            let mut found: Vec<_> = recalled.iter().map(|found| found.message.plain_text()).collect();
            found.sort();
            assert_eq!(found, expected, "{options:?}");
        }
        let invalid = MetadataFilter::default().with_text("", "x");
        let options = SearchOptions { message_metadata: invalid.clone(), ..SearchOptions::default() };
        assert!(memory.search(&ana(), "train", &options).await.is_err());
        let options = RecallOptions { message_metadata: invalid, ..RecallOptions::default() };
        assert!(memory.recall(&ana(), "train", &options).await.is_err());
    })
    .await;
}

/// A filter on the messages' own metadata applies only to the candidates, so a search with too many candidates is marked as truncated.
#[tokio::test(start_paused = true)]
async fn filtered_searches_omit_nothing_silently() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let thread = env.open_thread().await;
        let marked = Content {
            metadata: Map::from_iter([("topic".to_owned(), "fare".into())]),
            ..Content::text(Role::User, "train zero")
        };
        let options = AppendOptions::default();
        memory.append_all(&ana(), thread, vec![Draft::new(marked)], &options).await.unwrap();
        let search = async || {
            let message_metadata = MetadataFilter::default().with_text("topic", "fare");
            let options = SearchOptions { message_metadata, ..SearchOptions::default() };
            memory.search(&ana(), "train", &options).await.unwrap()
        };
        let found = search().await;
        assert_eq!((hit_texts(&found), found.truncated), (vec!["train zero".to_owned()], false));
        for batch in [500, 500] {
            let drafts = (0..batch).map(|number| Draft::user(format!("train {number}"))).collect();
            memory.append_all(&ana(), thread, drafts, &options).await.unwrap();
        }
        // A store that also reads unindexed messages still finds the message.
        let found = search().await;
        assert!(found.truncated || hit_texts(&found) == ["train zero"], "the message is silently missing");
    })
    .await;
}

/// Queries with the positions of the messages that they find, best first. The same on every store.
const SYNTAX: [(&str, &[u64]); 22] = [
    ("ledger", &[2, 1, 4]),
    ("\"sqlite FILE\"", &[2]),
    ("\"file of sqlite\"", &[]),
    ("ledger -postgres", &[2, 4]),
    ("ledger -\"one writer\"", &[1, 4]),
    ("wri*", &[3, 2]),
    ("wr*", &[]),
    ("title:storage ledger", &[2, 1, 4]),
    ("title:boats ledger", &[]),
    ("title:\"storage the\" writers", &[3, 2]),
    ("role:user ledger", &[1]),
    ("ledger since:2026-11-21T08:02:00Z", &[2, 4]),
    ("ledger until:2026-11-20", &[]),
    ("ledger until:2026-11-21", &[2, 1, 4]),
    ("in:codex ledger", &[2, 1, 4]),
    ("in:claude ledger", &[]),
    ("project:PIER ledger", &[2, 1, 4]),
    ("project:quay ledger", &[]),
    ("role:tool", &[4]),
    ("-ledger", &[3]),
    ("role:user -postgres", &[]),
    ("title:storage", &[4, 3, 2, 1]),
];

#[tokio::test(start_paused = true)]
async fn the_syntax_of_queries_is_the_same_on_every_store() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let keyed = memory.open_by_key(&ana(), "import:codex:1").await.unwrap().thread.id;
        let metadata = Map::from_iter([("cwd".to_owned(), "/home/ana/pier".into())]);
        let patch = ThreadPatch {
            title: Some(Some("Storage of the ledger".to_owned())),
            metadata: Some(metadata),
            ..ThreadPatch::default()
        };
        memory.patch_thread(&ana(), keyed, patch, None).await.unwrap();
        let texts = [
            (Role::User, "Should the ledger be in Postgres or in SQLite?"),
            (Role::Assistant, "Decision: the ledger is a SQLite file, because it has one writer. The ledger!"),
            (Role::Assistant, "Writers wait for each other."),
            (Role::Tool, "ledger ledger ledger ledger"),
        ];
        for (minute, (role, text)) in texts.into_iter().enumerate() {
            let at: Timestamp = format!("2026-11-21T08:{minute:02}:00Z").parse().unwrap();
            let at = at.plus_ms(60_000);
            memory.append(&ana(), keyed, Draft::new(Content::text(role, text)).with_created_at(at)).await.unwrap();
        }
        for (query, expected) in SYNTAX {
            let found = memory.search(&ana(), query, &SearchOptions::default()).await.unwrap();
            let seqs: Vec<u64> = found.hits.iter().map(|hit| hit.message.seq).collect();
            assert_eq!(seqs, expected, "{query}");
            assert!(found.corrections.is_empty(), "{query}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn typos_are_corrected_only_with_words_from_the_scope() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        memory.append(&ana(), thread, Draft::user("The ledger has one writer")).await.unwrap();
        let bens_thread = memory.open(&ben()).await.unwrap().thread.id;
        memory.append(&ben(), bens_thread, Draft::user("my severance agreement")).await.unwrap();
        let search = async |query: &str| memory.search(&ana(), query, &SearchOptions::default()).await.unwrap();
        for typed in ["legder", "ledgr", "ledgers", "leedger", "lodger"] {
            let found = search(typed).await;
            assert_eq!(found.hits.len(), 1, "{typed}");
        }
        let found = search("legder").await;
        let expected = Correction { word: "legder".to_owned(), instead: "ledger".to_owned() };
        assert_eq!(found.corrections, [expected]);
        assert!(search("ledger").await.corrections.is_empty());
        // Words of another user are never suggested, and short words are not corrected.
        for typed in ["severence", "haz", "xyzzy"] {
            let found = search(typed).await;
            assert!(found.hits.is_empty() && found.corrections.is_empty(), "{typed}: {found:?}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_prefix_counts_as_one_word() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        for text in ["train one", "tracks two", "trains three", "a zebra", "zebra tracks"] {
            memory.append(&ana(), thread, Draft::user(text)).await.unwrap();
        }
        let search = async |query: &str| memory.search(&ana(), query, &SearchOptions::default()).await.unwrap();
        for query in ["tra*", "tra tra*", "tracks tracks* tra*"] {
            assert_eq!(hit_texts(&search(query).await).len(), 4, "{query}");
        }
        // Each of these messages contains the prefix once, so that the newest comes first.
        assert_eq!(hit_texts(&search("tra*").await), ["zebra tracks", "trains three", "tracks two", "train one"]);
        assert_eq!(search("tra*").await, search("tra tra*").await);
        let both = search("zebra tra*").await;
        assert_eq!((hit_texts(&both)[0].as_str(), both.hits.len()), ("zebra tracks", 5));
        assert_eq!(both.hits[0].snippet.matches, [0..5, 6..12]);
        assert_eq!(hit_texts(&search("thr* ze*").await), ["trains three"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn removed_words_are_not_used_for_corrections_and_prefixes() {
    on_all_stores(async |env: TestEnv| {
        let (memory, other) = (&env.memory, env.another_process());
        let search = async |query: &str| memory.search(&ana(), query, &SearchOptions::default()).await.unwrap();
        let is_known = async || {
            let corrected = search("legder").await.corrections.len();
            assert_eq!(search("ledg*").await.hits.len(), corrected);
            corrected > 0
        };
        for remover in [memory, &other] {
            let thread = env.open_thread().await;
            let id = memory.append(&ana(), thread, Draft::user("The ledger")).await.unwrap().messages[0].id;
            assert!(is_known().await && is_known().await);
            remover.erase_messages(&ana(), thread, &[id]).await.unwrap();
            assert!(!is_known().await, "the words of an erased message are used");
            remover.append(&ana(), thread, Draft::user("The ledger again")).await.unwrap();
            assert!(is_known().await);
            remover.delete_thread(&ana(), thread).await.unwrap();
            assert!(!is_known().await, "the words of a deleted thread are used");
        }
        let expiring = env.open_thread().await;
        memory.append(&ana(), expiring, Draft::user("The ledger expires")).await.unwrap();
        let expires_at = Some(Some(memory.now().plus_ms(60_000)));
        memory
            .patch_thread(&ana(), expiring, ThreadPatch { expires_at, ..ThreadPatch::default() }, None)
            .await
            .unwrap();
        assert!(is_known().await);
        env.clock.advance_minutes(2);
        assert!(!is_known().await, "the words of an expired thread are used");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn words_past_the_retention_are_not_used() {
    on_all_stores(async |env: TestEnv| {
        let retention = Some(threadkeep_memory::Retention { max_messages: None, ttl_minutes: Some(60) });
        let env = env.with_options(MemoryOptions { retention, ..MemoryOptions::default() });
        let (memory, thread) = (&env.memory, env.open_thread().await);
        let corrections =
            async || memory.search(&ana(), "legder", &SearchOptions::default()).await.unwrap().corrections.len();
        memory.append(&ana(), thread, Draft::user("The ledger")).await.unwrap();
        env.clock.advance_minutes(50);
        memory.append(&ana(), thread, Draft::user("The writer")).await.unwrap();
        assert_eq!((corrections().await, corrections().await), (1, 1));
        env.clock.advance_minutes(20);
        assert_eq!(corrections().await, 0);
    })
    .await;
}
