//! Handwritten SQL: a thread row, two messages and a log entry with the same kind of row-level security, each turn as one
//! pipelined batch of prepared statements.

use std::time::Instant;

use anyhow::{Result, ensure};
use deadpool_postgres::{Manager, Object, Pool, QueueMode};
use tokio_postgres::NoTls;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::median_latency;

const SCHEMA: &str = "
DROP SCHEMA IF EXISTS floor CASCADE;
CREATE SCHEMA floor;
CREATE TABLE floor.threads (no bigint PRIMARY KEY, tenant text NOT NULL, owner text NOT NULL, seq bigint NOT NULL);
CREATE TABLE floor.messages (thread_no bigint, seq bigint, tenant text NOT NULL, owner text NOT NULL, id uuid NOT NULL,
  body text NOT NULL, PRIMARY KEY (thread_no, seq));
CREATE UNIQUE INDEX ON floor.messages (thread_no, id);
CREATE TABLE floor.log (thread_no bigint, change bigint, tenant text NOT NULL, owner text NOT NULL, key uuid NOT NULL,
  PRIMARY KEY (thread_no, change));
CREATE INDEX ON floor.log (thread_no, key);
CREATE TABLE floor.terms (thread_no bigint, seq bigint, terms tsvector NOT NULL, PRIMARY KEY (thread_no, seq));
CREATE INDEX ON floor.terms USING gin (terms);
GRANT USAGE ON SCHEMA floor TO threadkeep_server;
GRANT ALL ON ALL TABLES IN SCHEMA floor TO threadkeep_server;
DO $$ DECLARE t text; BEGIN FOREACH t IN ARRAY ARRAY['threads', 'messages', 'log'] LOOP
  EXECUTE format('ALTER TABLE floor.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', t);
  EXECUTE format('CREATE POLICY own ON floor.%I TO threadkeep_server USING (tenant = '
    '(SELECT current_setting(''threadkeep.tenant'', true)) AND owner = '
    '(SELECT current_setting(''threadkeep.caller'', true)))', t);
END LOOP; END $$;";

const SCOPE: &str = "SELECT set_config('role', 'threadkeep_server', true), set_config('threadkeep.tenant', 'acme', true), \
                     set_config('threadkeep.caller', 'ana', true)";
const LOCK: &str = "SELECT seq FROM floor.threads WHERE no = $1 AND tenant = 'acme' FOR NO KEY UPDATE";
const LOOK_UP: &str = "SELECT change FROM floor.log WHERE thread_no = $1 AND key = $2";
const INSERT: &str = "INSERT INTO floor.messages SELECT $1, t.seq + n.place, 'acme', 'ana', n.id, n.body \
                      FROM floor.threads t, unnest($2::uuid[], $3::text[]) WITH ORDINALITY AS n (id, body, place) \
                      WHERE t.no = $1";
const LOG: &str = "INSERT INTO floor.log SELECT $1, seq, 'acme', 'ana', $2 FROM floor.threads WHERE no = $1";
const ADVANCE: &str = "UPDATE floor.threads SET seq = seq + $2 WHERE no = $1";
const NEWEST: &str = "SELECT t.seq, m.seq, m.id, m.body FROM floor.threads t JOIN floor.messages m ON m.thread_no = t.no \
                      WHERE t.no = $1 AND m.thread_no = $1 ORDER BY m.seq DESC LIMIT 16";
const SEARCH: &str = "SELECT thread_no, seq FROM floor.terms WHERE terms @@ $1::text::tsquery LIMIT 4000";

pub(super) struct Floor {
    pool: Pool,
}

impl Floor {
    pub(super) async fn open(url: &str) -> Result<Self> {
        let pool = Pool::builder(Manager::new(url.parse()?, NoTls)).max_size(64).queue_mode(QueueMode::Lifo).build()?;
        let floor = Self { pool };
        let client = floor.pool.get().await?;
        client.batch_execute(SCHEMA).await?;
        client
            .batch_execute("INSERT INTO floor.threads SELECT n, 'acme', 'ana', 0 FROM generate_series(0, 100) n")
            .await?;
        drop(client);
        Ok(floor)
    }

    pub(super) async fn turns(&self, writer: usize, until: Instant, texts: &[String]) -> Result<usize> {
        let thread_no = writer as i64 + 1;
        let mut done = 0;
        while Instant::now() < until {
            let client = self.pool.get().await?;
            let turn = [texts[done % texts.len()].clone(), texts[(done + 1) % texts.len()].clone()];
            commit(&client, thread_no, &turn).await?;
            done += 1;
        }
        Ok(done)
    }

    /// Adds messages to the owner's only thread.
    pub(super) async fn seed(&self, owner: &str, texts: &[String]) -> Result<()> {
        let client = self.pool.get().await?;
        let thread_no = thread_of(owner);
        commit(&client, thread_no, texts).await?;
        let sql = "INSERT INTO floor.terms \
                   SELECT $1, coalesce((SELECT max(seq) FROM floor.terms WHERE thread_no = $1), 0) + n.place, \
                   to_tsvector('simple', n.body || ' ' || $2) FROM unnest($3::text[]) WITH ORDINALITY AS n (body, place)";
        client.execute(sql, &[&thread_no, &owner, &texts]).await?;
        Ok(())
    }

    pub(super) async fn analyse(&self) -> Result<()> {
        Ok(self.pool.get().await?.batch_execute("VACUUM ANALYZE").await?)
    }

    pub(super) async fn newest(&self, owner: &str, seconds: u64) -> Result<f64> {
        let thread_no = thread_of(owner);
        let of_thread: [&(dyn ToSql + Sync); 1] = [&thread_no];
        median_latency(seconds, async || {
            let client = self.pool.get().await?;
            let (scope, newest) = (client.prepare_cached(SCOPE).await?, client.prepare_cached(NEWEST).await?);
            let (begin, enter, rows, end) = futures::join!(
                client.batch_execute("BEGIN READ ONLY"),
                client.query(&scope, &[]),
                client.query(&newest, &of_thread),
                client.batch_execute("COMMIT"),
            );
            begin?;
            enter?;
            end?;
            ensure!(rows?.len() == 16, "the query did not return 16 messages");
            Ok(())
        })
        .await
    }

    pub(super) async fn search(&self, owner: &str, seconds: u64) -> Result<f64> {
        let question = format!("walrus & {owner}");
        median_latency(seconds, async || {
            let client = self.pool.get().await?;
            let search = client.prepare_cached(SEARCH).await?;
            ensure!(!client.query(&search, &[&question]).await?.is_empty(), "the search for a rare word found nothing");
            Ok(())
        })
        .await
    }
}

fn thread_of(owner: &str) -> i64 {
    match owner {
        "short" => 65,
        "few" => 66,
        _ => 67,
    }
}

async fn commit(client: &Object, thread_no: i64, texts: &[String]) -> Result<()> {
    let key = Uuid::new_v4();
    let ids: Vec<Uuid> = texts.iter().map(|_| Uuid::new_v4()).collect();
    let count = texts.len() as i64;
    let scope = client.prepare_cached(SCOPE).await?;
    let (lock, look_up) = (client.prepare_cached(LOCK).await?, client.prepare_cached(LOOK_UP).await?);
    let (insert, log) = (client.prepare_cached(INSERT).await?, client.prepare_cached(LOG).await?);
    let advance = client.prepare_cached(ADVANCE).await?;
    let (of_thread, of_key): ([&(dyn ToSql + Sync); 1], [&(dyn ToSql + Sync); 2]) = ([&thread_no], [&thread_no, &key]);
    let (batch, step): ([&(dyn ToSql + Sync); 3], [&(dyn ToSql + Sync); 2]) =
        ([&thread_no, &ids, &texts], [&thread_no, &count]);
    let (begin, enter, locked, found, inserted, logged, advanced, end) = futures::join!(
        client.batch_execute("BEGIN"),
        client.query(&scope, &[]),
        client.query(&lock, &of_thread),
        client.query(&look_up, &of_key),
        client.execute(&insert, &batch),
        client.execute(&log, &of_key),
        client.execute(&advance, &step),
        client.batch_execute("COMMIT"),
    );
    begin?;
    enter?;
    for answer in [locked, found] {
        answer?;
    }
    for answer in [logged, advanced] {
        answer?;
    }
    end?;
    ensure!(inserted? == count.unsigned_abs(), "not all messages were inserted");
    Ok(())
}
