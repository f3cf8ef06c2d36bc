//! After a sweep no table contains erased text, and after the operator's `VACUUM FULL` no file of a table does.

use threadkeep_core::{Batch, Collection, Content, IndexEntry, Map, Replacement, Role, text};
use threadkeep_postgres_server::Server;
use threadkeep_store_postgres::PostgresStore;
use tokio_postgres::Client;

use super::support::{ana, batch, client, message, message_id, now, open_thread, thread_id};

/// Words that the index stores in stemmed form.
const MARKERS: [&str; 4] = ["Quixotryzzlings", "Zanzibaroonings", "Flummoxidating", "Bamboozleations"];

/// Counts the rows of all tables that contain a word.
async fn count_rows_with(client: &Client, word: &str) -> i64 {
    let tables = "SELECT relname::text FROM pg_class WHERE relnamespace = 'threadkeep'::regnamespace AND relkind = 'r'";
    let mut rows = 0;
    for table in client.query(tables, &[]).await.unwrap() {
        let sql = format!("SELECT count(*) FROM threadkeep.{} t WHERE t::text ILIKE $1", table.get::<_, String>(0));
        rows += client.query_one(&sql, &[&format!("%{word}%")]).await.unwrap().get::<_, i64>(0);
    }
    rows
}

/// Counts the files of tables, indexes and TOAST tables that contain a word.
async fn count_files_with(client: &Client, word: &str) -> i64 {
    client.batch_execute("CHECKPOINT").await.unwrap();
    let sql = "SELECT count(*) FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid \
               WHERE (c.relnamespace = 'threadkeep'::regnamespace OR c.relkind = 't') AND c.relkind IN ('r', 'i', 't') \
               AND position(convert_to($1, 'UTF8') IN pg_read_binary_file(pg_relation_filepath(c.oid))) > 0";
    client.query_one(sql, &[&word]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn sweep_removes_erased_text_from_all_tables() {
    let Some(server) = Server::shared() else { return };
    let database = server.create_database().await;
    let backend = PostgresStore::open(&format!("{}?background=off", database.url())).await.unwrap().backend();
    let client = client(&database).await;
    let (thread, deleted) = (thread_id(1), thread_id(2));
    for (number, markers) in [(1, &MARKERS[..3]), (2, &MARKERS[3..])] {
        open_thread(&backend, &ana(), number).await;
        let append = (1..).zip(markers).map(|(place, marker)| message(place, &format!("The {marker} are here")));
        let marked = Batch { append: append.collect(), ..batch(1) };
        backend.store.commit(&ana(), thread_id(number), marked, now()).await.unwrap();
    }
    while !backend.search.catch_up(1_000).await.unwrap().done {}
    let entry = |id: usize, text: &str| IndexEntry {
        id: id.to_string(),
        text: text.to_owned(),
        fields: Map::new(),
        embedding: None,
    };
    let collection = Collection::Named("notes".to_owned());
    let entries = MARKERS[..2].iter().enumerate().map(|(id, marker)| entry(id, marker)).collect();
    backend.search.upsert(&ana(), &collection, entries).await.unwrap();
    let stems = MARKERS.map(|marker| text::terms(marker).remove(0));
    for stem in &stems {
        assert!(count_rows_with(&client, stem).await >= 2, "{stem} is not in the messages and the index");
        assert!(count_files_with(&client, stem).await >= 2, "{stem} is not in the files");
    }

    let replace = vec![Replacement { id: message_id(2), content: Content::text(Role::User, "nothing") }];
    backend
        .store
        .commit(&ana(), thread, Batch { replace, erase: vec![message_id(3)], ..batch(2) }, now())
        .await
        .unwrap();
    backend.store.commit(&ana(), thread, Batch { trim_below: Some(2), ..batch(3) }, now()).await.unwrap();
    backend.store.delete_thread(&ana(), deleted, now()).await.unwrap();
    backend.search.upsert(&ana(), &collection, vec![entry(0, "nothing")]).await.unwrap();
    assert_eq!(backend.search.remove(&ana(), &collection, &["1".to_owned()]).await.unwrap(), 1);
    backend.maintenance.sweep(now()).await.unwrap();
    for stem in &stems {
        assert_eq!(count_rows_with(&client, stem).await, 0, "{stem} is still in a table");
    }
    client.batch_execute("VACUUM FULL").await.unwrap();
    for stem in &stems {
        assert_eq!(count_files_with(&client, stem).await, 0, "{stem} is still in a file");
    }
}
