use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use super::{App, Status};

/// Print a script that completes commands and options in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep completions bash > ~/.local/share/bash-completion/completions/threadkeep
  threadkeep completions fish > ~/.config/fish/completions/threadkeep.fish
  threadkeep completions zsh  > ~/.zfunc/_threadkeep")]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Status> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "threadkeep", &mut script);
    app.output.line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Status::Done)
}
