//! Compares the capacity of three primaries with the capacity of one.
//!
//! On a machine with few cores, three nodes are not faster than one, so this benchmark measures CPU time: if the busiest of three nodes does
//! a share `s` of the work, and an operation costs `r` times the CPU time that it costs on a single node, three machines
//! handle `1 ÷ (s × r)` times as many operations as one.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use threadkeep_core::{Scope, ThreadId, ThreadOrder, ThreadQuery};
use threadkeep_memory::{Memory, SearchOptions};
use threadkeep_redis_server::{Cluster, Server};
use threadkeep_store_redis::RedisStore;

use super::node::{Node, Usage};
use super::{append_turn, open_threads};
use crate::random::Random;
use crate::texts::Language;

/// The number of tenants, and of users. Users have different numbers of threads: the first users have the most.
const TENANTS: usize = 100;
const USERS: usize = 1_000;
/// The number of concurrent callers.
const CALLERS: usize = 64;

/// Runs the measurement with many tenants, then with a single tenant.
pub(super) async fn run(threads: usize, operations: usize) -> Result<Value> {
    let mut results = serde_json::Map::new();
    for (name, tenants) in [("many_tenants", TENANTS), ("one_tenant", 1)] {
        let node = Server::start(&[]).context("Redis is skipped")?;
        let url = format!("redis://{}", node.address());
        let single = measure(&url, std::slice::from_ref(&url), tenants, threads, operations).await?;
        drop(node);
        let cluster = Cluster::start(0).context("Redis is skipped")?;
        let urls: Vec<String> = cluster.nodes().iter().map(|node| format!("redis://{}", node.address())).collect();
        let url = format!("redis-cluster://{}", cluster.addresses());
        let split = measure(&url, &urls, tenants, threads, operations).await?;
        let result = compare(&single, &split);
        eprintln!("scaling, {name}: {result}");
        results.insert(name.to_owned(), result);
    }
    Ok(Value::Object(results))
}

/// For each node, its CPU time in microseconds per operation, its calls per operation, and its memory in bytes.
struct Figures {
    nodes: Vec<f64>,
    calls: Vec<f64>,
    memory: Vec<u64>,
}

fn compare(single: &Figures, split: &Figures) -> Value {
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let share = |values: &[f64]| values.iter().copied().fold(0.0, f64::max) / sum(values);
    let memory: Vec<f64> = split.memory.iter().map(|bytes| *bytes as f64).collect();
    let relative = sum(&split.nodes) / sum(&single.nodes);
    json!({
        "single_cpu_us_per_operation": sum(&single.nodes),
        "cluster_cpu_us_per_operation": split.nodes,
        "cluster_calls_per_operation": split.calls,
        "busiest_share": share(&split.nodes),
        "relative_cpu": relative,
        "largest_share_of_memory": share(&memory),
        "scaling": 1.0 / (share(&split.nodes) * relative),
    })
}

async fn measure(url: &str, nodes: &[String], tenants: usize, threads: usize, operations: usize) -> Result<Figures> {
    let memory = Memory::new(RedisStore::open(url).await?.backend());
    let texts = Language::new(1).pool(200);
    let mut random = Random::new(7);
    let scopes = (0..threads).map(|_| {
        // The product of two random fractions makes low numbers more frequent.
        let uneven =
            |random: &mut Random, count: usize| (random.fraction() * random.fraction() * count as f64) as usize;
        let (tenant, user) = (random.index(tenants), uneven(&mut random, USERS));
        Ok(Scope::user(format!("tenant-{tenant}"), format!("user-{user}"))?)
    });
    let scopes = scopes.collect::<Result<Vec<_>>>()?;
    let ids = open_threads(&memory, &scopes).await?;
    let seeded: Vec<(usize, (&Scope, &ThreadId))> = scopes.iter().zip(&ids).enumerate().collect();
    for part in seeded.chunks(CALLERS) {
        try_join_all(part.iter().map(|(number, (scope, id))| append_turn(&memory, scope, **id, &texts, *number)))
            .await?;
    }
    settle(&memory).await?;
    let mut connections = Vec::new();
    for node in nodes {
        connections.push(Node::connect(node).await?);
    }
    let before = usages(&mut connections).await?;
    let callers = (0..CALLERS).map(|caller| {
        let (memory, texts, scopes, ids) = (&memory, &texts, &scopes, &ids);
        async move {
            let mut random = Random::new(caller as u64);
            for number in 0..operations / CALLERS {
                let chosen = random.index(ids.len());
                operate(memory, &scopes[chosen], ids[chosen], texts, number, random.index(10)).await?;
            }
            anyhow::Ok(())
        }
    });
    try_join_all(callers).await?;
    settle(&memory).await?;
    let after = usages(&mut connections).await?;
    let done = (operations / CALLERS * CALLERS) as f64;
    ensure!(done > 0.0, "there must be at least {CALLERS} operations");
    let pairs = || before.iter().zip(&after);
    Ok(Figures {
        nodes: pairs().map(|(before, after)| (after.cpu - before.cpu) * 1e6 / done).collect(),
        calls: pairs().map(|(before, after)| (after.calls - before.calls) as f64 / done).collect(),
        memory: after.iter().map(|usage| usage.memory).collect(),
    })
}

/// Runs one operation: a search for kind 0, a list of threads for kind 1, and a turn for all other kinds.
async fn operate(
    memory: &Memory,
    scope: &Scope,
    thread: ThreadId,
    texts: &[String],
    number: usize,
    kind: usize,
) -> Result<()> {
    match kind {
        0 => {
            let text = &texts[number % texts.len()];
            let words: Vec<&str> = text.split(' ').take(2).collect();
            memory.search(scope, &words.join(" "), &SearchOptions::default()).await?;
        }
        1 => {
            memory.list_threads(scope, &ThreadQuery::new(ThreadOrder::Recent, 20)).await?;
        }
        _ => append_turn(memory, scope, thread, texts, number).await?,
    }
    Ok(())
}

async fn settle(memory: &Memory) -> Result<()> {
    while !memory.backend().search.catch_up(100_000).await?.done {}
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(())
}

async fn usages(nodes: &mut [Node]) -> Result<Vec<Usage>> {
    let mut usages = Vec::new();
    for node in nodes {
        usages.push(node.usage().await?);
    }
    Ok(usages)
}
