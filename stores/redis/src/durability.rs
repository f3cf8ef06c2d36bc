//! What the servers do with acknowledged commits, and what a store requires of its servers.

use threadkeep_core::{Result, StoreError};
use uuid::Uuid;

use crate::connection::Connections;
use crate::keys::Keys;
use crate::options::invalid;
use crate::reply::Reply;

/// The version of the stored form. Versions that read another one cannot open the store.
const FORMAT: u32 = 2;
/// The first version, of which everything is still read.
const FIRST_FORMAT: u32 = 1;
/// The oldest major version of Redis that supports functions.
const MIN_VERSION: u32 = 7;

/// What the servers do with acknowledged commits. A value is `None` if the user may not read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Durability {
    /// The number of nodes that were asked.
    pub nodes: usize,
    /// Whether all of them write an append-only file.
    pub append_only: Option<bool>,
    /// When they sync it: `always`, `everysec` or `no`; the weakest setting of any node.
    pub append_fsync: Option<String>,
    /// The lowest number of replicas of a primary that are connected and in step.
    pub replicas: usize,
    /// How many bytes the slowest replica is behind its primary.
    pub lag: u64,
    /// How many replicas must have received a commit before it is acknowledged.
    pub wait_replicas: u32,
    /// What happens when the memory is full.
    pub eviction: Option<String>,
    /// The number of parts of the store, in a cluster of 128, that were lost because a server restarted without its data. A repair makes
    /// the rest usable.
    pub lost_parts: usize,
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
        let behind = match self.lag {
            0 => String::new(),
            lag => format!(", the slowest {lag} bytes behind"),
        };
        let replicas = match (self.replicas, self.wait_replicas) {
            (0, 0) => "no replicas".to_owned(),
            (0, _) => "NO REPLICAS, but commits wait for them".to_owned(),
            (count, 0) => format!("{count} replicas{behind}, not awaited: a failover can lose the newest commits"),
            (count, wait) if count < wait as usize => format!("{count} REPLICAS{behind}, but commits wait for {wait}"),
            (count, wait) => format!("{count} replicas{behind}, {wait} awaited"),
        };
        let lost = match self.lost_parts {
            0 => "",
            _ => {
                "LOST DATA: a server has restarted without its data (`threadkeep check --repair` makes the rest usable); "
            }
        };
        format!("{lost}{file}; {replicas}")
    }

    /// Whether a restart of a server loses data, or has lost some.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        self.append_only == Some(false) || self.lost_parts > 0
    }
}

/// Queries the servers, and rejects those that cannot hold a store.
pub(crate) async fn inspect(connections: &Connections) -> Result<Durability> {
    let mut info = redis::cmd("INFO");
    info.arg("everything");
    let mut durability = Durability {
        nodes: 0,
        append_only: None,
        append_fsync: None,
        replicas: usize::MAX,
        lag: 0,
        wait_replicas: connections.options().wait_replicas,
        eviction: None,
        lost_parts: 0,
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
            let (replicas, lag) = replicas_of(&text);
            durability.replicas = durability.replicas.min(replicas);
            durability.lag = durability.lag.max(lag);
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

/// Reads a setting from all nodes and returns the weakest value; `None` if the user may not read it.
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
        return Err(StoreError::Incompatible(format!(
            "Redis {version} does not support functions; version 7.0 or later is required"
        )));
    }
    Ok(())
}

/// Returns the number of replicas of a primary that are in step, and how many bytes the slowest is behind. `info` is the primary's
/// `INFO replication`.
pub(crate) fn replicas_of(info: &str) -> (usize, u64) {
    let written = info.lines().find_map(|line| line.trim().strip_prefix("master_repl_offset:")?.parse::<u64>().ok());
    // slave0:ip=127.0.0.1,port=7001,state=online,offset=1000,lag=0
    let lines = info.lines().filter(|line| line.starts_with("slave") && line.contains("state=online"));
    let offsets =
        lines.filter_map(|line| line.split(',').find_map(|field| field.strip_prefix("offset=")?.parse::<u64>().ok()));
    let lags: Vec<u64> = offsets.map(|offset| written.unwrap_or(0).saturating_sub(offset)).collect();
    (lags.len(), lags.into_iter().max().unwrap_or(0))
}

/// Returns the number of parts of a store that are lost; 0 if there is no store.
pub(crate) async fn count_losses(connections: &Connections, keys: &Keys) -> Result<usize> {
    let (incarnation, _, has_markers) = read_description(connections, keys).await?;
    let markers = connections.read_markers().await?;
    let is_stored = incarnation.is_some() && has_markers || markers.iter().any(Option::is_some);
    Ok(if is_stored { markers.iter().filter(|marker| marker.is_none()).count() } else { 0 })
}

/// Returns the incarnation of the store, its format, and whether its markers were placed.
async fn read_description(connections: &Connections, keys: &Keys) -> Result<(Option<String>, Option<String>, bool)> {
    let mut get = redis::cmd("HMGET");
    get.arg(keys.about()).arg("incarnation").arg("format").arg("markers");
    let mut fields = connections.run_unchecked(&get).await?.items()?.into_iter().map(Reply::text);
    let mut next = || fields.next().transpose().map(Option::flatten);
    Ok((next()?, next()?, next()?.is_some()))
}

/// Installs the functions, unless data is lost, and returns the incarnation of the store.
pub(crate) async fn prepare(connections: &Connections, keys: &Keys) -> Result<String> {
    let about = keys.about();
    let (known, _, _) = read_description(connections, keys).await?;
    let surviving = match known {
        Some(_) => None,
        // A new store, or one whose description was lost with its server.
        None => connections.read_markers().await?.into_iter().flatten().next(),
    };
    let has_survivors = surviving.is_some();
    let incarnation = surviving.unwrap_or_else(|| Uuid::new_v4().simple().to_string());
    for (field, value) in [("incarnation", incarnation), ("format", FORMAT.to_string())] {
        let mut set = redis::cmd("HSETNX");
        set.arg(&about).arg(field).arg(value);
        connections.run_unchecked(&set).await?;
    }
    let (incarnation, format, has_markers) = read_description(connections, keys).await?;
    match format.as_deref().map(str::parse) {
        Some(Ok(FORMAT)) => {}
        Some(Ok(FIRST_FORMAT)) => {
            let mut set = redis::cmd("HSET");
            set.arg(&about).arg("format").arg(FORMAT);
            connections.run_unchecked(&set).await?;
        }
        Some(Ok(format)) => {
            return Err(StoreError::Incompatible(format!(
                "the data has format {format}; this version reads format {FORMAT}"
            )));
        }
        _ => return Err(StoreError::corrupt("format of the store", "not a number")),
    }
    let incarnation = incarnation.unwrap_or_default();
    if !has_markers {
        if !has_survivors {
            connections.place_markers(&incarnation).await?;
        }
        let mut set = redis::cmd("HSET");
        set.arg(&about).arg("markers").arg(connections.loss_detector().markers().len());
        connections.run_unchecked(&set).await?;
    }
    connections.loss_detector().set_incarnation(&incarnation);
    connections.find_losses().await?;
    connections.ensure_installed().await?;
    Ok(incarnation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replicas_in_step_count() {
        let info = "role:master\r\nconnected_slaves:2\r\n\
                    slave0:ip=127.0.0.1,port=1,state=online,offset=900,lag=0\r\n\
                    slave1:ip=127.0.0.1,port=2,state=wait_bgsave,offset=0,lag=0\r\nmaster_repl_offset:1000\r\n";
        assert_eq!(replicas_of(info), (1, 100));
        assert_eq!(replicas_of("role:master\r\nconnected_slaves:0\r\nmaster_repl_offset:5\r\n"), (0, 0));
    }

    #[test]
    fn problems_are_written_in_capitals() {
        let durability = Durability {
            nodes: 1,
            append_only: Some(true),
            append_fsync: Some("everysec".to_owned()),
            replicas: 0,
            lag: 0,
            wait_replicas: 1,
            eviction: None,
            lost_parts: 0,
        };
        assert!(durability.describe().ends_with("NO REPLICAS, but commits wait for them") && !durability.is_volatile());
        let lost = Durability { lost_parts: 3, ..durability };
        assert!(lost.describe().starts_with("LOST DATA") && lost.is_volatile());
    }
}
