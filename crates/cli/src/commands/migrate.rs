use anyhow::{Context, Result};
use serde::Serialize;
use threadkeep::memory::ErasureEntries as _;
use threadkeep::memory::migrate::{CopySummary, Damage, Differences, Migration, Progress, Totals, Verification};
use threadkeep::{Backend, Memory};

use super::{App, Status, import};
use crate::erasures::{self, Applied};
use crate::failure::Failure;
use crate::progress;
use crate::store::{Location, Purpose};
use crate::table::counted;

/// The maximum number of conflicts, differences or damaged items in the text output. The JSON output contains more.
const PRINTED: usize = 20;

/// Copy everything from one store to another
///
/// The data of all tenants is copied verbatim: threads with positions, revisions and erasures, the change log, keys, records.
/// Then both stores are compared. The source is only read, as of one instant: later writes are not copied, so stop all writers
/// before you switch to the target. An interrupted migration continues when it is run again. A target with other data under the
/// same ids is refused before anything is written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep migrate --from conversations.db --to postgres://threadkeep@db.example/app
  threadkeep migrate --from postgres://threadkeep@db.example/app --to copy.db
  threadkeep migrate --from old.db --to new.db --verify-only")]
pub(crate) struct Arguments {
    /// The store to read: a file, sqlite:FILE, postgres://USER@HOST/DATABASE, redis://HOST or redis-cluster://HOST,HOST
    #[arg(long, value_name = "URL")]
    from: String,
    /// The store to copy to; a missing file is created
    #[arg(long, value_name = "URL")]
    to: String,
    /// Only compare; copy nothing
    #[arg(long)]
    verify_only: bool,
}

/// The result of a migration.
#[derive(Debug, Serialize)]
pub(super) struct MigrationReport {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    copied: Option<CopySummary>,
    verified: Verification,
    #[serde(skip_serializing_if = "Option::is_none")]
    indexed: Option<u64>,
    /// After restoring a backup: the erasures that were applied again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) erasures: Option<Applied>,
}

#[derive(Serialize)]
struct RefusedJson<'a> {
    in_the_way: &'a Differences,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let (from, to) = (Location::find(Some(&arguments.from))?, Location::find(Some(&arguments.to))?);
    if from.is_same_as(&to) {
        let failure = Failure::usage("--from and --to are the same store");
        return Err(failure.hint("specify another store with --to").into());
    }
    let source = app.open_at(&from, Purpose::Read).await.context("--from")?.memory;
    let purpose = if arguments.verify_only { Purpose::Read } else { Purpose::CreateOrWrite };
    let target = app.open_at(&to, purpose).await.context("--to")?.memory;
    let report = if arguments.verify_only {
        let migration = Migration::begin(source.backend(), target.backend().clone(), source.platform()).await;
        let migration = migration.context("--from")?;
        MigrationReport { copied: None, verified: verify(&migration).await?, indexed: None, erasures: None }
    } else {
        let known = erasures::load(app, &to)?;
        let report = copy_everything(app, source.backend(), &target).await?;
        // New records must not get the versions of records that were erased in the source.
        if let Some(known) = known {
            target.raise_record_versions(known.highest_version()).await?;
        }
        report
    };
    report.print(app)?;
    Ok(report.status())
}

/// Copies everything that the target does not contain, then compares both stores.
pub(super) async fn copy_everything(app: &App, source: &Backend, target: &Memory) -> Result<MigrationReport> {
    let migration = Migration::begin(source, target.backend().clone(), target.platform()).await;
    let migration = migration.context("cannot read the source")?;
    let total = survey(app, &migration).await?;
    let bar = progress::count(total.messages, "messages copied");
    let copied = migration.copy(|done| bar.set_position(done.messages)).await;
    bar.finish_and_clear();
    let copied = copied.context("migration failed; run it again to continue")?;
    let verified = verify(&migration).await?;
    let indexed = import::catch_up(app, target, copied.copied.messages).await?;
    Ok(MigrationReport { copied: Some(copied), verified, indexed: Some(indexed), erasures: None })
}

async fn survey(app: &App, migration: &Migration) -> Result<Progress> {
    let spinner = progress::spinner("reading both stores…");
    let survey = migration.survey(|seen| spinner.set_message(counted(seen.threads, "thread"))).await;
    spinner.finish_and_clear();
    let survey = survey.context("cannot compare the stores")?;
    if survey.conflicts.is_empty() {
        return Ok(survey.total);
    }
    if app.output.is_json() {
        app.output.json(&RefusedJson { in_the_way: &survey.conflicts })?;
    } else {
        print_differences(app, &survey.conflicts)?;
    }
    let failure = Failure::user_error("the target contains other data under the same ids; nothing was copied");
    Err(failure.hint("use an empty target, or delete the conflicting data in the target").into())
}

async fn verify(migration: &Migration) -> Result<Verification> {
    let bar = progress::spinner("comparing…");
    let verified =
        migration.verify(|done| bar.set_message(format!("comparing: {}", counted(done.messages, "message"))));
    let verified = verified.await;
    bar.finish_and_clear();
    verified.context("cannot compare the stores")
}

fn print_differences(app: &App, differences: &Differences) -> Result<()> {
    let mut lines = app.output.lines();
    for difference in differences.listed.iter().take(PRINTED) {
        lines.line(difference)?;
    }
    let more = differences.count.saturating_sub(differences.listed.len().min(PRINTED) as u64);
    if more > 0 {
        lines.line(format_args!("and {} more", crate::table::number(more)))?;
    }
    lines.finish()
}

impl MigrationReport {
    pub(super) fn status(&self) -> Status {
        match &self.verified {
            verified if !verified.damage.is_empty() => Status::Incomplete,
            verified if !verified.differences.is_empty() => Status::Findings,
            _ => Status::Done,
        }
    }

    pub(super) fn print(&self, app: &App) -> Result<()> {
        if app.output.is_json() {
            return app.output.json(self);
        }
        if let Some(copied) = &self.copied {
            app.output.line(summary(copied))?;
        }
        let Verification { source, target, differences, damage, only_in_target } = &self.verified;
        print_damage(app, damage)?;
        if differences.is_empty() {
            app.output.line(format_args!("verified: both stores contain {}", listed(source)))?;
            app.output.line(format_args!("hash: {}", source.hash))?;
        } else {
            print_differences(app, differences)?;
            app.output.line(format_args!("{} found", counted(differences.count, "difference")))?;
            app.output.line(format_args!("the source contains {}", listed(source)))?;
            app.output.line(format_args!("the target contains {} of these", listed(target)))?;
        }
        if *only_in_target > 0 {
            app.output.note(format_args!("note: {} only in the target", counted(*only_in_target, "thread")));
        }
        self.erasures.as_ref().map_or(Ok(()), |erasures| erasures.print(app))
    }
}

/// Lists the damage in the source.
fn print_damage(app: &App, damage: &Damage) -> Result<()> {
    if damage.is_empty() {
        return Ok(());
    }
    let mut lines = app.output.lines();
    for damaged in damage.listed.iter().take(PRINTED) {
        lines.line(damaged)?;
    }
    let more = damage.count.saturating_sub(damage.listed.len().min(PRINTED) as u64);
    if more > 0 {
        lines.line(format_args!("and {} more", crate::table::number(more)))?;
    }
    lines.finish()?;
    app.output.note(
        "hint: the source is damaged: everything readable was copied as it is; an intact backup, or \
         `threadkeep check --salvage NEW` on the source, may contain more",
    );
    Ok(())
}

fn summary(copied: &CopySummary) -> String {
    let summary = format!("copied {}", amount(copied.copied));
    if copied.already_there == Progress::default() {
        summary
    } else {
        format!("{summary}; {} already existed", amount(copied.already_there))
    }
}

fn amount(progress: Progress) -> String {
    let Progress { threads, messages, records } = progress;
    let (threads, messages) = (counted(threads, "thread"), counted(messages, "message"));
    format!("{threads}, {messages}, {}", counted(records, "record"))
}

fn listed(totals: &Totals) -> String {
    let Totals { threads, messages, tombstones, commits, records, .. } = totals;
    let counts = [
        counted(*threads, "thread"),
        counted(*messages, "message"),
        counted(*tombstones, "tombstone"),
        counted(*commits, "commit record"),
        counted(*records, "record"),
    ];
    counts.join(", ")
}
