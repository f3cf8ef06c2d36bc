//! Figures about conversations, computed by reading them.

mod tally;

use std::collections::BTreeMap;

use serde::Serialize;
use threadkeep_core::{Role, Scope, Thread, ThreadId, ThreadOrder, ThreadQuery, Timestamp};

use crate::messages::READ_PAGE;
use crate::{Memory, Result};
use tally::Tally;

/// What to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// One thread.
    Thread(ThreadId),
    /// Every thread that the scope has in full: a user's own, for a tenant all.
    All,
}

/// Figures about a thread, a user's threads, or a tenant's.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Analytics {
    /// Threads looked at.
    pub threads: u64,
    /// Messages looked at.
    pub messages: u64,
    /// Messages that do not decode, and are in no other figure.
    pub corrupt_messages: u64,
    /// Messages by role.
    pub roles: BTreeMap<Role, u64>,
    /// Messages by the agent that wrote them.
    pub agents: BTreeMap<String, u64>,
    /// Messages by the model that was asked.
    pub models: BTreeMap<String, u64>,
    /// Turns: runs of user messages that were answered.
    pub turns: u64,
    /// Tokens that models read.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// US dollars, of the messages whose cost is known.
    pub cost_usd: f64,
    /// What answers stand on.
    pub sources: SourceUse,
    /// How long answers took, of those that tell; `None` when none does.
    pub durations: Option<Durations>,
    /// When the first message was said.
    pub first_message_at: Option<Timestamp>,
    /// When the last message was said.
    pub last_message_at: Option<Timestamp>,
}

impl Analytics {
    /// Messages of a thread on average.
    #[must_use]
    pub fn messages_per_thread(&self) -> f64 {
        ratio(self.messages, self.threads)
    }

    /// Milliseconds from the first message to the last.
    #[must_use]
    pub fn span_ms(&self) -> i64 {
        match (self.first_message_at, self.last_message_at) {
            (Some(first), Some(last)) => last.as_millis() - first.as_millis(),
            _ => 0,
        }
    }
}

/// What assistants' messages cite. A source is known by its kind and id.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SourceUse {
    /// Citations, each source once per message.
    pub citations: u64,
    /// Sources cited at all.
    pub distinct: u64,
    /// Sources cited in more than one message.
    pub reused: u64,
    /// Messages that cite anything.
    pub citing_messages: u64,
    /// Messages that cite, and only what was cited before in their thread: the answers that needed no search.
    pub reusing_messages: u64,
}

impl SourceUse {
    /// The part of citing messages that needed no search: 0 to 1.
    #[must_use]
    pub fn reuse_rate(&self) -> f64 {
        ratio(self.reusing_messages, self.citing_messages)
    }

    /// What the searches would have cost that reuse saved, at a price for one search.
    #[must_use]
    pub fn saved_usd(&self, usd_per_search: f64) -> f64 {
        self.reusing_messages as f64 * usd_per_search
    }
}

/// How long answers took, in milliseconds. Median and 95th percentile are values that occurred (nearest rank).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Durations {
    /// How many answers tell.
    pub count: u64,
    /// The quickest.
    pub min_ms: u64,
    /// Half were at least as quick.
    pub median_ms: u64,
    /// 95 of 100 were at least as quick.
    pub p95_ms: u64,
    /// The slowest.
    pub max_ms: u64,
}

impl Memory {
    /// Computes figures about a thread, or about all threads that a scope has in full. It reads all their messages.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, and those of the store.
    pub async fn analytics(&self, scope: &Scope, selection: Selection) -> Result<Analytics> {
        let mut tally = Tally::default();
        match selection {
            Selection::Thread(thread) => self.tally_thread(scope, thread, &mut tally).await?,
            Selection::All => {
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
        let mut following = self.page_after(scope, thread, 0, READ_PAGE).await?;
        tally.begin_thread();
        loop {
            tally.add_corrupt(following.page.corrupt.len());
            following.page.messages.iter().for_each(|message| tally.add(message));
            match following.next {
                Some(seq) => following = self.page_after(scope, thread, seq, READ_PAGE).await?,
                None => return Ok(()),
            }
        }
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
