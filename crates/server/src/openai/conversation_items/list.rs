use axum::extract::State;
use threadkeep::core::{ChangePage, Effect, Take};
use threadkeep::{Bound, MessageName, MessageQuery, Scope, ThreadId};

use super::{find, list_of, thread_of};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{Names, Params};
use crate::openai::ids;
use crate::openai::items::{Item, items_of};
use crate::security::Caller;

const DEFAULT: usize = 20;
/// Items of a page at most, in all lists of this wire.
pub(crate) const MOST: usize = 100;
/// Changes of a thread among which the deletion of an item is looked for.
const CHANGES: usize = 1_000;

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
        Some(after) => Some(place(app, scope, thread, after).await?),
        None => None,
    };
    // One message is at least one item; the message that the page goes on in may have nothing left.
    let mut messages = MessageQuery { take: query.take, ..MessageQuery::newest(query.limit + 2) };
    if let Some((seq, _)) = from {
        match query.take {
            Take::Newest => messages.before = Some(Bound::Seq(seq + 1)),
            Take::Oldest => messages.after = Some(Bound::Seq(seq - 1)),
        }
    }
    let page = app.memory().messages(scope, thread, &messages).await?;
    let is_told = |seq: u64, place: usize| {
        from.is_some_and(|(from, last)| match query.take {
            Take::Newest => from == seq && place >= last,
            Take::Oldest => from == seq && place <= last,
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

/// Where an item stands: the position of its message, and which of its items it is. An item that was deleted lately still has
/// its place, as a client may delete what it has read before it asks for the next page.
async fn place(app: &App, scope: &Scope, thread: ThreadId, item: &str) -> Result<(u64, usize)> {
    let missing = match find(app, scope, thread, item).await {
        Ok((message, place)) => return Ok((message.seq, place)),
        Err(error) => error,
    };
    let Some((MessageName::Id(id), place)) = ids::message(item) else { return Err(missing) };
    let memory = app.memory();
    let newest = memory.get_thread(scope, thread).await?.positions.change;
    let after = newest.saturating_sub(CHANGES as u64);
    let page = memory.backend().store.list_changes(scope, thread, after.into(), CHANGES, memory.now()).await?;
    let ChangePage::Changes { changes, .. } = page else { return Err(missing) };
    let erased = changes.iter().flat_map(|change| &change.effects).find_map(|effect| match effect {
        Effect::Erased { seq, id: erased } if *erased == id => Some(*seq),
        _ => None,
    });
    erased.map(|seq| (seq, place)).ok_or(missing)
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
