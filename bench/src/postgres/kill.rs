//! `postgres-kill`: kills a PostgreSQL server repeatedly while writers use it, and checks that no acknowledged turn is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use serde::Serialize;
use threadkeep_memory::Memory;
use threadkeep_postgres_server::Server;
use threadkeep_store_postgres::PostgresStore;

use crate::engine::Engine;
use crate::kill::ack_log::AckLog;
use crate::kill::child::{Turn, append};
use crate::random::{Random, fresh_seed};

/// Time from a server's start to its kill, in milliseconds: minimum and maximum.
const LIFETIME_MS: (u64, u64) = (300, 1_500);
/// Maximum time for which one kill may delay a turn.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Arguments of `threadkeep-bench postgres-kill`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of kills
    #[arg(long, default_value_t = 50)]
    times: u64,
    /// Number of writers
    #[arg(long, default_value_t = 16)]
    writers: usize,
    /// Seed of the times between kills [default: random]
    #[arg(long)]
    seed: Option<u64>,
}

/// The results.
#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    kills: u64,
    acknowledged: u64,
    /// Calls that failed while the server was down.
    failures: u64,
    /// Turns that were stored although their calls failed.
    stored_unacknowledged: u64,
    messages: u64,
    lost: u64,
    doubled: u64,
    out_of_order: u64,
    findings: u64,
}

#[derive(Default)]
struct Counts {
    failures: AtomicU64,
    replayed: AtomicU64,
    /// Set to stop the writers.
    ended: std::sync::atomic::AtomicBool,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let mut random = Random::new(seed);
    let server = tokio::task::block_in_place(|| Server::start(&["fsync=on", "full_page_writes=on"]));
    let database = server.create_database().await;
    let url = format!("{}?statement_timeout=5&connect_timeout=2", database.url());
    let engine = Engine::new(Memory::new(PostgresStore::open(&url).await?.backend()), None);
    for writer in 0..args.writers {
        engine.thread(&Turn::thread(writer)).await?;
    }
    let counts = Arc::new(Counts::default());
    let writers: Vec<_> =
        (0..args.writers).map(|writer| tokio::spawn(write(engine.clone(), writer, Arc::clone(&counts)))).collect();
    for _ in 0..args.times {
        // The delay does not wait for a condition: it sets the time of the kill.
        tokio::time::sleep(Duration::from_millis(LIFETIME_MS.0 + random.below(LIFETIME_MS.1 - LIFETIME_MS.0))).await;
        server.kill();
        tokio::task::block_in_place(|| server.restart());
    }
    counts.ended.store(true, Ordering::Relaxed);
    let mut ack_log = AckLog::new(args.writers);
    for (writer, turns) in try_join_all(writers).await?.into_iter().enumerate() {
        (0..turns?).for_each(|number| ack_log.acknowledge(Turn { writer, number }));
    }
    let found = ack_log.compare(&engine).await?;
    while !engine.memory.backend().search.catch_up(10_000).await?.done {}
    let verified = engine.memory.backend().maintenance.verify().await?;
    let report = Report {
        seed,
        kills: args.times,
        acknowledged: ack_log.acknowledged(),
        failures: counts.failures.load(Ordering::Relaxed),
        stored_unacknowledged: counts.replayed.load(Ordering::Relaxed),
        messages: verified.messages,
        lost: found.lost,
        doubled: found.doubled,
        out_of_order: found.out_of_order,
        findings: verified.findings.len() as u64,
    };
    println!("{report:#?}");
    let wrong = report.lost + report.doubled + report.out_of_order + report.findings;
    ensure!(wrong == 0, "acknowledged turns are missing or wrong (seed {seed})");
    Ok(())
}

/// Appends turns, each repeated until it is acknowledged. Returns their number.
async fn write(engine: Engine, writer: usize, counts: Arc<Counts>) -> Result<u64> {
    let mut number = 0;
    while !counts.ended.load(Ordering::Relaxed) {
        let mut is_retry = false;
        let committing = async {
            loop {
                match append(&engine, Turn { writer, number }).await {
                    Ok(appended) => return appended.replayed,
                    // Every failure must be temporary, so each is retried.
                    Err(_) => counts.failures.fetch_add(1, Ordering::Relaxed),
                };
                is_retry = true;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let was_replayed = tokio::time::timeout(TIMEOUT, committing).await?;
        counts.replayed.fetch_add(u64::from(is_retry && was_replayed), Ordering::Relaxed);
        number += 1;
    }
    Ok(number)
}
