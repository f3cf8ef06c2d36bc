//! As the server's role, with any SQL, nothing outside the scope of the transaction is read or written.

use threadkeep_core::{
    Batch, Collection, Embedding, IndexEntry, JsonText, Map, Namespace, PutRecord, RecordName, RecordOwner,
    RecordWrite, Scope,
};
use threadkeep_postgres_server::{Database, Server};
use threadkeep_store_postgres::PostgresStore;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::support::{batch, client, now, open_thread, said, thread_id};

const TABLES: [&str; 15] = [
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
    "collections",
    "entries",
    "entry_terms",
    "entry_points",
];

/// Fills every table for a user and for the tenant's own, shared things.
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
            let filling = Batch {
                append: vec![said(1, &secret), said(2, &secret)],
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

async fn filled() -> Option<(Database, Client)> {
    let database = Server::shared()?.create_database().await;
    let store = PostgresStore::open(&format!("{}?background=off", database.url())).await.unwrap();
    fill(&store, "acme", "ana", 1).await;
    fill(&store, "acme", "ben", 11).await;
    fill(&store, "globex", "ana", 21).await;
    let client = client(&database).await;
    Some((database, client))
}

async fn numbers(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
}

async fn become_server(client: &Client, tenant: &str, caller: &str) {
    let sql = format!("BEGIN; SELECT threadkeep.enter('{tenant}', '{caller}')");
    client.batch_execute(&sql).await.unwrap();
}

/// Runs a statement that must change nothing: it affects no row, or it is refused.
async fn changes_nothing(client: &Client, sql: &str) {
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
async fn a_scope_reads_its_own_rows_only() {
    let Some((_database, client)) = filled().await else { return };
    for table in TABLES {
        assert!(
            numbers(&client, &format!("SELECT count(*) FROM threadkeep.{table}")).await > 3,
            "{table} is not filled"
        );
    }
    for (tenant, caller, foreign) in [
        ("acme", "user/ana", "tenant <> 'acme' OR owner NOT IN ('ana', '')"),
        ("acme", "user/ben", "tenant <> 'acme' OR owner NOT IN ('ben', '')"),
        ("acme", "tenant", "tenant <> 'acme'"),
        ("globex", "user/ana", "tenant <> 'globex' OR owner NOT IN ('ana', '')"),
    ] {
        become_server(&client, tenant, caller).await;
        for table in TABLES {
            let seen = numbers(&client, &format!("SELECT count(*) FROM threadkeep.{table}")).await;
            assert!(seen > 0, "{caller} of {tenant} sees nothing of {table}");
            let foreign = numbers(&client, &format!("SELECT count(*) FROM threadkeep.{table} WHERE {foreign}")).await;
            assert_eq!(foreign, 0, "{caller} of {tenant} sees others' {table}");
        }
        client.batch_execute("ROLLBACK").await.unwrap();
    }
}

// Without a scope, with half of one, and with what a pooled connection is left with after another's transaction.
#[tokio::test]
async fn without_a_scope_there_is_nothing() {
    let Some((_database, client)) = filled().await else { return };
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
            let seen = numbers(&client, &format!("SELECT count(*) FROM threadkeep.{table}")).await;
            assert_eq!(seen, 0, "{entering} sees {table}");
            changes_nothing(&client, &format!("DELETE FROM threadkeep.{table}")).await;
            changes_nothing(&client, &format!("UPDATE threadkeep.{table} SET tenant = 'initech'")).await;
        }
        client.batch_execute("ROLLBACK").await.unwrap();
    }
}

#[tokio::test]
async fn a_scope_changes_nothing_of_another() {
    let Some((_database, client)) = filled().await else { return };
    become_server(&client, "acme", "user/ana").await;
    let foreign = "(tenant <> 'acme' OR owner <> 'ana')";
    for table in TABLES {
        // What a trim has left is the sweep's already.
        let rest = if table == "messages" { " AND seq > 1" } else { "" };
        changes_nothing(&client, &format!("DELETE FROM threadkeep.{table} WHERE {foreign}{rest}")).await;
        changes_nothing(&client, &format!("UPDATE threadkeep.{table} SET owner = 'ben'")).await;
        changes_nothing(&client, &format!("UPDATE threadkeep.{table} SET tenant = 'globex'")).await;
        changes_nothing(&client, &format!("TRUNCATE threadkeep.{table}")).await;
        for tenant in ["globex", "acme"] {
            let sql = format!(
                "INSERT INTO threadkeep.{table} SELECT (jsonb_populate_record(t, \
                 jsonb_build_object('tenant', '{tenant}', 'owner', 'ben'))).* FROM threadkeep.{table} t LIMIT 1"
            );
            changes_nothing(&client, &sql).await;
        }
    }
    let of_ben = "00000000-0000-0000-0000-00000000000b";
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
        changes_nothing(&client, sql).await;
    }
    let outcome = |sql: String| {
        let client = &client;
        async move { client.query_one(&sql, &[]).await.unwrap().get::<_, String>(0) }
    };
    let deleting = format!("SELECT outcome FROM threadkeep.delete_thread('acme', 'user/ana', '{of_ben}', 1)");
    assert_eq!(outcome(deleting).await, "thread");
    let opening = format!(
        "SELECT outcome FROM threadkeep.open_thread('acme', 'user/ana', 'ana', '{of_ben}', NULL, '1{{}}', 1, NULL, 1, 1)"
    );
    assert_eq!(outcome(opening).await, "thread");
    client.batch_execute("ROLLBACK").await.unwrap();
}

// A function that runs as the tables' owner takes its scope from the transaction, whatever it is given.
#[tokio::test]
async fn words_of_others_are_not_found_by_any_term() {
    let Some((_database, client)) = filled().await else { return };
    let foreign = numbers(&client, "SELECT min(no) FROM threadkeep.threads WHERE tenant = 'globex'").await;
    become_server(&client, "acme", "user/ana").await;
    let own = numbers(&client, "SELECT count(*) FROM threadkeep.matching(NULL, ARRAY['secret'], 100)").await;
    assert!(own > 0, "the own words are found");
    for term in ["secret' | 'secret", "a' | !'b", "x'':*", "\\", "''", "secret\\' | \\'secret", "\u{e001}1", "secret:*"]
    {
        let sql = "SELECT count(*) FROM threadkeep.matching(NULL, ARRAY[$1], 100) m LEFT JOIN threadkeep.threads t \
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
    assert_eq!(numbers(&client, "SELECT count(*) FROM threadkeep.matching_entries('notes', 'secret', 100)").await, 2);
    let near = "SELECT count(*) FROM threadkeep.near_points('notes', 'm', '{1, 1}', 100, 100)";
    assert_eq!(numbers(&client, near).await, 2, "one's own and the tenant's");
    let sql = format!("SELECT count(*) FROM threadkeep.matching({foreign}, ARRAY['secret'], 100)");
    assert_eq!(numbers(&client, &sql).await, 0, "another tenant's thread is searched by its number");
    client.batch_execute("ROLLBACK; BEGIN; SET LOCAL ROLE threadkeep_server").await.unwrap();
    assert_eq!(numbers(&client, "SELECT count(*) FROM threadkeep.matching(NULL, ARRAY['secret'], 100)").await, 0);
    assert_eq!(numbers(&client, "SELECT count(*) FROM threadkeep.matching_entries('notes', 'secret', 100)").await, 0);
    assert_eq!(numbers(&client, near).await, 0);
}

#[tokio::test]
async fn the_role_owns_nothing_and_its_tables_are_guarded() {
    let Some((_database, client)) = filled().await else { return };
    let owned = "SELECT count(*) FROM pg_class WHERE relowner = 'threadkeep_server'::regrole";
    assert_eq!(numbers(&client, owned).await, 0);
    let powers = "SELECT count(*) FROM pg_roles WHERE rolname = 'threadkeep_server' \
                  AND (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolcanlogin)";
    assert_eq!(numbers(&client, powers).await, 0);
    let unguarded = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                     WHERE n.nspname = 'threadkeep' AND c.relkind = 'r' AND c.relname <> 'migrations' \
                     AND NOT (c.relrowsecurity AND c.relforcerowsecurity)";
    assert_eq!(numbers(&client, unguarded).await, 0);
    let everyone = "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
                    WHERE n.nspname = 'threadkeep' AND has_function_privilege('pg_monitor', p.oid, 'EXECUTE')";
    assert_eq!(numbers(&client, everyone).await, 0, "functions are open to everyone");
}
