//! Runs `supabase doctor` on a real PostgreSQL database. The SQL that it prints adds the parts of Supabase that are missing.

use futures::TryStreamExt;
use serde_json::Value;
use threadkeep_postgres_server::{Database, Server};
use tokio::runtime::Runtime;
use tokio_postgres::Client;

use super::{Cli, RunOutput};

const ANA: &str = "11111111-0000-4000-8000-00000000000a";
const BEN: &str = "11111111-0000-4000-8000-00000000000b";
const OF_ANA: &str = "11111111-0000-4000-8000-0000000000a1";
const OF_BEN: &str = "11111111-0000-4000-8000-0000000000b1";
const KEYS: &str = "NEXT_PUBLIC_SUPABASE_URL=https://abc.supabase.co\nSUPABASE_SERVICE_ROLE_KEY=sb_secret_x\n\
                    OPENAI_API_KEY=sk-x\nLOCAL_POSTGRES_PASSWORD=x\n";

/// Roles belong to the whole server, which other tests use at the same time. Each of these tests creates them first.
const ROLES: &str = "DO $$ BEGIN CREATE ROLE anon NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
    DO $$ BEGIN CREATE ROLE authenticated NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
    DO $$ BEGIN CREATE ROLE service_role NOLOGIN BYPASSRLS; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$";

/// An empty database, and the program that examines it.
struct TestDatabase {
    cli: Cli,
    database: Database,
    client: Client,
    runtime: Runtime,
}

impl TestDatabase {
    fn new(server: &Server) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let database = runtime.block_on(server.create_database());
        let url = database.url();
        let (client, connection) = runtime.block_on(tokio_postgres::connect(&url, tokio_postgres::NoTls)).unwrap();
        runtime.spawn(connection);
        runtime.block_on(client.batch_execute(ROLES)).unwrap();
        let cli = Cli::new();
        cli.file(".env.local", KEYS);
        Self { cli, database, client, runtime }
    }

    fn doctor(&self, options: &[&str]) -> RunOutput {
        self.cli.run(&[&["supabase", "doctor", &self.database.url()], options].concat())
    }

    fn run(&self, sql: &str) {
        self.try_to(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    fn try_to(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.runtime.block_on(self.client.batch_execute(sql))
    }

    /// Runs the SQL that the doctor prints, and checks that no problem remains.
    fn fix_findings(&self) {
        let sql = self.doctor(&["--sql"]).out;
        self.run(&sql);
        let output = self.doctor(&["--try"]);
        assert_eq!(output.code, Some(0), "{sql}\n{output}");
        assert!(!output.out.contains("not ok") && output.out.contains("trial as a user"), "{output}");
    }
}

// S3.27, S3.28, S3.39, S3.40
#[test]
fn doctor_reports_findings_and_its_sql_fixes_them() {
    let Some(server) = Server::shared() else { return };
    let project = TestDatabase::new(server);
    let output = project.doctor(&[]);
    assert_eq!(output.code, Some(1), "{output}");
    for expected in
        ["table conversations: missing", "table messages: missing", "CREATE POLICY", "ok      OPENAI_API_KEY"]
    {
        assert!(output.out.contains(expected), "{expected}: {output}");
    }
    let by_store = project.cli.run(&["--store", &project.database.url(), "supabase", "doctor"]);
    assert_eq!((by_store.code, by_store.out), (output.code, output.out));
    project.fix_findings();
    // The SQL changes nothing when it runs again, and the JSON agrees.
    assert_eq!(project.doctor(&["--sql"]).out.trim(), "");
    let json: Value = serde_json::from_str(&project.doctor(&["--json"]).out).unwrap();
    assert!(json["findings"].as_array().unwrap().iter().all(|finding| finding["is_there"] == true), "{json}");

    for (damage, expected) in [
        ("ALTER TABLE messages DISABLE ROW LEVEL SECURITY", "row security of messages: disabled"),
        ("DROP POLICY messages_of_their_user ON messages", "policies of messages: no policy lets a user"),
        ("CREATE POLICY open ON conversations USING (true)", "policy open of conversations: does not check"),
        ("GRANT ALL ON messages TO anon", "privileges: anon has TRUNCATE on messages"),
        ("REVOKE DELETE ON messages FROM authenticated", "privileges: authenticated lacks DELETE on messages"),
        ("ALTER TABLE conversations DROP COLUMN model", "column conversations.model: missing"),
        ("DROP TABLE messages", "table messages: missing"),
    ] {
        project.run(damage);
        let output = project.doctor(&[]);
        assert!(output.code == Some(1) && output.out.contains(expected), "{damage}: {output}");
        project.fix_findings();
    }
    // A trial finds problems that the catalog does not show, and leaves no rows behind.
    for (damage, expected) in [
        ("TO authenticated USING (auth.uid() IS NOT NULL)", "a user can read another user's messages"),
        (
            "FOR UPDATE USING (auth.uid() IS NOT NULL)",
            "a user cannot change own messages only: 2 rows affected, expected 1",
        ),
        ("FOR INSERT WITH CHECK (auth.uid() IS NULL)", "authenticated without a user can write a message"),
    ] {
        project.run(&format!("CREATE POLICY anyone ON messages {damage}"));
        assert_eq!(project.doctor(&[]).code, Some(0));
        let output = project.doctor(&["--try"]);
        assert!(output.code == Some(1) && output.out.contains(expected), "{output}");
        project.run("DROP POLICY anyone ON messages");
    }
    let remaining = "SELECT count(*) FROM (SELECT id FROM auth.users UNION ALL SELECT id FROM messages) AS made";
    let remaining: i64 = project.runtime.block_on(project.client.query_one(remaining, &[])).unwrap().get(0);
    assert_eq!(remaining, 0);
}

/// Under the policies that the doctor prints, no statement of a user reads or changes rows of another user.
// S3.40
#[test]
fn policies_isolate_users() {
    let Some(server) = Server::shared() else { return };
    let project = TestDatabase::new(server);
    project.fix_findings();
    let rows = format!(
        "INSERT INTO auth.users VALUES ('{ANA}'), ('{BEN}');
         INSERT INTO conversations (id, user_id, title) VALUES ('{OF_ANA}', '{ANA}', 'ana'), ('{OF_BEN}', '{BEN}', 'SECRET');
         INSERT INTO messages (conversation_id, role, content) VALUES ('{OF_ANA}', 'user', 'ana'), ('{OF_BEN}', 'user', 'SECRET');
         ANALYZE;
         CREATE FUNCTION public.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS
           $$ BEGIN RAISE EXCEPTION 'saw %', $1; END $$;
         GRANT EXECUTE ON FUNCTION public.leak TO authenticated, anon;"
    );
    project.run(&rows);
    let reads = [
        "SELECT * FROM conversations",
        "TABLE messages",
        "SELECT content FROM messages WHERE conversation_id = 'OF_BEN'",
        "SELECT conversations.title FROM messages JOIN conversations ON true",
        "SELECT title FROM conversations WHERE title LIKE 'S%' OR leak(title)",
        "SELECT content FROM messages WHERE content <> 'ana' AND leak(content)",
        "SELECT 1 / (CASE WHEN content = 'SECRET' THEN 0 ELSE 1 END) FROM messages",
        "SELECT most_common_vals::text FROM pg_stats WHERE schemaname = 'public'",
        "SELECT stavalues1::text FROM pg_statistic",
        "SELECT query_to_xml('SELECT * FROM conversations', true, true, '')::text",
        "WITH all_of_it AS MATERIALIZED (SELECT * FROM messages) SELECT * FROM all_of_it",
        "COPY messages TO STDOUT",
        "COPY (SELECT * FROM messages) TO STDOUT",
        "SELECT * FROM messages FOR UPDATE",
        "SELECT * FROM auth.users",
        "DO $$ DECLARE seen text; BEGIN SELECT string_agg(content, ',') INTO seen FROM messages; \
           IF seen LIKE '%SECRET%' THEN RAISE EXCEPTION 'SECRET'; END IF; END $$",
        "SET row_security = off; SELECT * FROM messages",
        "SET ROLE service_role; SELECT * FROM messages",
        "ALTER TABLE messages DISABLE ROW LEVEL SECURITY; SELECT * FROM messages",
        "DROP POLICY messages_of_their_user ON messages; SELECT * FROM messages",
        "CREATE VIEW all_of_it AS SELECT * FROM messages; SELECT * FROM all_of_it",
        "CREATE TEMPORARY TABLE mine AS SELECT * FROM messages; SELECT * FROM mine",
        "INSERT INTO conversations (id, user_id, title) VALUES ('OF_BEN', 'ANA', 'x') \
           ON CONFLICT (id) DO UPDATE SET user_id = 'ANA' RETURNING title",
        "UPDATE messages SET content = content WHERE conversation_id <> 'OF_ANA' RETURNING content",
        "DELETE FROM messages USING conversations WHERE conversations.id = 'OF_BEN' RETURNING messages.content",
        "MERGE INTO messages USING (SELECT 1) AS one ON content = 'SECRET' WHEN MATCHED THEN DELETE",
    ];
    let writes = [
        "UPDATE conversations SET title = 'taken' WHERE id = 'OF_BEN'",
        "UPDATE conversations SET title = 'taken'",
        "UPDATE messages SET content = 'taken'",
        "DELETE FROM conversations",
        "DELETE FROM messages",
        "UPDATE conversations SET user_id = 'BEN' WHERE id = 'OF_ANA'",
        "UPDATE messages SET conversation_id = 'OF_BEN'",
        "DELETE FROM conversations WHERE id = 'OF_BEN'",
        "INSERT INTO conversations (user_id, title) VALUES ('BEN', 'x')",
        "INSERT INTO messages (conversation_id, role, content) VALUES ('OF_BEN', 'assistant', 'x')",
        "INSERT INTO messages (conversation_id, role, content) SELECT id, 'user', 'x' FROM conversations WHERE id <> 'OF_ANA'",
        "COPY messages (conversation_id, role, content) FROM PROGRAM 'echo x'",
        "TRUNCATE messages",
        "TRUNCATE conversations CASCADE",
        "CREATE TRIGGER mine AFTER INSERT ON messages EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "CREATE TEMPORARY TABLE mine (id uuid REFERENCES conversations)",
        "DELETE FROM auth.users",
        "DROP TABLE messages",
        "GRANT ALL ON messages TO anon",
    ];
    for (role, claims) in [
        ("authenticated", format!("{{\"sub\":\"{ANA}\",\"role\":\"authenticated\"}}")),
        ("authenticated", "{}".to_owned()),
        ("authenticated", String::new()),
        ("anon", "{\"role\":\"anon\"}".to_owned()),
        ("anon", format!("{{\"sub\":\"{BEN}\"}}")),
    ] {
        for sql in reads.iter().chain(&writes) {
            let (seen, changed) = project.run_as(role, &claims, sql);
            assert!(!seen.contains("SECRET"), "{role} {claims}: {sql}: {seen}");
            assert!(!changed.contains(&"ben"), "{role} {claims}: {sql}: {seen}");
            if !claims.contains(ANA) {
                assert!(!seen.contains("ana") && changed.is_empty(), "{role} {claims}: {sql}: {seen}");
            }
        }
    }
    // Users can read and write their own rows.
    let claims = format!("{{\"sub\":\"{ANA}\",\"role\":\"authenticated\"}}");
    let run = |sql: &str| project.run_as("authenticated", &claims, sql);
    let insert = "INSERT INTO messages (conversation_id, role, content, sources) VALUES ('OF_ANA', 'assistant', 'mine', \
               '[{\"rank_score\": 1150.5, \"distance\": 0.234}]') RETURNING content, sources";
    let written = "mine [{\"distance\": 0.234, \"rank_score\": 1150.5}]\n";
    assert_eq!(run(insert), (written.to_owned(), vec!["ana"]));
    assert_eq!(run("UPDATE conversations SET title = 'x' RETURNING title"), ("x\n".to_owned(), vec!["ana"]));
    assert_eq!(run("SELECT title FROM conversations"), ("ana\n".to_owned(), vec![]));
    // S3.29: a user's message has no sources.
    let (refused, _) = run(&insert.replace("assistant", "user"));
    assert!(refused.contains("violates check constraint"), "{refused}");
}

/// Returns all rows that belong to a user, as text.
async fn state_of(client: &Client, user: &str) -> Option<String> {
    let sql = "SELECT string_agg(row, ',' ORDER BY row) FROM (
           SELECT conversations::text AS row FROM public.conversations WHERE user_id::text = $1
           UNION ALL SELECT messages::text FROM public.messages JOIN public.conversations AS its
             ON its.id = conversation_id AND its.user_id::text = $1
           UNION ALL SELECT users::text FROM auth.users WHERE id::text = $1
         ) AS everything";
    client.query_one(sql, &[&user]).await.unwrap().get(0)
}

impl TestDatabase {
    /// Runs SQL as a role and rolls it back. Returns its output, including an error, and the users whose data it changed.
    fn run_as(&self, role: &str, claims: &str, sql: &str) -> (String, Vec<&'static str>) {
        let (ana, ben) = (format!("'{ANA}'"), format!("'{BEN}'"));
        let names = [("OF_ANA", OF_ANA), ("OF_BEN", OF_BEN), ("'ANA'", &ana), ("'BEN'", &ben)];
        let sql = names.iter().fold(sql.to_owned(), |sql, (name, id)| sql.replace(name, id));
        self.runtime.block_on(async {
            let url = self.database.url();
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            let before = [state_of(&client, ANA).await, state_of(&client, BEN).await];
            let begin = format!(
                "BEGIN; SELECT set_config('request.jwt.claims', '{claims}', true); SET SESSION AUTHORIZATION {role}"
            );
            client.batch_execute(&begin).await.unwrap();
            let answer = if sql.starts_with("COPY") && sql.ends_with("STDOUT") {
                copied(&client, &sql).await
            } else {
                client.simple_query(&sql).await.map(|messages| messages.iter().map(line).collect())
            };
            match answer {
                Ok(seen) => {
                    client.batch_execute("RESET SESSION AUTHORIZATION").await.unwrap();
                    let after = [state_of(&client, ANA).await, state_of(&client, BEN).await];
                    let changed = ["ana", "ben"].into_iter().zip(before.into_iter().zip(after));
                    (seen, changed.filter(|(_, (before, after))| before != after).map(|(name, _)| name).collect())
                }
                // A failed statement has changed nothing.
                Err(error) => {
                    let error = error.as_db_error().map(|error| (error.message(), error.detail()));
                    (format!("error: {error:?}"), Vec::new())
                }
            }
        })
    }
}

async fn copied(client: &Client, sql: &str) -> Result<String, tokio_postgres::Error> {
    let rows: Vec<_> = client.copy_out(sql).await?.try_collect().await?;
    Ok(rows.iter().map(|row| String::from_utf8_lossy(row)).collect())
}

fn line(message: &tokio_postgres::SimpleQueryMessage) -> String {
    match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => {
            let values: Vec<&str> = (0..row.len()).map(|column| row.get(column).unwrap_or("NULL")).collect();
            values.join(" ") + "\n"
        }
        _ => String::new(),
    }
}

// S3.41
#[test]
fn missing_database_urls_are_reported_with_the_expected_one() {
    let cli = Cli::new();
    cli.file(
        ".env.local",
        "NEXT_PUBLIC_SUPABASE_URL=https://abc.supabase.co\nSUPABASE_SERVICE_ROLE_KEY=sb_publishable_x\n",
    );
    for more in [&[][..], &["https://abc.supabase.co"]] {
        let output = cli.run(&[&["supabase", "doctor"], more].concat());
        assert_eq!(output.code, Some(2), "{output}");
        assert!(
            output.err.contains("database URL is required") && output.err.contains("db.abc.supabase.co:5432"),
            "{output}"
        );
    }
    let output = cli.run(&["supabase", "doctor"]);
    assert!(
        output.out.contains("SUPABASE_SERVICE_ROLE_KEY: a key of the role anon, expected a service_role key"),
        "{output}"
    );
    assert!(output.out.contains("OPENAI_API_KEY: not set in .env.local"), "{output}");
    assert!(!output.to_string().contains("sb_publishable_x"), "{output}");
    let refused = cli.run(&["supabase", "doctor", "postgresql://postgres:secret@127.0.0.1:1/postgres"]);
    assert_eq!(refused.code, Some(3), "{refused}");
    for expected in ["Connection refused", "SUPABASE_SERVICE_ROLE_KEY and the anon key do not work here"] {
        assert!(refused.err.contains(expected), "{expected}: {refused}");
    }
    assert!(!refused.err.contains("secret"), "{refused}");
}
