//! Detects a server that has restarted without its data.
//!
//! Without this check, such a server would look like one on which nothing had ever been stored: threads would not be found, and lists
//! would be incomplete. Two things show that it has lost its data. Its Redis functions are gone, and every call that names a key runs one
//! (`FCALL`), so all these calls fail. And the store's markers in its hash slots are missing. If the data is gone as well, the functions
//! are not reinstalled until the store has been repaired, so no instance mistakes lost data for data that never existed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use redis::Cmd;
use threadkeep_core::{Result, StoreError};

use crate::connection::{Connections, slot_of};
use crate::reply::Reply;

/// The hash slots of a cluster are divided into this many equal parts, and each part holds one marker. If one of two servers that share
/// a part loses its data, all of the part may count as lost until the store has been repaired.
const PARTS: u16 = 128;
/// The number of hash slots of a cluster.
const SLOTS: u16 = 16_384;
/// How often an instance that knows of a loss checks whether the store has been repaired.
const RECHECK: Duration = Duration::from_secs(1);

/// Detects lost data, and records what this process knows about it.
#[derive(Default)]
pub(crate) struct LossDetector {
    /// The keys of the markers, by part.
    markers: Vec<String>,
    /// The content of the markers.
    incarnation: OnceLock<String>,
    has_losses: AtomicBool,
    losses: Mutex<Losses>,
    /// Whether this process is repairing the store.
    is_repairing: AtomicBool,
}

#[derive(Default)]
struct Losses {
    checked_at: Option<Instant>,
    parts: Vec<u16>,
}

impl LossDetector {
    pub(crate) fn new(prefix: &str, is_cluster: bool) -> Self {
        let mut markers = vec![String::new(); usize::from(if is_cluster { PARTS } else { 1 })];
        let mut missing = markers.len();
        for number in 0_u32.. {
            if missing == 0 {
                break;
            }
            let key = format!("{prefix}:{{present/{number}}}");
            let marker = &mut markers[usize::from(part_of(&key, is_cluster))];
            if marker.is_empty() {
                *marker = key;
                missing -= 1;
            }
        }
        Self { markers, ..Self::default() }
    }

    pub(crate) fn markers(&self) -> &[String] {
        &self.markers
    }

    /// Notes what the markers of the open store contain.
    pub(crate) fn set_incarnation(&self, incarnation: &str) {
        let _ = self.incarnation.set(incarnation.to_owned());
    }

    /// Allows calls despite losses while the guard exists.
    pub(crate) fn begin_repair(&self) -> RepairGuard<'_> {
        self.is_repairing.store(true, Ordering::SeqCst);
        RepairGuard(self)
    }

    fn losses(&self) -> std::sync::MutexGuard<'_, Losses> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Exists while a repair is in progress.
pub(crate) struct RepairGuard<'a>(&'a LossDetector);

impl Drop for RepairGuard<'_> {
    fn drop(&mut self) {
        self.0.is_repairing.store(false, Ordering::SeqCst);
    }
}

fn part_of(key: &str, is_cluster: bool) -> u16 {
    if is_cluster { slot_of(key) / (SLOTS / PARTS) } else { 0 }
}

/// The error of calls that need lost data.
pub(crate) fn lost_data() -> StoreError {
    StoreError::corrupt(
        "store",
        "a Redis server has restarted without its data, so part of the store is lost; \
         `threadkeep check --repair` makes the rest usable again",
    )
}

impl Connections {
    /// Returns the content of the markers, by part.
    pub(crate) async fn read_markers(&self) -> Result<Vec<Option<String>>> {
        let reads = self.loss_detector().markers().iter().map(async |marker| {
            let mut get = redis::cmd("GET");
            get.arg(marker);
            self.run_unchecked(&get).await?.text()
        });
        try_join_all(reads).await
    }

    /// Places all markers.
    pub(crate) async fn place_markers(&self, incarnation: &str) -> Result<()> {
        let writes = self.loss_detector().markers().iter().map(async |marker| {
            let mut set = redis::cmd("SET");
            set.arg(marker).arg(incarnation);
            self.run_unchecked(&set).await
        });
        try_join_all(writes).await.map(|_| ())
    }

    /// Reads the markers. Returns the number of parts whose data is lost.
    pub(crate) async fn find_losses(&self) -> Result<usize> {
        let detector = self.loss_detector();
        let Some(incarnation) = detector.incarnation.get() else { return Ok(0) };
        let markers = self.read_markers().await?;
        let lost = (0..).zip(&markers).filter(|(_, marker)| marker.as_ref() != Some(incarnation));
        let parts: Vec<u16> = lost.map(|(part, _)| part).collect();
        let count = parts.len();
        detector.has_losses.store(count > 0, Ordering::SeqCst);
        *detector.losses() = Losses { checked_at: Some(Instant::now()), parts };
        Ok(count)
    }

    /// The number of parts whose data is lost, as last seen.
    pub(crate) fn known_losses(&self) -> usize {
        if self.loss_detector().has_losses.load(Ordering::SeqCst) {
            self.loss_detector().losses().parts.len()
        } else {
            0
        }
    }

    /// Fails if any data is lost.
    pub(crate) async fn ensure_complete(&self) -> Result<()> {
        if self.find_losses().await? == 0 { Ok(()) } else { Err(lost_data()) }
    }

    /// Fails if the command's key is in a part of the hash slots whose data is known to be lost.
    pub(crate) async fn ensure_not_lost(&self, command: &Cmd) -> Result<()> {
        let detector = self.loss_detector();
        if !detector.has_losses.load(Ordering::Relaxed) || detector.is_repairing.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Some(key) = key_of(command) else { return Ok(()) };
        let is_due = detector.losses().checked_at.is_none_or(|at| at.elapsed() >= RECHECK);
        if is_due {
            self.find_losses().await?;
        }
        let part = part_of(&key, self.options().is_cluster);
        if detector.losses().parts.contains(&part) { Err(lost_data()) } else { Ok(()) }
    }

    /// Installs missing functions again, unless they are missing because the server has lost its data.
    pub(crate) async fn reinstall(&self) -> Result<()> {
        if !self.loss_detector().is_repairing.load(Ordering::Relaxed) && self.find_losses().await? > 0 {
            return Err(lost_data());
        }
        self.install().await
    }
}

/// Returns the key that a command names: the first argument of an ordinary command, the third argument of `FCALL`.
fn key_of(command: &Cmd) -> Option<String> {
    let is_key = |arg: redis::Arg<&[u8]>| match arg {
        redis::Arg::Simple(bytes) => {
            std::str::from_utf8(bytes).ok().filter(|text| text.contains('{')).map(str::to_owned)
        }
        _ => None,
    };
    command.args_iter().take(4).skip(1).find_map(is_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_slots_has_a_marker() {
        let detector = LossDetector::new("threadkeep", true);
        let parts: Vec<u16> = detector.markers().iter().map(|marker| part_of(marker, true)).collect();
        assert_eq!(parts, (0..PARTS).collect::<Vec<_>>());
        assert_eq!(LossDetector::new("threadkeep", false).markers().len(), 1);
    }

    #[test]
    fn keys_are_found_in_commands_and_function_calls() {
        let mut get = redis::cmd("HGET");
        get.arg("a:{b}:c").arg("d");
        assert_eq!(key_of(&get), Some("a:{b}:c".to_owned()));
        let mut call = redis::cmd("FCALL");
        call.arg("f").arg(2).arg("a:{b}").arg("a:{b}:-").arg("x");
        assert_eq!(key_of(&call), Some("a:{b}".to_owned()));
        assert_eq!(key_of(redis::cmd("INFO").arg("replication")), None);
    }
}
