//! The inbox of a workspace: requests are stored before they are acknowledged. Finished requests move to another namespace for a day, where
//! they deduplicate redeliveries and do not slow down the search for abandoned ones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use threadkeep::core::{PutRecord, RecordQuery, RecordState, TaggedNumber};
use threadkeep::memory::turns::{Driver, is_driving, lease_until};
use threadkeep::{JsonText, Memory, MemoryError, Namespace, Record, RecordName, RecordOwner, Scope, ThreadId};

use crate::events::{Accepted, Job};

/// The key of the thread that owns the inbox's records.
const THREAD: &str = "slack:inbox";
/// The namespace of unfinished requests.
const PENDING: &str = "slack-requests";
/// The namespace of finished requests.
const DONE: &str = "slack-done";
/// The namespace of posted approval requests.
const POSTS: &str = "slack-posts";
/// The namespace of the leases of instances.
const INSTANCES: &str = "slack-instances";
/// The retention of finished requests, in milliseconds. Slack redelivers events for less than an hour.
const RETENTION_MS: i64 = 24 * 60 * 60 * 1_000;
/// The maximum length of a record's key, in bytes.
const MAX_KEY: usize = 400;

/// A request in the inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) job: Job,
    /// The conversation, once it exists.
    pub(crate) thread: Option<ThreadId>,
    /// The position of the user's message.
    pub(crate) seq: Option<u64>,
    /// The turn.
    pub(crate) turn: Option<String>,
    /// The instance that processes the request.
    #[serde(default)]
    pub(crate) instance: Option<String>,
}

/// A request whose instance has ended.
#[derive(Debug)]
pub(crate) struct Abandoned {
    pub(crate) accepted: Accepted,
    request: Request,
    version: TaggedNumber,
}

impl Request {
    /// Creates an unprocessed request.
    pub(crate) fn new(job: Job) -> Self {
        Self { job, thread: None, seq: None, turn: None, instance: None }
    }
}

/// A posted message that requests an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PostedApproval {
    pub(crate) thread: ThreadId,
    pub(crate) thread_ts: Option<String>,
    pub(crate) turn: String,
    pub(crate) approval: String,
    /// The user who requested the change.
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

    /// Marks a request as finished.
    pub(crate) async fn finish(&self, key: &str, request: &Request) -> Result<(), MemoryError> {
        let expires_at = Some(self.memory.now().plus_ms(RETENTION_MS));
        let put = PutRecord { name: name(DONE, key)?, value: JsonText::of(request)?, expires_at };
        let batch = self.memory.batch().delete(name(PENDING, key)?).put(put);
        batch.commit(&self.scope, self.thread).await.map(drop)
    }

    /// Finds a finished request.
    pub(crate) async fn find_done(&self, key: &str) -> Result<Option<Request>, MemoryError> {
        let found = self.memory.find_thread_record(&self.scope, self.thread, &name(DONE, key)?).await?;
        Ok(found.and_then(|record| record.value.read().ok()))
    }

    /// Renews the lease of an instance. Other instances do not take over its requests before the lease expires.
    pub(crate) async fn renew(&self, instance: &Driver) -> Result<(), MemoryError> {
        let expires_at = Some(lease_until(&self.memory));
        let put = PutRecord { name: name(INSTANCES, instance.name())?, value: JsonText::of(&true)?, expires_at };
        self.memory.batch().put(put).commit(&self.scope, self.thread).await.map(drop)
    }

    /// Whether an instance may still be running: its process runs on this machine, or, if that is unknown, its lease has not expired.
    async fn is_alive(&self, instance: &str) -> Result<bool, MemoryError> {
        if let Some(is_driving) = is_driving(&self.memory, instance) {
            return Ok(is_driving);
        }
        let lease = self.memory.find_thread_record(&self.scope, self.thread, &name(INSTANCES, instance)?).await?;
        Ok(lease.is_some())
    }

    /// Takes over a request. Returns `false` if another instance was faster.
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

    /// Returns the unfinished requests of instances that have ended, oldest first.
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

    /// Reads all unfinished requests, page by page.
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

    /// Stores which approval a posted message requests.
    pub(crate) async fn put_post(&self, channel: &str, ts: &str, post: &PostedApproval) -> Result<(), MemoryError> {
        let expires_at = Some(self.memory.now().plus_ms(RETENTION_MS));
        let put = PutRecord { name: name(POSTS, &format!("{channel} {ts}"))?, value: JsonText::of(post)?, expires_at };
        self.memory.batch().put(put).commit(&self.scope, self.thread).await.map(drop)
    }

    /// Finds the approval that a posted message requests.
    pub(crate) async fn find_post(&self, channel: &str, ts: &str) -> Result<Option<PostedApproval>, MemoryError> {
        let name = name(POSTS, &format!("{channel} {ts}"))?;
        let found = self.memory.find_thread_record(&self.scope, self.thread, &name).await?;
        Ok(found.and_then(|record| record.value.read().ok()))
    }
}
