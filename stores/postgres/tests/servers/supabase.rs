//! Threadkeep's tables in a Supabase project. No SQL statement and no claims give clients of the project's HTTP API access to
//! the tables, whether they are signed in or not.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use threadkeep_core::{
    Batch, Collection, Embedding, IndexEntry, JsonText, Map, Namespace, PutRecord, RecordName, RecordOwner,
    RecordWrite, Scope, WakeUp,
};
use threadkeep_postgres_server::{Database, Server};
use threadkeep_store_postgres::PostgresStore;
use tokio_postgres::{AsyncMessage, Client, NoTls, SimpleQueryMessage};

use super::support::{batch, client, connect, message, now, open_thread, thread_id};

const TIMEOUT: Duration = Duration::from_secs(20);
/// Part of every stored text, name and value.
const SECRET: &str = "SECRET";

/// A project before Threadkeep is installed: the roles of its HTTP API, the function that returns the caller, and default
/// privileges that grant the roles everything in the schema `public`.
const PROJECT: &str = "
DO $$ BEGIN CREATE ROLE anon NOLOGIN NOINHERIT; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
DO $$ BEGIN CREATE ROLE authenticated NOLOGIN NOINHERIT; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
DO $$ BEGIN CREATE ROLE service_role NOLOGIN NOINHERIT BYPASSRLS; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
DO $$ BEGIN CREATE ROLE authenticator LOGIN NOINHERIT; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
GRANT anon, authenticated, service_role TO authenticator;
GRANT ALL ON SCHEMA public TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO anon, authenticated, service_role;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON FUNCTIONS TO anon, authenticated, service_role;
CREATE SCHEMA auth;
CREATE FUNCTION auth.uid() RETURNS text LANGUAGE sql STABLE AS
  $$ SELECT nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub' $$;
GRANT USAGE ON SCHEMA auth TO anon, authenticated, service_role;";

/// Creates a project with four conversations: two users of a tenant, the tenant itself, and a user of another tenant own one each.
async fn create_project() -> Option<(Database, Client)> {
    let database = Server::shared()?.create_database().await;
    let client = client(&database).await;
    client.batch_execute(PROJECT).await.unwrap();
    let store = PostgresStore::open(&format!("{}?background=off", database.url())).await.unwrap();
    for (number, (tenant, user)) in
        (1..).zip([("acme", Some("ana")), ("acme", Some("SECRET-ben")), ("acme", None), ("SECRET-globex", Some("ana"))])
    {
        let scope = match user {
            Some(user) => Scope::user(tenant, user).unwrap(),
            None => Scope::tenant(tenant).unwrap(),
        };
        fill(&store, &scope, number).await;
    }
    // Statistics contain samples of the data.
    client.batch_execute("ANALYZE").await.unwrap();
    Some((database, client))
}

async fn fill(store: &PostgresStore, scope: &Scope, number: u128) {
    let backend = store.backend();
    open_thread(&backend, scope, number).await;
    let namespace = Namespace::app("notes").unwrap();
    let value = JsonText::new(format!("\"{SECRET}\"")).unwrap();
    let name = RecordName { namespace: namespace.clone(), key: SECRET.to_owned() };
    let filling = Batch {
        append: vec![message(1, SECRET), message(2, "SECRET again")],
        put: vec![PutRecord { name, value: value.clone(), expires_at: None }],
        ..batch(number)
    };
    backend.store.commit(scope, thread_id(number), filling, now()).await.unwrap();
    backend.search.catch_up(100).await.unwrap();
    let owner = match scope {
        Scope::User(_, user) => RecordOwner::User(user.clone()),
        Scope::Tenant(_) => RecordOwner::Tenant,
    };
    let key = SECRET.to_owned();
    let write = RecordWrite { owner, namespace, key, expected: None, value: Some(value), expires_at: None };
    backend.store.write_record(scope, write, now()).await.unwrap();
    let embedding = Some(Embedding { model: SECRET.to_owned(), vector: vec![1.0, 2.0] });
    let entry = IndexEntry { id: SECRET.to_owned(), text: SECRET.to_owned(), fields: Map::new(), embedding };
    backend.search.upsert(scope, &Collection::Named(SECRET.to_owned()), vec![entry]).await.unwrap();
}

/// Returns a hash of the content of all tables.
async fn hash_tables(client: &Client) -> String {
    let mut all = String::new();
    for table in list_tables(client).await {
        let sql =
            format!("SELECT md5(coalesce(string_agg(t::text, ',' ORDER BY t::text), '')) FROM threadkeep.{table} t");
        all += &client.query_one(&sql, &[]).await.unwrap().get::<_, String>(0);
    }
    all
}

async fn list_tables(client: &Client) -> Vec<String> {
    let sql = "SELECT relname::text FROM pg_class WHERE relnamespace = 'threadkeep'::regnamespace AND relkind = 'r'";
    client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Returns a call to every function, with arbitrary arguments.
async fn list_calls(client: &Client) -> Vec<String> {
    let sql = "SELECT format('SELECT * FROM threadkeep.%I(%s)', proname, (SELECT coalesce(string_agg(CASE \
               WHEN type = 'text'::regtype AND place = 1 THEN '''acme''' WHEN type = 'text'::regtype THEN '''tenant''' \
               ELSE 'NULL::' || type::regtype END, ', ' ORDER BY place), '') \
               FROM unnest(proargtypes) WITH ORDINALITY AS a (type, place))) \
               FROM pg_proc WHERE pronamespace = 'threadkeep'::regnamespace";
    let mut calls: Vec<String> = client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert!(calls.len() > 20);
    calls.extend([
        "SELECT * FROM threadkeep.matching(NULL, NULL, 'secret', 100)".to_owned(),
        "SELECT * FROM threadkeep.matching_entries('SECRET', 'secret', 100)".to_owned(),
        "SELECT threadkeep.enter('acme', 'keeper'); SELECT * FROM threadkeep.messages".to_owned(),
    ]);
    calls
}

/// Statements that try to access a table.
fn attacks_on(table: &str) -> Vec<String> {
    [
        "SELECT t::text FROM threadkeep.TABLE t",
        "TABLE threadkeep.TABLE",
        "SELECT 'SEC' || 'RET' FROM threadkeep.TABLE",
        "INSERT INTO threadkeep.TABLE DEFAULT VALUES",
        "INSERT INTO threadkeep.TABLE SELECT * FROM threadkeep.TABLE",
        "DELETE FROM threadkeep.TABLE",
        "TRUNCATE threadkeep.TABLE CASCADE",
        "LOCK TABLE threadkeep.TABLE",
        "COPY threadkeep.TABLE TO STDOUT",
        "COPY (SELECT * FROM threadkeep.TABLE) TO STDOUT",
        "COPY threadkeep.TABLE TO PROGRAM 'cat'",
        "COPY threadkeep.TABLE FROM PROGRAM 'true'",
        "CREATE VIEW public.mine_of_TABLE AS SELECT * FROM threadkeep.TABLE; TABLE public.mine_of_TABLE",
        "CREATE TABLE public.copy_of_TABLE AS TABLE threadkeep.TABLE; TABLE public.copy_of_TABLE",
        "CREATE TABLE public.child_of_TABLE () INHERITS (threadkeep.TABLE)",
        "DO $$ DECLARE seen text; BEGIN SELECT string_agg(t::text, ',') INTO seen FROM threadkeep.TABLE t; \
         RAISE EXCEPTION 'saw %', seen; END $$",
        "CREATE FUNCTION public.peek_at_TABLE() RETURNS SETOF text LANGUAGE sql SECURITY DEFINER AS \
         'SELECT t::text FROM threadkeep.TABLE t'; SELECT public.peek_at_TABLE()",
        "PREPARE peek AS SELECT t::text FROM threadkeep.TABLE t; EXECUTE peek",
        "DECLARE peek CURSOR FOR SELECT t::text FROM threadkeep.TABLE t; FETCH ALL FROM peek",
        "EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM threadkeep.TABLE",
        "SELECT query_to_xml('SELECT * FROM threadkeep.TABLE', true, true, '')",
        "SELECT table_to_xml('threadkeep.TABLE', true, true, '')",
        "SET row_security = off; TABLE threadkeep.TABLE",
        "ALTER TABLE threadkeep.TABLE DISABLE ROW LEVEL SECURITY; TABLE threadkeep.TABLE",
        "CREATE POLICY mine ON threadkeep.TABLE USING (true); TABLE threadkeep.TABLE",
        "GRANT ALL ON threadkeep.TABLE TO PUBLIC; TABLE threadkeep.TABLE",
        "CREATE TRIGGER mine AFTER INSERT ON threadkeep.TABLE EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "CREATE RULE mine AS ON SELECT TO threadkeep.TABLE DO INSTEAD SELECT 1",
        "CREATE INDEX mine ON threadkeep.TABLE ((1))",
        "ALTER TABLE threadkeep.TABLE SET SCHEMA public; TABLE public.TABLE",
        "DROP TABLE threadkeep.TABLE CASCADE",
    ]
    .iter()
    .map(|sql| {
        ["threadkeep.", "public.", "_"]
            .iter()
            .fold((*sql).to_owned(), |sql, before| sql.replace(&format!("{before}TABLE"), &format!("{before}{table}")))
    })
    .collect()
}

/// Further statements that try to access data.
const OTHER_ATTACKS: [&str; 24] = [
    "SET search_path = threadkeep; TABLE messages",
    "SET ROLE threadkeep_server; TABLE threadkeep.messages",
    "SET ROLE postgres; TABLE threadkeep.messages",
    "SET ROLE service_role; TABLE threadkeep.messages",
    "SET SESSION AUTHORIZATION threadkeep_server; TABLE threadkeep.messages",
    "SELECT set_config('role', 'threadkeep_server', false); TABLE threadkeep.messages",
    "RESET ROLE; TABLE threadkeep.messages",
    "GRANT threadkeep_server TO authenticated; TABLE threadkeep.messages",
    "ALTER ROLE authenticated BYPASSRLS; TABLE threadkeep.messages",
    "CREATE SCHEMA IF NOT EXISTS threadkeep; GRANT USAGE ON SCHEMA threadkeep TO PUBLIC; TABLE threadkeep.messages",
    "DROP SCHEMA threadkeep CASCADE",
    "ALTER SCHEMA threadkeep RENAME TO public_too; TABLE public_too.messages",
    "SELECT most_common_vals::text FROM pg_stats",
    "SELECT stavalues1::text FROM pg_statistic",
    "SELECT query FROM pg_stat_activity",
    "SELECT statement FROM pg_prepared_statements",
    "SELECT pg_read_file(pg_relation_filepath(c.oid)) FROM pg_class c WHERE relname = 'messages'",
    "SELECT encode(pg_read_binary_file(pg_relation_filepath(c.oid)), 'escape') FROM pg_class c WHERE relname = 'messages'",
    "SELECT pg_ls_dir('base')",
    "SELECT schema_to_xml('threadkeep', true, true, '')",
    "SELECT database_to_xml(true, true, '')",
    "CREATE FUNCTION pg_temp.tenant() RETURNS text LANGUAGE sql AS $$ SELECT 'acme' $$; TABLE threadkeep.messages",
    "SELECT * FROM pg_logical_slot_peek_changes('peek', NULL, NULL)",
    "SELECT pg_notify('threadkeep', 'SECRET')",
];

/// Runs a statement and returns its output or its error.
async fn run(client: &Client, begin: &str, sql: &str) -> String {
    client.batch_execute(begin).await.unwrap();
    let result = if sql.starts_with("COPY") && sql.ends_with("STDOUT") {
        copy_out(client, sql).await
    } else {
        client.simple_query(sql).await.map(|messages| messages.iter().map(line).collect())
    };
    let output = match result {
        Ok(output) => output,
        Err(error) => error.as_db_error().map_or_else(|| error.to_string(), |error| format!("{error:?}")),
    };
    // Commits, so that a successful attack changes the state.
    client.batch_execute("COMMIT; RESET ROLE; RESET ALL; DEALLOCATE ALL").await.unwrap();
    output
}

async fn copy_out(client: &Client, sql: &str) -> Result<String, tokio_postgres::Error> {
    let rows: Vec<_> = client.copy_out(sql).await?.try_collect().await?;
    Ok(rows.iter().map(|row| String::from_utf8_lossy(row)).collect())
}

fn line(message: &SimpleQueryMessage) -> String {
    match message {
        SimpleQueryMessage::Row(row) => {
            (0..row.len()).filter_map(|column| row.get(column)).collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}

async fn as_authenticator(database: &Database) -> Client {
    connect(&database.url().replace("postgres@", "authenticator@")).await
}

/// Returns the SQL that starts a transaction as the HTTP API does, with a forged scope.
fn begin(role: &str, claims: &str, caller: &str) -> String {
    format!(
        "BEGIN; SET LOCAL ROLE {role}; SELECT set_config('request.jwt.claims', '{claims}', true), \
         set_config('threadkeep.tenant', 'acme', true), set_config('threadkeep.caller', '{caller}', true)"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn http_api_cannot_read_or_write() {
    let Some((database, owner)) = create_project().await else { return };
    let outsider = as_authenticator(&database).await;
    let mut statements: Vec<String> = list_tables(&owner).await.iter().flat_map(|table| attacks_on(table)).collect();
    statements.extend(list_calls(&owner).await);
    statements.extend(OTHER_ATTACKS.map(str::to_owned));
    let before = hash_tables(&owner).await;
    let ana = r#"{"sub":"ana","role":"authenticated"}"#;
    for (role, claims, caller) in [
        ("authenticated", ana, "user/ana"),
        ("authenticated", ana, "keeper"),
        ("authenticated", "", "tenant"),
        ("anon", r#"{"role":"anon"}"#, "user/SECRET-ben"),
        ("service_role", r#"{"role":"service_role"}"#, "keeper"),
    ] {
        let begin = begin(role, claims, caller);
        for sql in &statements {
            let output = run(&outsider, &begin, sql).await;
            // An error may quote the statement.
            let is_quoted = sql.contains(SECRET) && output.starts_with("DbError");
            assert!(!output.contains(SECRET) || is_quoted, "{role} as {caller}: {sql}: {output}");
        }
    }
    assert_eq!(hash_tables(&owner).await, before);
    // Checks that such a statement works for the server's role.
    let as_server = "BEGIN; SET LOCAL ROLE threadkeep_server; SELECT set_config('threadkeep.tenant', 'acme', true), \
                     set_config('threadkeep.caller', 'user/ana', true)";
    assert!(run(&owner, as_server, "SELECT t::text FROM threadkeep.messages t").await.contains(SECRET));
}

// Any role that can connect can LISTEN and NOTIFY, so the name of the channel must stay secret.
#[tokio::test(flavor = "multi_thread")]
async fn notifications_cannot_be_read_or_forged() {
    let Some((database, _owner)) = create_project().await else { return };
    let url = format!("{}?background=off", database.url());
    let (here, there) = (PostgresStore::open(&url).await.unwrap(), PostgresStore::open(&url).await.unwrap());
    let mut wake_ups = there.backend().store.wake_ups().await.unwrap();

    let config: tokio_postgres::Config = database.url().replace("postgres@", "authenticator@").parse().unwrap();
    let (outsider, mut connection) = config.connect(NoTls).await.unwrap();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages = futures::stream::poll_fn(|context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(notification) = message {
                sender.send(notification.payload().to_owned()).unwrap();
            }
        }
    });
    let begin = begin("authenticated", r#"{"sub":"ana"}"#, "keeper");
    for sql in [
        "SELECT name FROM threadkeep.channels",
        "SELECT threadkeep.channel()",
        "SELECT threadkeep.tell(ARRAY['x'])",
        "SELECT query FROM pg_stat_activity",
        "SELECT pg_listening_channels()",
        "SELECT most_common_vals::text FROM pg_stats WHERE tablename = 'channels'",
    ] {
        let output = run(&outsider, &begin, sql).await;
        assert!(!output.contains("threadkeep_"), "{sql}: {output}");
    }
    outsider.batch_execute("SET ROLE authenticated; LISTEN threadkeep; LISTEN \"threadkeep_\"").await.unwrap();
    let forged = format!("SELECT pg_notify('threadkeep', E'x\\nacme\\t{}\\tana')", thread_id(7));
    outsider.batch_execute(&forged).await.unwrap();
    let ana = Scope::user("acme", "ana").unwrap();
    here.backend()
        .store
        .commit(&ana, thread_id(1), Batch { append: vec![message(9, "x")], ..batch(9) }, now())
        .await
        .unwrap();
    let first = tokio::time::timeout(TIMEOUT, wake_ups.next()).await.expect("a wake-up arrives in time");
    assert!(matches!(first, Some(WakeUp::Thread { thread, .. }) if thread == thread_id(1)), "{first:?}");
    // Pending notifications arrive with the response: only the outsider's own.
    outsider.batch_execute("").await.unwrap();
    drop(outsider);
    let mut payloads = Vec::new();
    while let Some(payload) = receiver.recv().await {
        payloads.push(payload);
    }
    assert_eq!(payloads, [format!("x\nacme\t{}\tana", thread_id(7))]);
}
