use anyhow::{Context, Result};
use serde::Serialize;
use threadkeep::memory::KnownErasures as _;
use threadkeep::memory::migrate::{Copied, Damage, Differences, Migration, Progress, Totals, Verification};
use threadkeep::{Backend, Memory};

use super::{App, Status, import};
use crate::erasures::{self, Applied};
use crate::failure::Failure;
use crate::progress;
use crate::store::{Location, Purpose};
use crate::table::counted;

/// What stands in the way that is told to a person; JSON tells more.
const TOLD: usize = 20;

/// Move everything from one store into another
///
/// Threads of all tenants move verbatim: positions, what was replaced and erased, the change log, keys, documents. In the
/// end both are compared. The source is only read, as it was at one instant: what is written to it meanwhile does not move,
/// so stop what writes to it before you switch. A migration that was cut continues when it is run again. A target that holds
/// other data under the same ids is refused before anything is written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep migrate --from conversations.db --to postgres://threadkeep@db.example/app
  threadkeep migrate --from postgres://threadkeep@db.example/app --to copy.db
  threadkeep migrate --from old.db --to new.db --verify-only")]
pub(crate) struct Arguments {
    /// The store to read: a file, sqlite:FILE, or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL")]
    from: String,
    /// The store to fill; a file that is not there is made
    #[arg(long, value_name = "URL")]
    to: String,
    /// Copy nothing, only compare
    #[arg(long)]
    verify_only: bool,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub(super) struct Moved {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    copied: Option<Copied>,
    verified: Verification,
    #[serde(skip_serializing_if = "Option::is_none")]
    indexed: Option<u64>,
    /// Of a backup: what was erased since it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) erasures: Option<Applied>,
}

#[derive(Serialize)]
struct Refused<'a> {
    in_the_way: &'a Differences,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let (from, to) = (Location::find(Some(&arguments.from))?, Location::find(Some(&arguments.to))?);
    if from.is_same_as(&to) {
        let failure = Failure::usage("--from and --to name the same store");
        return Err(failure.hint("name another store to fill").into());
    }
    let source = app.open_at(&from, Purpose::Read).await.context("--from")?.memory;
    let purpose = if arguments.verify_only { Purpose::Read } else { Purpose::Fill };
    let target = app.open_at(&to, purpose).await.context("--to")?.memory;
    let moved = if arguments.verify_only {
        let migration = Migration::begin(source.backend(), target.backend().clone(), source.platform()).await;
        let migration = migration.context("--from")?;
        Moved { copied: None, verified: verify(&migration).await?, indexed: None, erasures: None }
    } else {
        let known = erasures::load(app, &to)?;
        let moved = move_everything(app, source.backend(), &target).await?;
        // Documents that come later must not look like those that were erased in the source.
        if let Some(known) = known {
            target.raise_document_versions(known.highest_version()).await?;
        }
        moved
    };
    moved.print(app)?;
    Ok(moved.status())
}

/// Copies what the target does not have, and compares both.
pub(super) async fn move_everything(app: &App, source: &Backend, target: &Memory) -> Result<Moved> {
    let migration = Migration::begin(source, target.backend().clone(), target.platform()).await;
    let migration = migration.context("the source cannot be read")?;
    let total = survey(app, &migration).await?;
    let bar = progress::count(total.messages, "messages copied");
    let copied = migration.copy(|done| bar.set_position(done.messages)).await;
    bar.finish_and_clear();
    let copied = copied.context("the migration stopped; run it again to go on")?;
    let verified = verify(&migration).await?;
    let indexed = import::catch_up(app, target, copied.copied.messages).await?;
    Ok(Moved { copied: Some(copied), verified, indexed: Some(indexed), erasures: None })
}

async fn survey(app: &App, migration: &Migration) -> Result<Progress> {
    let spinner = progress::spinner("looking at both stores…");
    let survey = migration.survey(|seen| spinner.set_message(counted(seen.threads, "thread"))).await;
    spinner.finish_and_clear();
    let survey = survey.context("the stores cannot be compared")?;
    if survey.in_the_way.is_empty() {
        return Ok(survey.total);
    }
    if app.output.is_json() {
        app.output.json(&Refused { in_the_way: &survey.in_the_way })?;
    } else {
        tell(app, &survey.in_the_way)?;
    }
    let failure = Failure::yours("the target holds other data under the same ids; nothing was copied");
    Err(failure.hint("name an empty target, or delete there what is in the way").into())
}

async fn verify(migration: &Migration) -> Result<Verification> {
    let bar = progress::spinner("comparing…");
    let verified =
        migration.verify(|done| bar.set_message(format!("comparing: {}", counted(done.messages, "message"))));
    let verified = verified.await;
    bar.finish_and_clear();
    verified.context("the stores cannot be compared")
}

fn tell(app: &App, differences: &Differences) -> Result<()> {
    let mut lines = app.output.lines();
    for difference in differences.told.iter().take(TOLD) {
        lines.line(difference)?;
    }
    let untold = differences.count.saturating_sub(differences.told.len().min(TOLD) as u64);
    if untold > 0 {
        lines.line(format_args!("and {} more", crate::table::number(untold)))?;
    }
    lines.finish()
}

impl Moved {
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
            app.output.line(told(copied))?;
        }
        let Verification { source, target, differences, damage, only_in_target } = &self.verified;
        tell_damage(app, damage)?;
        if differences.is_empty() {
            app.output.line(format_args!("verified: both hold {}", listed(source)))?;
            app.output.line(format_args!("hash: {}", source.hash))?;
        } else {
            tell(app, differences)?;
            app.output.line(format_args!("{} found", counted(differences.count, "difference")))?;
            app.output.line(format_args!("the source holds {}", listed(source)))?;
            app.output.line(format_args!("the target holds {} of the same", listed(target)))?;
        }
        if *only_in_target > 0 {
            app.output.note(format_args!("note: {} only in the target", counted(*only_in_target, "thread")));
        }
        self.erasures.as_ref().map_or(Ok(()), |erasures| erasures.print(app))
    }
}

/// Names what of the source is damaged.
fn tell_damage(app: &App, damage: &Damage) -> Result<()> {
    if damage.is_empty() {
        return Ok(());
    }
    let mut lines = app.output.lines();
    for damaged in damage.told.iter().take(TOLD) {
        lines.line(damaged)?;
    }
    let untold = damage.count.saturating_sub(damage.told.len().min(TOLD) as u64);
    if untold > 0 {
        lines.line(format_args!("and {} more", crate::table::number(untold)))?;
    }
    lines.finish()?;
    app.output.note(
        "hint: the source is damaged: what could be read was moved as it is; a sound backup, or \
         `threadkeep check --salvage NEW` on the source, may hold more",
    );
    Ok(())
}

fn told(copied: &Copied) -> String {
    let told = format!("copied {}", amount(copied.copied));
    if copied.already_there == Progress::default() {
        told
    } else {
        format!("{told}; {} were there already", amount(copied.already_there))
    }
}

fn amount(progress: Progress) -> String {
    let Progress { threads, messages, documents } = progress;
    let (threads, messages) = (counted(threads, "thread"), counted(messages, "message"));
    format!("{threads}, {messages}, {}", counted(documents, "document"))
}

fn listed(totals: &Totals) -> String {
    let Totals { threads, messages, tombstones, commits, documents, .. } = totals;
    let things = [
        counted(*threads, "thread"),
        counted(*messages, "message"),
        counted(*tombstones, "tombstone"),
        counted(*commits, "commit record"),
        counted(*documents, "document"),
    ];
    things.join(", ")
}
