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

/// Migrates a file and a database to one Redis server and to a cluster, and back.
#[test]
fn files_and_databases_migrate_to_redis_and_back() {
    let migrate = |from: &str, to: &str| {
        let moved = Cli::new().run(&["migrate", "--from", from, "--to", to]);
        assert!(moved.code == Some(0) && moved.out.contains("verified: both stores"), "{from} to {to}: {moved}");
    };
    let there_and_back = |from: &Cli, redis: &Cli, back: &Cli| {
        let [from_url, redis_url, back_url] = [from, redis, back].map(location);
        let before = everything(from);
        migrate(&from_url, &redis_url);
        assert_eq!(everything(redis), before, "{redis_url}");
        migrate(&redis_url, &back_url);
        assert_eq!(everything(back), before, "{redis_url}");
    };
    let on_each = |run: &dyn Fn(&Cli)| {
        with_server(run);
        with_cluster(run);
    };
    let file = Cli::with_garden();
    on_each(&|redis| there_and_back(&file, redis, &Cli::new()));
    super::postgres::with_postgres(|database| {
        database.import_garden();
        on_each(&|redis| super::postgres::with_postgres(|back| there_and_back(database, redis, back)));
    });
}

/// Returns the URL or the file of the store that a program uses.
fn location(cli: &Cli) -> String {
    cli.url.clone().unwrap_or_else(|| cli.store().display().to_string())
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

/// One of three servers has lost its data. Until the store is repaired, no command answers as if the data had never existed.
#[test]
fn lost_data_is_reported_until_a_repair() {
    let Some(cluster) = Cluster::start(0) else { return };
    let cli = Cli { url: Some(format!("redis-cluster://{}", cluster.addresses())), ..Cli::new() };
    for number in 0..12 {
        cli.out(&["append", &format!("web:{number}"), "hello", "--create"]);
    }
    let lost = &cluster.nodes()[0];
    assert_eq!(lost.run(&["flushall"]), "OK");
    assert_eq!(lost.run(&["function", "flush"]), "OK");
    let names_the_loss = |text: &str| text.contains("restarted without its data");
    let checked = cli.run(&["check"]);
    assert!(checked.code == Some(1) && names_the_loss(&checked.out), "{checked}");
    let checked = cli.run(&["config", "check"]);
    assert!(checked.code == Some(1) && checked.out.contains("LOST DATA"), "{checked}");
    let backup = cli.run(&["backup", &cli.path("lost.jsonl").display().to_string()]);
    assert!(backup.code == Some(3) && names_the_loss(&backup.err), "{backup}");
    let shown: Vec<_> = (0..12).map(|number| cli.run(&["show", &format!("web:{number}")])).collect();
    assert!(shown.iter().all(|shown| shown.code == Some(0) || names_the_loss(&shown.err)), "{}", shown[0]);
    assert!(shown.iter().any(|shown| shown.code == Some(3)));
    let repaired = cli.run(&["check", "--repair"]);
    assert_eq!(repaired.code, Some(0), "{repaired}");
    let checked = cli.run(&["config", "check"]);
    assert!(checked.code == Some(0) && !checked.out.contains("LOST"), "{checked}");
    let kept = (0..12).filter(|number| cli.run(&["show", &format!("web:{number}")]).code == Some(0)).count();
    assert_eq!(cli.out(&["threads"]).lines().filter(|line| line.contains("hello")).count(), kept);
    assert!(kept < 12);
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
