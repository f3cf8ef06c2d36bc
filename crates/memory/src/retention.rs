//! Retention policies: computed here, carried out by the store in the commit that appends messages.

use serde::{Deserialize, Serialize};
use threadkeep_core::{Access, Batch, Bound, MessageQuery, OnCorrupt, Scope, Thread, ThreadId, Timestamp, limits};

use crate::context::is_context_state_conflict;
use crate::{Memory, MemoryError, Result};

/// Number of attempts to scrub the context state while others update it.
const ATTEMPTS: usize = 8;

const MINUTE_MS: i64 = 60_000;

/// How many messages of a thread are kept, and for how long.
///
/// With `ttl_minutes`, messages older than that are neither returned nor kept, and a thread without a new message for that long
/// expires. A title made from a message stays when the message is trimmed, because it names the whole conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// Maximum number of messages; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_messages: Option<u64>,
    /// Maximum age of messages in minutes; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_minutes: Option<u32>,
}

impl Retention {
    /// Validates the limits.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0, with its name.
    pub fn check(&self) -> Result<()> {
        if self.max_messages == Some(0) {
            return Err(MemoryError::invalid("max_messages", "must be at least 1"));
        }
        if self.ttl_minutes == Some(0) {
            return Err(MemoryError::invalid("ttl_minutes", "must be at least 1"));
        }
        Ok(())
    }

    /// The earliest creation time of messages that are kept at `now`.
    #[must_use]
    pub fn cutoff(&self, now: Timestamp) -> Option<Timestamp> {
        self.ttl_minutes.map(|minutes| now.plus_ms(-i64::from(minutes) * MINUTE_MS))
    }

    /// When a thread expires that gets no message after `now`.
    #[must_use]
    pub fn expires_at(&self, now: Timestamp) -> Option<Timestamp> {
        // A message of exactly the maximum age is kept, while a thread is gone at its expiry time, so one microsecond is added.
        let kept_until = self.ttl_minutes.map(|minutes| now.plus_ms(i64::from(minutes) * MINUTE_MS))?;
        Timestamp::from_micros(kept_until.as_micros() + 1).ok()
    }
}

impl Memory {
    /// Trims a thread by a retention. Returns the position of the first message that is kept.
    ///
    /// Appending with a retention trims the thread too, so this is needed only for threads that get no new messages.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0, `NotFound` for an unknown thread, `Denied` for a shared one in a user's scope.
    pub async fn retain(&self, scope: &Scope, thread: ThreadId, retention: &Retention) -> Result<u64> {
        retention.check()?;
        let now = self.now();
        let found = self.get_thread(scope, thread).await?;
        let trim_below = self.trim_point(scope, &found, retention, 0, now).await?;
        let Some(first_seq) = trim_below else { return Ok(found.positions.first_seq) };
        for _ in 0..ATTEMPTS {
            let mut batch = self.new_batch(now);
            batch.trim_below = Some(first_seq);
            self.scrub_removed_messages(scope, thread, &mut batch).await?;
            match self.commit_with_retries(scope, thread, &batch, now).await {
                Err(error) if is_context_state_conflict(&error) => {}
                result => return result.map(|_| first_seq),
            }
        }
        Err(MemoryError::Contended { what: "the context state", attempts: ATTEMPTS })
    }

    /// Adds the trimming and expiry of a retention to a batch that appends messages. Does nothing for a shared thread in a
    /// user's scope, because only the tenant may trim it.
    pub(crate) async fn add_retention(
        &self,
        scope: &Scope,
        thread: &Thread,
        retention: &Retention,
        batch: &mut Batch,
        now: Timestamp,
    ) -> Result<()> {
        if scope.access(&thread.owner) != Access::Full {
            return Ok(());
        }
        let added = batch.append.len() as u64;
        batch.trim_below = self.trim_point(scope, thread, retention, added, now).await?;
        if let Some(expires_at) = retention.expires_at(now) {
            batch.patch.expires_at = Some(Some(expires_at));
        }
        Ok(())
    }

    /// The position below which to trim a thread to which `added` messages are appended; `None` if nothing has to be trimmed.
    async fn trim_point(
        &self,
        scope: &Scope,
        thread: &Thread,
        retention: &Retention,
        added: u64,
        now: Timestamp,
    ) -> Result<Option<u64>> {
        let by_count = match retention.max_messages {
            Some(max) => self.count_point(scope, thread, max, added).await?,
            None => 0,
        };
        let by_age = match retention.cutoff(now) {
            Some(cutoff) => self.age_point(scope, thread, cutoff).await?,
            None => 0,
        };
        let point = by_count.max(by_age);
        Ok((point > thread.positions.first_seq).then_some(point))
    }

    /// The position of the oldest message among the newest `max`, after `added` messages have been appended.
    async fn count_point(&self, scope: &Scope, thread: &Thread, max: u64, added: u64) -> Result<u64> {
        let positions = thread.positions;
        if thread.message_count + added <= max {
            return Ok(0);
        }
        let Some(kept) = max.checked_sub(added).filter(|kept| *kept > 0) else {
            return Ok((positions.seq + added + 1).saturating_sub(max));
        };
        let has_gaps = thread.message_count != positions.seq + 1 - positions.first_seq;
        match usize::try_from(kept) {
            // Erased messages leave gaps, so counting back positions would keep too few messages.
            Ok(kept) if has_gaps && kept <= limits::PAGE => {
                let query = MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::newest(kept) };
                let page = self.messages_as_stored(scope, thread.id, &query).await?;
                let seqs = page.messages.iter().map(|message| message.seq);
                let corrupt = page.corrupt.iter().map(|row| row.seq);
                Ok(seqs.chain(corrupt).min().unwrap_or(0))
            }
            _ => Ok(positions.seq + 1 - kept.min(positions.seq)),
        }
    }

    /// The position of the first message that was created at or after `cutoff`.
    async fn age_point(&self, scope: &Scope, thread: &Thread, cutoff: Timestamp) -> Result<u64> {
        let after = Timestamp::from_micros(cutoff.as_micros() - 1).unwrap_or(Timestamp::MIN);
        let query = MessageQuery {
            after: Some(Bound::Time(after)),
            on_corrupt: OnCorrupt::Report,
            ..MessageQuery::following(0, 1)
        };
        let page = self.messages_as_stored(scope, thread.id, &query).await?;
        let first = page.messages.first().map(|message| message.seq);
        let corrupt = page.corrupt.iter().map(|row| row.seq).min();
        Ok(first.into_iter().chain(corrupt).min().unwrap_or(page.positions.seq + 1))
    }

    /// Reads a page, including messages that are past this manager's retention.
    pub(crate) async fn messages_as_stored(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
    ) -> Result<threadkeep_core::MessagePage> {
        let now = self.now();
        Ok(self.read_page(scope, thread, query, now).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_names_the_limit_that_is_zero() {
        let none = Retention { max_messages: Some(0), ttl_minutes: None };
        assert_eq!(none.check().unwrap_err().to_string(), "invalid max_messages: must be at least 1");
        let none = Retention { max_messages: None, ttl_minutes: Some(0) };
        assert_eq!(none.check().unwrap_err().to_string(), "invalid ttl_minutes: must be at least 1");
        assert!(Retention::default().check().is_ok());
    }

    #[test]
    fn messages_of_exactly_the_maximum_age_are_kept() {
        let retention = Retention { max_messages: None, ttl_minutes: Some(60) };
        let created_at: Timestamp = "2026-11-21T08:00:00Z".parse().unwrap();
        let an_hour_later: Timestamp = "2026-11-21T09:00:00Z".parse().unwrap();
        assert_eq!(retention.cutoff(an_hour_later), Some(created_at));
        assert!(retention.expires_at(created_at) > Some(an_hour_later));
    }
}
