//! Stores and shows explanations, one per turn.

use anyhow::Result;
use serde::Serialize;
use threadkeep::{Memory, Report, Scope, Thread, ThreadId, ThreadOrder, ThreadQuery};

use super::{App, Explanation, QUESTION_COLUMNS, Status};
use crate::failure::Failure;
use crate::output::printable_line;
use crate::table::cut;

/// The maximum length of an explanation's name.
const NAME_BYTES: usize = 400;

#[derive(Serialize)]
struct TurnJson<'a> {
    thread: ThreadId,
    turn: &'a str,
    report: &'a Report,
}

/// Checks the name of an explanation. Control characters are invalid, because users have to type the name.
pub(super) fn check(name: &str) -> Result<()> {
    if (1..=NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let hint = format!("use 1 to {NAME_BYTES} bytes without control characters, such as turn-7");
    Err(Failure::usage("invalid ID for an explanation").hint(hint).into())
}

/// Prints a stored explanation.
pub(super) async fn show(
    app: &App,
    memory: &Memory,
    scope: &Scope,
    turn: &str,
    thread: Option<Thread>,
) -> Result<Status> {
    let found = match thread {
        Some(thread) => {
            let report = memory.context_report(scope, thread.id, turn).await?;
            report.map(|report| (thread, report))
        }
        None => find(memory, scope, turn).await?,
    };
    let Some((thread, report)) = found else {
        let failure = Failure::user_error(format!(
            "no explanation is stored under `{}`",
            cut(&printable_line(turn), QUESTION_COLUMNS)
        ));
        let hint = "`threadkeep context THREAD --keep ID` stores one for 30 days";
        return Err(failure.hint(hint).into());
    };
    if app.output.is_json() {
        app.output.json(&TurnJson { thread: thread.id, turn, report: &report })?;
    } else {
        let explanation = Explanation::read(memory, scope, &thread, &report).await?;
        explanation.print(&app.output, &format!("stored as {}", printable_line(turn)))?;
    }
    Ok(Status::Done)
}

/// Searches all threads for an explanation, starting with the thread that changed last.
async fn find(memory: &Memory, scope: &Scope, turn: &str) -> Result<Option<(Thread, Report)>> {
    let mut query = ThreadQuery::new(ThreadOrder::Recent, threadkeep::core::limits::PAGE);
    loop {
        let page = memory.list_threads(scope, &query).await?;
        for thread in page.threads {
            if let Some(report) = memory.context_report(scope, thread.id, turn).await? {
                return Ok(Some((thread, report)));
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(None),
        }
    }
}
