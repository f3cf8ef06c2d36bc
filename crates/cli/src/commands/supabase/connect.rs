//! Connects to the database that is checked.

use anyhow::{Context, Result};
use threadkeep_store_postgres::PostgresOptions;
use tokio_postgres::Client;

use super::environment::Environment;
use crate::failure::Failure;

/// Connects to the database at a URL.
pub(super) async fn connect(url: &str, environment: &Environment) -> Result<Client> {
    if url.starts_with("http:") || url.starts_with("https:") {
        let failure = Failure::usage("this is the URL of Supabase's HTTP API; a database URL is required");
        return Err(failure.hint(environment.database_hint()).into());
    }
    let options = PostgresOptions::from_url(url).map_err(|error| {
        let failure = Failure::usage(format!("invalid PostgreSQL URL: {error}"));
        failure.hint(environment.database_hint())
    })?;
    let client = options.connect().await.map_err(|error| connection_failure(error.into(), environment))?;
    client.batch_execute("SET statement_timeout = '30s'").await.context("the database does not respond")?;
    Ok(client)
}

// S3.41
fn connection_failure(error: anyhow::Error, environment: &Environment) -> anyhow::Error {
    let reason = crate::failure::sentence(&error);
    let hint = format!(
        "check the host, port, user and password. Use the database password: SUPABASE_SERVICE_ROLE_KEY and the anon key do \
         not work here. {}",
        environment.database_hint()
    );
    Failure::system_error(format!("cannot connect to the database: {reason}")).hint(hint).into()
}
