//! Databases created by earlier versions, and instances of those versions that run concurrently with newer ones.

use sha2::{Digest, Sha256};
use threadkeep_core::{ChangePage, Effect, JsonText, MetadataFilter, Namespace, RecordName, ThreadOrder, ThreadQuery};
use threadkeep_postgres_server::{Database, Server};
use threadkeep_store_postgres::PostgresStore;
use tokio_postgres::Client;

use super::support::{ana, batch, client, message, message_id, now, open_thread, thread_id};

/// The migrations as released, by version.
const FORMER: [&str; 8] = [
    include_str!("former/1.sql"),
    include_str!("former/2.sql"),
    include_str!("former/3.sql"),
    include_str!("former/4.sql"),
    include_str!("former/5.sql"),
    include_str!("former/6.sql"),
    include_str!("former/7.sql"),
    include_str!("former/8.sql"),
];

/// Creates the schema of an earlier version.
pub(crate) async fn create_former_schema(client: &Client, version: usize) {
    let foundation = "DO $$ BEGIN CREATE ROLE threadkeep_server NOLOGIN NOINHERIT; \
                      EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$; \
                      CREATE SCHEMA threadkeep; CREATE TABLE threadkeep.migrations (version integer PRIMARY KEY, \
                      checksum bytea NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())";
    client.batch_execute(foundation).await.unwrap();
    for (text, version) in FORMER.iter().zip(1_i32..).take(version) {
        client.batch_execute(text).await.unwrap();
        let sql = "INSERT INTO threadkeep.migrations (version, checksum) VALUES ($1, $2)";
        client.execute(sql, &[&version, &Sha256::digest(text).to_vec()]).await.unwrap();
    }
    client.batch_execute("GRANT SELECT ON threadkeep.migrations TO threadkeep_server").await.unwrap();
}

/// Inserts a thread of user `ana` without the store.
pub(crate) async fn open_former_thread(client: &Client) {
    let opening = "SELECT threadkeep.remember_owner('acme', 'ana'); \
                   INSERT INTO threadkeep.threads (tenant, owner, id, created_at, updated_at, body) \
                   VALUES ('acme', 'ana', '00000000-0000-0000-0000-000000000001', 1, 1, '1{\"metadata\":{\"env\":\"prod\",\"n\":3}}'); \
                   INSERT INTO threadkeep.stamps SELECT no, tenant, owner, threadkeep.stamp() FROM threadkeep.threads";
    client.batch_execute(opening).await.unwrap();
}

/// Describes all objects of the schema, one line each, with their privileges and row security.
async fn describe_schema(client: &Client) -> Vec<String> {
    let sql = "SELECT format('%s %s %s', pg_get_functiondef(oid), proowner::regrole, proacl) FROM pg_proc \
                 WHERE pronamespace = 'threadkeep'::regnamespace \
               UNION ALL SELECT format('%s %s %s %s', c.relname, c.relkind, a.attname, \
                   format_type(a.atttypid, a.atttypmod) || a.attnotnull || a.attcollation::regcollation) \
                 FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 \
                 WHERE c.relnamespace = 'threadkeep'::regnamespace AND c.relkind <> 'i' \
               UNION ALL SELECT format('%s %s %s %s', relname, relacl, relrowsecurity, relforcerowsecurity) \
                 FROM pg_class WHERE relnamespace = 'threadkeep'::regnamespace AND relname <> 'migrations' \
               UNION ALL SELECT p::text FROM pg_policies p WHERE schemaname = 'threadkeep' \
               UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'threadkeep' ORDER BY 1";
    client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

fn assert_same(lines: &[String], others: &[String], version: usize) {
    let difference = lines.iter().zip(others).find(|(line, other)| line != other);
    assert_eq!((difference, lines.len()), (None, others.len()), "from version {version}");
}

async fn empty_database(server: &'static Server) -> (Database, Client) {
    let database = server.create_database().await;
    let client = client(&database).await;
    (database, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn migrated_schema_equals_a_new_one() {
    let Some(server) = Server::shared() else { return };
    let (database, client) = empty_database(server).await;
    drop(PostgresStore::open(&database.url()).await.unwrap());
    let new = describe_schema(&client).await;
    for version in 1..=FORMER.len() {
        let (database, client) = empty_database(server).await;
        create_former_schema(&client, version).await;
        drop(PostgresStore::open(&database.url()).await.unwrap());
        assert_same(&describe_schema(&client).await, &new, version);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn former_threads_are_filtered_by_metadata() {
    let Some(server) = Server::shared() else { return };
    for version in 1..=FORMER.len() {
        let (database, client) = empty_database(server).await;
        create_former_schema(&client, version).await;
        open_former_thread(&client).await;
        let backend = PostgresStore::open(&database.url()).await.unwrap().backend();
        for (env, expected) in [("prod", 1), ("test", 0)] {
            let metadata = MetadataFilter::default().with_text("env", env).with_text("n", "3");
            let query = ThreadQuery { metadata, ..ThreadQuery::new(ThreadOrder::Created, 10) };
            let page = backend.store.list_threads(&ana(), &query, now()).await.unwrap();
            assert_eq!(page.threads.len(), expected, "{env} from version {version}");
        }
    }
}

// Instances of the former version still need all of its functions.
#[tokio::test(flavor = "multi_thread")]
async fn failed_upgrade_leaves_the_former_schema_unchanged() {
    let Some(server) = Server::shared() else { return };
    for version in 1..=FORMER.len() {
        let (database, client) = empty_database(server).await;
        create_former_schema(&client, version).await;
        // Makes the upgrade fail after all migrations, when it creates the functions.
        let conflicting_function = "CREATE FUNCTION threadkeep.tag_of(p_key bytea) RETURNS void LANGUAGE sql AS ''";
        client.batch_execute(conflicting_function).await.unwrap();
        let former = describe_schema(&client).await;
        PostgresStore::open(&database.url()).await.unwrap_err();
        assert_same(&describe_schema(&client).await, &former, version);
        let sql = "SELECT count(*) FROM threadkeep.migrations";
        assert_eq!(client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0), i64::try_from(version).unwrap());
        client.batch_execute("DROP FUNCTION threadkeep.tag_of").await.unwrap();
        let backend = PostgresStore::open(&database.url()).await.unwrap().backend();
        assert!(open_thread(&backend, &ana(), 1).await, "version {version}");
    }
}

#[tokio::test]
async fn functions_are_not_public() {
    let Some(server) = Server::shared() else { return };
    let (database, client) = empty_database(server).await;
    drop(PostgresStore::open(&database.url()).await.unwrap());
    let sql = "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'threadkeep'::regnamespace AND \
               (proacl::text IS DISTINCT FROM '{postgres=X/postgres,threadkeep_server=X/postgres}' \
               OR prosecdef <> (proname LIKE 'matching%') \
               OR prosecdef AND proconfig::text IS DISTINCT FROM '{\"search_path=pg_catalog, pg_temp\"}')";
    let public: Vec<String> = client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(public, Vec::<String>::new());
}

/// The commit statement of schema 7, with all parts of a batch except new messages.
const FORMER_COMMIT: &str = "SELECT outcome, body FROM threadkeep.commit(\
    'acme', 'user/ana', '00000000-0000-0000-0000-000000000001', $1::bigint, 1000, '\\x6d6e'::bytea, 5, false, false, 1, NULL, \
    ARRAY['app/seat'], ARRAY['none'], ARRAY[-1::bigint], '{}', '{}', '{}', '{}', '{}', \
    ARRAY['00000000-0000-0000-0000-000000000002'::uuid], ARRAY[1::smallint], ARRAY['1u\"two\"'], ARRAY['two'], '{}', NULL, \
    ARRAY['app/seat'], ARRAY['a \"key\"'], ARRAY['unread'], ARRAY['1'], ARRAY[NULL::bigint], \
    ARRAY['app/seat'], ARRAY['none'], ARRAY['unread'], \
    true, false, NULL, NULL, true, NULL, true, false, '{}', $2::text, ARRAY[7])";

// The former instance prepared its statements before the migration.
#[tokio::test(flavor = "multi_thread")]
async fn former_instance_works_alongside_newer_ones() {
    let Some(server) = Server::shared() else { return };
    let (database, client) = empty_database(server).await;
    create_former_schema(&client, 7).await;
    open_former_thread(&client).await;
    let former = client.prepare(FORMER_COMMIT).await.unwrap();
    let at = now().as_micros();
    let early = client.query_one(&former, &[&at, &""]).await.unwrap();
    assert_eq!(early.get::<_, &str>(0), "seq", "there is no message yet");

    let backend = PostgresStore::open(&database.url()).await.unwrap().backend();
    let mut first = batch(1);
    first.append.push(message(2, "one"));
    backend.store.commit(&ana(), thread_id(1), first, now()).await.unwrap();
    let replaced = client.query_one(&former, &[&at, &""]).await.unwrap();
    let unchanged_fields: &str = replaced.get(1);
    assert_eq!((replaced.get::<_, &str>(0), unchanged_fields), ("replaced", format!("[[{at}, null]]").as_str()));
    let done = client.query_one(&former, &[&at, &unchanged_fields]).await.unwrap();
    assert_eq!(done.get::<_, &str>(0), "done");

    let page = backend.store.list_changes(&ana(), thread_id(1), 1.into(), 10, now()).await.unwrap();
    let ChangePage::Changes { changes, .. } = page else { panic!("{page:?}") };
    let name = RecordName { namespace: Namespace::app("seat").unwrap(), key: "a \"key\"".to_owned() };
    let effects =
        vec![Effect::Replaced { seq: 1, id: message_id(2) }, Effect::RecordPut { name, version: 2 }, Effect::Patched];
    let sql = "SELECT effects FROM threadkeep.commits WHERE effects IS NOT NULL";
    let stored: String = client.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(stored, JsonText::of(&effects).unwrap().as_str());
    assert_eq!(changes.into_iter().map(|change| change.effects).collect::<Vec<_>>(), [effects]);
}

// Schema 8 added tags to the parameters and results of a commit.
#[tokio::test]
async fn tags_of_a_schema_8_instance_are_compared() {
    let Some(server) = Server::shared() else { return };
    let (database, client) = empty_database(server).await;
    create_former_schema(&client, 8).await;
    open_former_thread(&client).await;
    let at_change = FORMER_COMMIT.replace("1, NULL,", "NULL, 1,").replace("outcome, body", "outcome, actual, tag");
    let tagged = at_change.replace("ARRAY[7])", "ARRAY[7], $3, ARRAY[NULL::integer])");
    let former = client.prepare(&tagged).await.unwrap();

    let backend = PostgresStore::open(&database.url()).await.unwrap().backend();
    let mut first = batch(1);
    first.append.push(message(2, "one"));
    let committed = backend.store.commit(&ana(), thread_id(1), first, now()).await.unwrap();
    let tag = committed.tag.unwrap().to_stored();
    let at = now().as_micros();
    let other = client.query_one(&former, &[&at, &"", &(tag ^ 1)]).await.unwrap();
    let rejection: (&str, Option<i64>, Option<i32>) = (other.get(0), other.get(1), other.get(2));
    assert_eq!(rejection, ("change", Some(1), Some(tag)));
    let same = client.query_one(&former, &[&at, &"", &tag]).await.unwrap();
    assert_eq!(same.get::<_, &str>(0), "replaced", "the commit was rejected");
}
