//! The inbox: accepted requests of a workspace, stored until they are done. Requests that are done stay known for a while under another
//! namespace, so that looking for abandoned ones reads only those that wait.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use threadkeep::core::{PutRecord, RecordQuery, RecordState, TaggedNumber};
use threadkeep::memory::turns::{Driver, is_driving, lease_until};
use threadkeep::{JsonText, Memory, MemoryError, Namespace, Record, RecordName, RecordOwner, Scope, ThreadId};

use crate::events::{Accepted, Job};

/// The key of the thread whose records are the inbox.
const THREAD: &str = "slack:inbox";
/// The namespace of requests that are not done.
const PENDING: &str = "slack-requests";
/// The namespace of requests that are done.
const DONE: &str = "slack-done";
/// The namespace of posted approvals.
const POSTS: &str = "slack-posts";
/// The namespace of the instances that work on requests.
const INSTANCES: &str = "slack-instances";
/// How long a request is known after it is done, in milliseconds. Slack repeats requests for less than an hour.
const KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
/// The longest key of a record, in bytes.
const MAX_KEY: usize = 400;

/// A request in the inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) job: Job,
    /// The conversation, once it is known.
    pub(crate) thread: Option<ThreadId>,
    /// The position of the user's message.
    pub(crate) seq: Option<u64>,
    /// The turn.
    pub(crate) turn: Option<String>,
    /// The instance that works on it.
    #[serde(default)]
    pub(crate) instance: Option<String>,
}

/// A request that no instance works on any more.
#[derive(Debug)]
pub(crate) struct Abandoned {
    pub(crate) accepted: Accepted,
    request: Request,
    version: TaggedNumber,
}

impl Request {
    /// Creates a request that nothing has been done for.
    pub(crate) fn new(job: Job) -> Self {
        Self { job, thread: None, seq: None, turn: None, instance: None }
    }
}

/// A message of the bot that asks for an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PostedApproval {
    pub(crate) thread: ThreadId,
    pub(crate) thread_ts: Option<String>,
    pub(crate) turn: String,
    pub(crate) approval: String,
    /// Who asked for the change.
    pub(crate) requester: String,
    /// The text of the message, in Slack's markup.
    pub(crate) text: String,
}

/// The inbox of a workspace.
#[derive(Clone, Debug)]
pub(crate) struct Inbox {
    memory: Memory,
    scope: Scope,
    thread: ThreadId,
}

fn name(namespace: &str, key: &str) -> Result<RecordName, MemoryError> {
    let key: String = key.chars().filter(|c| !c.is_control()).take(MAX_KEY / 4).collect();
    Ok(RecordName { namespace: Namespace::app(namespace)?, key })
}

impl Inbox {
    pub(crate) async fn open(memory: &Memory, team: &str) -> Result<Self, MemoryError> {
        let scope = Scope::tenant(team)?;
        let thread = memory.open_by_key(&scope, THREAD).await?.thread.id;
        Ok(Self { memory: memory.clone(), scope, thread })
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Stores a request. Returns whether it is new.
    pub(crate) async fn accept(&self, accepted: &Accepted, instance: &Driver) -> Result<bool, MemoryError> {
        let (pending, done) = (name(PENDING, &accepted.key)?, name(DONE, &accepted.key)?);
        let instance = Some(instance.name().to_owned());
        let request = Request { instance, ..Request::new(accepted.job.clone()) };
        let put = PutRecord { name: pending.clone(), value: JsonText::of(&request)?, expires_at: None };
        let batch =
            self.memory.batch().require(pending, RecordState::Absent).require(done, RecordState::Absent).put(put);
        match batch.commit(&self.scope, self.thread).await {
            Ok(_) => Ok(true),
            Err(error) if error.conflict().is_some() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Marks a request as done.
    pub(crate) async fn finish(&self, key: &str, request: &Request) -> Result<(), MemoryError> {
        let expires_at = Some(self.memory.now().plus_ms(KEPT_MS));
        let put = PutRecord { name: name(DONE, key)?, value: JsonText::of(request)?, expires_at };
        let batch = self.memory.batch().delete(name(PENDING, key)?).put(put);
        batch.commit(&self.scope, self.thread).await.map(drop)
    }

    /// Finds a request that is done.
    pub(crate) async fn find_done(&self, key: &str) -> Result<Option<Request>, MemoryError> {
        let found = self.memory.find_thread_record(&self.scope, self.thread, &name(DONE, key)?).await?;
        Ok(found.and_then(|record| record.value.read().ok()))
    }

    /// Renews the lease of an instance: others leave its requests alone until the lease ends.
    pub(crate) async fn renew(&self, instance: &Driver) -> Result<(), MemoryError> {
        let expires_at = Some(lease_until(&self.memory));
        let put = PutRecord { name: name(INSTANCES, instance.name())?, value: JsonText::of(&true)?, expires_at };
        self.memory.batch().put(put).commit(&self.scope, self.thread).await.map(drop)
    }

    /// Whether an instance may still work on its requests: it runs in this process, or its lease has not ended. An instance whose
    /// process is known to have ended does not.
    async fn is_alive(&self, instance: &str) -> Result<bool, MemoryError> {
        if let Some(is_driving) = is_driving(&self.memory, instance) {
            return Ok(is_driving);
        }
        let lease = self.memory.find_thread_record(&self.scope, self.thread, &name(INSTANCES, instance)?).await?;
        Ok(lease.is_some())
    }

    /// Takes over a request. Returns whether this instance got it.
    pub(crate) async fn take_over(&self, abandoned: &Abandoned, instance: &Driver) -> Result<bool, MemoryError> {
        let name = name(PENDING, &abandoned.accepted.key)?;
        let request = Request { instance: Some(instance.name().to_owned()), ..abandoned.request.clone() };
        let put = PutRecord { name: name.clone(), value: JsonText::of(&request)?, expires_at: None };
        let batch = self.memory.batch().require(name, RecordState::Version(abandoned.version)).put(put);
        match batch.commit(&self.scope, self.thread).await {
            Ok(_) => Ok(true),
            Err(error) if error.conflict().is_some() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the requests that are not done and whose instance has ended, oldest first.
    pub(crate) async fn abandoned(&self) -> Result<Vec<Abandoned>, MemoryError> {
        let (mut abandoned, mut alive) = (Vec::new(), BTreeMap::new());
        for record in self.pending().await? {
            let Ok(request) = record.value.read::<Request>() else { continue };
            if let Some(instance) = &request.instance {
                let is_alive = match alive.get(instance) {
                    Some(is_alive) => *is_alive,
                    None => self.is_alive(instance).await?,
                };
                alive.insert(instance.clone(), is_alive);
                if is_alive {
                    continue;
                }
            }
            let version = record.tagged();
            let accepted = Accepted { key: record.key, job: request.job.clone() };
            abandoned.push((record.version, Abandoned { accepted, request, version }));
        }
        abandoned.sort_by_key(|(at, _)| *at);
        Ok(abandoned.into_iter().map(|(_, abandoned)| abandoned).collect())
    }

    /// Reads all requests that are not done, page by page.
    async fn pending(&self) -> Result<Vec<Record>, MemoryError> {
        let namespace = Namespace::app(PENDING)?;
        let mut query =
            RecordQuery { namespace: Some(namespace.clone()), ..RecordQuery::of(RecordOwner::Thread(self.thread)) };
        let mut pending: Vec<Record> = Vec::new();
        loop {
            let page = self.memory.list_records(&self.scope, query.clone()).await?;
            let Some(last) = page.last() else { return Ok(pending) };
            query.after = Some((namespace.clone(), last.key.clone()));
            pending.extend(page);
        }
    }

    /// Remembers which approval a message asks for.
    pub(crate) async fn put_post(&self, channel: &str, ts: &str, post: &PostedApproval) -> Result<(), MemoryError> {
        let expires_at = Some(self.memory.now().plus_ms(KEPT_MS));
        let put = PutRecord { name: name(POSTS, &format!("{channel} {ts}"))?, value: JsonText::of(post)?, expires_at };
        self.memory.batch().put(put).commit(&self.scope, self.thread).await.map(drop)
    }

    /// Finds the approval that a message asks for.
    pub(crate) async fn find_post(&self, channel: &str, ts: &str) -> Result<Option<PostedApproval>, MemoryError> {
        let name = name(POSTS, &format!("{channel} {ts}"))?;
        let found = self.memory.find_thread_record(&self.scope, self.thread, &name).await?;
        Ok(found.and_then(|record| record.value.read().ok()))
    }
}
