use serde::Deserialize;
use serde_json::{Value, json};
use threadkeep::{Map, Role, SearchOptions, Snippet};

use super::{MessageResult, NOTICE, check_query, insert, invalid_cursor, limit, metadata_filter, titles};
use crate::message_name::get_thread;
use crate::{ToolFailure, Toolbox, date};

/// The maximum number of hits on all pages together. The search for each page requests this number, because the ranking depends on
/// how many hits are requested.
const MAX_HITS: usize = 200;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    query: String,
    since: Option<String>,
    until: Option<String>,
    role: Option<Role>,
    thread: Option<String>,
    metadata: Option<Map>,
    limit: Option<u64>,
    cursor: Option<String>,
}

pub(crate) async fn run(toolbox: &Toolbox, arguments: Arguments) -> Result<Value, ToolFailure> {
    let Toolbox { memory, scope, .. } = toolbox;
    check_query("query", &arguments.query)?;
    let limit = limit(arguments.limit, 10, 50)?;
    let first: usize = match arguments.cursor.as_deref() {
        Some(cursor) => cursor.parse().ok().filter(|first| *first < MAX_HITS).ok_or_else(invalid_cursor)?,
        None => 0,
    };
    let thread = match &arguments.thread {
        Some(name) => Some(get_thread(memory, scope, name).await?.id),
        None => None,
    };
    let options = SearchOptions {
        thread,
        metadata: metadata_filter(arguments.metadata.as_ref())?,
        limit: MAX_HITS,
        roles: arguments.role.into_iter().collect(),
        since: arguments.since.as_deref().map(|text| date::start("since", text)).transpose()?,
        until: arguments.until.as_deref().map(|text| date::end("until", text)).transpose()?,
        ..SearchOptions::default()
    };
    let found = memory.search(scope, &arguments.query, &options).await?;
    let next = first + limit;
    let has_next = found.hits.len() > next;
    let page = || found.hits.iter().skip(first).take(limit);
    let titles = titles(toolbox, page().map(|hit| hit.thread)).await?;
    let hits = page().map(|hit| MessageResult {
        title: titles.get(&hit.thread).cloned().flatten(),
        ..MessageResult::new(hit.thread, &hit.message, excerpt(&hit.snippet))
    });
    let mut result = json!({ "notice": NOTICE, "hits": hits.collect::<Vec<_>>() });
    let corrections: Vec<_> = found
        .corrections
        .iter()
        .map(|correction| json!({ "word": correction.word, "instead": correction.instead }))
        .collect();
    insert(&mut result, "corrections", (!corrections.is_empty()).then_some(corrections));
    insert(&mut result, "next_cursor", has_next.then(|| next.to_string()));
    insert(&mut result, "incomplete", (!found.unsearched.is_empty()).then_some(true));
    Ok(result)
}

fn excerpt(snippet: &Snippet) -> String {
    let mark = |is_cut| if is_cut { "…" } else { "" };
    format!("{}{}{}", mark(snippet.cut_before), snippet.text, mark(snippet.cut_after))
}
