//! The command line of Threadkeep and its composition root. No other crate depends on all parts.
//!
//! Each command is a file in `commands` with the command's arguments, implementation and output. Commands share `arguments`
//! (global options), `store` (opens a store by its URL), `output` (text for people, JSON for programs) and `failure` (error
//! messages, hints and exit codes). No other crate prints or reads the environment.

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
mod mcp_servers;
mod models;
mod output;
mod position;
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

use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::commands::{App, Status};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::settings::Settings;

/// The variable with the number of server threads. All programs on the Tokio runtime use this variable.
const WORKER_THREADS: &str = "TOKIO_WORKER_THREADS";

fn main() -> ExitCode {
    let log_guard = log_lines::LogGuard;
    let mut arguments = Arguments::from_command_line();
    let settings = Settings::load(arguments.global.config.as_deref());
    arguments.global.complete(&settings);
    let output = Output::new(&arguments.global);
    // `config check` itself reports invalid settings.
    if !arguments.command.checks_settings()
        && let Err(error) = settings.ensure_valid()
    {
        return failure::report(&error, &output);
    }
    // The server initialises the log itself.
    let is_log_in_the_way = arguments.command.is_full_screen() && std::io::stderr().is_terminal();
    if !arguments.command.serves() && !is_log_in_the_way {
        log(&settings);
    }
    let result = match runtime(arguments.command.serves(), &settings) {
        Ok(runtime) => {
            let result = runtime.block_on(async {
                let interrupt = Interrupt::listen(&output);
                let app = App { global: arguments.global, output: output.clone(), interrupt, settings };
                Box::pin(app.run(arguments.command)).await
            });
            // Exiting cannot damage any state of background tasks.
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(error),
    };
    drop(log_guard);
    match result {
        Ok(Status::Done) => ExitCode::SUCCESS,
        Ok(Status::Findings) => ExitCode::from(failure::USER_ERROR),
        Ok(Status::Incomplete) => ExitCode::from(failure::SYSTEM_ERROR),
        Ok(Status::Interrupted) => ExitCode::from(failure::INTERRUPTED),
        Err(error) => failure::report(&error, &output),
    }
}

/// Builds the runtime. A server uses all processors unless TOKIO_WORKER_THREADS is set. Other commands need only two
/// threads.
fn runtime(serves: bool, settings: &Settings) -> anyhow::Result<tokio::runtime::Runtime> {
    let configured = settings.get(WORKER_THREADS).filter(|_| serves).map(|text| text.parse::<NonZeroUsize>());
    let invalid = |_| Failure::usage(format!("invalid {WORKER_THREADS}: expected a whole number of at least 1"));
    let threads = match configured.transpose().map_err(invalid)? {
        Some(threads) => threads.get(),
        None if serves => std::thread::available_parallelism()?.get(),
        None => 2,
    };
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?)
}

/// Writes the log to standard error, with the filter in RUST_LOG. An invalid filter disables the log.
fn log(settings: &Settings) {
    let filter = settings.get("RUST_LOG").and_then(|filter| filter.parse::<tracing_subscriber::EnvFilter>().ok());
    if let Some(filter) = filter {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
    }
}
