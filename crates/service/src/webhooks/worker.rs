//! Sends the events of one webhook.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use threadkeep::core::{ChangedThread, limits};
use threadkeep::memory::ThreadsUpdates;
use threadkeep::{Memory, Scope, Timestamp, UserCursor};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::changes::ChangeReader;
use super::deliveries::{Delivery, DeliveryState, RETENTION_MS, WebhookEvent};
use super::payload::{self, EventEncoder};
use super::records::{Kind, Records};
use super::sender::{Outcome, Sender};
use super::{Webhook, WebhookOptions};
use crate::error::{Error, Result};
use crate::service::Service;

/// The maximum number of pending deliveries. While there are this many, no further changes are read from the change logs.
const MAX_PENDING: usize = 500;
/// The maximum number of concurrent attempts.
const MAX_CONCURRENT: usize = 4;
/// The longest delay that an endpoint can request before the next attempt.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(12 * 3600);
/// The delay after a failure of the store.
const STORE_RETRY: Duration = Duration::from_secs(1);
/// How long attempts may take to finish when the service stops. An interrupted attempt is repeated later.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// Sends the events of one webhook until it is deleted or the service stops.
#[derive(Debug)]
pub(super) struct Worker {
    service: Service,
    scope: Scope,
    id: String,
    encoder: Arc<dyn EventEncoder>,
    sender: Sender,
}

/// Why a session ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Stopped,
    /// The webhook was deleted, or its user was erased.
    Removed,
    /// Another instance sends the webhook.
    TakenOver,
}

impl Worker {
    pub(super) fn new(
        service: &Service,
        scope: Scope,
        id: String,
        encoder: Arc<dyn EventEncoder>,
        sender: Sender,
    ) -> Self {
        Self { service: service.clone(), scope, id, encoder, sender }
    }

    pub(super) async fn run(self) {
        loop {
            match Box::pin(self.run_session()).await {
                Ok(End::Removed) => {
                    // Removes what remains after the user was erased, or after an interrupted removal.
                    match self.service.webhooks().remove(&self.scope, &self.id).await {
                        Ok(()) => return,
                        Err(error) => tracing::warn!(%error, "cannot remove a webhook; will retry"),
                    }
                }
                Ok(End::Stopped | End::TakenOver) => return,
                Err(error) => {
                    let internal = error.internal.as_deref().unwrap_or_default();
                    tracing::warn!(webhook = self.id, %error, internal, "cannot send a webhook; will retry");
                }
            }
            tokio::select! {
                () = self.service.stopped() => return,
                () = tokio::time::sleep(STORE_RETRY) => {}
            }
        }
    }

    async fn run_session(&self) -> Result<End> {
        match Session::open(self).await? {
            Some((mut session, updates)) => session.run(updates).await,
            None => Ok(End::Removed),
        }
    }
}

/// A delivery in the queue.
#[derive(Debug)]
struct Queued {
    delivery: Delivery,
    is_in_flight: bool,
}

/// How an attempt ended.
#[derive(Debug)]
enum Attempt {
    Sent(Outcome),
    /// The subject of the event no longer exists.
    Obsolete,
    /// The store failed, so the event was not sent.
    NotSent,
}

/// The state of a worker between failures of the store.
struct Session<'a> {
    worker: &'a Worker,
    memory: Memory,
    records: Records,
    reader: ChangeReader,
    webhook: Webhook,
    version: u64,
    queue: BTreeMap<String, Queued>,
    /// The changed threads that have not been read yet.
    backlog: VecDeque<ChangedThread>,
    /// The cursor after the backlog.
    cursor: Option<UserCursor>,
    cursor_version: u64,
    attempts: JoinSet<(String, Attempt)>,
}

impl<'a> Session<'a> {
    /// Opens a session; `None` if the webhook does not exist any more.
    async fn open(worker: &'a Worker) -> Result<Option<(Self, ThreadsUpdates)>> {
        let memory = worker.service.memory().clone();
        let records = Records::of(&memory, &worker.scope);
        let Some(webhook) = records.find::<Webhook>(Kind::Webhook, &worker.id).await? else { return Ok(None) };
        let Some(cursor) = records.find::<String>(Kind::Cursor, &worker.id).await? else { return Ok(None) };
        let updates = memory.subscribe_threads(&worker.scope, Some(UserCursor(cursor.value))).await?;
        let reader = ChangeReader { memory: memory.clone(), scope: worker.scope.clone(), records: records.clone() };
        let mut session = Self {
            worker,
            memory,
            records,
            reader,
            webhook: webhook.value,
            version: webhook.version,
            queue: BTreeMap::new(),
            backlog: VecDeque::new(),
            cursor: None,
            cursor_version: cursor.version,
            attempts: JoinSet::new(),
        };
        session.read_queue().await?;
        Ok(Some((session, updates)))
    }

    async fn run(&mut self, mut updates: ThreadsUpdates) -> Result<End> {
        let (service, options) = (&self.worker.service, &self.worker.service.webhooks().options);
        let mut changed = service.webhooks().changed.subscribe();
        let mut poll = tokio::time::interval(options.poll_interval.max(Duration::from_millis(1)));
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !service.is_stopping() {
            self.start_attempts();
            let may_read = self.webhook.is_enabled && self.queue.len() < MAX_PENDING;
            let next_attempt = self.until_next_attempt();
            tokio::select! {
                () = service.stopped() => {}
                Some(ended) = self.attempts.join_next() => self.record(ended).await?,
                update = updates.next(), if may_read && self.backlog.is_empty() => {
                    let Some(update) = update else { return Err(Error::internal("the list of changed threads ended")) };
                    match update {
                        Ok(update) => {
                            self.backlog.extend(update.threads);
                            self.cursor = Some(update.cursor);
                        }
                        Err(error) => updates = self.restart_after(error).await?,
                    }
                }
                () = std::future::ready(()), if may_read && !self.backlog.is_empty() => {
                    if !self.read_changes().await? {
                        return Ok(End::TakenOver);
                    }
                }
                () = tokio::time::sleep(next_attempt.unwrap_or_default()), if next_attempt.is_some() => {}
                // Cannot fail: the service owns the sender.
                _ = changed.changed() => if !self.reload().await? { return Ok(End::Removed) },
                _ = poll.tick() => if !self.reload().await? { return Ok(End::Removed) },
            }
        }
        let finish = async {
            while let Some(ended) = self.attempts.join_next().await {
                self.record(ended).await?;
            }
            Ok::<_, Error>(())
        };
        drop(tokio::time::timeout(STOP_TIMEOUT, finish).await);
        Ok(End::Stopped)
    }

    /// Reads the webhook again, and the queue if another instance has changed it. Returns whether the webhook exists.
    async fn reload(&mut self) -> Result<bool> {
        let Some(webhook) = self.records.find::<Webhook>(Kind::Webhook, &self.worker.id).await? else {
            return Ok(false);
        };
        self.webhook = webhook.value;
        if webhook.version != self.version {
            self.version = webhook.version;
            self.read_queue().await?;
        }
        Ok(true)
    }

    async fn read_queue(&mut self) -> Result<()> {
        let prefix = format!("{}.", self.worker.id);
        let mut after = None;
        loop {
            let page = self.records.list::<Delivery>(Kind::Queue, &prefix, after, limits::PAGE).await?;
            after = page.last().filter(|_| page.len() == limits::PAGE).map(|last| last.key.clone());
            for stored in page {
                match self.queue.get_mut(&stored.key) {
                    Some(queued) if queued.is_in_flight => {}
                    Some(queued) => queued.delivery = stored.value,
                    None => {
                        self.queue.insert(stored.key, Queued { delivery: stored.value, is_in_flight: false });
                    }
                }
            }
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Restarts from the current changes, because the cursor belongs to another store.
    async fn restart_after(&mut self, error: threadkeep::MemoryError) -> Result<ThreadsUpdates> {
        tracing::warn!(webhook = self.worker.id, %error, "invalid webhook cursor; continuing with the current changes");
        let cursor = self.memory.current_cursor(&self.worker.scope).await?;
        let updates = self.memory.subscribe_threads(&self.worker.scope, Some(cursor.clone())).await?;
        self.cursor = Some(cursor);
        self.save_cursor().await?;
        Ok(updates)
    }

    /// Queues the next events of the first changed thread. Returns `false` if another instance has taken over.
    async fn read_changes(&mut self) -> Result<bool> {
        let Some(changed) = self.backlog.front().cloned() else { return Ok(true) };
        let step = self.reader.read(&self.webhook, &changed).await?;
        for event in &step.events {
            self.enqueue(event).await?;
        }
        if let Some(position) = &step.position {
            self.reader.save(&self.webhook, changed.id, position).await?;
        }
        if !step.more {
            self.backlog.pop_front();
        }
        if self.backlog.is_empty() { self.save_cursor().await } else { Ok(true) }
    }

    /// Adds an event to the queue, unless it was added before a crash.
    async fn enqueue(&mut self, event: &WebhookEvent) -> Result<()> {
        let key = event.key(&self.worker.id);
        if self.queue.contains_key(&key) || self.records.find::<Delivery>(Kind::History, &key).await?.is_some() {
            return Ok(());
        }
        let delivery = Delivery::new(event, self.memory.now());
        self.write_pending(&key, &delivery).await?;
        self.queue.insert(key, Queued { delivery, is_in_flight: false });
        Ok(())
    }

    async fn write_pending(&self, key: &str, delivery: &Delivery) -> Result<()> {
        let expires_at = self.memory.now().plus_ms(2 * RETENTION_MS);
        self.records.write(Kind::Queue, key, None, delivery, Some(expires_at)).await.map(drop)
    }

    /// Stores the cursor. Returns `false` if another instance has stored it.
    async fn save_cursor(&mut self) -> Result<bool> {
        let Some(UserCursor(cursor)) = self.cursor.take() else { return Ok(true) };
        let expected = Some(self.cursor_version);
        match self.records.write(Kind::Cursor, &self.worker.id, expected, &cursor, None).await? {
            Some(version) => {
                self.cursor_version = version;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Starts attempts that are due, oldest event first.
    fn start_attempts(&mut self) {
        let now = self.memory.now();
        // Keys of newer events come first.
        for (key, queued) in self.queue.iter_mut().rev() {
            if !self.webhook.is_enabled || self.attempts.len() >= MAX_CONCURRENT {
                return;
            }
            if !queued.is_in_flight && queued.delivery.next_attempt_at.is_none_or(|at| at <= now) {
                queued.is_in_flight = true;
                let (memory, scope) = (self.memory.clone(), self.worker.scope.clone());
                let (webhook, encoder) = (self.webhook.clone(), Arc::clone(&self.worker.encoder));
                let (sender, event, key) = (self.worker.sender.clone(), queued.delivery.event.clone(), key.clone());
                self.attempts.spawn(async move {
                    let attempt = attempt(&memory, &scope, &webhook, &event, &*encoder, &sender).await;
                    (key, attempt)
                });
            }
        }
    }

    /// Returns how long to wait for the next attempt; `None` if an event will wake the session.
    fn until_next_attempt(&self) -> Option<Duration> {
        if !self.webhook.is_enabled || self.attempts.len() >= MAX_CONCURRENT {
            return None;
        }
        let waiting = self.queue.values().filter(|queued| !queued.is_in_flight);
        let next = waiting.filter_map(|queued| queued.delivery.next_attempt_at).min()?;
        Some(Duration::from_millis(
            next.as_millis().saturating_sub(self.memory.now().as_millis()).try_into().unwrap_or(0),
        ))
    }

    /// Records how an attempt ended.
    async fn record(&mut self, ended: Result<(String, Attempt), tokio::task::JoinError>) -> Result<()> {
        let Ok((key, attempt)) = ended else { return Err(Error::internal("a task that sends a webhook panicked")) };
        let Some(mut queued) = self.queue.remove(&key) else { return Ok(()) };
        queued.is_in_flight = false;
        let (now, delivery) = (self.memory.now(), &mut queued.delivery);
        match attempt {
            Attempt::NotSent => delivery.next_attempt_at = Some(after(now, STORE_RETRY)),
            Attempt::Obsolete => {
                (delivery.state, delivery.next_attempt_at) = (DeliveryState::Failed, None);
                delivery.last_error = Some("the subject of the event no longer exists".to_owned());
            }
            Attempt::Sent(outcome) => {
                apply(delivery, &outcome, now, &self.worker.service.webhooks().options);
                if outcome.is_gone() {
                    self.disable("the endpoint responded with 410 Gone").await?;
                }
            }
        }
        let delivery = &queued.delivery;
        if delivery.state == DeliveryState::Pending {
            self.write_pending(&key, delivery).await?;
            self.queue.insert(key, queued);
            return Ok(());
        }
        if delivery.state == DeliveryState::Failed {
            let (error, attempts) = (delivery.last_error.as_deref(), delivery.attempts);
            tracing::warn!(webhook = self.worker.id, event = delivery.event, attempts, error, "gave up on a delivery");
        }
        let expires_at = Some(now.plus_ms(RETENTION_MS));
        self.records.write(Kind::History, &key, None, delivery, expires_at).await?;
        self.records.delete(Kind::Queue, &key).await
    }

    async fn disable(&mut self, reason: &str) -> Result<()> {
        let webhooks = self.worker.service.webhooks();
        let disable = |webhook: &mut Webhook| {
            (webhook.is_enabled, webhook.disabled_reason) = (false, Some(reason.to_owned()));
            Ok(())
        };
        self.webhook = webhooks.change(&self.worker.scope, &self.worker.id, disable).await?;
        tracing::warn!(webhook = self.worker.id, reason, "disabled a webhook");
        Ok(())
    }
}

/// Makes one attempt to deliver an event.
async fn attempt(
    memory: &Memory,
    scope: &Scope,
    webhook: &Webhook,
    event: &str,
    encoder: &dyn EventEncoder,
    sender: &Sender,
) -> Attempt {
    let Ok(parsed) = event.parse::<WebhookEvent>() else { return Attempt::Obsolete };
    match payload::read(memory, scope, webhook, &parsed, encoder).await {
        Ok(Some(payload)) => Attempt::Sent(sender.send(webhook, event, payload, memory.now()).await),
        Ok(None) => Attempt::Obsolete,
        Err(error) => {
            tracing::warn!(webhook = webhook.id, %error, "cannot read an event; will retry");
            Attempt::NotSent
        }
    }
}

/// Updates a delivery after an attempt.
fn apply(delivery: &mut Delivery, outcome: &Outcome, now: Timestamp, options: &WebhookOptions) {
    delivery.attempts += 1;
    delivery.last_attempt_at = Some(now);
    delivery.last_status = outcome.status;
    delivery.last_error.clone_from(&outcome.error);
    delivery.next_attempt_at = None;
    let retry = usize::try_from(delivery.attempts - 1).ok().and_then(|retry| options.retry_delays.get(retry));
    match retry.filter(|_| !outcome.is_gone()) {
        _ if outcome.error.is_none() => delivery.state = DeliveryState::Delivered,
        Some(delay) => {
            let requested = outcome.retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
            delivery.next_attempt_at = Some(after(now, jittered(*delay).max(requested)));
        }
        None => delivery.state = DeliveryState::Failed,
    }
}

/// Adds jitter of up to 20 % to a delay, so that the attempts of many deliveries are spread out.
fn jittered(delay: Duration) -> Duration {
    let mut random = [0];
    if getrandom::fill(&mut random).is_err() {
        return delay;
    }
    delay.mul_f64(0.8 + 0.4 * f64::from(random[0]) / 255.0)
}

fn after(now: Timestamp, delay: Duration) -> Timestamp {
    now.plus_ms(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: u16, retry_after: Option<u64>) -> Outcome {
        let error = (!(200..300).contains(&status)).then(|| format!("the endpoint responded with {status}"));
        Outcome { status: Some(status), error, retry_after: retry_after.map(Duration::from_secs) }
    }

    #[test]
    fn attempts_are_repeated_with_growing_delays_until_the_delivery_fails() {
        let options = WebhookOptions::default();
        let now = Timestamp::from_millis(1_000_000).unwrap();
        let event = WebhookEvent {
            thread: threadkeep::ThreadId::from_name(b"thread"),
            at: now,
            kind: super::super::EventKind::Created,
        };
        let mut delivery = Delivery::new(&event, now);
        for (number, delay) in options.retry_delays.iter().enumerate() {
            apply(&mut delivery, &outcome(503, None), now, &options);
            assert_eq!((delivery.state, delivery.attempts as usize), (DeliveryState::Pending, number + 1));
            let wait = delivery.next_attempt_at.unwrap().as_millis() - now.as_millis();
            let delay = i64::try_from(delay.as_millis()).unwrap();
            assert!((delay * 8 / 10..=delay * 12 / 10).contains(&wait), "{wait} {delay}");
        }
        apply(&mut delivery, &outcome(500, None), now, &options);
        assert_eq!((delivery.state, delivery.next_attempt_at), (DeliveryState::Failed, None));
        assert_eq!(delivery.last_error.as_deref(), Some("the endpoint responded with 500"));
        // An endpoint can ask for a longer delay, up to a limit.
        let wait = |seconds| {
            let mut delivery = Delivery::new(&event, now);
            apply(&mut delivery, &outcome(429, Some(seconds)), now, &options);
            (delivery.next_attempt_at.unwrap().as_millis() - now.as_millis()) / 1000
        };
        assert_eq!((wait(600), wait(1_000_000_000)), (600, 12 * 3600));
        let mut delivery = Delivery::new(&event, now);
        apply(&mut delivery, &outcome(410, None), now, &options);
        assert_eq!(delivery.state, DeliveryState::Failed);
        let mut delivery = Delivery::new(&event, now);
        apply(&mut delivery, &outcome(204, None), now, &options);
        assert_eq!((delivery.state, delivery.last_error), (DeliveryState::Delivered, None));
    }
}
