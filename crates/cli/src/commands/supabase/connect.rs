//! A connection of its own, for looking at a database.

use anyhow::{Context, Result};
use threadkeep_store_postgres::PostgresOptions;
use tokio_postgres::Client;

use super::environment::Environment;
use crate::failure::Failure;

/// Connects to the database that a URL names.
pub(super) async fn connect(url: &str, environment: &Environment) -> Result<Client> {
    if url.starts_with("http:") || url.starts_with("https:") {
        let failure = Failure::usage("that is the address of Supabase's HTTP API; a database URL is needed as well");
        return Err(failure.hint(environment.database_hint()).into());
    }
    let options = PostgresOptions::from_url(url).map_err(|error| {
        let failure = Failure::usage(format!("not the URL of a PostgreSQL database: {error}"));
        failure.hint(environment.database_hint())
    })?;
    let client = options.connect().await.map_err(|error| refused(error.into(), environment))?;
    client.batch_execute("SET statement_timeout = '30s'").await.context("the database does not answer")?;
    Ok(client)
}

// S3.41
fn refused(error: anyhow::Error, environment: &Environment) -> anyhow::Error {
    let reason = crate::failure::sentence(&error);
    let hint = format!(
        "check host, port, user and password. The password is the database's own: neither SUPABASE_SERVICE_ROLE_KEY nor \
         the anon key opens a database. {}",
        environment.database_hint()
    );
    Failure::other_side(format!("no connection to the database: {reason}")).hint(hint).into()
}
