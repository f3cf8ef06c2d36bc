use axum::extract::State;
use serde::Serialize;
use threadkeep::core::Take;
use threadkeep::{Bound, MessageQuery, OnCorrupt};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{Names, Params};
use crate::output::{json, with_etag};
use crate::rest::json::message::{MessageJson, UnreadableJson};
use crate::security::Caller;

/// A page of messages.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessagesJson {
    data: Vec<MessageJson>,
    /// Messages of this page that do not decode.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<UnreadableJson>,
    /// Whether more match in this direction.
    has_more: bool,
    /// What to pass for the next page: as `before` where the order is `desc`, as `after` where it is `asc`.
    next: Option<u64>,
}

/// Lists messages of a thread
///
/// `before` and `after` are positions or instants (RFC 3339) and are themselves left out. They hold before the limit.
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/messages",
    tag = "messages",
    params(
        ("id" = String, Path),
        ("order" = Option<String>, Query, description = "`desc` (default): newest first; `asc`: oldest first"),
        ("before" = Option<String>, Query),
        ("after" = Option<String>, Query),
        ("limit" = Option<u32>, Query, description = "1 to 1,000; default 50"),
        ("role" = Option<Vec<String>>, Query, description = "Only these roles")
    ),
    responses((status = 200, body = MessagesJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, names: Names, mut params: Params) -> Result {
    let take = match params.take("order")?.as_deref() {
        None | Some("desc") => Take::Newest,
        Some("asc") => Take::Oldest,
        Some(_) => return Err(ApiError::invalid("order", "`order` is `asc` or `desc`")),
    };
    let (before, after) = (bound(&mut params, "before")?, bound(&mut params, "after")?);
    let (roles, limit) = (params.roles()?, params.limit(50)?);
    params.finish()?;
    let on_corrupt = OnCorrupt::Report;
    let query = MessageQuery { before, after, roles, take, on_corrupt, ..MessageQuery::newest(limit) };
    let page = app.memory().messages(&caller.scope, names.thread()?, &query).await?;
    let seqs = page.messages.iter().map(|message| message.seq).chain(page.corrupt.iter().map(|row| row.seq));
    let end = if take == Take::Newest { seqs.min() } else { seqs.max() };
    let mut data: Vec<MessageJson> = page.messages.into_iter().map(Into::into).collect();
    if take == Take::Newest {
        data.reverse();
    }
    let unreadable = page.corrupt.into_iter().map(Into::into).collect();
    let body = MessagesJson { data, unreadable, has_more: page.more, next: end.filter(|_| page.more) };
    Ok(with_etag(json(&body), page.positions.change))
}

fn bound(params: &mut Params, name: &str) -> Result<Option<Bound>> {
    let Some(text) = params.take(name)? else { return Ok(None) };
    let seq = text.parse().map(Bound::Seq).ok();
    let bound = seq.or_else(|| text.parse().map(Bound::Time).ok());
    bound.map(Some).ok_or_else(|| ApiError::invalid(name, format!("`{name}` is a position or an RFC 3339 instant")))
}
