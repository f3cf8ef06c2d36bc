//! Group commit: waits for replicas once for many commits.
//!
//! WAIT covers the writes of its own connection, and blocks that connection. Commits that wait for replicas therefore use a separate
//! connection to each primary. While one group of commits is waiting, the next one forms.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, Cmd, RedisError, RedisResult, Value};
use tokio::sync::{mpsc, oneshot};

/// The maximum number of writes in a group.
const MAX_GROUP: usize = 128;

/// How a group is sent.
#[derive(Clone)]
pub(crate) struct GroupOptions {
    pub(crate) replicas: u32,
    pub(crate) timeout: Duration,
    pub(crate) connection: AsyncConnectionConfig,
}

/// The commands of one write, and the channel for its result: the last reply, and whether enough replicas have received the write.
struct Job {
    commands: Vec<Cmd>,
    reply: oneshot::Sender<RedisResult<(Value, bool)>>,
}

/// The connections to primaries.
#[derive(Default)]
pub(crate) struct Groups {
    /// By URL.
    workers: Mutex<HashMap<String, mpsc::Sender<Job>>>,
    /// The URLs of the primaries, by their last slots.
    primaries: Mutex<Vec<(u16, String)>>,
}

impl Groups {
    /// Runs commands on a node. Returns the last reply, and whether enough replicas have received the writes.
    pub(crate) async fn run(
        &self,
        client: Client,
        url: &str,
        options: &GroupOptions,
        commands: Vec<Cmd>,
    ) -> RedisResult<(Value, bool)> {
        let (reply, receiver) = oneshot::channel();
        let queue = self.worker(client, url, options);
        queue.send(Job { commands, reply }).await.map_err(|_| connection_closed())?;
        receiver.await.map_err(|_| connection_closed())?
    }

    fn worker(&self, client: Client, url: &str, options: &GroupOptions) -> mpsc::Sender<Job> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = workers.get(url) {
            return queue.clone();
        }
        let (queue, jobs) = mpsc::channel(MAX_GROUP);
        tokio::spawn(work(client, options.clone(), jobs));
        workers.insert(url.to_owned(), queue.clone());
        queue
    }

    /// Returns the URL of the primary of a slot, if it is known.
    pub(crate) fn primary(&self, slot: u16) -> Option<String> {
        let primaries = self.primaries.lock().unwrap_or_else(PoisonError::into_inner);
        let index = primaries.partition_point(|(last, _)| *last < slot);
        primaries.get(index).map(|(_, url)| url.clone())
    }

    /// Notes the URLs of the primaries by their last slots. If the list is empty, they are looked up before the next write.
    pub(crate) fn set_primaries(&self, mut primaries: Vec<(u16, String)>) {
        primaries.sort();
        *self.primaries.lock().unwrap_or_else(PoisonError::into_inner) = primaries;
    }
}

fn connection_closed() -> RedisError {
    std::io::Error::new(std::io::ErrorKind::BrokenPipe, "the connection for commits was closed").into()
}

/// Sends groups until all senders are dropped.
async fn work(client: Client, options: GroupOptions, mut jobs: mpsc::Receiver<Job>) {
    let mut group = Vec::new();
    let mut link = None;
    while jobs.recv_many(&mut group, MAX_GROUP).await > 0 {
        let sent = send(&client, &options, &mut link, &group).await;
        match sent {
            Ok(replies) => {
                for (job, reply) in group.drain(..).zip(replies) {
                    let _ = job.reply.send(reply);
                }
            }
            Err(error) => {
                link = None;
                for job in group.drain(..) {
                    let _ = job.reply.send(Err(error.clone()));
                }
            }
        }
    }
}

/// A connection, and the replication id that its primary had when it was opened.
struct Link {
    connection: MultiplexedConnection,
    replication_id: String,
}

impl Link {
    async fn open(client: &Client, options: &GroupOptions) -> RedisResult<Self> {
        let mut connection = client.get_multiplexed_async_connection_with_config(&options.connection).await?;
        let info = connection.req_packed_command(&info()).await?.extract_error()?;
        Ok(Self { connection, replication_id: replication_id(&info) })
    }
}

async fn send(
    client: &Client,
    options: &GroupOptions,
    link: &mut Option<Link>,
    group: &[Job],
) -> RedisResult<Vec<RedisResult<(Value, bool)>>> {
    let link = match link {
        Some(link) => link,
        None => link.insert(Link::open(client, options).await?),
    };
    let mut pipeline = redis::pipe();
    let mut count = 0;
    for command in group.iter().flat_map(|job| &job.commands) {
        pipeline.add_command(command.clone());
        count += 1;
    }
    let mut wait = redis::cmd("WAIT");
    wait.arg(options.replicas).arg(u64::try_from(options.timeout.as_millis()).unwrap_or(1_000));
    pipeline.add_command(wait).add_command(info());
    let mut replies = link.connection.req_packed_commands(&pipeline, 0, count + 2).await?.into_iter();
    let results: Vec<RedisResult<Value>> = group.iter().map(|job| last_reply(job, &mut replies)).collect();
    let received = replies.next().unwrap_or(Value::Nil).extract_error();
    let has_enough = matches!(received, Ok(Value::Int(count)) if count >= i64::from(options.replicas));
    // A different id means that the node was a replica in between and may have lost the writes.
    let id = replies.next().map(|info| replication_id(&info)).unwrap_or_default();
    let is_same_history = id == link.replication_id && !id.is_empty();
    link.replication_id = id;
    let is_received = has_enough && is_same_history;
    Ok(results.into_iter().map(|result| result.map(|reply| (reply, is_received))).collect())
}

/// Consumes the replies of a job. Returns the last one, or the first error.
fn last_reply(job: &Job, replies: &mut impl Iterator<Item = Value>) -> RedisResult<Value> {
    let replies: Vec<Value> = replies.take(job.commands.len()).collect();
    let mut last = Value::Nil;
    for reply in replies {
        last = reply.extract_error()?;
    }
    Ok(last)
}

fn info() -> Cmd {
    let mut info = redis::cmd("INFO");
    info.arg("replication");
    info
}

/// Returns the replication id of a primary; empty for a replica.
fn replication_id(info: &Value) -> String {
    let text = match info {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::VerbatimString { text, .. } => text.clone(),
        _ => return String::new(),
    };
    let value = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap_or_default();
    if value("role:") == "master" { value("master_replid:").to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_belong_to_the_primary_with_the_next_last_slot() {
        let groups = Groups::default();
        assert_eq!(groups.primary(0), None);
        groups.set_primaries(vec![(16_383, "c".to_owned()), (5_460, "a".to_owned()), (10_922, "b".to_owned())]);
        let primary = |slot| groups.primary(slot).unwrap();
        assert_eq!([primary(0), primary(5_460), primary(5_461), primary(16_383)], ["a", "a", "b", "c"]);
    }

    #[test]
    fn only_primaries_have_a_history() {
        let info = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        assert_eq!(replication_id(&info("role:master\r\nmaster_replid:abc\r\n")), "abc");
        assert_eq!(replication_id(&info("role:slave\r\nmaster_replid:abc\r\n")), "");
    }
}
