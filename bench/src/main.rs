//! Benchmarks and crash tests of Threadkeep: throughput and latency relative to minimal baselines (`run`) and to other
//! engines (`serve`), process kills (`kill`) and simulated power cuts (`power-cut`).
//!
//! The program deliberately does not check speed, because a benchmark is not a test. Start reading with `engine`, which
//! calls the library as an application would, and `floors`, the baselines. The workloads are in `run`, one file each.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program prints its results")]

mod agent;
mod backup;
mod beam;
mod engine;
mod floors;
mod history;
mod http;
mod kill;
mod latency;
mod locomo;
mod london;
mod longmemeval;
mod mcp;
mod measure;
mod postgres;
mod power_cut;
mod random;
mod recall;
mod redis;
mod rides;
mod run;
mod serve;
mod session;
mod slack;
mod summaries;
mod tesis;
mod texts;
mod typing;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "threadkeep-bench", version, about = "Benchmarks and crash tests of Threadkeep")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Answer JSON requests, one per line, for a harness that compares engines
    Serve,
    /// Describe the baselines (floors) that the engine is compared with
    Floors {
        /// Also print the SQL of the baselines
        #[arg(long)]
        sql: bool,
    },
    /// Run the workloads on SQLite and print a table
    Run(run::Args),
    /// Run the workloads on PostgreSQL, compared with handwritten SQL
    Postgres(postgres::Args),
    /// Kill a PostgreSQL server repeatedly while writers use it, and check that no acknowledged turn is lost
    PostgresKill(postgres::kill::Args),
    /// Run the workloads on Redis, compared with handwritten commands; measure memory, network and scaling
    Redis(redis::Args),
    /// Measure the HTTP server, compared with a route that returns fixed bytes and with the library
    Http(http::Args),
    /// Measure how soon the server acknowledges events of Slack, and its memory with many channels
    Slack(slack::Args),
    /// Kill a process with writers repeatedly, and check that no acknowledged turn is lost
    Kill(kill::Args),
    /// Rebuild files as a power cut could leave them, and check that no acknowledged turn is lost
    PowerCut(power_cut::Args),
    /// Measure how much evidence for the questions of LoCoMo conversations is recalled
    Locomo(recall::RecallArgs),
    /// Measure how much evidence for the probing questions of BEAM chats is recalled
    Beam(recall::RecallArgs),
    /// Measure how much evidence for the questions of LongMemEval histories is recalled
    Longmemeval(recall::RecallArgs),
    /// Measure turns of an assistant, and test them with crashes and concurrent decisions
    Agent(agent::Args),
    /// Time contexts with recall from a long thread in a large store
    Latency(latency::Args),
    /// Time searches while queries are typed letter by letter, among all messages of one user
    Typing(typing::Args),
    /// Time the MCP server on a large store: from its start to the first answers, and searches
    Mcp(mcp::Args),
    /// Time imports of the sessions that programs keep on a machine, and measure following them
    History(history::Args),
    /// Time JSON Lines backups of a store while writers append to it
    Backup(backup::Args),
    /// Measure how many facts of recorded operations conversations remain after a compaction
    K8s(summaries::Args),
    /// Measure how many slot values of task dialogues a context contains, with and without a summary
    Sgd(summaries::Args),
    /// Measure the search of the legal assistant, compared with BM25
    Tesis(tesis::Args),
    /// Import many synthetic records into the legal assistant's corpus, and time searches
    TesisLoad(tesis::load::Args),
    /// Check rides without a transfer against known arrival times, and time searches with transfers
    Rides(rides::Args),
    /// Check running times on London's lines against known ranges, and time the search for routes
    London(london::Args),
    #[command(hide = true)]
    HttpFloor(http::floor::Args),
    #[command(hide = true)]
    KillChild(kill::child::Args),
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match Arguments::parse().command {
        Command::Serve => runtime.block_on(serve::run()),
        Command::Floors { sql } => {
            println!("raw: one table, one index, no checks. same: the engine's SQL statements without the engine.");
            if sql {
                println!("{}", floors::sql());
            }
            Ok(())
        }
        Command::Run(args) => runtime.block_on(run::run(&args)),
        Command::Postgres(args) => runtime.block_on(postgres::run(&args)),
        Command::PostgresKill(args) => runtime.block_on(postgres::kill::run(&args)),
        Command::Redis(args) => runtime.block_on(redis::run(&args)),
        Command::Http(args) => runtime.block_on(http::run(&args)),
        Command::Slack(args) => runtime.block_on(slack::run(&args)),
        Command::Kill(args) => runtime.block_on(kill::run(&args)),
        Command::PowerCut(args) => runtime.block_on(power_cut::run(&args)),
        Command::Locomo(args) => runtime.block_on(locomo::run(&args)),
        Command::Beam(args) => runtime.block_on(beam::run(&args)),
        Command::Longmemeval(args) => runtime.block_on(longmemeval::run(&args)),
        Command::Agent(args) => runtime.block_on(agent::run(&args)),
        Command::Latency(args) => runtime.block_on(latency::run(&args)),
        Command::Typing(args) => runtime.block_on(typing::run(&args)),
        Command::Mcp(args) => runtime.block_on(mcp::run(&args)),
        Command::History(args) => history::run(&args),
        Command::Backup(args) => runtime.block_on(backup::run(&args)),
        Command::K8s(args) => runtime.block_on(summaries::k8s::run(&args)),
        Command::Sgd(args) => runtime.block_on(summaries::sgd::run(&args)),
        Command::Tesis(args) => runtime.block_on(tesis::run(&args)),
        Command::TesisLoad(args) => runtime.block_on(tesis::load::run(&args)),
        Command::Rides(args) => rides::run(&args),
        Command::London(args) => runtime.block_on(london::run(&args)),
        Command::HttpFloor(args) => runtime.block_on(http::floor::run(&args)),
        Command::KillChild(args) => runtime.block_on(kill::child::run(&args)),
    }
}
