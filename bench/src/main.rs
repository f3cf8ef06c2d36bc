//! Measures Threadkeep: beside other engines (`serve`), beside the least that anyone could do (`run`), and while it is
//! killed (`kill`) and its power is cut (`power-cut`).
//!
//! It deliberately asserts no speed: a benchmark is not a test. Start reading with `engine`, what an application would
//! call, and `floors`, what it is held against; then one file per workload under `run`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "results and findings are told where they are looked for"
)]

mod agent;
mod backup;
mod beam;
mod engine;
mod floors;
mod http;
mod kill;
mod latency;
mod locomo;
mod longmemeval;
mod measure;
mod postgres;
mod power_cut;
mod random;
mod recall;
mod rides;
mod run;
mod serve;
mod session;
mod summaries;
mod texts;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "threadkeep-bench", version, about = "Measures Threadkeep, kills it and cuts its power")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Answer one JSON request a line, so that engines are measured side by side
    Serve,
    /// Tell what the engine is held against
    Floors {
        /// Print the SQL of both floors
        #[arg(long)]
        sql: bool,
    },
    /// Run the workloads and print their table
    Run(run::Args),
    /// Run the workloads over PostgreSQL, beside the same flights by hand
    Postgres(postgres::Args),
    /// Kill a PostgreSQL server of its own again and again under its writers, likewise
    PostgresKill(postgres::kill::Args),
    /// Measure the server over HTTP beside a static route and beside the library's own writers
    Http(http::Args),
    /// Kill writers again and again, and look for what they had been told is stored
    Kill(kill::Args),
    /// Rebuild files as a power cut could leave them, and look for what had been acknowledged
    PowerCut(power_cut::Args),
    /// Ask the questions of LoCoMo conversations, and look for their evidence in what is recalled
    Locomo(recall::RecallArgs),
    /// Ask the probing questions of BEAM chats likewise
    Beam(recall::RecallArgs),
    /// Ask the questions of LongMemEval histories likewise
    Longmemeval(recall::RecallArgs),
    /// Measure turns of an assistant, and let their process die
    Agent(agent::Args),
    /// Time contexts with recall from a long thread in a large store
    Latency(latency::Args),
    /// Time backups in lines of a store that others write to
    Backup(backup::Args),
    /// Look for the facts of recorded operations conversations in what a summary keeps of them
    K8s(summaries::Args),
    /// Look for what dialogues settled in contexts with and without a summary
    Sgd(summaries::Args),
    /// Ask a timetable for one-seat rides, compare them with a table of what is true, and time searches with transfers
    Rides(rides::Args),
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
            println!("raw: the least that anyone could do. same: our statements without our code.");
            if sql {
                println!("{}", floors::sql());
            }
            Ok(())
        }
        Command::Run(args) => runtime.block_on(run::run(&args)),
        Command::Postgres(args) => runtime.block_on(postgres::run(&args)),
        Command::PostgresKill(args) => runtime.block_on(postgres::kill::run(&args)),
        Command::Http(args) => runtime.block_on(http::run(&args)),
        Command::Kill(args) => runtime.block_on(kill::run(&args)),
        Command::PowerCut(args) => runtime.block_on(power_cut::run(&args)),
        Command::Locomo(args) => runtime.block_on(locomo::run(&args)),
        Command::Beam(args) => runtime.block_on(beam::run(&args)),
        Command::Longmemeval(args) => runtime.block_on(longmemeval::run(&args)),
        Command::Agent(args) => runtime.block_on(agent::run(&args)),
        Command::Latency(args) => runtime.block_on(latency::run(&args)),
        Command::Backup(args) => runtime.block_on(backup::run(&args)),
        Command::K8s(args) => runtime.block_on(summaries::k8s::run(&args)),
        Command::Sgd(args) => runtime.block_on(summaries::sgd::run(&args)),
        Command::Rides(args) => rides::run(&args),
        Command::HttpFloor(args) => runtime.block_on(http::floor::run(&args)),
        Command::KillChild(args) => runtime.block_on(kill::child::run(&args)),
    }
}
