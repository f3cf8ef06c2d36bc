use std::process::Command;
use std::sync::OnceLock;

use crate::programs::find_program;
use crate::proxy;
use crate::{Certificates, Proxy, Server};

/// A running Redis Cluster. Stops when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
}

impl Cluster {
    /// Returns the shared cluster of this process: three primaries without replicas. The first call starts it. Returns `None` if tests
    /// with Redis are skipped.
    ///
    /// # Panics
    /// Redis is not installed or does not start. The message says how to fix it.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(0)).as_ref()
    }

    /// Starts a cluster of three primaries, each with the given number of replicas. Returns `None` if tests with Redis are skipped.
    ///
    /// # Panics
    /// In the same cases as [`Cluster::shared`].
    #[must_use]
    pub fn start(replicas: usize) -> Option<Self> {
        Self::start_with(replicas, &[])
    }

    /// Starts a cluster whose nodes are behind proxies, which are returned in the order of the nodes. Clients that connect to one proxy reach
    /// all nodes through proxies.
    ///
    /// # Panics
    /// In the same cases as [`Cluster::shared`].
    #[must_use]
    pub fn start_behind_proxies(replicas: usize) -> Option<(Self, Vec<Proxy>)> {
        let announced =
            [("cluster-announce-hostname", proxy::ADDRESS), ("cluster-preferred-endpoint-type", "hostname")];
        let cluster = Self::start_with(replicas, &announced)?;
        let proxies = cluster.nodes.iter().map(|node| Proxy::start(node.port())).collect();
        Some((cluster, proxies))
    }

    /// Starts a cluster of three primaries, each with the given number of replicas, whose nodes have a TLS port and connect to
    /// each other over TLS.
    ///
    /// # Panics
    /// In the same cases as [`Cluster::shared`].
    #[must_use]
    pub fn start_with_tls(certificates: &Certificates, replicas: usize) -> Option<Self> {
        let settings = [
            ("cluster-enabled", "yes"),
            ("cluster-node-timeout", "30000"),
            ("tls-cluster", "yes"),
            ("tls-replication", "yes"),
        ];
        let servers = (0..3 * (replicas + 1)).map(|_| Server::start_with_tls(certificates, &settings));
        let nodes = servers.collect::<Option<Vec<_>>>()?;
        let mut command = Command::new(find_program("redis-cli"));
        command.arg("--tls").arg("--cacert").arg(certificates.authority());
        command.arg("--cert").arg(certificates.certificate()).arg("--key").arg(certificates.key());
        Some(Self::create(command, nodes, Server::tls_address, replicas))
    }

    fn start_with(replicas: usize, further: &[(&str, &str)]) -> Option<Self> {
        // Without replicas, there is no failover to wait for. The long timeout keeps a node on a busy machine from being considered failed.
        let timeout = if replicas == 0 { "30000" } else { "2000" };
        let settings = [&[("cluster-enabled", "yes"), ("cluster-node-timeout", timeout)], further].concat();
        let nodes = (0..3 * (replicas + 1)).map(|_| Server::start(&settings)).collect::<Option<Vec<_>>>()?;
        Some(Self::create(Command::new(find_program("redis-cli")), nodes, Server::address, replicas))
    }

    /// Joins nodes into a cluster, with `redis-cli`.
    fn create(mut command: Command, nodes: Vec<Server>, address: fn(&Server) -> String, replicas: usize) -> Self {
        let created = command
            .args(["--cluster", "create"])
            .args(nodes.iter().map(address))
            .args(["--cluster-replicas", &replicas.to_string(), "--cluster-yes"])
            .output()
            .expect("redis-cli starts");
        assert!(created.status.success(), "creating the cluster failed: {}", String::from_utf8_lossy(&created.stdout));
        let cluster = Self { nodes };
        cluster.wait_until_ready();
        cluster
    }

    /// Returns the nodes.
    #[must_use]
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// Returns the addresses of the nodes, separated by commas.
    #[must_use]
    pub fn addresses(&self) -> String {
        self.nodes.iter().map(Server::address).collect::<Vec<_>>().join(",")
    }

    /// Returns the addresses of the proxies of [`Cluster::start_behind_proxies`], separated by commas.
    #[must_use]
    pub fn proxied_addresses(&self) -> String {
        let addresses = self.nodes.iter().map(|node| format!("{}:{}", proxy::ADDRESS, node.port()));
        addresses.collect::<Vec<_>>().join(",")
    }

    /// Moves slots from one primary to another, with their keys.
    ///
    /// # Panics
    /// `redis-cli` fails.
    pub fn move_slots(&self, from: &Server, to: &Server, count: usize) {
        let id = |node: &Server| node.run(&["cluster", "myid"]);
        let moved = Command::new(find_program("redis-cli"))
            .args(["--cluster", "reshard", &from.address(), "--cluster-from", &id(from), "--cluster-to", &id(to)])
            .args(["--cluster-slots", &count.to_string(), "--cluster-yes"])
            .output()
            .expect("redis-cli starts");
        assert!(moved.status.success(), "moving slots failed: {}", String::from_utf8_lossy(&moved.stdout));
    }

    /// Waits until every node sees all slots served, and every replica is in step with its primary.
    ///
    /// # Panics
    /// The cluster is not ready within a minute.
    pub fn wait_until_ready(&self) {
        for node in &self.nodes {
            node.wait_until("the cluster is complete", || {
                let info = node.run(&["info", "replication"]);
                node.run(&["cluster", "info"]).contains("cluster_state:ok")
                    && (info.contains("role:master") || info.contains("master_link_status:up"))
            });
        }
    }

    /// Waits until the other nodes serve all slots without this one.
    ///
    /// # Panics
    /// The cluster does not recover within a minute.
    pub fn wait_until_served_without(&self, node: &Server) {
        for other in self.nodes.iter().filter(|other| other.port() != node.port()) {
            other.wait_until("a replica takes over", || {
                let nodes = other.run(&["cluster", "nodes"]);
                let is_failed = |line: &str| line.contains(&node.address()) && line.contains("fail");
                let serves = |line: &str| line.contains(&node.address()) && line.contains("-");
                let is_replaced = nodes.lines().any(is_failed)
                    && !nodes.lines().any(|line| serves(line) && line.split(' ').count() > 8);
                is_replaced && other.run(&["cluster", "info"]).contains("cluster_state:ok")
            });
        }
    }

    /// Returns the primaries.
    #[must_use]
    pub fn primaries(&self) -> Vec<&Server> {
        self.nodes.iter().filter(|node| node.run(&["info", "replication"]).contains("role:master")).collect()
    }
}
