use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

use super::environment::Environment;
use super::findings::{self, Finding};
use super::{catalog::Catalog, connect, trial};
use crate::commands::{App, Status};
use crate::failure::Failure;
use crate::store::Location;

/// Check that an application's tables exist and that row security separates its users
///
/// The tables are `conversations` and `messages`, as is common in Supabase applications. Problems are listed with the SQL that
/// fixes them; nothing is changed. A database URL is required: Supabase's keys give access to its HTTP API only. Threadkeep
/// stores its own data in a separate schema and does not touch these tables.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep supabase doctor postgresql://postgres:PASSWORD@db.PROJECT.supabase.co:5432/postgres
  threadkeep supabase doctor $DATABASE_URL --try          also test row security, in a rolled-back transaction
  threadkeep supabase doctor $DATABASE_URL --sql > missing.sql")]
pub(crate) struct Arguments {
    /// The database URL, as the project's dashboard shows it under Connect [default: the store, if it is a database]
    url: Option<String>,
    /// The file with the application's keys. Names are checked; values are never printed
    #[arg(long, value_name = "FILE", default_value = ".env.local")]
    env_file: PathBuf,
    /// Also insert rows of two users, attempt forbidden accesses, and roll everything back
    #[arg(long = "try")]
    try_it: bool,
    /// Print only the SQL that creates what is missing
    #[arg(long)]
    sql: bool,
}

#[derive(Serialize)]
struct DoctorJson<'a> {
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
        let failure = Failure::usage("a database URL is required: Supabase's keys give access to its HTTP API only");
        return Err(failure.hint(environment.database_hint()).into());
    };
    let mut client = connect::connect(&url, &environment).await?;
    let mut results = findings::of(&Catalog::read(&client).await?);
    if arguments.try_it && results.iter().all(|finding| finding.is_there) {
        results.extend(trial::run(&mut client).await?);
    }
    let sql = findings::sql(&results);
    if arguments.sql {
        return app.output.line(sql).map(|()| Status::Done);
    }
    let mut all = environment.findings();
    all.append(&mut results);
    if app.output.is_json() {
        app.output.json(&DoctorJson { findings: &all, sql })?;
    } else {
        print(app, &all, &sql)?;
    }
    Ok(if all.iter().all(|finding| finding.is_there) { Status::Done } else { Status::Findings })
}

fn print(app: &App, findings: &[Finding], sql: &str) -> Result<()> {
    print_lines(app, findings)?;
    if !sql.is_empty() {
        app.output.line("\nThis SQL creates what is missing:\n")?;
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
