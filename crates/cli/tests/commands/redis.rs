//! The commands on Redis and Redis Cluster.

use std::sync::atomic::{AtomicU64, Ordering};

use threadkeep_redis_server::{Cluster, Server};

use super::Cli;
use super::postgres::{assert_behaves_as_on_a_file, assert_two_servers_share_a_store, everything};

/// Runs a test with its own keys on a server that other tests share, unless tests on Redis are skipped.
pub(super) fn with_server(run: impl Fn(&Cli)) {
    if let Some(server) = Server::shared() {
        run(&Cli { url: Some(format!("redis://{}?prefix={}", server.address(), prefix())), ..Cli::new() });
    }
}

/// Runs a test with its own keys on a cluster that other tests share, unless tests on Redis are skipped.
pub(super) fn with_cluster(run: impl Fn(&Cli)) {
    if let Some(cluster) = Cluster::shared() {
        run(&Cli { url: Some(format!("redis-cluster://{}?prefix={}", cluster.addresses(), prefix())), ..Cli::new() });
    }
}

fn prefix() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("test-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn commands_behave_as_on_a_file() {
    let Some(server) = Server::start(&[]) else { return };
    assert_behaves_as_on_a_file(Cli { url: Some(format!("redis://{}", server.address())), ..Cli::new() });
}

#[test]
fn commands_on_a_cluster_behave_as_on_a_file() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = format!("redis-cluster://{}?prefix=commands", cluster.addresses());
    assert_behaves_as_on_a_file(Cli { url: Some(url), ..Cli::new() });
}

#[test]
fn migrations_and_backups_keep_everything() {
    let (Some(server), Some(cluster)) = (Server::start(&[]), Cluster::shared()) else { return };
    let file = Cli::with_garden();
    file.out(&["append", "web:shop", "Is it open?", "--create", "--tenant", "globex"]);
    let before = everything(&file);
    let node = format!("redis://{}", server.address());
    let slots = format!("redis-cluster://{}?prefix=migrated", cluster.addresses());
    let restored = format!("redis-cluster://{}?prefix=restored", cluster.addresses());
    let (file_name, back) = (file.store().display().to_string(), file.path("back.db").display().to_string());
    for (from, to) in [(&file_name, &node), (&node, &slots), (&slots, &back)] {
        let moved = file.run(&["migrate", "--from", from, "--to", to]);
        assert!(
            moved.code == Some(0) && moved.out.contains("verified: both stores contain 3 threads"),
            "{from}: {moved}"
        );
    }
    let cli_at = |url: &str| Cli { url: Some(url.to_owned()), ..Cli::new() };
    for url in [&node, &slots, &back] {
        assert_eq!(everything(&cli_at(url)), before, "{url}");
    }
    let backup = file.path("monday.jsonl.gz").display().to_string();
    cli_at(&node).out(&["backup", &backup]);
    cli_at(&restored).out(&["restore", &backup]);
    assert_eq!(everything(&cli_at(&restored)), before);
    assert_eq!(cli_at(&restored).run(&["check"]).code, Some(0));
    assert!(cli_at(&restored).out(&["search", "tomatoes"]).contains("omato"));
}

#[test]
fn stores_in_postgres_and_redis_migrate_to_each_other() {
    super::postgres::with_postgres(|database| {
        with_server(|node| {
            with_cluster(|cluster| {
                database.import_garden();
                let before = everything(database);
                for (from, to) in [(database, node), (node, cluster)] {
                    let (from, to) = (from.url.as_deref().unwrap(), to.url.as_deref().unwrap());
                    let moved = database.run(&["migrate", "--from", from, "--to", to]);
                    assert!(moved.code == Some(0) && moved.out.contains("verified: both stores"), "{from}: {moved}");
                }
                assert_eq!(everything(cluster), before);
                super::postgres::with_postgres(|target| {
                    let (from, to) = (cluster.url.as_deref().unwrap(), target.url.as_deref().unwrap());
                    let moved = database.run(&["migrate", "--from", from, "--to", to]);
                    assert_eq!(moved.code, Some(0), "{moved}");
                    assert_eq!(everything(target), before);
                });
            });
        });
    });
}

// S4.37
#[test]
fn two_servers_share_one_cluster() {
    with_cluster(assert_two_servers_share_a_store);
}

#[test]
fn the_configuration_check_describes_durability() {
    let (Some(durable), Some(volatile)) = (Server::start(&[]), Server::start(&[("appendonly", "no")])) else { return };
    let check = |url: String| Cli { url: Some(url), ..Cli::new() }.run(&["config", "check"]);
    let checked = check(format!("redis://{}", durable.address()));
    assert!(checked.code == Some(0) && checked.out.contains("appendfsync everysec"), "{checked}");
    let checked = check(format!("redis://{}", volatile.address()));
    assert!(checked.code == Some(0) && checked.out.contains("NO PERSISTENCE"), "{checked}");
    // The response to a readiness check also describes durability.
    for (server, is_volatile) in [(&durable, false), (&volatile, true)] {
        let cli = Cli { url: Some(format!("redis://{}", server.address())), ..Cli::new() };
        let server = super::serve::Server::start(&cli);
        let (status, body) = server.ask("GET /ready", "").unwrap();
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert!(status.contains("200") && body["status"] == "ready", "{status} {body}");
        assert_eq!(body["durability"]["volatile"], is_volatile, "{body}");
        let description = body["durability"]["description"].as_str().unwrap();
        assert_eq!(description.starts_with("NO PERSISTENCE"), is_volatile, "{body}");
    }
    let evicting = Server::start(&[("maxmemory-policy", "allkeys-lru")]).unwrap();
    let checked = check(format!("redis://{}", evicting.address()));
    assert!(checked.code == Some(1) && checked.out.contains("noeviction"), "{checked}");
}

#[test]
fn invalid_addresses_are_usage_errors() {
    for (url, code, message) in [
        ("redis://ana:s3cret@127.0.0.1:1", 3, "no connection"),
        ("redis://127.0.0.1:1?colour=s3cret", 2, "unknown parameter colour"),
        ("redis-cluster://a,,b", 2, "names no host"),
        ("rediss://ana:s3cret@host?cacert=/no/such/file", 2, "cacert"),
    ] {
        let cli = Cli { url: Some(url.to_owned()), ..Cli::new() };
        let failed = cli.run(&["threads"]);
        assert!(failed.code == Some(code) && failed.err.contains(message), "{url}: {failed}");
        assert!(!failed.err.contains("s3cret"), "{failed}");
    }
}
