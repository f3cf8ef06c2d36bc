//! With the server's role, no SQL can read or write rows outside the transaction's scope.

use threadkeep_core::{
    Batch, Collection, Embedding, IndexEntry, JsonText, Map, Namespace, PutRecord, RecordName, RecordOwner,
    RecordWrite, Scope, ThreadPatch,
};
use threadkeep_postgres_server::{Database, Server};
use threadkeep_store_postgres::PostgresStore;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::support::{batch, client, message, now, open_thread, thread_id};

const TABLES: [&str; 16] = [
    "owners",
    "threads",
    "stamps",
    "messages",
    "commits",
    "thread_documents",
    "documents",
    "deleted_threads",
    "leftovers",
    "indexed",
    "message_terms",
    "thread_metadata",
    "collections",
    "entries",
    "entry_terms",
    "entry_points",
];

/// Fills every table with rows of a user and with shared rows of the tenant.
async fn fill(store: &PostgresStore, tenant: &str, user: &str, first: u128) {
    let scopes = [Scope::user(tenant, user).unwrap(), Scope::tenant(tenant).unwrap()];
    let backend = store.backend();
    for (scope, number) in scopes.iter().zip(first..) {
        let json = |text: &str| JsonText::new(text).unwrap();
        let namespace = Namespace::app("notes").unwrap();
        for number in [number, number + 50] {
            open_thread(&backend, scope, number).await;
            let name = RecordName { namespace: namespace.clone(), key: "k".to_owned() };
            let secret = format!("secret of {tenant}");
            let metadata = [("team".to_owned(), secret.clone().into())].into_iter().collect();
            let filling = Batch {
                patch: ThreadPatch { metadata: Some(metadata), ..ThreadPatch::default() },
                append: vec![message(1, &secret), message(2, &secret)],
                put: vec![PutRecord { name, value: json("1"), expires_at: None }],
                ..batch(1)
            };
            for batch in [filling, Batch { trim_below: Some(2), ..batch(2) }] {
                backend.store.commit(scope, thread_id(number), batch, now()).await.unwrap();
            }
        }
        backend.search.catch_up(1_000).await.unwrap();
        backend.store.delete_thread(scope, thread_id(number + 50), now()).await.unwrap();
        let owner = match scope {
            Scope::User(_, user) => RecordOwner::User(user.clone()),
            Scope::Tenant(_) => RecordOwner::Tenant,
        };
        let key = "k".to_owned();
        let write = RecordWrite { owner, namespace, key, expected: None, value: Some(json("1")), expires_at: None };
        backend.store.write_record(scope, write, now()).await.unwrap();
        let embedding = Some(Embedding { model: "m".to_owned(), vector: vec![1.0, number as f32] });
        let (id, text) = ("k".to_owned(), format!("secret of {tenant}"));
        let entries = vec![IndexEntry { id, text, fields: Map::new(), embedding }];
        backend.search.upsert(scope, &Collection::Named("notes".to_owned()), entries).await.unwrap();
    }
}

async fn filled_database() -> Option<(Database, Client)> {
    let database = Server::shared()?.create_database().await;
    let store = PostgresStore::open(&format!("{}?background=off", database.url())).await.unwrap();
    fill(&store, "acme", "ana", 1).await;
    fill(&store, "acme", "ben", 11).await;
    fill(&store, "globex", "ana", 21).await;
    let client = client(&database).await;
    Some((database, client))
}

async fn query_number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
}

async fn enter_scope(client: &Client, tenant: &str, caller: &str) {
    let sql = format!("BEGIN; SELECT threadkeep.enter('{tenant}', '{caller}')");
    client.batch_execute(&sql).await.unwrap();
}

/// Asserts that a statement fails or affects no row.
async fn assert_changes_nothing(client: &Client, sql: &str) {
    client.batch_execute("SAVEPOINT before").await.unwrap();
    if let Ok(messages) = client.simple_query(sql).await {
        for message in messages {
            if let SimpleQueryMessage::CommandComplete(rows) = message {
                assert_eq!(rows, 0, "{sql}");
            }
        }
    }
    client.batch_execute("ROLLBACK TO before").await.unwrap();
}

#[tokio::test]
async fn scope_reads_only_its_rows() {
    let Some((_database, client)) = filled_database().await else { return };
    for table in TABLES {
        assert!(
            query_number(&client, &format!("SELECT count(*) FROM threadkeep.{table}")).await > 3,
            "{table} has too few rows"
        );
    }
    for (tenant, caller, foreign) in [
        ("acme", "user/ana", "tenant <> 'acme' OR owner NOT IN ('ana', '')"),
        ("acme", "user/ben", "tenant <> 'acme' OR owner NOT IN ('ben', '')"),
        ("acme", "tenant", "tenant <> 'acme'"),
        ("globex", "user/ana", "tenant <> 'globex' OR owner NOT IN ('ana', '')"),
    ] {
        enter_scope(&client, tenant, caller).await;
        for table in TABLES {
            let seen = query_number(&client, &format!("SELECT count(*) FROM threadkeep.{table}")).await;
            assert!(seen > 0, "{caller} of {tenant} cannot read {table}");
            let foreign =
                query_number(&client, &format!("SELECT count(*) FROM threadkeep.{table} WHERE {foreign}")).await;
            assert_eq!(foreign, 0, "{caller} of {tenant} can read foreign rows of {table}");
        }
        client.batch_execute("ROLLBACK").await.unwrap();
    }
}

// The scope is missing, incomplete, or left over from another transaction on a pooled connection.
#[tokio::test]
async fn incomplete_scope_reads_and_writes_nothing() {
    let Some((_database, client)) = filled_database().await else { return };
    for entering in [
        "BEGIN; SET LOCAL ROLE threadkeep_server",
        "BEGIN; SET LOCAL ROLE threadkeep_server; SET LOCAL threadkeep.tenant = 'acme'",
        "BEGIN; SET LOCAL ROLE threadkeep_server; SET LOCAL threadkeep.caller = 'tenant'",
        "BEGIN; SELECT threadkeep.enter('', 'tenant')",
        "BEGIN; SELECT threadkeep.enter('acme', '')",
        "BEGIN; SELECT threadkeep.enter('initech', 'tenant')",
        "BEGIN; SELECT threadkeep.enter('acme', 'user/')",
        "BEGIN; SELECT threadkeep.enter('acme', 'ana')",
    ] {
        client.batch_execute(entering).await.unwrap();
        for table in TABLES {
            let seen = query_number(&client, &format!("SELECT count(*) FROM threadkeep.{table}")).await;
            assert_eq!(seen, 0, "{entering}: can read {table}");
            assert_changes_nothing(&client, &format!("DELETE FROM threadkeep.{table}")).await;
            assert_changes_nothing(&client, &format!("UPDATE threadkeep.{table} SET tenant = 'initech'")).await;
        }
        client.batch_execute("ROLLBACK").await.unwrap();
    }
}

#[tokio::test]
async fn scope_cannot_change_rows_of_another() {
    let Some((_database, client)) = filled_database().await else { return };
    enter_scope(&client, "acme", "user/ana").await;
    let foreign = "(tenant <> 'acme' OR owner <> 'ana')";
    for table in TABLES {
        // Trimmed messages may be deleted by any scope that runs the sweep.
        let rest = if table == "messages" { " AND seq > 1" } else { "" };
        assert_changes_nothing(&client, &format!("DELETE FROM threadkeep.{table} WHERE {foreign}{rest}")).await;
        assert_changes_nothing(&client, &format!("UPDATE threadkeep.{table} SET owner = 'ben'")).await;
        assert_changes_nothing(&client, &format!("UPDATE threadkeep.{table} SET tenant = 'globex'")).await;
        assert_changes_nothing(&client, &format!("TRUNCATE threadkeep.{table}")).await;
        for tenant in ["globex", "acme"] {
            let sql = format!(
                "INSERT INTO threadkeep.{table} SELECT (jsonb_populate_record(t, \
                 jsonb_build_object('tenant', '{tenant}', 'owner', 'ben'))).* FROM threadkeep.{table} t LIMIT 1"
            );
            assert_changes_nothing(&client, &sql).await;
        }
    }
    let thread_of_ben = "00000000-0000-0000-0000-00000000000b";
    for sql in [
        "UPDATE threadkeep.marks SET value = 7",
        "DELETE FROM threadkeep.marks",
        "INSERT INTO threadkeep.marks (name, value) VALUES ('mine', 1)",
        "ALTER TABLE threadkeep.messages DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE threadkeep.messages NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY reading ON threadkeep.messages",
        "CREATE POLICY mine ON threadkeep.messages USING (true)",
        "DROP TABLE threadkeep.messages",
        "ALTER ROLE threadkeep_server BYPASSRLS",
        "CREATE TABLE threadkeep.mine (x int)",
        "COPY threadkeep.messages TO '/dev/null'",
        "CREATE OR REPLACE FUNCTION threadkeep.tenant() RETURNS text LANGUAGE sql AS $$ SELECT 'globex' $$",
    ] {
        assert_changes_nothing(&client, sql).await;
    }
    let outcome = |sql: String| {
        let client = &client;
        async move { client.query_one(&sql, &[]).await.unwrap().get::<_, String>(0) }
    };
    let delete = format!("SELECT outcome FROM threadkeep.delete_thread('acme', 'user/ana', '{thread_of_ben}', 1)");
    assert_eq!(outcome(delete).await, "thread");
    let open = format!(
        "SELECT outcome FROM threadkeep.open_thread('acme', 'user/ana', 'ana', '{thread_of_ben}', NULL, '1{{}}', 1, NULL, 1, 1)"
    );
    assert_eq!(outcome(open).await, "thread");
    client.batch_execute("ROLLBACK").await.unwrap();
}

// Functions that run with the owner's privileges use the transaction's scope, regardless of their arguments.
#[tokio::test]
async fn search_terms_cannot_reach_other_scopes() {
    let Some((_database, client)) = filled_database().await else { return };
    let foreign = query_number(&client, "SELECT min(no) FROM threadkeep.threads WHERE tenant = 'globex'").await;
    enter_scope(&client, "acme", "user/ana").await;
    let own = query_number(&client, "SELECT count(*) FROM threadkeep.matching(NULL, NULL, ARRAY['secret'], 100)").await;
    assert!(own > 0, "the scope's own messages were not found");
    for term in ["secret' | 'secret", "a' | !'b", "x'':*", "\\", "''", "secret\\' | \\'secret", "\u{e001}1", "secret:*"]
    {
        let sql = "SELECT count(*) FROM threadkeep.matching(NULL, NULL, ARRAY[$1], 100) m LEFT JOIN threadkeep.threads t \
                   ON t.no = m.thread_no WHERE t.no IS NULL AND m.thread_no NOT IN (SELECT thread_no FROM threadkeep.leftovers)";
        let found: i64 =
            client.query_one(sql, &[&term]).await.unwrap_or_else(|error| panic!("{term}: {error:?}")).get(0);
        assert_eq!(found, 0, "{term}");
    }
    let entries = "SELECT count(*) FROM threadkeep.matching_entries('notes', $1, 100) m \
                   WHERE NOT EXISTS (SELECT 1 FROM threadkeep.entries e WHERE e.no = m.no)";
    for term in ["secret", "secret' | 'secret", "a' | !'b", "x'':*", "\u{e003}1", "secret:*"] {
        let found: i64 = client.query_one(entries, &[&term]).await.unwrap().get(0);
        assert_eq!(found, 0, "{term}");
    }
    assert_eq!(
        query_number(&client, "SELECT count(*) FROM threadkeep.matching_entries('notes', 'secret', 100)").await,
        2
    );
    let near = "SELECT count(*) FROM threadkeep.near_points('notes', 'm', '{1, 1}', 100, 100)";
    assert_eq!(query_number(&client, near).await, 2, "the user's and the tenant's entries were not found");
    let sql = format!("SELECT count(*) FROM threadkeep.matching({foreign}, NULL, ARRAY['secret'], 100)");
    assert_eq!(query_number(&client, &sql).await, 0, "another tenant's thread was found by its number");
    client.batch_execute("ROLLBACK; BEGIN; SET LOCAL ROLE threadkeep_server").await.unwrap();
    assert_eq!(
        query_number(&client, "SELECT count(*) FROM threadkeep.matching(NULL, NULL, ARRAY['secret'], 100)").await,
        0
    );
    assert_eq!(
        query_number(&client, "SELECT count(*) FROM threadkeep.matching_entries('notes', 'secret', 100)").await,
        0
    );
    assert_eq!(query_number(&client, near).await, 0);
}

#[tokio::test]
async fn server_role_owns_nothing_and_tables_have_row_security() {
    let Some((_database, client)) = filled_database().await else { return };
    let owned = "SELECT count(*) FROM pg_class WHERE relowner = 'threadkeep_server'::regrole";
    assert_eq!(query_number(&client, owned).await, 0);
    let privileges = "SELECT count(*) FROM pg_roles WHERE rolname = 'threadkeep_server' \
                  AND (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolcanlogin)";
    assert_eq!(query_number(&client, privileges).await, 0);
    let without_row_security = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                     WHERE n.nspname = 'threadkeep' AND c.relkind = 'r' AND c.relname <> 'migrations' \
                     AND NOT (c.relrowsecurity AND c.relforcerowsecurity)";
    assert_eq!(query_number(&client, without_row_security).await, 0);
    let public_functions = "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
                    WHERE n.nspname = 'threadkeep' AND has_function_privilege('pg_monitor', p.oid, 'EXECUTE')";
    assert_eq!(query_number(&client, public_functions).await, 0, "functions are public");
}
