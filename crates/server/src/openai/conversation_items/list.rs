use axum::extract::State;
use threadkeep::core::Take;
use threadkeep::{Bound, MessageQuery, Scope, ThreadId};

use super::{find, list_of, thread_of};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{Names, Params};
use crate::openai::ids;
use crate::openai::items::{Item, items_of};
use crate::security::Caller;

const DEFAULT: usize = 20;
const MOST: usize = 100;

/// Which page.
#[derive(Debug)]
pub(crate) struct PageQuery {
    pub(crate) after: Option<String>,
    limit: usize,
    take: Take,
}

impl PageQuery {
    /// Reads the parameters that all lists of this wire have. The newest come first unless asked otherwise.
    pub(crate) fn read(params: &mut Params) -> Result<Self> {
        Self::read_with(params, Take::Newest)
    }

    /// The same where the oldest come first unless asked otherwise.
    pub(crate) fn read_ascending(params: &mut Params) -> Result<Self> {
        Self::read_with(params, Take::Oldest)
    }

    fn read_with(params: &mut Params, default: Take) -> Result<Self> {
        // What an item may hold beyond its own is always in it.
        params.take_all("include");
        let limit: i64 = params.parse("limit", "a whole number")?.unwrap_or(DEFAULT as i64);
        let (bound, code) = match limit {
            ..1 => ("below minimum value. Expected a value >= 1", "integer_below_min_value"),
            101.. => ("above maximum value. Expected a value <= 100", "integer_above_max_value"),
            _ => ("", ""),
        };
        if !bound.is_empty() {
            let message = format!("Invalid 'limit': integer {bound}, but got {limit} instead.");
            return Err(ApiError::invalid("limit", message).code(code));
        }
        let take = match params.take("order")?.as_deref() {
            None => default,
            Some("desc") => Take::Newest,
            Some("asc") => Take::Oldest,
            Some(_) => return Err(ApiError::invalid("order", "Invalid 'order': expected 'asc' or 'desc'.")),
        };
        let limit = usize::try_from(limit).unwrap_or(MOST);
        Ok(Self { after: params.take("after")?.filter(|after| !after.is_empty()), limit, take })
    }
}

/// Lists the items of a conversation
#[utoipa::path(
    get,
    path = "/v1/conversations/{id}/items",
    tag = "openai",
    params(
        ("id" = String, Path),
        ("after" = Option<String>, Query, description = "The `last_id` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 100; default 20"),
        ("order" = Option<String>, Query, description = "`desc` (default) or `asc`"),
        ("include" = Option<Vec<String>>, Query)
    ),
    responses((status = 200, description = "A page of items.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, names: Names, mut params: Params) -> Result {
    let query = PageQuery::read(&mut params)?;
    let thread = thread_of(&app, &caller.scope, names.text("id")).await?;
    let (items, has_more) = page(&app, &caller.scope, thread, &query).await?;
    Ok(list_of(&items, has_more))
}

/// A page of a thread's items, and whether more follow.
async fn page(app: &App, scope: &Scope, thread: ThreadId, query: &PageQuery) -> Result<(Vec<Item>, bool)> {
    let from = match &query.after {
        Some(after) => Some(find(app, scope, thread, after).await?),
        None => None,
    };
    // One message is at least one item; the message that the page goes on in may have nothing left.
    let mut messages = MessageQuery { take: query.take, ..MessageQuery::newest(query.limit + 2) };
    if let Some((message, _)) = &from {
        match query.take {
            Take::Newest => messages.before = Some(Bound::Seq(message.seq + 1)),
            Take::Oldest => messages.after = Some(Bound::Seq(message.seq - 1)),
        }
    }
    let page = app.memory().messages(scope, thread, &messages).await?;
    let is_told = |seq: u64, place: usize| {
        from.as_ref().is_some_and(|(message, last)| match query.take {
            Take::Newest => message.seq == seq && place >= *last,
            Take::Oldest => message.seq == seq && place <= *last,
        })
    };
    let mut items: Vec<Item> = Vec::new();
    for message in &page.messages {
        let own = items_of(message).into_iter().enumerate().filter(|(place, _)| !is_told(message.seq, *place));
        items.extend(own.map(|(_, item)| item));
    }
    if query.take == Take::Newest {
        items.reverse();
    }
    let has_more = page.more || items.len() > query.limit;
    items.truncate(query.limit);
    Ok((items, has_more))
}

/// A page of items that are all at hand, oldest first.
pub(crate) fn page_of(mut items: Vec<Item>, query: &PageQuery) -> Result {
    if query.take == Take::Newest {
        items.reverse();
    }
    if let Some(after) = &query.after {
        let place = items.iter().position(|item| item.id == *after).ok_or_else(|| ids::no_item(after))?;
        items.drain(..=place);
    }
    let has_more = items.len() > query.limit;
    items.truncate(query.limit);
    Ok(list_of(&items, has_more))
}
