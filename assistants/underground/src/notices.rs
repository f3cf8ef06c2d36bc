//! The status of lines as notices: a server informs its clients when it changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use threadkeep::agent::{Failure, NoticeSource};
use threadkeep::{JsonText, Timestamp};
use threadkeep_transit::tools::instant;

use crate::lines::LINES;
use crate::underground::Underground;

/// How often the status is read: whenever the cached one expires.
const INTERVAL: Duration = Duration::from_secs(30);

/// The status of each line, by the line's id. A single request to TfL reads all of them.
#[derive(Debug)]
pub(crate) struct StatusNotices {
    underground: Arc<Underground>,
}

impl StatusNotices {
    pub(crate) fn new(underground: Arc<Underground>) -> Self {
        Self { underground }
    }
}

#[async_trait]
impl NoticeSource for StatusNotices {
    fn topics(&self) -> Vec<String> {
        LINES.iter().map(|line| line.id.to_owned()).collect()
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }

    async fn read(&self, now: Timestamp) -> Result<BTreeMap<String, JsonText>, Failure> {
        let answer = self.underground.line_status(&[], instant(now)).await;
        let answer = answer.ok_or_else(|| Failure::new("tfl_unreachable", "TfL's service cannot be reached"))?;
        let mut values = BTreeMap::new();
        for status in answer.statuses {
            let value = JsonText::of(&status).map_err(Failure::from)?;
            values.insert(status.line, value);
        }
        Ok(values)
    }
}
