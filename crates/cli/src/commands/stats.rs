use anyhow::Result;
use serde::Serialize;
use threadkeep::{Analytics, ThreadSelection};

use super::{App, Status};
use crate::instants;
use crate::progress;
use crate::store::{OpenStore, Purpose};
use crate::table::{self, number};
use crate::thread_name;

/// Show statistics about a thread, or about all threads
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep stats
  threadkeep stats 0193a5b2
  threadkeep stats --as-tenant --json")]
pub(crate) struct Arguments {
    /// The thread: its id, a prefix of the id, or its key [default: all threads]
    thread: Option<String>,
    /// The cost of a search in US dollars, to show how much was saved by answering from known sources
    #[arg(long, value_name = "USD", value_parser = price)]
    usd_per_search: Option<f64>,
}

#[derive(Serialize)]
struct Stats {
    #[serde(flatten)]
    analytics: Analytics,
    messages_per_thread: f64,
    /// Of the answers that cite sources, the share that needed no search.
    reuse_rate: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_usd: Option<f64>,
    /// The size of the store's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    store_bytes: Option<u64>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let (store, scope) = (app.open(Purpose::Read).await?, app.scope()?);
    let selection = match &arguments.thread {
        Some(name) => ThreadSelection::Thread(thread_name::get(&store.memory, &scope, name).await?.id),
        None => ThreadSelection::All,
    };
    let spinner = progress::spinner("reading…");
    let analytics = store.memory.analytics(&scope, selection).await;
    spinner.finish_and_clear();
    let store_bytes = if arguments.thread.is_none() { store.bytes() } else { None };
    let analytics = analytics?;
    let stats = Stats {
        messages_per_thread: analytics.messages_per_thread(),
        reuse_rate: analytics.sources.reuse_rate(),
        saved_usd: arguments.usd_per_search.map(|price| analytics.sources.saved_usd(price)),
        analytics,
        store_bytes,
    };
    if app.output.is_json() {
        app.output.json(&stats)?;
    } else {
        app.output.line(table(&stats))?;
    }
    Ok(if stats.analytics.corrupt_messages == 0 { Status::Done } else { Status::Incomplete })
}

fn price(text: &str) -> Result<f64, String> {
    let price: Option<f64> = text.parse().ok();
    price
        .filter(|price| (0.0..=1_000_000.0).contains(price))
        .ok_or_else(|| "expected an amount in dollars, such as 0.0002".to_owned())
}

impl OpenStore {
    /// Returns the size of the store's files in bytes, or `None` for a store without files.
    pub(super) fn bytes(&self) -> Option<u64> {
        let files = self.sqlite.as_ref()?.files();
        Some(files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|file| file.len()).sum())
    }
}

fn table(stats: &Stats) -> String {
    let Stats { analytics: figures, store_bytes, .. } = stats;
    let mut rows = vec![("threads", number(figures.threads)), ("messages", number(figures.messages))];
    if figures.threads > 1 {
        rows.push(("per thread", format!("{:.1}", figures.messages_per_thread())));
    }
    rows.extend(figures.roles.iter().map(|(role, count)| (role.as_str(), number(*count))));
    rows.push(("turns", number(figures.turns)));
    if let (Some(first), Some(last)) = (figures.first_message_at, figures.last_message_at) {
        rows.push(("first", instants::minute(first)));
        rows.push(("last", instants::minute(last)));
    }
    if figures.input_tokens + figures.output_tokens > 0 {
        let (input, output) = (number(figures.input_tokens), number(figures.output_tokens));
        rows.push(("tokens", format!("{input} input, {output} output")));
    }
    if figures.cost_usd > 0.0 {
        rows.push(("cost", format!("${:.4}", figures.cost_usd)));
    }
    if let Some(durations) = &figures.durations {
        rows.push(("answer time", format!("{} ms median, {} ms p95", durations.median_ms, durations.p95_ms)));
    }
    if figures.sources.citations > 0 {
        let sources = &figures.sources;
        rows.push((
            "sources",
            format!("{} cited, {} more than once", number(sources.distinct), number(sources.reused)),
        ));
    }
    if figures.sources.citing_messages > 0 {
        let (percent, answers) = (100.0 * stats.reuse_rate, number(figures.sources.citing_messages));
        rows.push(("reuse", format!("{percent:.0}% of the answers with sources ({answers}) needed no search")));
    }
    rows.extend(stats.saved_usd.map(|saved| ("saved", format!("${saved:.4}"))));
    if figures.corrupt_messages > 0 {
        rows.push(("unreadable", number(figures.corrupt_messages)));
    }
    if let Some(bytes) = store_bytes {
        rows.push(("store", indicatif::HumanBytes(*bytes).to_string()));
    }
    table::pairs(rows)
}
