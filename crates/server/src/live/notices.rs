//! Notices that assistants publish in the streams of threads, such as the status of transit lines.
//!
//! One poller reads the source of an assistant for all subscribers, and stops when the last of them leaves.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use threadkeep::JsonText;
use threadkeep::agent::NoticeSource;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::encoding::EncodedUpdate;
use super::json::UpdateJson;
use crate::app::App;
use crate::error::{ApiError, Result};

/// The last known values of topics.
type Values = Arc<BTreeMap<String, JsonText>>;

/// The pollers that have subscribers, by the name of their assistant.
#[derive(Debug, Default)]
pub(crate) struct NoticePollers {
    running: Mutex<HashMap<String, Weak<Poller>>>,
}

/// A task that reads a source until the poller is dropped.
#[derive(Debug)]
struct Poller {
    source: Arc<dyn NoticeSource>,
    values: watch::Receiver<Values>,
    task: AbortHandle,
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Poller {
    fn start(app: &App, source: Arc<dyn NoticeSource>) -> Self {
        let (sender, values) = watch::channel(Values::default());
        let task = tokio::spawn(poll(app.clone(), Arc::clone(&source), sender)).abort_handle();
        Self { source, values, task }
    }
}

async fn poll(app: App, source: Arc<dyn NoticeSource>, values: watch::Sender<Values>) {
    loop {
        match source.read(app.memory().now()).await {
            Ok(read) => {
                values.send_if_modified(|known| {
                    let is_changed = **known != read;
                    if is_changed {
                        *known = Arc::new(read);
                    }
                    is_changed
                });
            }
            Err(failure) => tracing::warn!(code = failure.code, "cannot read notices: {}", failure.message),
        }
        tokio::time::sleep(source.interval()).await;
    }
}

impl NoticePollers {
    /// Returns the poller of an assistant, which is started if it is not running with this source.
    fn find_or_start(&self, app: &App, assistant: &str, source: &Arc<dyn NoticeSource>) -> Arc<Poller> {
        // A poisoned lock is harmless, because the map is changed in one step.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let known = running.get(assistant).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.source, source)) {
            return known;
        }
        let poller = Arc::new(Poller::start(app, Arc::clone(source)));
        running.retain(|_, poller| poller.strong_count() > 0);
        running.insert(assistant.to_owned(), Arc::downgrade(&poller));
        poller
    }
}

/// A subscription to topics of an assistant.
#[derive(Debug)]
pub(super) struct Notices {
    assistant: String,
    topics: BTreeSet<String>,
    /// Keeps the poller running.
    _poller: Arc<Poller>,
    values: watch::Receiver<Values>,
    /// The values that were sent to the client.
    sent: BTreeMap<String, JsonText>,
}

impl Notices {
    /// Subscribes to topics, or to all topics if `topics` is empty. Returns `None` if there is no assistant.
    ///
    /// # Errors
    /// `invalid_request` if the assistant has no such topics.
    pub(super) fn subscribe(app: &App, assistant: Option<&str>, topics: Vec<String>) -> Result<Option<Self>> {
        let Some(assistant) = assistant else {
            return match topics.is_empty() {
                true => Ok(None),
                false => Err(ApiError::invalid("topic", "`topic` requires `assistant`")),
            };
        };
        let agent = app.assistants().find(assistant);
        let source = agent.and_then(|agent| agent.assistant().definition().notices.clone());
        let Some(source) = source else {
            return Err(ApiError::invalid(
                "assistant",
                "there is no assistant with this name, or it does not publish notices",
            ));
        };
        let known = source.topics();
        if topics.iter().any(|topic| !known.contains(topic)) {
            return Err(ApiError::invalid("topic", format!("unknown topic; the topics are {}", known.join(", "))));
        }
        let topics = if topics.is_empty() { known } else { topics };
        let poller = app.notice_pollers().find_or_start(app, assistant, &source);
        let mut values = poller.values.clone();
        values.mark_changed();
        Ok(Some(Self {
            assistant: assistant.to_owned(),
            topics: topics.into_iter().collect(),
            _poller: poller,
            values,
            sent: BTreeMap::new(),
        }))
    }

    /// Waits for the next value that differs from the last one that was sent.
    pub(super) async fn next(&mut self) -> EncodedUpdate {
        loop {
            if let Some(update) = self.find_change() {
                return update;
            }
            if self.values.changed().await.is_err() {
                // The poller stops only after its last subscriber has left, or if it panicked.
                std::future::pending::<()>().await;
            }
        }
    }

    fn find_change(&mut self) -> Option<EncodedUpdate> {
        let values = Arc::clone(&self.values.borrow());
        let mut wanted = values.iter().filter(|(topic, _)| self.topics.contains(*topic));
        let (topic, data) = wanted.find(|(topic, data)| self.sent.get(*topic) != Some(data))?;
        self.sent.insert(topic.clone(), data.clone());
        Some(EncodedUpdate::of(&UpdateJson::Notice { assistant: &self.assistant, topic, data }))
    }
}

/// Waits for the next notice; forever without a subscription.
pub(super) async fn next_notice(notices: &mut Option<Notices>) -> EncodedUpdate {
    match notices {
        Some(notices) => notices.next().await,
        None => std::future::pending().await,
    }
}
