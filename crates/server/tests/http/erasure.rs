//! After a user is erased, the store contains no trace of what the user wrote through any route.
//!
//! The tests send a unique word to each route, and fail for routes that `planting` does not know. For a new route, add a case to
//! `planting` that stores a user's text, or that explains why the route stores none.

mod planting;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;
use threadkeep_server::{KeyRole, Server};

use crate::assistants::test_assistant;
use crate::server::{TIMEOUT, TestConfig, TestServer};
use crate::v1::config_with_model;
use planting::{Planted, Planter};

/// The end of each planted word. Indexes omit the prefix that a word shares with the previous one, so the common part comes last.
const ENDING: &str = "qwyzkalm";

const DELETE_STATISTICS: &str = "DELETE FROM pg_statistic WHERE starelid IN \
                                 (SELECT oid FROM pg_class WHERE relnamespace = 'threadkeep'::regnamespace)";

/// Returns the word that is sent to the route with this number. Stemming does not change the word.
fn word_for(number: usize) -> String {
    let letter = |number: usize| char::from(b'a' + u8::try_from(number % 26).unwrap());
    format!("{}{}{ENDING}", letter(number / 26), letter(number))
}

/// Finds the planted words in the files of a folder.
fn find_words_in(folder: &Path) -> BTreeSet<String> {
    find_words(std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()))
}

fn find_words(files: impl IntoIterator<Item = PathBuf>) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for file in files {
        let bytes = std::fs::read(file).unwrap();
        let ending = ENDING.as_bytes();
        let mut from = 0;
        while let Some(at) = bytes[from..].iter().position(|byte| *byte == ending[0]) {
            let start = from + at;
            if bytes[start..].starts_with(ending) {
                let word = &bytes[start.saturating_sub(2)..start + ending.len()];
                words.insert(String::from_utf8_lossy(word).into_owned());
            }
            from = start + 1;
        }
    }
    words
}

async fn test_config() -> TestConfig {
    let assistants = vec![test_assistant("keeper").0];
    TestConfig { assistants, ..config_with_model().0 }
}

/// Calls every route on behalf of the user Ana, with a different word for each. Returns the words that the store must now contain
/// and those that it must not contain.
async fn call_every_route(server: &TestServer) -> Planted {
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await;
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Admin]).await;
    let mut planter = Planter::new(tenant, ana);
    let mut routes = Server::routes();
    // The routes that clear a conversation come first, so that they do not remove what other routes wrote to the conversation.
    routes.sort_by_key(|route| !route.path.ends_with("/clear"));
    for (number, route) in routes.into_iter().enumerate() {
        planter.plant(&route, &word_for(number)).await;
    }
    planter.planted
}

async fn erase_ana(server: &TestServer) {
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let erased = ana.post("/v1/erase", json!({ "user": "ana" })).await.expect(200);
    assert_eq!(erased["swept"], true, "{erased}");
    let repeated = ana.post("/v1/erase", json!({ "user": "ana" })).await.expect(200);
    let counts = ["threads", "messages", "documents", "passages", "shared_messages"].map(|name| repeated[name].clone());
    assert_eq!(counts, [0, 0, 0, 0, 0].map(|count: u64| json!(count)));
}

#[tokio::test(flavor = "multi_thread")]
async fn erasure_leaves_no_words_in_the_sqlite_file() {
    let server = TestServer::start_with(test_config().await).await;
    let planted = call_every_route(&server).await;
    let folder = server.store_file().parent().unwrap().to_owned();
    let found = find_words_in(&folder);
    for (word, route) in &planted.stored {
        assert!(found.contains(word), "{route} did not write {word}");
    }
    for (word, route) in &planted.unstored {
        assert!(!found.contains(word), "{route} wrote {word}");
    }
    erase_ana(&server).await;
    assert_eq!(find_words_in(&folder), BTreeSet::new(), "{planted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn erasure_leaves_no_words_in_the_postgres_database() {
    let Some(server) = TestServer::start_on_postgres(test_config().await).await else { return };
    let planted = call_every_route(&server).await;
    let database = server.database();
    for (word, route) in &planted.stored {
        assert!(!database.columns_with(word).await.unwrap().is_empty(), "{route} did not write {word}");
    }
    database.run("ANALYZE").await.unwrap();
    assert_ne!(database.files_with(ENDING).await.unwrap(), Vec::<String>::new());
    erase_ana(&server).await;
    assert_eq!(database.columns_with(ENDING).await.unwrap(), Vec::<String>::new());
    // docs/stores.md recommends these steps.
    for step in [DELETE_STATISTICS, "VACUUM FULL", "CHECKPOINT", "ANALYZE"] {
        database.run(step).await.unwrap();
    }
    assert_eq!(database.statistics_with(ENDING).await.unwrap(), Vec::<String>::new());
    assert_eq!(database.files_with(ENDING).await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn erasure_leaves_no_words_in_the_files_of_redis() {
    // With other values, Redis may acknowledge a command before it writes the command to the file.
    let Some(redis) = threadkeep_redis_server::Server::start(&[("appendfsync", "no")]) else { return };
    let memory = threadkeep::open(&format!("redis://{}", redis.address())).await.unwrap();
    let server = TestServer::start_on(memory, test_config().await).await;
    let planted = call_every_route(&server).await;
    let found = find_words(redis.files());
    for (word, route) in &planted.stored {
        assert!(found.contains(word), "{route} did not write {word}");
    }
    for (word, route) in &planted.unstored {
        assert!(!found.contains(word), "{route} wrote {word}");
    }
    erase_ana(&server).await;
    redis.wait_until_old_files_are_removed();
    assert_eq!(find_words(redis.files()), BTreeSet::new(), "{planted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_read_transaction_delays_the_erasure() {
    let server = TestServer::start().await;
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let thread = ana.new_thread().await;
    ana.say(&thread, &word_for(0)).await;
    let reader = rusqlite::Connection::open(server.store_file()).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    reader.query_row("SELECT count(*) FROM messages", [], |_| Ok(())).unwrap();
    let erased = ana.post("/v1/erase", json!({ "user": "ana" })).await.expect(200);
    assert_eq!((&erased["threads"], &erased["swept"]), (&json!(1), &json!(false)));
    let folder = server.store_file().parent().unwrap().to_owned();
    assert_eq!(find_words_in(&folder), BTreeSet::from([word_for(0)]));
    reader.execute_batch("ROLLBACK").unwrap();
    let started = Instant::now();
    while !find_words_in(&folder).is_empty() {
        assert!(started.elapsed() < TIMEOUT, "the server did not finish the erasure");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    ana.new_thread().await;
}
