use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;
use threadkeep::{Timestamp, UserId};
use threadkeep_server::{AuditLog, KeyRecord, KeyRole, KeySecret, Keys, NewKey, Quota, RateLimit};

use super::{App, Status};
use crate::store::Purpose;
use crate::table::{Align, Table};

/// Create, list, revoke and rotate the keys of clients of `threadkeep serve`
///
/// A key belongs to the tenant given by --tenant. It is printed only once; the store contains just a hash of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep keys create phone --for-user ana          acts for ana alone
  threadkeep keys create backend --role write          acts for the whole tenant, or for the user named in a request
  threadkeep keys revoke 5f0c1d2e3a4b5c6d")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a key and print it, once
    Create {
        /// A descriptive name
        name: String,
        /// The only user that the key acts for
        #[arg(long, value_name = "USER")]
        for_user: Option<String>,
        /// What the key permits: read, write, approve or admin within its tenant, or operate, to read the server's metrics
        #[arg(long = "role", value_name = "ROLE", default_value = "write")]
        roles: Vec<KeyRole>,
        /// The time at which the key expires, such as 2027-01-01T00:00:00Z
        #[arg(long, value_name = "INSTANT")]
        expires: Option<Timestamp>,
        /// The maximum number of requests per minute
        #[arg(long, value_name = "COUNT")]
        rate: Option<RateLimit>,
        /// The maximum number of requests per UTC day
        #[arg(long, value_name = "COUNT")]
        quota: Option<Quota>,
    },
    /// List the tenant's keys, without their secrets
    List,
    /// Revoke a key immediately
    Revoke {
        /// The key's id
        id: String,
    },
    /// Give a key a new secret; the old one stops working immediately
    Rotate {
        /// The key's id
        id: String,
    },
}

#[derive(Serialize)]
struct KeyJson<'a> {
    id: &'a str,
    name: &'a str,
    tenant: &'a str,
    user: Option<&'a str>,
    roles: &'a [KeyRole],
    rate_per_minute: Option<u32>,
    quota_per_day: Option<u32>,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

#[derive(Serialize)]
struct KeysJson<'a> {
    keys: Vec<KeyJson<'a>>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let tenant = app.global.tenant_id()?;
    let is_new = matches!(arguments.action, Action::Create { .. });
    let memory = app.open(if is_new { Purpose::CreateOrWrite } else { Purpose::Write }).await?.memory;
    let (keys, audit) = (Keys::new(&memory), AuditLog::new(&memory));
    match arguments.action {
        Action::Create { name, for_user, roles, expires: expires_at, rate: rate_limit, quota } => {
            let user = for_user.map(UserId::new).transpose()?;
            let (record, secret) =
                keys.create(NewKey { tenant, user, name, roles, expires_at, rate_limit, quota }).await?;
            audit.record_command(&record.tenant, "keys create", &record.id).await?;
            print_secret(app, &record, &secret)?;
        }
        Action::Rotate { id } => {
            let (record, secret) = keys.rotate(&tenant, &id).await?;
            audit.record_command(&tenant, "keys rotate", &id).await?;
            print_secret(app, &record, &secret)?;
        }
        Action::List => list(app, &keys.list(Some(&tenant)).await?)?,
        Action::Revoke { id } => {
            let record = keys.revoke(&tenant, &id).await?;
            audit.record_command(&tenant, "keys revoke", &id).await?;
            if app.output.is_json() {
                app.output.json(&key_json(&record, None))?;
            } else {
                app.output.line(format_args!("revoked {} ({})", record.id, record.name))?;
            }
        }
    }
    Ok(Status::Done)
}

fn print_secret(app: &App, record: &KeyRecord, secret: &KeySecret) -> Result<()> {
    if app.output.is_json() {
        return app.output.json(&key_json(record, Some(secret)));
    }
    app.output.line(secret.as_str())?;
    app.output.note(format_args!("the key {} ({}) cannot be displayed again", record.id, record.name));
    Ok(())
}

const HEADERS: [(&str, Align); 6] = [
    ("id", Align::Left),
    ("name", Align::Left),
    ("acts for", Align::Left),
    ("roles", Align::Left),
    ("limits", Align::Left),
    ("state", Align::Left),
];

fn list(app: &App, records: &[KeyRecord]) -> Result<()> {
    if app.output.is_json() {
        return app.output.json(&KeysJson { keys: records.iter().map(|record| key_json(record, None)).collect() });
    }
    if records.is_empty() {
        return app.output.line("no keys");
    }
    let mut table = Table::new(HEADERS);
    for record in records {
        let user = record.user.as_ref().map_or("the tenant", UserId::as_str);
        let roles: Vec<_> = record.roles.iter().map(|role| role.as_str()).collect();
        let state = match (record.revoked_at, record.expires_at) {
            (Some(at), _) => format!("revoked {at}"),
            (None, Some(at)) => format!("expires {at}"),
            (None, None) => "active".to_owned(),
        };
        let rate = record.rate_limit.map(|limit| format!("{}/min", limit.per_minute));
        let quota = record.quota.map(|quota| format!("{}/day", quota.per_day));
        let limits = [rate, quota].into_iter().flatten().collect::<Vec<_>>().join(", ");
        table.add_row([record.id.clone(), record.name.clone(), user.to_owned(), roles.join(", "), limits, state]);
    }
    app.output.line(table.text())
}

fn key_json<'a>(record: &'a KeyRecord, secret: Option<&'a KeySecret>) -> KeyJson<'a> {
    KeyJson {
        id: &record.id,
        name: &record.name,
        tenant: record.tenant.as_str(),
        user: record.user.as_ref().map(UserId::as_str),
        roles: &record.roles,
        rate_per_minute: record.rate_limit.map(|limit| limit.per_minute),
        quota_per_day: record.quota.map(|quota| quota.per_day),
        created_at: record.created_at,
        expires_at: record.expires_at,
        revoked_at: record.revoked_at,
        key: secret.map(KeySecret::as_str),
    }
}
