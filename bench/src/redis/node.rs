//! The resource usage of one node, from INFO.

use anyhow::{Context, Result};
use redis::aio::MultiplexedConnection;

/// A connection to a node.
pub(super) struct Node(MultiplexedConnection);

/// The resource usage of a node since it was started.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Bytes currently in memory.
    pub(super) memory: u64,
    /// Bytes of the append-only file.
    pub(super) log: u64,
    /// Bytes received and sent.
    pub(super) input: u64,
    pub(super) output: u64,
    /// Calls of functions and other commands by clients.
    pub(super) calls: u64,
    /// CPU time in seconds.
    pub(super) cpu: f64,
}

impl Node {
    pub(super) async fn connect(url: &str) -> Result<Self> {
        Ok(Self(redis::Client::open(url)?.get_multiplexed_async_connection().await?))
    }

    pub(super) async fn usage(&mut self) -> Result<Usage> {
        let info: String = redis::cmd("INFO").arg("everything").query_async(&mut self.0).await?;
        let value = |name: &str| {
            let value = info.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
            value.with_context(|| format!("INFO does not contain {name}"))
        };
        let calls = |name: &str| {
            let stats = value(&format!("cmdstat_{name}")).unwrap_or_default();
            let calls = stats.split(',').find_map(|field| field.strip_prefix("calls="));
            calls.and_then(|calls| calls.parse::<u64>().ok()).unwrap_or(0)
        };
        Ok(Usage {
            memory: value("used_memory")?.parse()?,
            log: value("aof_current_size").unwrap_or("0").parse()?,
            input: value("total_net_input_bytes")?.parse()?,
            output: value("total_net_output_bytes")?.parse()?,
            calls: calls("fcall") + calls("fcall_ro") + calls("publish") + calls("spublish"),
            cpu: value("used_cpu_user")?.parse::<f64>()? + value("used_cpu_sys")?.parse::<f64>()?,
        })
    }
}
