//! The database schema and its migrations.
//!
//! Numbered migrations create tables, types and policies. Each applied migration is recorded with a checksum of its
//! text, and a database with a different checksum is rejected. Functions are defined once, in `schema/functions`, and
//! replaced by every migration. A changed function therefore needs a new migration, which may be empty. If a function's
//! parameters change, the previous function stays, for older instances that still call it.
//!
//! The first of several instances applies all missing migrations and the functions in one transaction, so that no other
//! instance sees a version without its functions.

use sha2::{Digest, Sha256};
use threadkeep_core::StoreError;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use crate::error::{PostgresError, Result};
use crate::index;
use crate::pool::{Caller, Parameter, Shared};
use crate::row::get;

/// Entry `n` migrates a database from version `n` to `n + 1`. Released entries never change. An empty entry changes
/// only functions.
const MIGRATIONS: [&[&str]; 11] = [
    &[
        include_str!("schema/001/tables.sql"),
        include_str!("schema/001/types.sql"),
        include_str!("schema/001/scope.sql"),
        include_str!("schema/001/security.sql"),
    ],
    &[include_str!("schema/002/collections.sql"), include_str!("schema/002/hints.sql")],
    &[include_str!("schema/003/driven.sql")],
    &[include_str!("schema/004/heard.sql")],
    &[include_str!("schema/005/checksums.sql")],
    &[],
    &[],
    &[include_str!("schema/008/tags.sql")],
    &[include_str!("schema/009/commit.sql")],
    // Changes only functions: filters for collections.
    &[],
    &[include_str!("schema/011/metadata.sql")],
];

/// The functions, in the order of their dependencies. `CREATE OR REPLACE` keeps a function's owner, and statements that other
/// instances have prepared with it stay valid.
const FUNCTIONS: [&str; 11] = [
    include_str!("schema/functions/scope.sql"),
    include_str!("schema/functions/threads.sql"),
    include_str!("schema/functions/documents.sql"),
    include_str!("schema/functions/commit.sql"),
    include_str!("schema/functions/former.sql"),
    include_str!("schema/functions/messages.sql"),
    include_str!("schema/functions/changes.sql"),
    include_str!("schema/functions/search.sql"),
    include_str!("schema/functions/collections.sql"),
    include_str!("schema/functions/hints.sql"),
    include_str!("schema/functions/rights.sql"),
];

/// The checksums of the first migrations as released, when they still included functions. `tests/servers/former` contains the
/// texts.
const RELEASED: [&str; 8] = [
    "47340733ae72057357a7cad749b61a074a7b2bd5ef603a83987b29b06baa3403",
    "01086b6bde59aaee19f1d1d356e6e4b8423f105c9eed9c32af00ff97ab2949ca",
    "f6ecc5185dc90f8a228a4ead39fa1ed03b28c2aa3df44e05f3d5443e1ed669bc",
    "c9d9d9d416ede90e65a8e89c8681765262628bec050478a85f8fdc88aa9c8487",
    "6ee1c40bbaa0f1e7a8937e42d9bb29d410146391fb93518bd9cff792b3316f38",
    "ddd0247f94828802202b5fe95538599e7911590b82b203b6b2779b5ab682bf06",
    "d9bd967cda614a465858a9d44667a4ce3f85aa59d27fce979a069f12f3c984cd",
    "bad27f50ba02517166745ddb864ab15b8a244dce77093c1cc3eb9a92d30f3b09",
];

/// The schema version that this crate writes.
const VERSION: usize = MIGRATIONS.len();
/// The advisory lock that serialises migrations. Advisory locks are per database.
const LOCK: &str = "SELECT pg_advisory_lock(29800)";
const UNLOCK: &str = "SELECT pg_advisory_unlock(29800)";

// Roles are shared by all databases of a server, so the role may be created concurrently from another database.
const FOUNDATION: &str = "
DO $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'threadkeep_server') THEN
    CREATE ROLE threadkeep_server NOLOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$ BEGIN
  IF NOT pg_has_role(current_user, 'threadkeep_server', 'MEMBER') THEN
    EXECUTE format('GRANT threadkeep_server TO %I', current_user);
  END IF;
END $$;
CREATE SCHEMA IF NOT EXISTS threadkeep;
CREATE TABLE IF NOT EXISTS threadkeep.migrations (
  version integer PRIMARY KEY,
  checksum bytea NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);";
// Commits lock this table first: a running commit ends before the migration takes further locks, and new commits wait.
const BLOCK_COMMITS: &str = "LOCK TABLE threadkeep.threads IN ACCESS EXCLUSIVE MODE";
const GRANT_VERSIONS: &str = "GRANT SELECT ON threadkeep.migrations TO threadkeep_server; \
                              GRANT USAGE ON SCHEMA threadkeep TO threadkeep_server";

/// Checks the schema, and creates or migrates it unless the options forbid it.
pub(crate) async fn prepare(shared: &Shared) -> Result<(), StoreError> {
    if check(&applied(shared).await?)? < VERSION {
        if !shared.options.migrate {
            let reason = "the schema is missing or outdated, and the database URL has migrate=off";
            return Err(StoreError::Incompatible(reason.to_owned()));
        }
        migrate(shared).await?;
    }
    update_stamp_offset(shared).await?;
    Ok(index::check_analysis(shared).await?)
}

const APPLIED: &str = "SELECT encode(checksum, 'hex') FROM threadkeep.migrations ORDER BY version";

/// Returns the checksums of the applied migrations, in order. The list is empty if there is no schema.
async fn applied(shared: &Shared) -> Result<Vec<String>> {
    // The only statement outside a scope; it reads no tenant's data.
    match shared.call(APPLIED, &[]).await {
        Ok(rows) => rows.iter().map(|row| get(row, 0)).collect(),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Vec::new()),
        Err(error) if error.code() == Some(&SqlState::INVALID_SCHEMA_NAME) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn check(applied: &[String]) -> Result<usize, StoreError> {
    if applied.len() > VERSION {
        let reason = format!(
            "the database has schema version {}; this program supports versions up to {VERSION}",
            applied.len()
        );
        return Err(StoreError::Incompatible(reason));
    }
    for (index, checksum) in applied.iter().enumerate() {
        if *checksum != checksum_of(index) {
            let reason = format!("the checksum of migration {} differs from this program's", index + 1);
            return Err(StoreError::Incompatible(reason));
        }
    }
    Ok(applied.len())
}

fn checksum_of(index: usize) -> String {
    match RELEASED.get(index) {
        Some(checksum) => (*checksum).to_owned(),
        None => hex_digest(MIGRATIONS[index]),
    }
}

fn hex_digest(texts: &[&str]) -> String {
    Sha256::digest(texts.concat()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Migrates on a dedicated connection, because a pooler in transaction mode does not support session-level locks.
async fn migrate(shared: &Shared) -> Result<(), StoreError> {
    let (client, connection) = shared.connect_directly().await?;
    let migrating = async move {
        // A migration may exceed the timeout of calls.
        client.batch_execute("SET statement_timeout = 0").await?;
        client.batch_execute(LOCK).await?;
        let result = migrate_locked(&client).await;
        client.batch_execute(UNLOCK).await?;
        result
    };
    // `migrating` drops the client, which closes the connection.
    let (_, result) = futures::join!(connection, migrating);
    result.map_err(|error: PostgresError| match error.code() {
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => StoreError::Incompatible(
            "the schema is missing or outdated, and this role may not change it: open the database once with a role \
             that may create roles and schemas, or that owns the schema"
                .to_owned(),
        ),
        _ => error.into(),
    })
}

async fn migrate_locked(client: &Client) -> Result<()> {
    client.batch_execute(FOUNDATION).await?;
    let rows = client.query_typed(APPLIED, &[]).await?;
    let applied = rows.iter().map(|row| get(row, 0)).collect::<Result<Vec<String>>>()?;
    // Read again under the lock, because another instance may have migrated the database in the meantime.
    let version = check(&applied)?;
    if version == VERSION {
        return Ok(());
    }
    loop {
        client.batch_execute("BEGIN").await?;
        let result = apply_after(client, version).await;
        client.batch_execute(if result.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
        match result {
            // A running instance locked tables in another order. The rollback lets it continue.
            Err(error) if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => {}
            result => return result,
        }
    }
}

/// Applies the migrations after a version, then the functions.
async fn apply_after(client: &Client, version: usize) -> Result<()> {
    if version > 0 {
        client.batch_execute(BLOCK_COMMITS).await?;
    }
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(version) {
        client.batch_execute(&migration.concat()).await?;
        let version = i32::try_from(index + 1).unwrap_or(i32::MAX);
        let values: [Parameter<'_>; 2] = [(&version, Type::INT4), (&checksum_of(index), Type::TEXT)];
        let sql = "INSERT INTO threadkeep.migrations (version, checksum) VALUES ($1, decode($2, 'hex'))";
        client.query_typed(sql, &values).await?;
    }
    client.batch_execute(&FUNCTIONS.concat()).await?;
    client.batch_execute(GRANT_VERSIONS).await?;
    Ok(())
}

/// If the data was moved to another server, raises the stamp offset so that new stamps are higher than all existing ones:
/// stamps are derived from the server's transaction ids.
async fn update_stamp_offset(shared: &Shared) -> Result<()> {
    let sql = "SELECT ('x' || left(md5(concat_ws('/', (SELECT system_identifier FROM pg_control_system()), \
               (SELECT oid FROM pg_database WHERE datname = current_database()))), 15))::bit(60)::bigint, \
               (SELECT value FROM threadkeep.marks WHERE name = 'server')";
    let answers = shared.read(&Caller::maintenance(), &[(sql, &[])]).await?;
    let row = &answers[0][0];
    let (server, recorded): (i64, Option<i64>) = (get(row, 0)?, get(row, 1)?);
    if recorded == Some(server) {
        return Ok(());
    }
    shared
        .transact(Caller::maintenance(), async |transaction| {
            let values: [Parameter<'_>; 1] = [(&server, Type::INT8)];
            transaction.batch_execute("SELECT pg_advisory_xact_lock(29801)").await?;
            let sql = "INSERT INTO threadkeep.marks AS m (name, value) VALUES ('server', $1) \
                       ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE m.value <> excluded.value RETURNING 1";
            if !transaction.query_typed(sql, &values).await?.is_empty() {
                let sql = "UPDATE threadkeep.marks SET value = greatest(value, \
                           (SELECT max(stamp) FROM threadkeep.stamps), (SELECT max(stamp) FROM threadkeep.deleted_threads)) \
                           WHERE name = 'stamp_offset'";
                transaction.query_typed(sql, &[]).await?;
            }
            Ok(())
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    // A database that already has this version would keep the previous functions.
    #[test]
    fn functions_change_only_with_the_version() {
        let recorded = (11, "4404563f958186796bfe9c34b5d3160319a80712583402525e4e6afa3e9df365");
        let digest = hex_digest(&FUNCTIONS);
        assert_eq!((VERSION, digest.as_str()), recorded, "add a migration, which may be empty, and record it here");
    }
}
