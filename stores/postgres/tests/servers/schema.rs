//! How the schema comes to be, and who may open it.

use std::time::Duration;

use threadkeep_core::{Collection, IndexEntry, Map, StoreError};
use threadkeep_postgres_server::{Database, Server};
use threadkeep_store_postgres::PostgresStore;
use tokio_postgres::Client;

use super::former::{make_former_schema, open_former_thread};
use super::support::{TIMEOUT, ana, client, connect, open_thread};

pub(crate) async fn empty_database() -> Option<(Database, Client)> {
    let database = Server::shared()?.create_database().await;
    let client = client(&database).await;
    Some((database, client))
}

#[tokio::test(flavor = "multi_thread")]
async fn many_instances_open_a_new_database_at_once() {
    let Some((database, client)) = empty_database().await else { return };
    let openers = (0..8).map(|_| {
        let url = database.url();
        tokio::spawn(async move { PostgresStore::open(&url).await })
    });
    for store in futures::future::join_all(openers).await {
        let store = store.unwrap().unwrap();
        open_thread(&store.backend(), &ana(), 1).await;
    }
    assert_eq!(versions(&client).await, 9);
}

async fn versions(client: &Client) -> i64 {
    client.query_one("SELECT count(*) FROM threadkeep.migrations", &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_former_schema_is_brought_up_to_date_by_one_of_many() {
    let Some((database, client)) = empty_database().await else { return };
    make_former_schema(&client, 1).await;
    open_former_thread(&client).await;
    let unwanted = PostgresStore::open(&format!("{}?migrate=off", database.url())).await.unwrap_err();
    assert!(matches!(&unwanted, StoreError::Incompatible(reason) if reason.contains("outdated")), "{unwanted}");
    let openers = (0..8).map(|_| {
        let url = database.url();
        tokio::spawn(async move { PostgresStore::open(&url).await })
    });
    let entry = IndexEntry { id: "1".to_owned(), text: "a walrus".to_owned(), fields: Map::new(), embedding: None };
    let walruses = Collection::Named("walruses".to_owned());
    for store in futures::future::join_all(openers).await {
        let backend = store.unwrap().unwrap().backend();
        assert!(!open_thread(&backend, &ana(), 1).await, "the thread is there");
        backend.search.upsert(&ana(), &walruses, vec![entry.clone()]).await.unwrap();
        assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);
    }
    assert_eq!(versions(&client).await, 9);
    let unguarded = "SELECT count(*) FROM pg_class WHERE relnamespace = 'threadkeep'::regnamespace AND relkind = 'r' \
                     AND relname <> 'migrations' AND NOT (relrowsecurity AND relforcerowsecurity)";
    assert_eq!(client.query_one(unguarded, &[]).await.unwrap().get::<_, i64>(0), 0);
}

/// As a commit that is under way does: it has locked its thread, and comes to the messages next.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_under_way_ends_before_an_upgrade_begins() {
    let Some((database, client)) = empty_database().await else { return };
    make_former_schema(&client, 4).await;
    open_former_thread(&client).await;
    client.batch_execute("BEGIN; SELECT FROM threadkeep.threads FOR UPDATE").await.unwrap();
    let url = database.url();
    let opening = tokio::spawn(async move { PostgresStore::open(&url).await });
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'threadkeep.threads'::regclass";
    let waits = async {
        while client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waits).await.expect("the upgrade waits for the commit");
    client.batch_execute("LOCK TABLE threadkeep.messages IN ROW EXCLUSIVE MODE NOWAIT; COMMIT").await.unwrap();
    let store = opening.await.unwrap().unwrap();
    assert!(!open_thread(&store.backend(), &ana(), 1).await, "the thread is there");
}

#[tokio::test]
async fn an_upgrade_that_loses_a_deadlock_begins_again() {
    let Some((database, client)) = empty_database().await else { return };
    make_former_schema(&client, 7).await;
    // A sequence keeps its value when the transaction is undone.
    let deadlock = "CREATE SEQUENCE public.attempts;                     CREATE FUNCTION public.fail_once() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN                     IF nextval('public.attempts') = 1 THEN RAISE SQLSTATE '40P01'; END IF; END $$;                     CREATE EVENT TRIGGER fail_once ON ddl_command_end WHEN TAG IN ('ALTER TYPE')                     EXECUTE FUNCTION public.fail_once()";
    client.batch_execute(deadlock).await.unwrap();
    let store = PostgresStore::open(&database.url()).await.unwrap();
    let attempts: i64 = client.query_one("SELECT last_value FROM public.attempts", &[]).await.unwrap().get(0);
    assert_eq!((attempts, versions(&client).await), (2, 9));
    assert!(open_thread(&store.backend(), &ana(), 1).await);
}

#[tokio::test]
async fn another_schema_is_refused_and_left_as_it_is() {
    let Some((database, client)) = empty_database().await else { return };
    let url = database.url();
    let unmade = PostgresStore::open(&format!("{url}?migrate=off")).await;
    assert!(matches!(unmade, Err(StoreError::Incompatible(_))), "{unmade:?}");
    drop(PostgresStore::open(&url).await.unwrap());
    drop(PostgresStore::open(&format!("{url}?migrate=off")).await.unwrap());

    client.batch_execute("INSERT INTO threadkeep.migrations (version, checksum) VALUES (10, 'later')").await.unwrap();
    let later = PostgresStore::open(&url).await.unwrap_err();
    assert!(matches!(&later, StoreError::Incompatible(reason) if reason.contains("schema version 10")), "{later}");
    client.batch_execute("DELETE FROM threadkeep.migrations WHERE version = 10").await.unwrap();
    client.batch_execute("UPDATE threadkeep.migrations SET checksum = 'other' WHERE version = 1").await.unwrap();
    let other = PostgresStore::open(&url).await.unwrap_err();
    assert!(matches!(&other, StoreError::Incompatible(reason) if reason.contains("migration 1")), "{other}");
}

/// Roles belong to the whole server, so each test has its own.
async fn make_role(client: &Client, database: &Database, attributes: &str) -> (String, String) {
    let role = format!("role_of_{}", database.name());
    client.batch_execute(&format!("CREATE ROLE {role} LOGIN {attributes}")).await.unwrap();
    let url = database.url().replace("postgres@", &format!("{role}@"));
    (role, url)
}

#[tokio::test]
async fn a_member_of_the_servers_role_is_all_that_an_instance_needs_to_be() {
    let Some((database, client)) = empty_database().await else { return };
    let (role, url) = make_role(&client, &database, "NOSUPERUSER").await;
    let early = PostgresStore::open(&url).await.unwrap_err();
    assert!(matches!(&early, StoreError::Incompatible(reason) if reason.contains("open the database once")), "{early}");
    drop(PostgresStore::open(&database.url()).await.unwrap());
    let foreign = PostgresStore::open(&url).await.unwrap_err();
    assert!(matches!(&foreign, StoreError::Incompatible(reason) if reason.contains("threadkeep_server")), "{foreign}");
    client.batch_execute(&format!("GRANT threadkeep_server TO {role}")).await.unwrap();
    let store = PostgresStore::open(&url).await.unwrap();
    assert!(open_thread(&store.backend(), &ana(), 1).await);
    assert!(!open_thread(&store.backend(), &ana(), 1).await);
    drop(store);
    drop(database);
}

#[tokio::test]
async fn the_owner_of_the_tables_needs_to_be_no_superuser() {
    let Some((database, client)) = empty_database().await else { return };
    // The role that all databases share is there already; whoever may grant it is enough.
    drop(PostgresStore::open(&Server::shared().unwrap().create_database().await.url()).await.unwrap());
    let (role, url) = make_role(&client, &database, "NOSUPERUSER CREATEROLE").await;
    client.batch_execute(&format!("GRANT CREATE ON DATABASE {} TO {role}", database.name())).await.unwrap();
    let store = PostgresStore::open(&url).await.unwrap();
    assert!(open_thread(&store.backend(), &ana(), 1).await);
    let sql = "SELECT tableowner FROM pg_tables WHERE schemaname = 'threadkeep' AND tablename = 'messages'";
    assert_eq!(client.query_one(sql, &[]).await.unwrap().get::<_, String>(0), role);
    // Row security holds for it as for anyone.
    let owner = connect(&url).await;
    let seen: i64 = owner.query_one("SELECT count(*) FROM threadkeep.stamps", &[]).await.unwrap().get(0);
    assert_eq!(seen, 0);
    let found = store.backend().search.catch_up(10).await.unwrap();
    assert!(found.done);
}

#[tokio::test]
async fn refused_credentials_and_missing_databases_are_told_apart() {
    let Some(server) = Server::shared() else { return };
    let missing = PostgresStore::open(&server.url("nothing_of_the_kind")).await.unwrap_err();
    assert!(
        matches!(&missing, StoreError::Invalid { reason, .. } if reason.contains("\"nothing_of_the_kind\"")),
        "{missing}"
    );
    let stranger = server.url("postgres").replace("postgres@", "stranger@");
    let stranger = PostgresStore::open(&stranger).await.unwrap_err();
    assert!(matches!(&stranger, StoreError::Invalid { .. }), "{stranger}");
    let nobody = PostgresStore::open("postgres://ana@127.0.0.1:1/app").await.unwrap_err();
    assert!(nobody.is_retryable() && !nobody.maybe_applied(), "{nobody}");
}
