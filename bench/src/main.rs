//! Measures Threadkeep: beside other engines (`serve`), beside the least that anyone could do (`run`), and while it is
//! killed (`kill`) and its power is cut (`power-cut`).
//!
//! It deliberately asserts no speed: a benchmark is not a test. Start reading with `engine`, what an application would
//! call, and `floors`, what it is held against; then one file per workload under `run`.
#![expect(clippy::print_stdout, reason = "results go to the standard output")]

mod engine;
mod floors;
mod measure;
mod random;
mod run;
mod serve;
mod session;
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
    }
}
