//! The command line of Threadkeep, and its composition root: the one place that knows every part by name.
//!
//! Each command is a file in `commands`, with its arguments, its run and what it prints. They share `arguments` (what
//! every command takes), `store` (from a URL to an open store), `output` (what reaches a person or a program) and
//! `failure` (what went wrong, what to do, and the exit code). No other crate prints or reads the environment.

mod arguments;
mod assistants;
mod bar;
mod clock;
mod commands;
mod erasures;
mod exposure;
mod failure;
mod instants;
mod interrupt;
mod json;
mod listen;
mod local_token;
mod log_lines;
mod models;
mod output;
mod place;
mod private;
mod progress;
mod served;
mod session;
mod settings;
mod store;
mod table;
mod thread_name;
mod transcript;
mod usage;
mod word_wrap;

use std::num::NonZeroUsize;
use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::commands::{App, Status};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::settings::Settings;

/// What says how many threads serve, in every program on this runtime.
const THREADS: &str = "TOKIO_WORKER_THREADS";

fn main() -> ExitCode {
    let log_lines = log_lines::ClosedAtEnd;
    let mut arguments = Arguments::from_command_line();
    let settings = Settings::load(arguments.global.config.as_deref());
    arguments.global.complete(&settings);
    let output = Output::new(&arguments.global);
    // What is wrong with the settings is what `config check` is asked for.
    if !arguments.command.checks_settings()
        && let Err(error) = settings.demand_sound()
    {
        return failure::report(&error, &output);
    }
    // The server has a log of its own.
    if !arguments.command.serves() {
        log(&settings);
    }
    let result = match runtime(arguments.command.serves(), &settings) {
        Ok(runtime) => {
            let result = runtime.block_on(async {
                let interrupt = Interrupt::listen(&output);
                let app = App { global: arguments.global, output: output.clone(), interrupt, settings };
                Box::pin(app.run(arguments.command)).await
            });
            // What still runs in the background holds nothing that an exit could harm.
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(error),
    };
    drop(log_lines);
    match result {
        Ok(Status::Done) => ExitCode::SUCCESS,
        Ok(Status::Findings) => ExitCode::from(failure::YOURS),
        Ok(Status::Incomplete) => ExitCode::from(failure::OTHER_SIDE),
        Ok(Status::Interrupted) => ExitCode::from(failure::INTERRUPTED),
        Err(error) => failure::report(&error, &output),
    }
}

/// A server takes all processors, or as many threads as it is told; a command has little to do at once.
fn runtime(serves: bool, settings: &Settings) -> anyhow::Result<tokio::runtime::Runtime> {
    let told = settings.get(THREADS).filter(|_| serves).map(|told| told.parse::<NonZeroUsize>());
    let told = told.transpose().map_err(|_| Failure::usage(format!("{THREADS} is not a number of threads")))?;
    let threads = match told {
        Some(threads) => threads.get(),
        None if serves => std::thread::available_parallelism()?.get(),
        None => 2,
    };
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?)
}

/// Logs what RUST_LOG asks for, to standard error. A filter that makes no sense logs nothing.
fn log(settings: &Settings) {
    let filter = settings.get("RUST_LOG").and_then(|filter| filter.parse::<tracing_subscriber::EnvFilter>().ok());
    if let Some(filter) = filter {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
    }
}
