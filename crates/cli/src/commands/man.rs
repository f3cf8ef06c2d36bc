use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::CommandFactory;

use super::{App, Status};
use crate::table::counted;

/// Print the manual page, or write one page per command
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep man | man -l -
  threadkeep man ~/.local/share/man/man1")]
pub(crate) struct Arguments {
    /// The folder to write the pages to, one per command
    folder: Option<PathBuf>,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Status> {
    let command = crate::Arguments::command();
    let Some(folder) = &arguments.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        app.output.line(String::from_utf8_lossy(&page).trim_end())?;
        return Ok(Status::Done);
    };
    let cannot_write = || format!("cannot write the pages to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(cannot_write)?;
    clap_mangen::generate_to(command, folder).with_context(cannot_write)?;
    let pages = std::fs::read_dir(folder).with_context(cannot_write)?.filter_map(Result::ok);
    let ours = pages.filter(|page| page.file_name().to_string_lossy().starts_with("threadkeep")).count();
    app.output.note(format_args!("wrote {} to {}", counted(ours as u64, "page"), folder.display()));
    Ok(Status::Done)
}
