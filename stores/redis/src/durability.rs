//! What the servers do with acknowledged commits, and what a store needs of its servers.

use threadkeep_core::{Result, StoreError};
use uuid::Uuid;

use crate::connection::{Connections, Reply};
use crate::keys::Keys;
use crate::options::invalid;

/// The version of the stored form.
const FORMAT: u32 = 1;
/// The oldest version of Redis with functions.
const MIN_VERSION: u32 = 7;

/// What the servers do with acknowledged commits. A value is `None` if the user may not read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Durability {
    /// The number of nodes that were asked.
    pub nodes: usize,
    /// Whether all of them write an append-only file.
    pub append_only: Option<bool>,
    /// When they sync it: the weakest setting, `always`, `everysec` or `no`.
    pub append_fsync: Option<String>,
    /// The lowest number of connected replicas of a primary.
    pub replicas: usize,
    /// How many replicas must have received a commit before it is acknowledged.
    pub wait_replicas: u32,
    /// What happens when the memory is full.
    pub eviction: Option<String>,
}

impl Durability {
    /// Describes what acknowledged commits survive.
    #[must_use]
    pub fn describe(&self) -> String {
        let file = match (self.append_only, self.append_fsync.as_deref()) {
            (Some(false), _) => "NO PERSISTENCE: the append-only file is off, so a restart of a server loses data",
            (_, Some("always")) => "an acknowledged commit survives a power cut of its server (appendfsync always)",
            (_, Some("no")) => {
                "a power cut of a server loses the commits that the system has not written to disk (appendfsync no)"
            }
            (_, Some(_)) => "a power cut of a server loses up to about a second of commits (appendfsync everysec)",
            (_, None) => "unknown: the user may not read the servers' configuration",
        };
        let replicas = match (self.replicas, self.wait_replicas) {
            (0, _) => "no replicas".to_owned(),
            (count, 0) => format!("{count} replicas, not awaited: a failover can lose the newest commits"),
            (count, wait) => format!("{count} replicas, {wait} awaited"),
        };
        format!("{file}; {replicas}")
    }

    /// Whether a restart of a server loses data.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        self.append_only == Some(false)
    }
}

/// Asks the servers, and refuses those that cannot hold a store.
pub(crate) async fn inspect(connections: &Connections) -> Result<Durability> {
    let mut info = redis::cmd("INFO");
    info.arg("everything");
    let mut durability = Durability {
        nodes: 0,
        append_only: None,
        append_fsync: None,
        replicas: usize::MAX,
        wait_replicas: connections.options().wait_replicas,
        eviction: None,
    };
    // Connects, with retries, before all nodes are asked.
    connections.run(&redis::cmd("PING"), false).await?;
    for reply in connections.run_on_all(&info).await? {
        let text = reply.text()?.unwrap_or_default();
        let value = |name: &str| {
            text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':')).map(str::to_owned)
        };
        check_version(&value("redis_version").unwrap_or_default())?;
        durability.nodes += 1;
        let append_only = value("aof_enabled").map(|value| value == "1");
        durability.append_only = match (durability.append_only, append_only) {
            (Some(one), Some(other)) => Some(one && other),
            (one, other) => one.or(other),
        };
        if value("role").as_deref() == Some("master") {
            let replicas = value("connected_slaves").and_then(|count| count.parse().ok()).unwrap_or(0);
            durability.replicas = durability.replicas.min(replicas);
        }
        let policy = value("maxmemory_policy");
        if let Some(policy) = policy.as_deref().filter(|policy| *policy != "noeviction")
            && !connections.options().allow_eviction
        {
            return Err(invalid(format!(
                "the server deletes data when its memory is full (maxmemory-policy {policy}): set maxmemory-policy to \
                 noeviction, or add eviction=allow to the URL"
            )));
        }
        durability.eviction = policy.or(durability.eviction);
    }
    if durability.replicas == usize::MAX {
        durability.replicas = 0;
    }
    durability.append_fsync = read_setting(connections, "appendfsync").await;
    Ok(durability)
}

/// Reads a setting from all nodes; `None` if the user may not. Returns the weakest one.
async fn read_setting(connections: &Connections, name: &str) -> Option<String> {
    let mut get = redis::cmd("CONFIG");
    get.arg("GET").arg(name);
    let replies = connections.run_on_all(&get).await.ok()?;
    let values = replies.into_iter().filter_map(|reply| reply.items().ok()?.pop()?.text().ok()?);
    let weakness = |value: &String| ["always", "everysec", "no"].iter().position(|known| known == value);
    values.max_by_key(weakness)
}

fn check_version(version: &str) -> Result<()> {
    let major = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    if major < MIN_VERSION {
        return Err(StoreError::Incompatible(format!("Redis {version} has no functions; version 7.0 is required")));
    }
    Ok(())
}

/// Installs the functions, and returns the incarnation of the store.
pub(crate) async fn prepare(connections: &Connections, keys: &Keys) -> Result<String> {
    let about = keys.about();
    for (field, value) in [("incarnation", Uuid::new_v4().simple().to_string()), ("format", FORMAT.to_string())] {
        let mut set = redis::cmd("HSETNX");
        set.arg(&about).arg(field).arg(value);
        connections.run(&set, true).await?;
    }
    let mut get = redis::cmd("HMGET");
    get.arg(&about).arg("incarnation").arg("format");
    let mut fields = connections.run(&get, false).await?.items()?.into_iter();
    let incarnation = fields.next().map(Reply::text).transpose()?.flatten().unwrap_or_default();
    let format = fields.next().map(Reply::text).transpose()?.flatten().and_then(|format| format.parse::<u32>().ok());
    match format {
        Some(FORMAT) => {}
        Some(format) => {
            return Err(StoreError::Incompatible(format!(
                "the data has format {format}; this version reads format {FORMAT}"
            )));
        }
        None => return Err(StoreError::corrupt("format of the store", "not a number")),
    }
    connections.ensure_installed().await?;
    Ok(incarnation)
}
