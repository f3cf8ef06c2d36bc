//! Retention policies. This module computes what to trim; the store trims it in the commit that appends messages.

use serde::{Deserialize, Serialize};
use threadkeep_core::{Access, Batch, Bound, MessageQuery, OnCorrupt, Scope, Thread, ThreadId, Timestamp, limits};

use crate::context::is_context_state_conflict;
use crate::{Memory, MemoryError, Result};

/// Maximum number of attempts to remove trimmed messages from the context state while others update it.
const ATTEMPTS: usize = 8;

const MINUTE_MS: i64 = 60_000;

/// A retention policy: how many messages of a thread are kept, and for how long.
///
/// If `ttl_minutes` is set, messages older than that many minutes are neither returned nor kept, and a thread that receives no
/// message for that long expires. A title made from a message is kept when the message is trimmed, because the title names the
/// whole conversation.
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
    /// `Invalid`, naming the limit, if a limit is 0.
    pub fn check(&self) -> Result<()> {
        if self.max_messages == Some(0) {
            return Err(MemoryError::invalid("max_messages", "must be at least 1"));
        }
        if self.ttl_minutes == Some(0) {
            return Err(MemoryError::invalid("ttl_minutes", "must be at least 1"));
        }
        Ok(())
    }

    /// The cutoff at `now`: messages created before it are not kept. `None` if there is no age limit.
    #[must_use]
    pub fn cutoff(&self, now: Timestamp) -> Option<Timestamp> {
        self.ttl_minutes.map(|minutes| now.plus_ms(-i64::from(minutes) * MINUTE_MS))
    }

    /// The time at which a thread expires if it receives no message after `now`. `None` if there is no age limit.
    #[must_use]
    pub fn expires_at(&self, now: Timestamp) -> Option<Timestamp> {
        // A message of exactly the maximum age is kept, but a thread no longer exists at its expiry time. So add one microsecond.
        let kept_until = self.ttl_minutes.map(|minutes| now.plus_ms(i64::from(minutes) * MINUTE_MS))?;
        Timestamp::from_micros(kept_until.as_micros() + 1).ok()
    }
}

impl Memory {
    /// Trims a thread according to a retention policy. Returns the position of the first message that is kept.
    ///
    /// Appending with a retention policy also trims the thread, so this is needed only for threads that receive no new messages.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0, `NotFound` for an unknown thread, `Denied` if the thread is shared and `scope` is a user's,
    /// `Contended` if others update the context state during each attempt.
    pub async fn retain(&self, scope: &Scope, thread: ThreadId, retention: &Retention) -> Result<u64> {
        retention.check()?;
        let now = self.now();
        let found = self.get_thread(scope, thread).await?;
        let trim_below = self.first_kept(scope, &found, retention, 0, now).await?;
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

    /// Adds the trim position and expiry time that a retention policy requires to a batch that appends messages. Does nothing for
    /// a shared thread in a user's scope, because only the tenant may trim such a thread.
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
        batch.trim_below = self.first_kept(scope, thread, retention, added, now).await?;
        if let Some(expires_at) = retention.expires_at(now) {
            batch.patch.expires_at = Some(Some(expires_at));
        }
        Ok(())
    }

    /// The position below which a thread must be trimmed once `added` messages are appended; `None` if there is nothing to trim.
    async fn first_kept(
        &self,
        scope: &Scope,
        thread: &Thread,
        retention: &Retention,
        added: u64,
        now: Timestamp,
    ) -> Result<Option<u64>> {
        let by_count = match retention.max_messages {
            Some(max) => self.first_kept_by_count(scope, thread, max, added).await?,
            None => 0,
        };
        let by_age = match retention.cutoff(now) {
            Some(cutoff) => self.first_kept_by_age(scope, thread, cutoff).await?,
            None => 0,
        };
        let first_kept = by_count.max(by_age);
        Ok((first_kept > thread.positions.first_seq).then_some(first_kept))
    }

    /// The position of the oldest message to keep if the newest `max` are kept, counting `added` new messages; 0 if there is
    /// nothing to trim.
    async fn first_kept_by_count(&self, scope: &Scope, thread: &Thread, max: u64, added: u64) -> Result<u64> {
        let positions = thread.positions;
        if thread.message_count + added <= max {
            return Ok(0);
        }
        let Some(kept) = max.checked_sub(added).filter(|kept| *kept > 0) else {
            return Ok((positions.seq + added + 1).saturating_sub(max));
        };
        let has_gaps = thread.message_count != positions.seq + 1 - positions.first_seq;
        match usize::try_from(kept) {
            // Erased messages leave gaps, so subtracting from the last position would keep too few messages.
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

    /// The position of the first message created at or after `cutoff`; the position after the last message if there is none.
    async fn first_kept_by_age(&self, scope: &Scope, thread: &Thread, cutoff: Timestamp) -> Result<u64> {
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

    /// Reads a page, including messages past their retention.
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
    fn errors_name_the_limit_that_is_zero() {
        let zero = Retention { max_messages: Some(0), ttl_minutes: None };
        assert_eq!(zero.check().unwrap_err().to_string(), "invalid max_messages: must be at least 1");
        let zero = Retention { max_messages: None, ttl_minutes: Some(0) };
        assert_eq!(zero.check().unwrap_err().to_string(), "invalid ttl_minutes: must be at least 1");
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
