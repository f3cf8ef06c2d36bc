//! Connections over TLS.
#![expect(clippy::unwrap_used, reason = "a panic in a test names the failing line")]

use std::time::Duration;

use futures::StreamExt;
use threadkeep_core::{OpenThread, Reason, Scope, StoreError, ThreadId, ThreadOrder, ThreadQuery};
use threadkeep_memory::{Draft, Memory};
use threadkeep_redis_server::{Certificates, Cluster, Server};
use threadkeep_store_redis::RedisStore;

fn parameters(certificates: &Certificates) -> String {
    let [authority, certificate, key] = [certificates.authority(), certificates.certificate(), certificates.key()]
        .map(|path| path.display().to_string());
    format!("cacert={authority}&cert={certificate}&key={key}")
}

/// Writes and reads a thread, and checks that another instance is woken up.
async fn assert_usable(url: &str) {
    let scope = Scope::user("acme", "ana").unwrap();
    let memory = Memory::new(RedisStore::open(url).await.unwrap().backend());
    let other = RedisStore::open(url).await.unwrap().backend();
    let mut wake_ups = other.store.wake_ups().await.unwrap();
    let thread = memory.open(&scope).await.unwrap().thread.id;
    memory.append(&scope, thread, Draft::user("hello")).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(20), wake_ups.next()).await.unwrap().is_some());
    let found = Memory::new(other).newest(&scope, thread, 10).await.unwrap();
    assert_eq!(found[0].plain_text(), "hello");
    let listed = memory.list_threads(&scope, &ThreadQuery::new(ThreadOrder::Created, 10)).await.unwrap();
    assert!(listed.threads.iter().any(|listed| listed.id == thread));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_reached_over_tls() {
    let certificates = Certificates::create();
    let Some(server) = Server::start_with_tls(&certificates, &[]) else { return };
    assert_usable(&format!("rediss://{}?{}", server.tls_address(), parameters(&certificates))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_reached_over_tls() {
    let certificates = Certificates::create();
    let Some(cluster) = Cluster::start_with_tls(&certificates, 1) else { return };
    // The other nodes are discovered through the first one.
    let address = cluster.nodes()[0].tls_address();
    let url = format!("rediss-cluster://{address}?{}", parameters(&certificates));
    assert_usable(&url).await;
    // Commits that wait for replicas use separate connections.
    assert_usable(&format!("{url}&wait_replicas=1&wait_timeout=20000")).await;
    let store = RedisStore::open(&format!("{url}&wait_replicas=2&wait_timeout=50")).await.unwrap();
    let (scope, id) = (Scope::user("acme", "ana").unwrap(), ThreadId(uuid::Uuid::from_u128(1)));
    let now = "2026-11-23T08:30:00Z".parse().unwrap();
    let error = store.backend().store.open_thread(&scope, OpenThread::new(&scope, id), now).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { reason: Reason::Timeout, maybe_applied: true, .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_errors_state_the_reason() {
    let (certificates, others) = (Certificates::create(), Certificates::create());
    let Some(server) = Server::start_with_tls(&certificates, &[]) else { return };
    let address = server.tls_address();
    let authority = certificates.authority().display().to_string();
    let missing = format!("{authority}.missing");
    for (parameters, reason) in [
        (String::new(), "certificate was rejected"),
        (parameters(&others), "certificate was rejected"),
        (format!("cacert={authority}"), "certificate was rejected"),
        (format!("cacert={missing}"), "cacert"),
        (format!("cacert={}", server.files()[0].display()), "not a PEM file"),
    ] {
        let error = RedisStore::open(&format!("rediss://{address}?{parameters}")).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{parameters}: {error}");
    }
}
