//! Creating and migrating the schema, and the privileges that this requires.

use std::time::Duration;

use threadkeep_core::{Collection, IndexEntry, Map, MetadataFilter, SearchQuery, StoreError, ThreadOrder, ThreadQuery};
use threadkeep_postgres_server::{Database, Server};
use threadkeep_store_postgres::PostgresStore;
use tokio_postgres::Client;

use super::former::{create_former_schema, open_former_thread};
use super::support::{TIMEOUT, ana, client, connect, now, open_thread};

pub(crate) async fn empty_database() -> Option<(Database, Client)> {
    let database = Server::shared()?.create_database().await;
    let client = client(&database).await;
    Some((database, client))
}

#[tokio::test(flavor = "multi_thread")]
async fn new_database_can_be_opened_concurrently() {
    let Some((database, client)) = empty_database().await else { return };
    let openers = (0..8).map(|_| {
        let url = database.url();
        tokio::spawn(async move { PostgresStore::open(&url).await })
    });
    for store in futures::future::join_all(openers).await {
        let store = store.unwrap().unwrap();
        open_thread(&store.backend(), &ana(), 1).await;
    }
    assert_eq!(schema_version(&client).await, 11);
}

async fn schema_version(client: &Client) -> i64 {
    client.query_one("SELECT count(*) FROM threadkeep.migrations", &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_instances_migrate_a_former_schema_once() {
    let Some((database, client)) = empty_database().await else { return };
    create_former_schema(&client, 1).await;
    open_former_thread(&client).await;
    let error = PostgresStore::open(&format!("{}?migrate=off", database.url())).await.unwrap_err();
    assert!(matches!(&error, StoreError::Incompatible(reason) if reason.contains("outdated")), "{error}");
    let openers = (0..8).map(|_| {
        let url = database.url();
        tokio::spawn(async move { PostgresStore::open(&url).await })
    });
    let entry = IndexEntry { id: "1".to_owned(), text: "a walrus".to_owned(), fields: Map::new(), embedding: None };
    let walruses = Collection::Named("walruses".to_owned());
    for store in futures::future::join_all(openers).await {
        let backend = store.unwrap().unwrap().backend();
        assert!(!open_thread(&backend, &ana(), 1).await, "the thread is missing");
        backend.search.upsert(&ana(), &walruses, vec![entry.clone()]).await.unwrap();
        assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);
    }
    assert_eq!(schema_version(&client).await, 11);
    let without_row_security = "SELECT count(*) FROM pg_class WHERE relnamespace = 'threadkeep'::regnamespace AND relkind = 'r' \
                     AND relname <> 'migrations' AND NOT (relrowsecurity AND relforcerowsecurity)";
    assert_eq!(client.query_one(without_row_security, &[]).await.unwrap().get::<_, i64>(0), 0);
}

/// The client acts like a running commit: it has locked its thread and writes messages next.
#[tokio::test(flavor = "multi_thread")]
async fn upgrade_waits_for_running_commits() {
    let Some((database, client)) = empty_database().await else { return };
    create_former_schema(&client, 4).await;
    open_former_thread(&client).await;
    client.batch_execute("BEGIN; SELECT FROM threadkeep.threads FOR UPDATE").await.unwrap();
    let url = database.url();
    let opening = tokio::spawn(async move { PostgresStore::open(&url).await });
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'threadkeep.threads'::regclass";
    let polling = async {
        while client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, polling).await.expect("the upgrade waits for the commit");
    client.batch_execute("LOCK TABLE threadkeep.messages IN ROW EXCLUSIVE MODE NOWAIT; COMMIT").await.unwrap();
    let store = opening.await.unwrap().unwrap();
    assert!(!open_thread(&store.backend(), &ana(), 1).await, "the thread is missing");
}

#[tokio::test]
async fn upgrade_is_retried_after_a_deadlock() {
    let Some((database, client)) = empty_database().await else { return };
    create_former_schema(&client, 7).await;
    // A sequence keeps its value when the transaction is rolled back.
    let deadlock = "CREATE SEQUENCE public.attempts; \
                    CREATE FUNCTION public.fail_once() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
                    IF nextval('public.attempts') = 1 THEN RAISE SQLSTATE '40P01'; END IF; END $$; \
                    CREATE EVENT TRIGGER fail_once ON ddl_command_end WHEN TAG IN ('ALTER TYPE') \
                    EXECUTE FUNCTION public.fail_once()";
    client.batch_execute(deadlock).await.unwrap();
    let store = PostgresStore::open(&database.url()).await.unwrap();
    let attempts: i64 = client.query_one("SELECT last_value FROM public.attempts", &[]).await.unwrap().get(0);
    assert_eq!((attempts, schema_version(&client).await), (2, 11));
    assert!(open_thread(&store.backend(), &ana(), 1).await);
}

#[tokio::test]
async fn open_rejects_and_preserves_an_unknown_schema() {
    let Some((database, client)) = empty_database().await else { return };
    let url = database.url();
    let missing = PostgresStore::open(&format!("{url}?migrate=off")).await;
    assert!(matches!(missing, Err(StoreError::Incompatible(_))), "{missing:?}");
    drop(PostgresStore::open(&url).await.unwrap());
    drop(PostgresStore::open(&format!("{url}?migrate=off")).await.unwrap());

    client.batch_execute("INSERT INTO threadkeep.migrations (version, checksum) VALUES (12, 'later')").await.unwrap();
    let later = PostgresStore::open(&url).await.unwrap_err();
    assert!(matches!(&later, StoreError::Incompatible(reason) if reason.contains("schema version 12")), "{later}");
    client.batch_execute("DELETE FROM threadkeep.migrations WHERE version = 12").await.unwrap();
    client.batch_execute("UPDATE threadkeep.migrations SET checksum = 'other' WHERE version = 1").await.unwrap();
    let other = PostgresStore::open(&url).await.unwrap_err();
    assert!(matches!(&other, StoreError::Incompatible(reason) if reason.contains("migration 1")), "{other}");
}

/// Creates a role for one test, because roles are shared by all databases of the server.
async fn create_role(client: &Client, database: &Database, attributes: &str) -> (String, String) {
    let role = format!("role_of_{}", database.name());
    client.batch_execute(&format!("CREATE ROLE {role} LOGIN {attributes}")).await.unwrap();
    let url = database.url().replace("postgres@", &format!("{role}@"));
    (role, url)
}

#[tokio::test]
async fn instance_requires_only_membership_in_the_server_role() {
    let Some((database, client)) = empty_database().await else { return };
    let (role, url) = create_role(&client, &database, "NOSUPERUSER").await;
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
async fn table_owner_need_not_be_superuser() {
    let Some((database, client)) = empty_database().await else { return };
    // Creates the shared role, so that the new role only needs the privilege to grant it.
    drop(PostgresStore::open(&Server::shared().unwrap().create_database().await.url()).await.unwrap());
    let (role, url) = create_role(&client, &database, "NOSUPERUSER CREATEROLE").await;
    client.batch_execute(&format!("GRANT CREATE ON DATABASE {} TO {role}", database.name())).await.unwrap();
    let store = PostgresStore::open(&url).await.unwrap();
    assert!(open_thread(&store.backend(), &ana(), 1).await);
    let sql = "SELECT tableowner FROM pg_tables WHERE schemaname = 'threadkeep' AND tablename = 'messages'";
    assert_eq!(client.query_one(sql, &[]).await.unwrap().get::<_, String>(0), role);
    // Row security also applies to the owner.
    let owner = connect(&url).await;
    let seen: i64 = owner.query_one("SELECT count(*) FROM threadkeep.stamps", &[]).await.unwrap().get(0);
    assert_eq!(seen, 0);
    let caught_up = store.backend().search.catch_up(10).await.unwrap();
    assert!(caught_up.done);
}

#[tokio::test]
async fn open_distinguishes_connection_errors() {
    let Some(server) = Server::shared() else { return };
    let missing = PostgresStore::open(&server.url("missing_database")).await.unwrap_err();
    assert!(
        matches!(&missing, StoreError::Invalid { reason, .. } if reason.contains("\"missing_database\"")),
        "{missing}"
    );
    let unknown_role = server.url("postgres").replace("postgres@", "unknown_role@");
    let unknown_role = PostgresStore::open(&unknown_role).await.unwrap_err();
    assert!(matches!(&unknown_role, StoreError::Invalid { .. }), "{unknown_role}");
    let unreachable = PostgresStore::open("postgres://ana@127.0.0.1:1/app").await.unwrap_err();
    assert!(unreachable.is_retryable() && !unreachable.maybe_applied(), "{unreachable}");
}

/// Lists and searches with a filter on metadata read its index. A small table is read sequentially, so the planner is configured not to.
#[tokio::test(flavor = "multi_thread")]
async fn filters_on_metadata_use_the_index() {
    let Some((database, client)) = empty_database().await else { return };
    drop(PostgresStore::open(&database.url()).await.unwrap());
    let name: String = client.query_one("SELECT current_database()", &[]).await.unwrap().get(0);
    client.batch_execute(&format!("ALTER DATABASE \"{name}\" SET enable_seqscan = off")).await.unwrap();
    let store = PostgresStore::open(&database.url()).await.unwrap();
    open_thread(&store.backend(), &ana(), 1).await;
    let metadata = MetadataFilter::default().with_text("env", "prod");
    let scans = async |at_least: i64| loop {
        let sql = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'thread_metadata_by_term'";
        let scans: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
        if scans >= at_least {
            return scans;
        }
        // Statistics are written about once a second.
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let before = scans(0).await;
    let query = ThreadQuery { metadata: metadata.clone(), ..ThreadQuery::new(ThreadOrder::Recent, 10) };
    let search = SearchQuery {
        collection: Collection::Messages,
        terms: vec!["hello".to_owned()],
        alternatives: Vec::new(),
        vector: None,
        filters: Vec::new(),
        metadata,
        thread: None,
        limit: 10,
        reads_messages: false,
    };
    let used = async {
        store.backend().store.list_threads(&ana(), &query, now()).await.unwrap();
        let listed = scans(before + 1).await;
        store.backend().search.search(&ana(), &search, now()).await.unwrap();
        scans(listed + 1).await;
    };
    tokio::time::timeout(TIMEOUT, used).await.expect("both statements use the index");
}
