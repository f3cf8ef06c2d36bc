//! Runs the store conformance suite on the Redis store: with a separate server for each store, and on a shared cluster.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use threadkeep_core::{Backend, Consistency};
use threadkeep_redis_server::{Cluster, Server};
use threadkeep_store_conformance::{Capabilities, Factory, Instance, property_test};
use threadkeep_store_redis::RedisStore;

const ABILITIES: Capabilities =
    Capabilities { durable: true, named_collections: true, compaction: false, snapshots: Consistency::Thread };

/// Each store has its own server, so that the suite can search its files.
struct NodeFactory;

async fn node() -> Option<NodeFactory> {
    (!threadkeep_redis_server::is_left_out("redis")).then_some(NodeFactory)
}

#[async_trait]
impl Factory for NodeFactory {
    async fn create(&self) -> Box<dyn Instance> {
        // With other values of appendfsync, Redis may acknowledge a write before it is in the file.
        let server = Arc::new(Server::start(&[("appendfsync", "no")]).expect("tests with Redis are not skipped"));
        let store =
            RedisStore::open(&format!("redis://{}?connect_timeout=30", server.address())).await.expect("a new store");
        Box::new(NodeInstance { store, server })
    }

    fn capabilities(&self) -> Capabilities {
        ABILITIES
    }
}

struct NodeInstance {
    store: RedisStore,
    server: Arc<Server>,
}

#[async_trait]
impl Instance for NodeInstance {
    fn backend(&self) -> Backend {
        self.store.backend()
    }

    /// Also restarts the server.
    async fn reopen(self: Box<Self>) -> Box<dyn Instance> {
        let Self { store, server } = *self;
        drop(store);
        server.restart();
        let store = RedisStore::open(&format!("redis://{}?connect_timeout=30", server.address()))
            .await
            .expect("the same store");
        Box::new(NodeInstance { store, server })
    }

    fn files(&self) -> Vec<PathBuf> {
        self.server.wait_until_old_files_are_removed();
        self.server.files()
    }
}

/// The stores of all tests share a cluster.
struct ClusterFactory(&'static Cluster);

async fn cluster() -> Option<ClusterFactory> {
    Cluster::shared().map(ClusterFactory)
}

#[async_trait]
impl Factory for ClusterFactory {
    async fn create(&self) -> Box<dyn Instance> {
        let prefix = uuid::Uuid::new_v4().simple();
        let url = format!("redis-cluster://{}?prefix={prefix}&connect_timeout=30", self.0.addresses());
        let store = RedisStore::open(&url).await.expect("a new store");
        Box::new(ClusterInstance { store, url })
    }

    fn capabilities(&self) -> Capabilities {
        ABILITIES
    }
}

struct ClusterInstance {
    store: RedisStore,
    url: String,
}

#[async_trait]
impl Instance for ClusterInstance {
    fn backend(&self) -> Backend {
        self.store.backend()
    }

    async fn reopen(self: Box<Self>) -> Box<dyn Instance> {
        let Self { store, url } = *self;
        drop(store);
        let store = RedisStore::open(&url).await.expect("the same store");
        Box::new(ClusterInstance { store, url })
    }

    /// None, because the files also contain the stores of other tests; tests/servers.rs searches the files of a separate cluster.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

// S1.40
mod on_one_node {
    threadkeep_store_conformance::conformance_tests!(crate::node);
}

mod on_a_cluster {
    threadkeep_store_conformance::conformance_tests!(crate::cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn store_matches_the_model() {
    if let Some(node) = node().await {
        property_test(&node, 16).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn store_on_a_cluster_matches_the_model() {
    if let Some(cluster) = cluster().await {
        property_test(&cluster, 16).await;
    }
}
