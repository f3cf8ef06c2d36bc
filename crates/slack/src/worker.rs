//! The worker processes accepted requests. Requests of one conversation run sequentially.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::Value;
use threadkeep::memory::turns::{Driver, LEASE_RENEWAL_INTERVAL};
use threadkeep::{Agent, Memory, MemoryError};
use threadkeep_service::{ErrorKind, Service};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::{Bot, SlackApi};
use crate::events::{Accepted, Job, ParseContext, bot_user, read_event, read_interaction, read_place};
use crate::inbox::{Inbox, Request};
use crate::{EventSource, SlackError, SlackOptions};

/// The maximum number of concurrent requests per user.
const MAX_TASKS: usize = 3;
/// The maximum number of users for whom a semaphore is kept.
const MAX_USERS: usize = 10_000;
/// The delay before signing in is retried.
const SIGN_IN_DELAY: Duration = Duration::from_secs(10);

/// The maximum number of attempts while another instance uses the conversation, and the delay between them.
const BUSY_ATTEMPTS: u32 = 600;
const BUSY_WAIT: Duration = Duration::from_millis(500);

/// A request in a queue.
struct Queued {
    accepted: Accepted,
    /// Whether an instance that ended may have processed part of the request.
    is_recovered: bool,
}

/// The worker of the door.
pub(crate) struct Worker {
    options: SlackOptions,
    pub(crate) api: SlackApi,
    /// The signed-in bots, by workspace.
    bots: Mutex<HashMap<String, Bot>>,
    inboxes: Mutex<HashMap<String, Inbox>>,
    /// The queued requests of each active conversation.
    queues: Mutex<HashMap<String, VecDeque<Queued>>>,
    /// The identity of this instance in the inbox.
    instance: OnceLock<Driver>,
    /// Limits the concurrent requests of each user.
    tasks: Mutex<HashMap<String, Arc<Semaphore>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a request could not be processed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkError {
    #[error(transparent)]
    Service(#[from] threadkeep_service::Error),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Slack(#[from] crate::api::CallError),
    #[error("there is no assistant named {0}")]
    NoAssistant(String),
    #[error("there is no bot token for the workspace {0}")]
    NoBot(String),
}

impl WorkError {
    /// Whether every retry of the request would fail in the same way.
    fn is_final(&self) -> bool {
        match self {
            Self::Service(error) => {
                matches!(error.kind, ErrorKind::Invalid | ErrorKind::Forbidden | ErrorKind::Unsupported)
            }
            Self::Slack(error) => error.is_final(),
            Self::Memory(_) | Self::NoAssistant(_) | Self::NoBot(_) => false,
        }
    }

    /// Whether another instance is using the conversation.
    fn is_busy(&self) -> bool {
        matches!(self, Self::Service(error) if error.code == "busy")
    }
}

impl Worker {
    pub(crate) fn new(options: SlackOptions) -> Result<Self, SlackError> {
        let api = SlackApi::new(&options)?;
        Ok(Self {
            options,
            api,
            bots: Mutex::default(),
            inboxes: Mutex::default(),
            queues: Mutex::default(),
            instance: OnceLock::new(),
            tasks: Mutex::default(),
        })
    }

    pub(crate) fn options(&self) -> &SlackOptions {
        &self.options
    }

    /// Returns the identity of this instance.
    pub(crate) fn instance(&self, memory: &Memory) -> &Driver {
        self.instance.get_or_init(|| Driver::begin(memory))
    }

    /// Runs until the service stops. In Socket Mode, also receives events.
    pub(crate) async fn run(self: Arc<Self>, service: Service) {
        match &self.options.source {
            EventSource::Requests { .. } => self.maintain_inbox(&service).await,
            EventSource::SocketMode { app_token } => {
                tokio::join!(self.maintain_inbox(&service), self.listen(&service, app_token));
            }
        }
    }

    /// Signs in, then renews the lease of this instance and takes over abandoned requests until the service stops.
    async fn maintain_inbox(self: &Arc<Self>, service: &Service) {
        for token in self.options.bot_tokens.clone() {
            loop {
                match self.recover(service, &token).await {
                    Ok(()) => break,
                    Err(error) => tracing::warn!(%error, "cannot sign in to Slack; will retry"),
                }
                tokio::select! {
                    () = service.stopped() => return,
                    () = tokio::time::sleep(SIGN_IN_DELAY) => {}
                }
            }
        }
        loop {
            tokio::select! {
                () = service.stopped() => return,
                () = tokio::time::sleep(LEASE_RENEWAL_INTERVAL) => {}
            }
            let inboxes: Vec<Inbox> = lock(&self.inboxes).values().cloned().collect();
            for inbox in inboxes {
                if let Err(error) = self.renew(service, &inbox).await {
                    tracing::warn!(%error, "failed to renew the lease of the Slack inbox; will retry");
                }
            }
        }
    }

    /// Renews the lease of this instance, and takes over abandoned requests.
    async fn renew(self: &Arc<Self>, service: &Service, inbox: &Inbox) -> Result<(), MemoryError> {
        let instance = self.instance(service.memory());
        inbox.renew(instance).await?;
        for abandoned in inbox.abandoned().await? {
            if inbox.take_over(&abandoned, instance).await? {
                self.start(service, abandoned.accepted, true);
            }
        }
        Ok(())
    }

    async fn recover(self: &Arc<Self>, service: &Service, token: &str) -> Result<(), WorkError> {
        let bot = self.api.sign_in(token).await?;
        let inbox = self.inbox(service.memory(), &bot.team).await?;
        lock(&self.bots).insert(bot.team.clone(), bot);
        Ok(self.renew(service, &inbox).await?)
    }

    /// Returns the bot of a workspace. Signs in if necessary.
    pub(crate) async fn bot(&self, team: &str) -> Result<Bot, WorkError> {
        let known = lock(&self.bots).get(team).cloned();
        if let Some(bot) = known {
            return Ok(bot);
        }
        for token in &self.options.bot_tokens {
            let bot = self.api.sign_in(token).await?;
            lock(&self.bots).insert(bot.team.clone(), bot.clone());
            if bot.team == team {
                return Ok(bot);
            }
        }
        Err(WorkError::NoBot(team.to_owned()))
    }

    pub(crate) async fn inbox(&self, memory: &Memory, team: &str) -> Result<Inbox, MemoryError> {
        let known = lock(&self.inboxes).get(team).cloned();
        if let Some(inbox) = known {
            return Ok(inbox);
        }
        let inbox = Inbox::open(memory, team).await?;
        inbox.renew(self.instance(memory)).await?;
        lock(&self.inboxes).insert(team.to_owned(), inbox.clone());
        Ok(inbox)
    }

    /// Stores an event, and starts the work that it causes.
    pub(crate) async fn receive_event(
        self: &Arc<Self>,
        service: &Service,
        envelope: &Value,
    ) -> Result<(), MemoryError> {
        match self.read_event(service, envelope).await? {
            Some(accepted) => self.accept(service, accepted).await,
            None => Ok(()),
        }
    }

    /// Stores an interaction, and starts the work that it causes.
    pub(crate) async fn receive_interaction(
        self: &Arc<Self>,
        service: &Service,
        payload: &Value,
    ) -> Result<(), MemoryError> {
        match read_interaction(payload) {
            Some(accepted) => self.accept(service, accepted).await,
            None => Ok(()),
        }
    }

    /// Stores a request and starts its work, unless it was delivered before. It may be acknowledged afterwards.
    async fn accept(self: &Arc<Self>, service: &Service, accepted: Accepted) -> Result<(), MemoryError> {
        let inbox = self.inbox(service.memory(), accepted.job.team()).await?;
        if inbox.accept(&accepted, self.instance(service.memory())).await? {
            self.start(service, accepted, false);
        }
        Ok(())
    }

    /// Parses an event. In threads in which the bot has answered, messages need no mention.
    async fn read_event(&self, service: &Service, envelope: &Value) -> Result<Option<Accepted>, MemoryError> {
        let known =
            envelope["team_id"].as_str().and_then(|team| lock(&self.bots).get(team).map(|bot| bot.user.clone()));
        let context = ParseContext {
            bot_user: known.as_deref().or_else(|| bot_user(envelope)),
            answers_all: self.options.answers_all,
            is_own_thread: false,
        };
        let accepted = read_event(envelope, context);
        let place = read_place(envelope).filter(|place| accepted.is_none() && place.thread_ts.is_some());
        let Some(place) = place else { return Ok(accepted) };
        let inbox = self.inbox(service.memory(), &place.team).await?;
        let is_own_thread = service.memory().find_thread_by_key(inbox.scope(), place.key()).await?.is_some();
        Ok(read_event(envelope, ParseContext { is_own_thread, ..context }))
    }

    /// Appends a request to the queue of its conversation, and starts the queue if it is idle.
    pub(crate) fn start(self: &Arc<Self>, service: &Service, accepted: Accepted, is_recovered: bool) {
        let queue = accepted.job.queue();
        let queued = Queued { accepted, is_recovered };
        let mut queues = lock(&self.queues);
        if let Some(waiting) = queues.get_mut(&queue) {
            waiting.push_back(queued);
            return;
        }
        queues.insert(queue.clone(), VecDeque::from([queued]));
        drop(queues);
        let (worker, service, guard) = (Arc::clone(self), service.clone(), service.delay_shutdown());
        tokio::spawn(async move {
            while let Some(queued) = worker.next(&queue) {
                worker.work(&service, queued).await;
            }
            drop(guard);
        });
    }

    /// Takes the next request of a queue, and removes the queue if it is empty.
    fn next(&self, queue: &str) -> Option<Queued> {
        let mut queues = lock(&self.queues);
        let next = queues.get_mut(queue)?.pop_front();
        if next.is_none() {
            queues.remove(queue);
        }
        next
    }

    async fn work(&self, service: &Service, queued: Queued) {
        let Queued { accepted: Accepted { key, job }, is_recovered } = queued;
        let mut attempts = 0;
        let done = loop {
            attempts += 1;
            match self.execute(service, &key, &job, is_recovered).await {
                Err(error) if error.is_busy() && attempts < BUSY_ATTEMPTS => tokio::time::sleep(BUSY_WAIT).await,
                done => break done,
            }
        };
        let request = match done {
            Ok(request) => request,
            Err(error) if error.is_final() => {
                tracing::error!(%error, "failed to process a Slack request; it will not be retried");
                Request::new(job.clone())
            }
            Err(error) => {
                // The request stays in the inbox, and is retried at the next start.
                tracing::error!(%error, "failed to process a Slack request; it will be retried at the next start");
                return;
            }
        };
        let finished = match self.inbox(service.memory(), job.team()).await {
            Ok(inbox) => inbox.finish(&key, &request).await,
            Err(error) => Err(error),
        };
        if let Err(error) = finished {
            tracing::error!(%error, "failed to mark a Slack request as finished");
        }
    }

    async fn execute(&self, service: &Service, key: &str, job: &Job, is_recovered: bool) -> Result<Request, WorkError> {
        let new = Request::new(job.clone());
        match job {
            Job::Answer { place, user, .. } => {
                let permit = self.acquire_task(&place.team, user).await;
                let done = self.answer(service, key, job, is_recovered).await;
                drop(permit);
                done
            }
            Job::Decide { .. } => self.decide(service, job, is_recovered).await.map(|()| new),
            Job::Edited { .. } | Job::Deleted { .. } => self.change(service, job).await.map(|()| new),
        }
    }

    /// Waits until the user has fewer than the maximum number of concurrent requests.
    async fn acquire_task(&self, team: &str, user: &str) -> Option<OwnedSemaphorePermit> {
        let semaphore = {
            let mut tasks = lock(&self.tasks);
            if tasks.len() > MAX_USERS {
                tasks.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
            }
            let new = || Arc::new(Semaphore::new(MAX_TASKS));
            Arc::clone(tasks.entry(format!("{team} {user}")).or_insert_with(new))
        };
        semaphore.acquire_owned().await.ok()
    }

    pub(crate) fn agent(&self, service: &Service) -> Result<Agent, WorkError> {
        let name = &self.options.assistant;
        service.assistants().find(name).ok_or_else(|| WorkError::NoAssistant(name.clone()))
    }
}
