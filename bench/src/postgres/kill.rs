//! `postgres-kill`: a server of its own is killed again and again under its writers, and nothing acknowledged may be missing.

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
use crate::kill::child::{Turn, append};
use crate::kill::ledger::Ledger;
use crate::random::{Random, fresh_seed};

/// How long a server lives after it answers, in milliseconds.
const LIFE_MS: (u64, u64) = (300, 1_500);
/// As long as a writer may be kept from its turn by one fault.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `threadkeep-bench postgres-kill`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often
    #[arg(long, default_value_t = 50)]
    times: u64,
    /// How many writers there are
    #[arg(long, default_value_t = 16)]
    writers: usize,
    /// Chooses the moments; another one each time unless given
    #[arg(long)]
    seed: Option<u64>,
}

/// What was seen.
#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    kills: u64,
    acknowledged: u64,
    /// Calls that failed while the server was away.
    failures: u64,
    /// Turns that were told as failed and had been stored.
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
    /// Set when the writers are to end.
    ended: std::sync::atomic::AtomicBool,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let mut random = Random::new(seed);
    let server = tokio::task::block_in_place(|| Server::start(&["fsync=on", "full_page_writes=on"]));
    let database = server.create_database().await;
    let url = format!("{}?statement_timeout=5&connect_timeout=2", database.url());
    let engine = Engine::over(Memory::new(PostgresStore::open(&url).await?.backend()), None);
    for writer in 0..args.writers {
        engine.thread(&Turn::thread(writer)).await?;
    }
    let counts = Arc::new(Counts::default());
    let writers: Vec<_> =
        (0..args.writers).map(|writer| tokio::spawn(write(engine.clone(), writer, Arc::clone(&counts)))).collect();
    for _ in 0..args.times {
        // Not to wait for anything: this is the moment at which the server dies.
        tokio::time::sleep(Duration::from_millis(LIFE_MS.0 + random.below(LIFE_MS.1 - LIFE_MS.0))).await;
        server.kill();
        tokio::task::block_in_place(|| server.restart());
    }
    counts.ended.store(true, Ordering::Relaxed);
    let mut ledger = Ledger::new(args.writers);
    for (writer, turns) in try_join_all(writers).await?.into_iter().enumerate() {
        (0..turns?).for_each(|number| ledger.acknowledge(Turn { writer, number }));
    }
    let kept = ledger.compare(&engine).await?;
    while !engine.memory.backend().search.catch_up(10_000).await?.done {}
    let verified = engine.memory.backend().maintenance.verify().await?;
    let report = Report {
        seed,
        kills: args.times,
        acknowledged: ledger.acknowledged(),
        failures: counts.failures.load(Ordering::Relaxed),
        stored_unacknowledged: counts.replayed.load(Ordering::Relaxed),
        messages: verified.messages,
        lost: kept.lost,
        doubled: kept.doubled,
        out_of_order: kept.out_of_order,
        findings: verified.findings.len() as u64,
    };
    println!("{report:#?}");
    let wrong = report.lost + report.doubled + report.out_of_order + report.findings;
    ensure!(wrong == 0, "the server did not hold what it had acknowledged (seed {seed})");
    Ok(())
}

/// Writes turn after turn, each until it is acknowledged.
async fn write(engine: Engine, writer: usize, counts: Arc<Counts>) -> Result<u64> {
    let mut number = 0;
    while !counts.ended.load(Ordering::Relaxed) {
        let mut is_again = false;
        let committing = async {
            loop {
                match append(&engine, Turn { writer, number }).await {
                    Ok(appended) => return appended.replayed,
                    // Whatever the kind, it has to pass.
                    Err(_) => counts.failures.fetch_add(1, Ordering::Relaxed),
                };
                is_again = true;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let was_replayed = tokio::time::timeout(PATIENCE, committing).await?;
        counts.replayed.fetch_add(u64::from(is_again && was_replayed), Ordering::Relaxed);
        number += 1;
    }
    Ok(number)
}
