//! What a user wrote by any route is in no byte of the store once the user is erased.
//!
//! Each route plants a word that is nowhere else. A route that is not known here fails the tests: say how it writes, or why it
//! writes nothing that a user said.

mod planting;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use serde_json::json;
use threadkeep_server::{KeyRole, Server};

use crate::assistants::keeper;
use crate::server::{PATIENCE, Parts, TestServer};
use crate::v1::parts_with_model;
use planting::{Planted, Planter};

/// How each planted word ends. An index leaves out of a word what it has in common with the one before, so what is the same in
/// all of them comes last.
const ENDING: &str = "qwyzkalm";

const FORGET_STATISTICS: &str = "DELETE FROM pg_statistic WHERE starelid IN \
                                 (SELECT oid FROM pg_class WHERE relnamespace = 'threadkeep'::regnamespace)";

/// The word of a route. It has no form that an analysis would shorten.
fn word(number: usize) -> String {
    let letter = |number: usize| char::from(b'a' + u8::try_from(number % 26).unwrap());
    format!("{}{}{ENDING}", letter(number / 26), letter(number))
}

/// The planted words in the files of a folder: what stands before each ending, with it.
fn words_in(folder: &Path) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
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

async fn served() -> Parts {
    let assistants = vec![keeper("keeper").0];
    Parts { assistants, ..parts_with_model().0 }
}

/// Has every route write what it writes for the user Ana. Gives the words that must be in the store now, by their routes, and
/// those that must not.
async fn plant(server: &TestServer) -> Planted {
    let tenant = server.keyed("acme", None, &[KeyRole::Admin]).await;
    let ana = server.keyed("acme", Some("ana"), &[KeyRole::Admin]).await;
    let mut planter = Planter::new(tenant, ana);
    let mut routes = Server::routes();
    // What clears a conversation must not take along what another route left in it.
    routes.sort_by_key(|route| !route.path.ends_with("/clear"));
    for (number, route) in routes.into_iter().enumerate() {
        planter.plant(&route, &word(number)).await;
    }
    planter.planted
}

async fn erase(server: &TestServer) {
    let ana = server.keyed("acme", Some("ana"), &[KeyRole::Write]).await;
    let erased = ana.post("/v1/erase", json!({ "user": "ana" })).await.expect(200);
    assert_eq!(erased["swept"], true, "{erased}");
    let again = ana.post("/v1/erase", json!({ "user": "ana" })).await.expect(200);
    let counts = ["threads", "messages", "documents", "passages", "shared_messages"].map(|name| again[name].clone());
    assert_eq!(counts, [0, 0, 0, 0, 0].map(|count: u64| json!(count)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_any_route_wrote_is_in_no_byte_of_the_file() {
    let server = TestServer::start_with(served().await).await;
    let planted = plant(&server).await;
    let folder = server.file().parent().unwrap().to_owned();
    let there = words_in(&folder);
    for (word, route) in &planted.stored {
        assert!(there.contains(word), "{route} was to write {word}");
    }
    for (word, route) in &planted.unstored {
        assert!(!there.contains(word), "{route} wrote {word}");
    }
    erase(&server).await;
    assert_eq!(words_in(&folder), BTreeSet::new(), "{planted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_any_route_wrote_is_in_no_column_of_the_database() {
    let Some(server) = TestServer::start_over_postgres(served().await).await else { return };
    let planted = plant(&server).await;
    let database = server.database();
    for (word, route) in &planted.stored {
        assert!(!database.columns_with(word).await.unwrap().is_empty(), "{route} was to write {word}");
    }
    database.run("ANALYZE").await.unwrap();
    assert_ne!(database.files_with(ENDING).await.unwrap(), Vec::<String>::new());
    erase(&server).await;
    assert_eq!(database.columns_with(ENDING).await.unwrap(), Vec::<String>::new());
    // As docs/stores.md tells the operator.
    for step in [FORGET_STATISTICS, "VACUUM FULL", "CHECKPOINT", "ANALYZE"] {
        database.run(step).await.unwrap();
    }
    assert_eq!(database.statistics_with(ENDING).await.unwrap(), Vec::<String>::new());
    assert_eq!(database.files_with(ENDING).await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_an_older_state_only_delays_the_erasure() {
    let server = TestServer::start().await;
    let ana = server.keyed("acme", Some("ana"), &[KeyRole::Write]).await;
    let thread = ana.new_thread().await;
    ana.say(&thread, &word(0)).await;
    let reader = rusqlite::Connection::open(server.file()).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    reader.query_row("SELECT count(*) FROM messages", [], |_| Ok(())).unwrap();
    let erased = ana.post("/v1/erase", json!({ "user": "ana" })).await.expect(200);
    assert_eq!((&erased["threads"], &erased["swept"]), (&json!(1), &json!(false)));
    let folder = server.file().parent().unwrap().to_owned();
    assert_eq!(words_in(&folder), BTreeSet::from([word(0)]));
    reader.execute_batch("ROLLBACK").unwrap();
    let began = Instant::now();
    while !words_in(&folder).is_empty() {
        assert!(began.elapsed() < PATIENCE, "the server did not finish the erasure");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    ana.new_thread().await;
}
