use std::time::Duration;

use axum::extract::State;
use serde::Serialize;
use threadkeep::agent::list_approvals;
use threadkeep::{Scope, ThreadId, ThreadOrder, ThreadQuery};
use utoipa::ToSchema;

use crate::app::App;
use crate::cursor;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::Params;
use crate::output::json;
use crate::rest::json::approval::ApprovalJson;
use crate::security::Caller;

/// The name of the list that cursors belong to.
const LIST: &str = "approvals";
/// Threads that are read at a time.
const PAGE: usize = 100;
/// Threads that one request looks through at most.
const THREADS: usize = 1_000;
/// How long an approval that another program asked for may stand.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A page of approvals.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApprovalsJson {
    data: Vec<ApprovalJson>,
    /// What to pass as `after` for the next page; null on the last.
    next: Option<String>,
}

/// Lists what waits for a decision
///
/// Those of the threads that changed last come first. With `all=true` those that were decided or are void too, which are kept
/// for 30 days. A page may be empty and yet have a next one.
#[utoipa::path(
    get,
    path = "/v1/approvals",
    tag = "approvals",
    params(
        ("thread" = Option<String>, Query, description = "Only those of a thread"),
        ("all" = Option<bool>, Query, description = "Those that are over, too"),
        ("after" = Option<String>, Query, description = "The `next` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1,000; default 50. A thread's approvals stay together")
    ),
    responses((status = 200, body = ApprovalsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, mut params: Params) -> Result {
    let scope = &caller.scope;
    let all = params.parse("all", "true or false")?.unwrap_or(false);
    let (thread, after, limit) = (params.take("thread")?, params.take("after")?, params.limit(50)?);
    params.finish()?;
    if let Some(thread) = thread {
        let thread: ThreadId = thread.parse().map_err(|_| ApiError::not_found("thread"))?;
        return Ok(json(&ApprovalsJson { data: of_thread(&app, scope, thread, all).await?, next: None }));
    }
    let after = after.map(|after| cursor::take(scope, LIST, "after", &after)).transpose()?;
    let page = walk(&app, scope, Walk { all, after, limit }).await?;
    Ok(json(&page))
}

struct Walk {
    all: bool,
    after: Option<String>,
    limit: usize,
}

/// Goes through threads, last changed first, and for what is open no further than a request can stand.
async fn walk(app: &App, scope: &Scope, Walk { all, after, limit }: Walk) -> Result<ApprovalsJson> {
    let memory = app.memory();
    let agents = app.assistants().all();
    let longest = agents.iter().map(|agent| agent.assistant().definition().approvals.expires_after).max();
    let longest_ms = i64::try_from(longest.unwrap_or_default().max(LONGEST).as_millis()).unwrap_or(i64::MAX);
    let mut query = ThreadQuery { after, ..ThreadQuery::new(ThreadOrder::Recent, PAGE) };
    let (mut data, mut looked) = (Vec::new(), 0);
    loop {
        let page = memory.list_threads(scope, &query).await?;
        looked += page.threads.len();
        let is_too_old = page.threads.last().is_some_and(|thread| {
            !all && thread.updated_at.as_millis().saturating_add(longest_ms) < memory.now().as_millis()
        });
        for thread in page.threads {
            match of_thread(app, scope, thread.id, all).await {
                Ok(approvals) => data.extend(approvals),
                // It was deleted meanwhile.
                Err(error) if error.code == "not_found" => {}
                Err(error) => return Err(error),
            }
        }
        query.after = page.next.filter(|_| !is_too_old);
        if query.after.is_none() || data.len() >= limit || looked >= THREADS {
            let next = query.after.map(|next| cursor::give(scope, LIST, &next));
            return Ok(ApprovalsJson { data, next });
        }
    }
}

async fn of_thread(app: &App, scope: &Scope, thread: ThreadId, all: bool) -> Result<Vec<ApprovalJson>> {
    let now = app.memory().now();
    let found = list_approvals(app.memory(), scope, thread).await?;
    let wanted = found.into_iter().filter(|approval| all || approval.is_open(now));
    Ok(wanted.map(|approval| ApprovalJson::of(thread, approval, now)).collect())
}
