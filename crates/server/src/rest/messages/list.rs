use axum::extract::State;
use serde::Serialize;
use threadkeep::core::{MessagePage, Take};
use threadkeep::{Bound, MessageQuery, OnCorrupt};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{Names, Params};
use crate::output::{json_text, with_etag, written};
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
    let thread = names.thread()?;
    let is_newest = before.is_none() && after.is_none() && roles.is_empty() && take == Take::Newest;
    if is_newest && let Some(held) = app.memory().held_messages(&caller.scope, thread, limit) {
        let written = held.form(|held| written(&MessagesJson::of(held.to_page(), take)));
        return Ok(with_etag(json_text(written.as_ref().clone()?), held.positions().change));
    }
    let on_corrupt = OnCorrupt::Report;
    let query = MessageQuery { before, after, roles, take, on_corrupt, ..MessageQuery::newest(limit) };
    let page = app.memory().messages(&caller.scope, thread, &query).await?;
    let change = page.positions.change;
    Ok(with_etag(json_text(written(&MessagesJson::of(page, take))?), change))
}

impl MessagesJson {
    fn of(page: MessagePage, take: Take) -> Self {
        let MessagePage { messages, corrupt, more, .. } = page;
        let seqs = messages.iter().map(|message| message.seq).chain(corrupt.iter().map(|row| row.seq));
        let end = if take == Take::Newest { seqs.min() } else { seqs.max() };
        let mut data: Vec<MessageJson> = messages.into_iter().map(Into::into).collect();
        if take == Take::Newest {
            data.reverse();
        }
        let unreadable = corrupt.into_iter().map(Into::into).collect();
        Self { data, unreadable, has_more: more, next: end.filter(|_| more) }
    }
}

fn bound(params: &mut Params, name: &str) -> Result<Option<Bound>> {
    let Some(text) = params.take(name)? else { return Ok(None) };
    let seq = text.parse().map(Bound::Seq).ok();
    let bound = seq.or_else(|| text.parse().map(Bound::Time).ok());
    bound.map(Some).ok_or_else(|| ApiError::invalid(name, format!("`{name}` is a position or an RFC 3339 instant")))
}
