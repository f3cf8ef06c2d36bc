//! Notices: facts outside conversations that change, such as the status of a railway line.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use threadkeep_core::{Failure, JsonText, Portable, Timestamp};

/// A source of notices. A server reads it periodically while clients subscribe to it, and sends them what changed.
#[async_trait]
pub trait NoticeSource: Portable + std::fmt::Debug {
    /// Returns the names of all topics.
    fn topics(&self) -> Vec<String>;

    /// Returns the time between reads.
    fn interval(&self) -> Duration;

    /// Reads the current value of the topics. A topic without a known value is omitted.
    ///
    /// # Errors
    /// The source cannot be reached. Subscribers then keep the last values.
    async fn read(&self, now: Timestamp) -> Result<BTreeMap<String, JsonText>, Failure>;
}
