use axum::extract::State;
use serde::Serialize;
use threadkeep::core::{CorruptRow, RangeEnd};
use threadkeep::{Bound, Message, MessageQuery, OnCorrupt, Timestamp};
use threadkeep_api::message::{MessageJson, UnreadableJson};
use utoipa::ToSchema;

use super::time_order::{self, TimeQuery};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams};
use crate::output::{encode_json_with, json, json_text, with_etag};
use crate::rest::json::writer;
use crate::security::Caller;

/// A page of messages.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessagesJson<'a> {
    data: Vec<MessageJson<'a>>,
    /// Messages of this page that cannot be decoded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<UnreadableJson<'a>>,
    /// Whether more messages match in this direction.
    has_more: bool,
    /// The position to send for the next page: as `before` if the order is `desc`, as `after` if it is `asc`. A string if the
    /// messages are sorted by time. Null on the last page.
    next: Option<NextJson>,
}

/// The position of the next page.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum NextJson {
    Position(u64),
    TimePosition(String),
}

/// Lists messages of a thread
///
/// `before` and `after` are positions or instants (RFC 3339), which are themselves excluded. They are applied before the limit.
/// With `sort=time`, messages are ordered by `created_at`, and by position if their times are equal; `before` and `after` are
/// then instants, or the `next` of the previous page.
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/messages",
    operation_id = "list_messages",
    tag = "messages",
    params(
        ("id" = String, Path),
        ("order" = Option<String>, Query, description = "`desc` (default): newest first; `asc`: oldest first"),
        ("sort" = Option<String>, Query, description = "`position` (default): the order of appending; `time`: the order of `created_at`"),
        ("before" = Option<String>, Query),
        ("after" = Option<String>, Query),
        ("limit" = Option<u32>, Query, description = "1 to 1,000; default 50"),
        ("role" = Option<Vec<String>>, Query, description = "Only these roles")
    ),
    responses((status = 200, body = MessagesJson<'_>), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    mut params: QueryParams,
) -> Result {
    let range_end = match params.take("order")?.as_deref() {
        None | Some("desc") => RangeEnd::Newest,
        Some("asc") => RangeEnd::Oldest,
        Some(_) => return Err(ApiError::invalid("order", "`order` must be `asc` or `desc`")),
    };
    match params.take("sort")?.as_deref() {
        None | Some("position") => {}
        Some("time") => return list_by_time(&app, &caller, &path_params, params, range_end).await,
        Some(_) => return Err(ApiError::invalid("sort", "`sort` must be `position` or `time`")),
    }
    let (before, after) = (take_bound(&mut params, "before")?, take_bound(&mut params, "after")?);
    let (roles, limit) = (params.take_roles()?, params.take_limit(50)?);
    params.finish()?;
    let thread = path_params.thread(&app, &caller.scope).await?;
    let is_newest = before.is_none() && after.is_none() && roles.is_empty() && range_end == RangeEnd::Newest;
    if is_newest && let Some(cached) = app.memory().cached_messages(&caller.scope, thread, limit) {
        let json = cached.derived(|cached| {
            let page = Page { messages: cached.messages(), corrupt: &[], has_more: cached.has_older(), range_end };
            encode_json_with(|out| page.write(out))
        });
        return Ok(with_etag(json_text(json.as_ref().clone()?), cached.positions().tagged()));
    }
    let on_corrupt = OnCorrupt::Report;
    let query = MessageQuery { before, after, roles, take: range_end, on_corrupt, ..MessageQuery::newest(limit) };
    let page = app.memory().messages(&caller.scope, thread, &query).await?;
    let change = page.positions.tagged();
    let page = Page { messages: &page.messages, corrupt: &page.corrupt, has_more: page.more, range_end };
    Ok(with_etag(json_text(encode_json_with(|out| page.write(out))?), change))
}

/// Responds with a page of messages ordered by time.
async fn list_by_time(
    app: &App,
    caller: &Caller,
    path_params: &PathParams,
    mut params: QueryParams,
    range_end: RangeEnd,
) -> Result {
    let names = match range_end {
        RangeEnd::Newest => ["before", "after"],
        RangeEnd::Oldest => ["after", "before"],
    };
    // The bound at which the page starts is an instant or the `next` of the previous page.
    let mut start = None;
    let near = match params.take(names[0])? {
        Some(text) => match text.parse() {
            Ok(position) => {
                start = Some(position);
                None
            }
            Err(()) => Some(parse_instant(names[0], &text)?),
        },
        None => None,
    };
    let far = params.take(names[1])?.map(|text| parse_instant(names[1], &text)).transpose()?;
    let (before, after) = if range_end == RangeEnd::Newest { (near, far) } else { (far, near) };
    let (roles, limit) = (params.take_roles()?, params.take_limit(50)?);
    params.finish()?;
    let thread = path_params.thread(app, &caller.scope).await?;
    let query = TimeQuery { range_end, start, before, after, roles, limit };
    let page = time_order::read(app.memory(), &caller.scope, thread, &query).await?;
    let body = MessagesJson {
        data: page.messages.iter().map(Into::into).collect(),
        unreadable: page.corrupt.iter().map(Into::into).collect(),
        has_more: page.next.is_some(),
        next: page.next.map(|next| NextJson::TimePosition(next.to_string())),
    };
    Ok(with_etag(json(&body), page.change))
}

fn parse_instant(name: &str, text: &str) -> Result<Timestamp> {
    text.parse().map_err(|_| {
        let message = format!("`{name}` must be an RFC 3339 timestamp, or the `next` of a page sorted by time");
        ApiError::invalid(name, message)
    })
}

/// The contents of a page. The messages are ordered oldest first, regardless of the requested order.
struct Page<'a> {
    messages: &'a [Message],
    corrupt: &'a [CorruptRow],
    has_more: bool,
    range_end: RangeEnd,
}

impl<'a> Page<'a> {
    /// Returns the position at which the next page starts; `None` on the last page.
    fn next(&self) -> Option<u64> {
        let seqs = self.messages.iter().map(|message| message.seq).chain(self.corrupt.iter().map(|row| row.seq));
        let end = if self.range_end == RangeEnd::Newest { seqs.min() } else { seqs.max() };
        end.filter(|_| self.has_more)
    }

    /// Returns the messages in the requested order.
    fn in_requested_order(&self) -> impl Iterator<Item = &'a Message> {
        let (ascending, descending) = match self.range_end {
            RangeEnd::Newest => (&[][..], self.messages),
            RangeEnd::Oldest => (self.messages, &[][..]),
        };
        ascending.iter().chain(descending.iter().rev())
    }

    /// Writes the JSON of a [`MessagesJson`] to a buffer.
    fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        if !self.corrupt.is_empty() {
            return serde_json::to_writer(out, &MessagesJson::from(self));
        }
        out.extend_from_slice(br#"{"data":"#);
        writer::write_list(out, self.in_requested_order(), writer::write_message)?;
        writer::write_value(out, br#","has_more":"#, &self.has_more)?;
        writer::write_value(out, br#","next":"#, &self.next())?;
        out.push(b'}');
        Ok(())
    }
}

impl<'a> From<&Page<'a>> for MessagesJson<'a> {
    fn from(page: &Page<'a>) -> Self {
        let (data, unreadable) =
            (page.in_requested_order().map(Into::into).collect(), page.corrupt.iter().map(Into::into).collect());
        Self { data, unreadable, has_more: page.has_more, next: page.next().map(NextJson::Position) }
    }
}

/// Takes a parameter that is a position or an instant.
fn take_bound(params: &mut QueryParams, name: &str) -> Result<Option<Bound>> {
    let Some(text) = params.take(name)? else { return Ok(None) };
    let seq = text.parse().map(Bound::Seq).ok();
    let bound = seq.or_else(|| text.parse().map(Bound::Time).ok());
    bound
        .map(Some)
        .ok_or_else(|| ApiError::invalid(name, format!("`{name}` must be a position or an RFC 3339 timestamp")))
}
