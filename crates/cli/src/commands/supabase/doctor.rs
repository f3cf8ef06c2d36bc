use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

use super::environment::Environment;
use super::findings::{self, Finding};
use super::{catalog::Catalog, connect, trial};
use crate::commands::{App, Status};
use crate::failure::Failure;
use crate::store::Location;

/// Check that an application's tables are there, and that nobody sees another's rows
///
/// The tables are `conversations` and `messages`, as applications with Supabase keep them. What is missing is named, and the
/// SQL that makes it is printed; nothing is changed. A database URL is needed beside Supabase's keys, which open its HTTP API
/// only. Threadkeep keeps its own data in a schema of its own and leaves these tables as they are.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep supabase doctor postgresql://postgres:PASSWORD@db.PROJECT.supabase.co:5432/postgres
  threadkeep supabase doctor $DATABASE_URL --try          row security put to the test, and undone
  threadkeep supabase doctor $DATABASE_URL --sql > missing.sql")]
pub(crate) struct Arguments {
    /// The database, as the project's dashboard shows it under Connect [default: the store, where it is a database]
    url: Option<String>,
    /// The file of the application's keys, whose names are checked; values are never shown
    #[arg(long, value_name = "FILE", default_value = ".env.local")]
    env_file: PathBuf,
    /// Also make rows of two users, try what each must not be able to do, and undo it all in one transaction
    #[arg(long = "try")]
    try_it: bool,
    /// Print only the SQL that makes what is missing
    #[arg(long)]
    sql: bool,
}

#[derive(Serialize)]
struct Examined<'a> {
    findings: &'a [Finding],
    sql: String,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let environment = Environment::read(&arguments.env_file);
    let store = match app.location()? {
        Location::Other(url) => Some(url),
        Location::Sqlite(_) => None,
    };
    let Some(url) = arguments.url.or(store) else {
        if !app.output.is_json() {
            print_lines(app, &environment.findings())?;
        }
        let failure = Failure::usage("a database URL is needed beside Supabase's keys, which open its HTTP API only");
        return Err(failure.hint(environment.database_hint()).into());
    };
    let mut client = connect::connect(&url, &environment).await?;
    let mut found = findings::of(&Catalog::read(&client).await?);
    if arguments.try_it && found.iter().all(|finding| finding.is_there) {
        found.extend(trial::run(&mut client).await?);
    }
    let sql = findings::sql(&found);
    if arguments.sql {
        return app.output.line(sql).map(|()| Status::Done);
    }
    let mut all = environment.findings();
    all.append(&mut found);
    if app.output.is_json() {
        app.output.json(&Examined { findings: &all, sql })?;
    } else {
        print(app, &all, &sql)?;
    }
    Ok(if all.iter().all(|finding| finding.is_there) { Status::Done } else { Status::Findings })
}

fn print(app: &App, findings: &[Finding], sql: &str) -> Result<()> {
    print_lines(app, findings)?;
    if !sql.is_empty() {
        app.output.line("\nThis SQL makes what is missing:\n")?;
        app.output.line(sql)?;
    }
    Ok(())
}

fn print_lines(app: &App, findings: &[Finding]) -> Result<()> {
    let mut lines = app.output.lines();
    for finding in findings {
        let mark = if finding.is_there { "ok    " } else { "not ok" };
        lines.line(format_args!("{mark}  {finding}"))?;
    }
    lines.finish()
}
