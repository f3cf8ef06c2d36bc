//! Statistics about conversations, computed by reading all their messages.

mod tally;

use std::collections::BTreeMap;

use serde::Serialize;
use threadkeep_core::{Role, Scope, Thread, ThreadId, ThreadOrder, ThreadQuery, Timestamp};

use crate::messages::READ_PAGE;
use crate::{Memory, Result};
use tally::Tally;

/// The threads that a call applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadSelection {
    /// One thread.
    Thread(ThreadId),
    /// Every thread to which the scope has full access: the user's own threads, or all threads of the tenant.
    All,
}

/// Statistics about one or more threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Analytics {
    /// Number of threads.
    pub threads: u64,
    /// Number of messages.
    pub messages: u64,
    /// Number of messages that cannot be decoded. The other counts do not include them.
    pub corrupt_messages: u64,
    /// Number of messages by role.
    pub roles: BTreeMap<Role, u64>,
    /// Number of messages by the agent that wrote them.
    pub agents: BTreeMap<String, u64>,
    /// Number of messages by the model that wrote them.
    pub models: BTreeMap<String, u64>,
    /// Number of answered turns. A turn is one or more user messages followed by an answer: an assistant message that neither
    /// calls tools nor requests approvals.
    pub turns: u64,
    /// Total number of tokens that models read.
    pub input_tokens: u64,
    /// Total number of tokens that models wrote.
    pub output_tokens: u64,
    /// Total cost of messages whose cost is known, in US dollars.
    pub cost_usd: f64,
    /// The citations in answers.
    pub sources: CitationStats,
    /// How long answers took; `None` if no message has a duration.
    pub durations: Option<Durations>,
    /// When the oldest message was created; `None` if there are no messages.
    pub first_message_at: Option<Timestamp>,
    /// When the newest message was created; `None` if there are no messages.
    pub last_message_at: Option<Timestamp>,
}

impl Analytics {
    /// Average number of messages per thread; 0 if there are no threads.
    #[must_use]
    pub fn messages_per_thread(&self) -> f64 {
        ratio(self.messages, self.threads)
    }

    /// Time from the first message to the last, in milliseconds; 0 if there are no messages.
    #[must_use]
    pub fn span_ms(&self) -> i64 {
        match (self.first_message_at, self.last_message_at) {
            (Some(first), Some(last)) => last.as_millis() - first.as_millis(),
            _ => 0,
        }
    }
}

/// Statistics about the sources that assistant messages cite. A source is identified by its kind and id.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CitationStats {
    /// Number of citations. Repeated citations of a source in one message count once.
    pub citations: u64,
    /// Number of distinct sources.
    pub distinct: u64,
    /// Number of sources cited in more than one message.
    pub reused: u64,
    /// Number of messages that cite sources.
    pub citing_messages: u64,
    /// Number of messages that cite only sources already cited in their thread. These answers needed no search.
    pub reusing_messages: u64,
}

impl CitationStats {
    /// The fraction of citing messages that needed no search, from 0 to 1; 0 if no message cites a source.
    #[must_use]
    pub fn reuse_rate(&self) -> f64 {
        ratio(self.reusing_messages, self.citing_messages)
    }

    /// The cost of the searches that reusing sources saved, if a search costs `usd_per_search`.
    #[must_use]
    pub fn saved_usd(&self, usd_per_search: f64) -> f64 {
        self.reusing_messages as f64 * usd_per_search
    }
}

/// How long answers took, in milliseconds. The median and 95th percentile are values that occurred (nearest rank).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Durations {
    /// Number of answers with a duration.
    pub count: u64,
    /// The minimum, in milliseconds.
    pub min_ms: u64,
    /// The median, in milliseconds.
    pub median_ms: u64,
    /// The 95th percentile, in milliseconds.
    pub p95_ms: u64,
    /// The maximum, in milliseconds.
    pub max_ms: u64,
}

impl Memory {
    /// Computes statistics about threads. Reads all their messages.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, and errors from the store.
    pub async fn analytics(&self, scope: &Scope, selection: ThreadSelection) -> Result<Analytics> {
        let mut tally = Tally::default();
        match selection {
            ThreadSelection::Thread(thread) => self.tally_thread(scope, thread, &mut tally).await?,
            ThreadSelection::All => {
                let mut query = ThreadQuery::new(ThreadOrder::Created, READ_PAGE);
                loop {
                    let page = self.list_threads(scope, &query).await?;
                    for Thread { id, .. } in page.threads {
                        match self.tally_thread(scope, id, &mut tally).await {
                            // Deleted since it was listed.
                            Err(error) if error.is_thread_not_found() => {}
                            result => result?,
                        }
                    }
                    match page.next {
                        Some(next) => query.after = Some(next),
                        None => break,
                    }
                }
            }
        }
        Ok(tally.finish())
    }

    async fn tally_thread(&self, scope: &Scope, thread: ThreadId, tally: &mut Tally) -> Result<()> {
        let mut step = self.page_after(scope, thread, 0, READ_PAGE).await?;
        tally.start_thread();
        loop {
            tally.add_corrupt(step.page.corrupt.len());
            step.page.messages.iter().for_each(|message| tally.add(message));
            match step.next {
                Some(seq) => step = self.page_after(scope, thread, seq, READ_PAGE).await?,
                None => return Ok(()),
            }
        }
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
