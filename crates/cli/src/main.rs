//! The command line of Threadkeep, and its composition root: the one place that knows every part by name.
//!
//! Each command is a file in `commands`, with its arguments, its run and what it prints. They share `arguments` (what
//! every command takes), `store` (from a URL to an open store), `output` (what reaches a person or a program) and
//! `failure` (what went wrong, what to do, and the exit code). No other crate prints or reads the environment.

mod arguments;
mod bar;
mod commands;
mod failure;
mod instants;
mod interrupt;
mod json;
mod output;
mod place;
mod progress;
mod store;
mod table;
mod thread_name;
mod transcript;

use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::commands::{App, Status};
use crate::interrupt::Interrupt;
use crate::output::Output;

fn main() -> ExitCode {
    let arguments = Arguments::from_command_line();
    let output = Output::new(&arguments.global);
    let result = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => {
            let result = runtime.block_on(async {
                let interrupt = Interrupt::listen(&output);
                let app = App { global: arguments.global, output: output.clone(), interrupt };
                Box::pin(app.run(arguments.command)).await
            });
            // What still runs in the background holds nothing that an exit could harm.
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(Status::Done) => ExitCode::SUCCESS,
        Ok(Status::Findings) => ExitCode::from(failure::YOURS),
        Ok(Status::Incomplete) => ExitCode::from(failure::OTHER_SIDE),
        Ok(Status::Interrupted) => ExitCode::from(failure::INTERRUPTED),
        Err(error) => failure::report(&error, &output),
    }
}
