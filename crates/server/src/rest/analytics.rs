use axum::extract::State;
use threadkeep::{Scope, ThreadSelection};
use threadkeep_api::analytics::AnalyticsJson;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::QueryParams;
use crate::output::json;
use crate::security::Caller;
use crate::thread_names;

/// Computes statistics
///
/// Reads every message of the thread, or of all threads.
#[utoipa::path(
    get,
    path = "/v1/analytics",
    operation_id = "get_analytics",
    tag = "analytics",
    params(
        ("thread" = Option<String>, Query, description = "Only this thread"),
        ("usd_per_search" = Option<f64>, Query, description = "The cost of a search, to compute the savings")
    ),
    responses((status = 200, body = AnalyticsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn analytics(State(app): State<App>, caller: Caller, mut params: QueryParams) -> Result {
    let selection = take_thread_selection(&app, &caller.scope, &mut params).await?;
    let price = params.take("usd_per_search")?;
    let price: Option<f64> = price.map(|price| price.parse()).transpose().unwrap_or(Some(f64::NAN));
    if price.is_some_and(|price| !(0.0..=1_000_000.0).contains(&price)) {
        return Err(ApiError::invalid("usd_per_search", "`usd_per_search` must be a number from 0 to 1000000"));
    }
    params.finish()?;
    let figures = app.memory().analytics(&caller.scope, selection).await?;
    Ok(json(&AnalyticsJson::of(figures, price)))
}

/// Takes the parameter `thread`, which names a thread by its id, conversation id or key.
pub(crate) async fn take_thread_selection(
    app: &App,
    scope: &Scope,
    params: &mut QueryParams,
) -> Result<ThreadSelection> {
    match params.take("thread")? {
        None => Ok(ThreadSelection::All),
        Some(name) => Ok(ThreadSelection::Thread(thread_names::resolve(app, scope, &name).await?)),
    }
}
