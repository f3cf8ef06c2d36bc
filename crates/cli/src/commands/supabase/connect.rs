//! A connection of its own, for looking at a database.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio_postgres::{Client, Config, NoTls};

use super::environment::Environment;
use crate::failure::Failure;

const PATIENCE: Duration = Duration::from_secs(10);

/// Connects to the database that a URL names.
pub(super) async fn connect(url: &str, environment: &Environment) -> Result<Client> {
    if url.starts_with("http:") || url.starts_with("https:") {
        let failure = Failure::usage("that is the address of Supabase's HTTP API; a database URL is needed as well");
        return Err(failure.hint(environment.database_hint()).into());
    }
    let config: Config = url
        .parse()
        .map_err(|_| Failure::usage("not the URL of a PostgreSQL database").hint(environment.database_hint()))?;
    let connecting = tokio::time::timeout(PATIENCE, config.connect(NoTls)).await;
    let (client, connection) = match connecting {
        Ok(Ok(connected)) => connected,
        Ok(Err(error)) => return Err(refused(error.into(), environment)),
        Err(_) => return Err(refused(anyhow::anyhow!("it did not answer in time"), environment)),
    };
    tokio::spawn(async move { drop(connection.await) });
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
