use std::time::Duration;

use axum::extract::State;
use serde::Serialize;
use threadkeep::agent::list_approvals;
use threadkeep::{Scope, ThreadId, ThreadOrder, ThreadQuery};
use threadkeep_api::approval::ApprovalJson;
use utoipa::ToSchema;

use crate::app::App;
use crate::cursor;
use crate::error::{ErrorEnvelope, Result};
use crate::input::QueryParams;
use crate::output::json;
use crate::security::Caller;
use crate::thread_names;

/// The name of this list in cursors.
const LIST: &str = "approvals";
/// The number of threads read with one query.
const THREADS_PER_QUERY: usize = 100;
/// The maximum number of threads that one request searches.
const MAX_THREADS: usize = 1_000;
/// The longest time for which an approval requested by another program is assumed to stay open.
const MAX_OPEN_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// A page of approvals.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApprovalsJson {
    data: Vec<ApprovalJson>,
    /// The value of `after` for the next page; null on the last page.
    next: Option<String>,
}

/// Lists the open approvals
///
/// The approvals are ordered by the last change of their threads, latest first. `all=true` includes closed approvals, which are
/// retained for 30 days. A page may be empty although there is a next page.
#[utoipa::path(
    get,
    path = "/v1/approvals",
    operation_id = "list_approvals",
    tag = "approvals",
    params(
        ("thread" = Option<String>, Query, description = "Only this thread"),
        ("all" = Option<bool>, Query, description = "Include closed approvals"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page"),
        ("limit" = Option<u32>, Query, description = "1 to 1,000; default 50. May be exceeded, because a thread's approvals are always on one page")
    ),
    responses((status = 200, body = ApprovalsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, mut params: QueryParams) -> Result {
    let scope = &caller.scope;
    let include_closed = params.parse("all", "true or false")?.unwrap_or(false);
    let (thread, after, limit) = (params.take("thread")?, params.take("after")?, params.take_limit(50)?);
    params.finish()?;
    if let Some(thread) = thread {
        let thread: ThreadId = thread_names::resolve(&app, scope, &thread).await?;
        let data = list_in_thread(&app, scope, thread, include_closed).await?;
        return Ok(json(&ApprovalsJson { data, next: None }));
    }
    let after = after.map(|after| cursor::decode(scope, LIST, "after", &after)).transpose()?;
    let page = search(&app, scope, ApprovalQuery { include_closed, after, limit }).await?;
    Ok(json(&page))
}

struct ApprovalQuery {
    include_closed: bool,
    after: Option<String>,
    limit: usize,
}

/// Searches threads for approvals, starting with the thread that changed last. A search for open approvals ends at threads whose
/// last change is longer ago than an approval can stay open.
async fn search(app: &App, scope: &Scope, query: ApprovalQuery) -> Result<ApprovalsJson> {
    let ApprovalQuery { include_closed, after, limit } = query;
    let memory = app.memory();
    let agents = app.assistants().all();
    let longest = agents.iter().map(|agent| agent.assistant().definition().approvals.expires_after).max();
    let max_open_ms = i64::try_from(longest.unwrap_or_default().max(MAX_OPEN_TIME).as_millis()).unwrap_or(i64::MAX);
    let mut query = ThreadQuery { after, ..ThreadQuery::new(ThreadOrder::Recent, THREADS_PER_QUERY) };
    let (mut data, mut searched) = (Vec::new(), 0);
    loop {
        let page = memory.list_threads(scope, &query).await?;
        searched += page.threads.len();
        let is_too_old = page.threads.last().is_some_and(|thread| {
            !include_closed && thread.updated_at.as_millis().saturating_add(max_open_ms) < memory.now().as_millis()
        });
        for thread in page.threads {
            match list_in_thread(app, scope, thread.id, include_closed).await {
                Ok(approvals) => data.extend(approvals),
                // The thread was deleted after it was listed.
                Err(error) if error.code == "not_found" => {}
                Err(error) => return Err(error),
            }
        }
        query.after = page.next.filter(|_| !is_too_old);
        if query.after.is_none() || data.len() >= limit || searched >= MAX_THREADS {
            let next = query.after.map(|next| cursor::encode(scope, LIST, &next));
            return Ok(ApprovalsJson { data, next });
        }
    }
}

async fn list_in_thread(app: &App, scope: &Scope, thread: ThreadId, include_closed: bool) -> Result<Vec<ApprovalJson>> {
    let now = app.memory().now();
    let found = list_approvals(app.memory(), scope, thread).await?;
    let approvals = found.into_iter().filter(|approval| include_closed || approval.is_open(now));
    Ok(approvals.map(|approval| ApprovalJson::of(thread, approval, now)).collect())
}
