use axum::extract::State;
use threadkeep::core::{ChangePage, Effect, RangeEnd};
use threadkeep::{Bound, MessageQuery, MessageRef, Scope, ThreadId};

use super::{find, find_thread, list_response};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams};
use crate::openai::ids;
use crate::openai::items::{Item, items_of};
use crate::security::Caller;

const DEFAULT_LIMIT: usize = 20;
/// The maximum number of items on a page, in all lists of this API.
pub(crate) const MAX_LIMIT: usize = 100;
/// How many of a thread's latest changes are searched for the deletion of an item.
const SEARCHED_CHANGES: usize = 1_000;

/// A query for a page of a list.
#[derive(Debug)]
pub(crate) struct PageQuery {
    pub(crate) after: Option<String>,
    limit: usize,
    take: RangeEnd,
}

impl PageQuery {
    /// Reads the paging parameters, which all lists of this API share. The default order is newest first.
    pub(crate) fn read(params: &mut QueryParams) -> Result<Self> {
        Self::read_with(params, RangeEnd::Newest)
    }

    /// Like [`Self::read`], but the default order is oldest first.
    pub(crate) fn read_ascending(params: &mut QueryParams) -> Result<Self> {
        Self::read_with(params, RangeEnd::Oldest)
    }

    fn read_with(params: &mut QueryParams, default: RangeEnd) -> Result<Self> {
        // Ignored: items always include everything that is stored.
        params.take_all("include");
        let limit: i64 = params.parse("limit", "a whole number")?.unwrap_or(DEFAULT_LIMIT as i64);
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
            Some("desc") => RangeEnd::Newest,
            Some("asc") => RangeEnd::Oldest,
            Some(_) => return Err(ApiError::invalid("order", "Invalid 'order': expected 'asc' or 'desc'.")),
        };
        let limit = usize::try_from(limit).unwrap_or(MAX_LIMIT);
        Ok(Self { after: params.take("after")?.filter(|after| !after.is_empty()), limit, take })
    }
}

/// Lists the items of a conversation
#[utoipa::path(
    get,
    path = "/v1/conversations/{id}/items",
    operation_id = "list_conversation_items",
    tag = "openai",
    params(
        ("id" = String, Path),
        ("after" = Option<String>, Query, description = "The `last_id` of the previous page"),
        ("limit" = Option<u32>, Query, description = "1 to 100; default 20"),
        ("order" = Option<String>, Query, description = "`desc` (default) or `asc`"),
        ("include" = Option<Vec<String>>, Query)
    ),
    responses((status = 200, description = "A page of items.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    mut params: QueryParams,
) -> Result {
    let query = PageQuery::read(&mut params)?;
    let thread = find_thread(&app, &caller.scope, path_params.get("id")).await?;
    let (items, has_more) = read_page(&app, &caller.scope, thread, &query).await?;
    Ok(list_response(&items, has_more))
}

/// Reads a page of a thread's items. Returns the items, and whether more items follow.
async fn read_page(app: &App, scope: &Scope, thread: ThreadId, query: &PageQuery) -> Result<(Vec<Item>, bool)> {
    let after = match &query.after {
        Some(after) => Some(position_of(app, scope, thread, after).await?),
        None => None,
    };
    // Each message has at least one item, but all items of the message that contains `after` may be on earlier pages.
    let mut messages = MessageQuery { take: query.take, ..MessageQuery::newest(query.limit + 2) };
    if let Some((seq, _)) = after {
        match query.take {
            RangeEnd::Newest => messages.before = Some(Bound::Seq(seq + 1)),
            RangeEnd::Oldest => messages.after = Some(Bound::Seq(seq - 1)),
        }
    }
    let page = app.memory().messages(scope, thread, &messages).await?;
    let is_listed = |seq: u64, index: usize| {
        after.is_some_and(|(after_seq, after_index)| match query.take {
            RangeEnd::Newest => after_seq == seq && index >= after_index,
            RangeEnd::Oldest => after_seq == seq && index <= after_index,
        })
    };
    let mut items: Vec<Item> = Vec::new();
    for message in &page.messages {
        let unlisted = items_of(message).into_iter().enumerate().filter(|(index, _)| !is_listed(message.seq, *index));
        items.extend(unlisted.map(|(_, item)| item));
    }
    if query.take == RangeEnd::Newest {
        items.reverse();
    }
    let has_more = page.more || items.len() > query.limit;
    items.truncate(query.limit);
    Ok((items, has_more))
}

/// Returns the position of the message that contains an item, and the index of the item in the message. Recently deleted items are
/// also found, because a client may delete the items of a page before it requests the next page.
async fn position_of(app: &App, scope: &Scope, thread: ThreadId, item: &str) -> Result<(u64, usize)> {
    let not_found = match find(app, scope, thread, item).await {
        Ok((message, index)) => return Ok((message.seq, index)),
        Err(error) => error,
    };
    let Some((MessageRef::Id(id), index)) = ids::parse_item_id(item) else { return Err(not_found) };
    let memory = app.memory();
    let newest = memory.get_thread(scope, thread).await?.positions.change;
    let after = newest.saturating_sub(SEARCHED_CHANGES as u64);
    let page = memory.backend().store.list_changes(scope, thread, after.into(), SEARCHED_CHANGES, memory.now()).await?;
    let ChangePage::Changes { changes, .. } = page else { return Err(not_found) };
    let erased = changes.iter().flat_map(|change| &change.effects).find_map(|effect| match effect {
        Effect::Erased { seq, id: erased } if *erased == id => Some(*seq),
        _ => None,
    });
    erased.map(|seq| (seq, index)).ok_or(not_found)
}

/// Responds with a page of a list. `items` contains the whole list, oldest first.
pub(crate) fn page_response(mut items: Vec<Item>, query: &PageQuery) -> Result {
    if query.take == RangeEnd::Newest {
        items.reverse();
    }
    if let Some(after) = &query.after {
        let index = items.iter().position(|item| item.id == *after).ok_or_else(|| ids::item_not_found(after))?;
        items.drain(..=index);
    }
    let has_more = items.len() > query.limit;
    items.truncate(query.limit);
    Ok(list_response(&items, has_more))
}
