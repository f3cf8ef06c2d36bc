//! Detects failovers: a replica that takes over from a primary may not have the newest commits.
//!
//! A replica that is promoted gets a new replication id and keeps the former one beside it. Instances compare the ids of the primaries
//! with those that the store knows. After a failover, the store gets a new history, and cursors from the former one are no longer valid.

use std::sync::{PoisonError, Weak};
use std::time::Duration;

use redis::Value;
use threadkeep_core::{Result, WakeUp};
use uuid::Uuid;

use crate::args::Args;
use crate::durability::replicas_of;
use crate::reply::required_text;
use crate::shared::Shared;

/// How often the primaries are asked.
const INTERVAL: Duration = Duration::from_secs(2);
/// The maximum number of replication ids that a process remembers.
const MAX_IDS: usize = 10_000;

/// A primary's replication id, and whether the primary was a replica before.
fn parse_primary(info: &str) -> Option<(String, bool)> {
    let value = |name: &str| info.lines().find_map(|line| line.trim().strip_prefix(name));
    if value("role:") != Some("master") {
        return None;
    }
    let former = value("master_replid2:").unwrap_or_default();
    Some((value("master_replid:")?.to_owned(), former.bytes().any(|byte| byte != b'0')))
}

impl Shared {
    /// Returns the history of the store, as this process last saw it.
    pub(crate) fn history(&self) -> String {
        self.history.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the primaries whether one of them has taken over, or has restarted without its data. Returns whether the history has changed.
    pub(crate) async fn observe_history(&self) -> Result<bool> {
        let mut info = redis::cmd("INFO");
        info.arg("replication").arg("persistence");
        let replies = self.connections.run_on_primaries(&info).await?;
        // During a failover, a primary may not answer, or be a replica by now. The next check finds its successor.
        let texts: Vec<String> = replies.into_iter().filter_map(|reply| required_text(reply).ok()).collect();
        let primaries: Vec<_> = texts.iter().map(|info| parse_primary(info)).collect();
        let Some(primaries) = primaries.into_iter().collect::<Option<Vec<_>>>() else { return Ok(false) };
        self.observe_durability(&texts);
        if self.has_new_primary(&primaries) {
            // A server gets a new id when it restarts.
            self.connections.find_losses().await?;
        }
        let mut args = Args::new();
        args.add(&Uuid::new_v4().simple().to_string()[..8]);
        for (id, is_promoted) in primaries {
            args.add(id).add(if is_promoted { "1" } else { "0" });
        }
        let found: Value = self.connections.write("note_primaries", &self.keys.about(), &args).await?;
        let found = required_text(found)?;
        let mut history = self.history.write().unwrap_or_else(PoisonError::into_inner);
        let is_other = *history != found;
        *history = found;
        drop(history);
        Ok(is_other)
    }

    /// Gives the store a new history, so that cursors from the former one are no longer valid.
    pub(crate) async fn begin_history(&self) -> Result<()> {
        let mut set = redis::cmd("HSET");
        set.arg(self.keys.about()).arg("history").arg(&Uuid::new_v4().simple().to_string()[..8]);
        self.connections.run(&set, true).await?;
        self.observe_history().await.map(|_| ())
    }

    /// Notes the ids of the primaries. Returns whether one of them is new to this process.
    fn has_new_primary(&self, primaries: &[(String, bool)]) -> bool {
        let mut known = self.primaries.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > MAX_IDS {
            known.clear();
        }
        let ids = primaries.iter().map(|(id, _)| known.insert(id.clone()));
        ids.fold(false, |has_new, is_new| has_new | is_new)
    }

    fn observe_durability(&self, primaries: &[String]) {
        let replicas = primaries.iter().map(|info| replicas_of(info));
        let lacks_file = primaries.iter().any(|info| info.lines().any(|line| line.trim() == "aof_enabled:0"));
        let (fewest, lag) =
            replicas.fold((usize::MAX, 0), |(fewest, lag), (count, behind)| (fewest.min(count), lag.max(behind)));
        self.note_durability(|durability| {
            (durability.replicas, durability.lag) = (if primaries.is_empty() { 0 } else { fewest }, lag);
            if lacks_file {
                durability.append_only = Some(false);
            }
        });
    }
}

/// Checks for failovers until the store is closed, and wakes all subscribers after a failover.
pub(crate) async fn watch(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(shared) = shared.upgrade() else { return };
        // After an error, the next check detects the failover.
        if shared.observe_history().await.unwrap_or(false) {
            let _ = shared.wake_ups.send((WakeUp::Unspecified, u64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse_primary;

    #[test]
    fn promoted_replicas_keep_the_former_id() {
        let info = |role: &str, former: &str| format!("role:{role}\r\nmaster_replid:ab\r\nmaster_replid2:{former}\r\n");
        assert_eq!(parse_primary(&info("master", "0000")), Some(("ab".to_owned(), false)));
        assert_eq!(parse_primary(&info("master", "00cd")), Some(("ab".to_owned(), true)));
        assert_eq!(parse_primary(&info("slave", "00cd")), None);
    }
}
