//! Connections to a node or a cluster, and calls of the functions in `library.lua`.
//!
//! All calls share one connection for each node, except writes that wait for replicas (`groups`). A call that fails because of a lost
//! connection, a failover or a moving slot is repeated a few times. That is safe for writes too:
//! each names the revision that it expects and the one that it writes, so a call that was executed although its reply was lost is recognised.

use std::collections::BTreeSet;
use std::sync::{Mutex as SyncMutex, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::{AsyncPushSender, ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, ResponsePolicy, RoutingInfo};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, TlsCertificates, Value,
};
use sha2::{Digest, Sha256};
use threadkeep_core::{Result, StoreError};
use tokio::sync::Mutex;

use crate::args::Args;
use crate::data_loss::LossDetector;
use crate::error::{is_missing_function, is_transient, may_be_applied, translate};
use crate::groups::{GroupOptions, Groups};
use crate::options::RedisOptions;
use crate::reply::{Reply, next, required_text};

/// The functions. `index.lua` contains those of the search index.
pub(crate) const LIBRARY: &str = concat!(include_str!("library.lua"), include_str!("index.lua"));

/// The maximum number of attempts of a call.
const ATTEMPTS: u32 = 8;
/// The pause after the first failed attempt. Doubles with each attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The approximate number of keys that one SCAN call looks at.
const SCAN_COUNT: usize = 1_000;

/// The connections of one store.
pub(crate) struct Connections {
    target: Target,
    /// When a call timed out; `None` if a reply has arrived since then.
    silent_since: SyncMutex<Option<Instant>>,
    options: RedisOptions,
    certificates: Option<TlsCertificates>,
    /// Distinguishes the functions of this version from those of others, so that versions can use one server at the same time.
    version: String,
    /// For writes that wait for replicas.
    groups: Groups,
    loss_detector: LossDetector,
}

enum Target {
    Node { client: Box<Client>, connection: Mutex<Option<MultiplexedConnection>> },
    Cluster { client: Box<ClusterClient>, connection: Mutex<Option<ClusterConnection>> },
}

#[derive(Clone)]
enum Connection {
    Node(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Connections {
    pub(crate) fn new(options: RedisOptions) -> Result<Self> {
        let translate = |error| translate(error, false);
        let certificates = if options.is_tls { Some(options.certificates()?) } else { None };
        let target = if options.is_cluster {
            let mut builder = ClusterClient::builder(options.nodes.clone());
            if let Some(certificates) = &certificates {
                builder = builder.certs(certificates.clone());
            }
            let client = builder
                .connection_timeout(options.connect_timeout)
                .response_timeout(options.attempt_timeout())
                .retries(4)
                .build()
                .map_err(translate)?;
            Target::Cluster { client: Box::new(client), connection: Mutex::default() }
        } else {
            let url = options.nodes.first().cloned().unwrap_or_default();
            let client = open_client(&url, certificates.as_ref()).map_err(translate)?;
            Target::Node { client: Box::new(client), connection: Mutex::default() }
        };
        let digest = Sha256::digest(LIBRARY.as_bytes());
        let version = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            target,
            silent_since: SyncMutex::default(),
            loss_detector: LossDetector::new(&options.prefix, options.is_cluster),
            options,
            certificates,
            version,
            groups: Groups::default(),
        })
    }

    pub(crate) fn options(&self) -> &RedisOptions {
        &self.options
    }

    pub(crate) fn loss_detector(&self) -> &LossDetector {
        &self.loss_detector
    }

    /// Calls a function that reads.
    pub(crate) async fn read(&self, function: &str, key: &str, args: &Args) -> Result<Value> {
        self.run(&self.function("FCALL_RO", function, key, args), false).await
    }

    /// Calls a function that writes.
    pub(crate) async fn write(&self, function: &str, key: &str, args: &Args) -> Result<Value> {
        self.run(&self.function("FCALL", function, key, args), true).await
    }

    /// Calls a function that writes data that must not be lost: waits until the replicas have it, as the options require.
    pub(crate) async fn write_awaited(&self, function: &str, key: &str, args: &Args) -> Result<Value> {
        self.run_together(key, vec![self.function("FCALL", function, key, args)]).await
    }

    /// Calls a function that writes data that must not be lost, after a command that marks it.
    ///
    /// On one node, both are sent at once, because the node executes them in this order. In a cluster, the node of the mark can fail
    /// over separately, so replicas must have the mark before the write begins. `mark` is a key and a command.
    pub(crate) async fn write_marked(&self, mark: Option<(&str, Cmd)>, key: &str, call: Cmd) -> Result<Value> {
        let mut mark = mark;
        if self.options.is_cluster
            && let Some((mark_key, mark)) = mark.take()
        {
            self.run_together(mark_key, vec![mark]).await?;
        }
        let commands: Vec<Cmd> = mark.into_iter().map(|(_, mark)| mark).chain([call]).collect();
        self.run_together(key, commands).await
    }

    /// Waits until the replicas have everything that was written to the node of a key.
    pub(crate) async fn await_replicas(&self, key: &str) -> Result<()> {
        if self.options.wait_replicas == 0 {
            return Ok(());
        }
        // WAIT covers only the writes of its own connection.
        let mut barrier = redis::cmd("HSET");
        barrier.arg(key).arg("barrier").arg(1);
        self.run_together(key, vec![barrier]).await.map(|_| ())
    }

    /// Runs writes on the node of a key, and returns the last reply. If the options require it, waits for replicas; if too few of them
    /// answer in time, the outcome is unknown.
    async fn run_together(&self, key: &str, commands: Vec<Cmd>) -> Result<Value> {
        if let ([command], 0) = (commands.as_slice(), self.options.wait_replicas) {
            return self.run(command, true).await;
        }
        for command in &commands {
            self.ensure_not_lost(command).await?;
        }
        let (mut pause, mut maybe_applied) = (FIRST_PAUSE, false);
        let (mut attempt, began) = (1, Instant::now());
        loop {
            let error = match self.try_together(key, &commands).await {
                Ok((reply, true)) => return Ok(reply),
                Ok((_, false)) => {
                    let reason = threadkeep_core::Reason::Timeout;
                    return Err(StoreError::Unavailable { reason, maybe_applied: true, source: None });
                }
                Err(error) => error,
            };
            maybe_applied |= may_be_applied(&error);
            if is_missing_function(&error) && attempt < ATTEMPTS {
                self.reinstall().await?;
            } else if !is_transient(&error) || attempt == ATTEMPTS || began.elapsed() >= self.options.response_timeout {
                return Err(translate(error, maybe_applied));
            } else {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            attempt += 1;
        }
    }

    /// Sends commands that read keys in one hash slot in one pipeline. Returns `None` if any of them fails.
    ///
    /// A server that has restarted without its data answers as if nothing had ever been stored, because these are not functions. So the caller
    /// must not take a missing key for an answer.
    pub(crate) async fn try_read_together(&self, commands: &[Cmd]) -> Option<Vec<Value>> {
        self.try_pipeline(commands).await.ok()?.into_iter().map(|value| value.extract_error().ok()).collect()
    }

    /// Makes one attempt. Returns the last reply, and whether enough replicas have received the writes.
    async fn try_together(&self, key: &str, commands: &[Cmd]) -> RedisResult<(Value, bool)> {
        if self.options.wait_replicas > 0 {
            return self.try_awaited(key, commands).await;
        }
        let mut last = Value::Nil;
        for value in self.try_pipeline(commands).await? {
            last = value.extract_error()?;
        }
        Ok((last, true))
    }

    async fn try_pipeline(&self, commands: &[Cmd]) -> RedisResult<Vec<Value>> {
        let mut pipeline = redis::pipe();
        commands.iter().for_each(|command| {
            pipeline.add_command(command.clone());
        });
        let began = Instant::now();
        let values = match self.connect().await? {
            Connection::Node(mut connection) => connection.req_packed_commands(&pipeline, 0, commands.len()).await,
            Connection::Cluster(mut connection) => connection.req_packed_commands(&pipeline, 0, commands.len()).await,
        };
        self.note(began, values.as_ref().err()).await;
        values
    }

    /// Runs writes on the primary of a key, and waits for replicas.
    async fn try_awaited(&self, key: &str, commands: &[Cmd]) -> RedisResult<(Value, bool)> {
        let options = GroupOptions {
            replicas: self.options.wait_replicas,
            timeout: self.options.wait_timeout,
            connection: self.connection_config(),
        };
        let url = self.primary_url(key).await?;
        let client = self.client(&url)?;
        let result = self.groups.run(client, &url, &options, commands.to_vec()).await;
        let Err(error) = result else { return result };
        // The slot may have moved, or another node may have taken over.
        self.groups.set_primaries(Vec::new());
        match error.redirect_node() {
            Some((address, _)) if error.kind() == ErrorKind::Server(ServerErrorKind::Ask) => {
                let url = self.node_url(address);
                let client = self.client(&url)?;
                let commands: Vec<Cmd> =
                    commands.iter().flat_map(|command| [redis::cmd("ASKING"), command.clone()]).collect();
                self.groups.run(client, &url, &options, commands).await
            }
            _ => Err(error),
        }
    }

    /// Returns the URL of the primary of a key.
    async fn primary_url(&self, key: &str) -> RedisResult<String> {
        if !self.options.is_cluster {
            return Ok(self.options.nodes.first().cloned().unwrap_or_default());
        }
        let slot = slot_of(key);
        if let Some(url) = self.groups.primary(slot) {
            return Ok(url);
        }
        self.groups.set_primaries(self.read_primaries().await?);
        self.groups.primary(slot).ok_or_else(|| RedisError::from((ErrorKind::ClusterConnectionNotFound, "no primary")))
    }

    /// Returns the URLs of a cluster's primaries, by their last slots.
    async fn read_primaries(&self) -> RedisResult<Vec<(u16, String)>> {
        let mut list = redis::cmd("CLUSTER");
        list.arg("SLOTS");
        let ranges: Vec<Vec<Value>> = redis::from_redis_value(self.try_run(&list).await?)?;
        let mut primaries = Vec::new();
        for range in ranges {
            let mut range = range.into_iter().skip(1);
            let (Some(last), Some(node)) = (range.next(), range.next()) else { continue };
            let last: u16 = redis::from_redis_value(last)?;
            let mut node = redis::from_redis_value::<Vec<Value>>(node)?.into_iter();
            let (Some(host), Some(port)) = (node.next(), node.next()) else { continue };
            let (host, port): (String, u16) = (redis::from_redis_value(host)?, redis::from_redis_value(port)?);
            primaries.push((last, self.node_url(&format!("{host}:{port}"))));
        }
        Ok(primaries)
    }

    /// Lists all keys on the primaries that match a pattern, over separate connections.
    pub(crate) async fn scan(&self, pattern: &str) -> Result<Vec<String>> {
        let map = |error| translate(error, false);
        let urls: BTreeSet<String> = if self.options.is_cluster {
            self.read_primaries().await.map_err(map)?.into_iter().map(|(_, url)| url).collect()
        } else {
            self.options.nodes.first().cloned().into_iter().collect()
        };
        let config = self.connection_config();
        let mut keys = Vec::new();
        for url in urls {
            let client = self.client(&url).map_err(map)?;
            let mut connection = client.get_multiplexed_async_connection_with_config(&config).await.map_err(map)?;
            let mut cursor = "0".to_owned();
            loop {
                let mut scan = redis::cmd("SCAN");
                scan.arg(&cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(SCAN_COUNT);
                let reply = connection.req_packed_command(&scan).await.and_then(Value::extract_error).map_err(map)?;
                let mut reply = reply.items()?.into_iter();
                cursor = required_text(next(&mut reply)?)?;
                for key in next(&mut reply)?.items()? {
                    keys.extend(key.text()?);
                }
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(keys)
    }

    /// Returns the URL of a node of the cluster.
    fn node_url(&self, address: &str) -> String {
        let url = self.options.nodes.first().map_or("redis://", String::as_str);
        let (scheme, rest) = url.split_once("://").unwrap_or(("redis", ""));
        let login = rest.rsplit_once('@').map(|(login, _)| format!("{login}@")).unwrap_or_default();
        format!("{scheme}://{login}{address}")
    }

    fn client(&self, url: &str) -> RedisResult<Client> {
        open_client(url, self.certificates.as_ref())
    }

    fn connection_config(&self) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.options.connect_timeout))
            .set_response_timeout(Some(self.options.attempt_timeout()))
    }

    pub(crate) fn function(&self, how: &str, function: &str, key: &str, args: &Args) -> Cmd {
        // The name of the function and its keys are short.
        let mut command = Cmd::with_capacity(args.len() + 5, args.size() + 256);
        command.arg(how);
        // While a slot moves, its keys are on two nodes. A function that names one key would run on the new node without seeing what
        // is still on the old one. If a function names several keys and one of them is missing, Redis returns TRYAGAIN instead. So
        // a second key is named, which is never written.
        command.arg(format!("threadkeep_{}_{function}", self.version)).arg(2).arg(key).arg(format!("{key}:-"));
        for arg in args.iter() {
            command.arg(arg);
        }
        command
    }

    /// Runs a command, and repeats it after transient errors while the call has not timed out.
    pub(crate) async fn run(&self, command: &Cmd, is_write: bool) -> Result<Value> {
        self.ensure_not_lost(command).await?;
        let mut attempts = 1;
        loop {
            match self.run_with_retries(command, &mut attempts).await {
                Ok(value) => return Ok(value),
                Err((error, _)) if is_missing_function(&error) && attempts < ATTEMPTS => {
                    attempts += 1;
                    self.reinstall().await?;
                }
                Err((error, maybe_applied)) => return Err(translate(error, is_write && maybe_applied)),
            }
        }
    }

    /// Runs a command that is not a function call, without checking whether data is lost.
    pub(crate) async fn run_unchecked(&self, command: &Cmd) -> Result<Value> {
        let result = self.run_with_retries(command, &mut 1).await;
        result.map_err(|(error, maybe_applied)| translate(error, maybe_applied))
    }

    /// Runs a command that reads one key, as a function: a server that has restarted without its data has no functions, so it cannot
    /// answer as if nothing had been stored.
    pub(crate) async fn look_up(&self, command: &Cmd) -> Result<Value> {
        let mut words = Args::new();
        for arg in command.args_iter() {
            if let redis::Arg::Simple(bytes) = arg {
                words.add(bytes);
            }
        }
        let key = words.iter().nth(1).map(|key| String::from_utf8_lossy(key).into_owned()).unwrap_or_default();
        self.read("look_up", &key, &words).await
    }

    /// Returns an error together with whether the command may have been executed.
    async fn run_with_retries(
        &self,
        command: &Cmd,
        attempts: &mut u32,
    ) -> std::result::Result<Value, (RedisError, bool)> {
        let (mut pause, mut maybe_applied) = (FIRST_PAUSE, false);
        let began = Instant::now();
        loop {
            let error = match self.try_run(command).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            maybe_applied |= may_be_applied(&error);
            if !is_transient(&error) || *attempts >= ATTEMPTS || began.elapsed() >= self.options.response_timeout {
                return Err((error, maybe_applied));
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
            *attempts += 1;
        }
    }

    async fn try_run(&self, command: &Cmd) -> RedisResult<Value> {
        let began = Instant::now();
        let result = match self.connect().await? {
            Connection::Node(mut connection) => connection.req_packed_command(command).await,
            Connection::Cluster(mut connection) => connection.req_packed_command(command).await,
        };
        self.note(began, result.as_ref().err()).await;
        result.and_then(Value::extract_error)
    }

    /// Runs a command on all primaries. Returns the reply of each.
    pub(crate) async fn run_on_primaries(&self, command: &Cmd) -> Result<Vec<Value>> {
        let map = |error| translate(error, false);
        match self.connect().await.map_err(map)? {
            Connection::Node(mut connection) => {
                let value = connection.req_packed_command(command).await.and_then(Value::extract_error);
                Ok(vec![value.map_err(map)?])
            }
            Connection::Cluster(mut connection) => {
                let routing = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None::<ResponsePolicy>));
                match connection.route_command(command.clone(), routing).await.map_err(map)? {
                    Value::Map(replies) => {
                        replies.into_iter().map(|(_, reply)| reply.extract_error().map_err(map)).collect()
                    }
                    reply => Ok(vec![reply]),
                }
            }
        }
    }

    /// Runs a command on all nodes, including replicas, over separate connections. Returns the reply of each.
    pub(crate) async fn run_on_all(&self, command: &Cmd) -> Result<Vec<Value>> {
        if !self.options.is_cluster {
            return self.run_on_primaries(command).await;
        }
        let map = |error| translate(error, false);
        let mut list = redis::cmd("CLUSTER");
        list.arg("NODES");
        let nodes = self.run(&list, false).await?.text()?.unwrap_or_default();
        let config = self.connection_config();
        let mut replies = Vec::new();
        for address in nodes.lines().filter_map(node_address) {
            let client = self.client(&self.node_url(address)).map_err(map)?;
            let mut connection = client.get_multiplexed_async_connection_with_config(&config).await.map_err(map)?;
            let reply = connection.req_packed_command(command).await.and_then(Value::extract_error);
            replies.push(reply.map_err(map)?);
        }
        Ok(replies)
    }

    async fn connect(&self) -> RedisResult<Connection> {
        match &self.target {
            Target::Node { client, connection } => {
                let mut connection = connection.lock().await;
                if let Some(connection) = &*connection {
                    return Ok(Connection::Node(connection.clone()));
                }
                let config = self.connection_config();
                let new = client.get_multiplexed_async_connection_with_config(&config).await?;
                Ok(Connection::Node(connection.insert(new).clone()))
            }
            Target::Cluster { client, connection } => {
                let mut connection = connection.lock().await;
                if let Some(connection) = &*connection {
                    return Ok(Connection::Cluster(connection.clone()));
                }
                let new = match client.get_async_connection().await {
                    Ok(new) => new,
                    Err(error) => return Err(self.cause_of(error).await),
                };
                Ok(Connection::Cluster(connection.insert(new).clone()))
            }
        }
    }

    /// Returns why no node of a cluster can be reached: preferably an error that a node itself returned, such as rejected credentials.
    async fn cause_of(&self, error: RedisError) -> RedisError {
        let config = self.connection_config();
        for node in &self.options.nodes {
            let Ok(client) = self.client(node) else { continue };
            match client.get_multiplexed_async_connection_with_config(&config).await {
                Err(error) if !is_transient(&error) => return error,
                _ => {}
            }
        }
        error
    }

    /// Drops a connection that was lost or no longer responds. `began` is when the call began.
    ///
    /// A cluster's connection reconnects to lost nodes on its own. It is replaced if calls time out, no reply arrives, and a call that began
    /// later times out too. While one node is silent, the others still answer.
    async fn note(&self, began: Instant, error: Option<&RedisError>) {
        let is_silent = self.is_silent(began, error.is_some_and(RedisError::is_timeout));
        match &self.target {
            Target::Node { connection, .. } => {
                if error.is_some_and(|error| error.is_io_error() || error.is_connection_dropped()) {
                    connection.lock().await.take();
                }
            }
            Target::Cluster { connection, .. } => {
                if is_silent {
                    connection.lock().await.take();
                }
            }
        }
    }

    fn is_silent(&self, began: Instant, is_timeout: bool) -> bool {
        let mut silent_since = self.silent_since.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_timeout {
            *silent_since = None;
        } else if silent_since.is_none() {
            *silent_since = Some(Instant::now());
        } else if silent_since.is_some_and(|since| began >= since) {
            *silent_since = None;
            return true;
        }
        false
    }

    /// Installs the functions of this version on all primaries. Those of other versions remain.
    pub(crate) async fn install(&self) -> Result<()> {
        let mut command = redis::cmd("FUNCTION");
        command.arg("LOAD").arg("REPLACE").arg(LIBRARY.replace("@V@", &self.version));
        self.run_on_primaries(&command).await.map(|_| ())
    }

    /// Installs the functions, unless all primaries have them, or one of them has lost its data.
    pub(crate) async fn ensure_installed(&self) -> Result<()> {
        let mut list = redis::cmd("FUNCTION");
        list.arg("LIST").arg("LIBRARYNAME").arg(format!("threadkeep_{}", self.version));
        // A user who may not list functions may still be allowed to call them.
        let is_installed = self.run_on_primaries(&list).await.is_ok_and(|replies| {
            replies.into_iter().all(|reply| reply.items().is_ok_and(|libraries| !libraries.is_empty()))
        });
        if is_installed || self.known_losses() > 0 { Ok(()) } else { self.install().await }
    }

    /// Subscribes to a channel on the node that publishes on it. Uses a connection from `open`, or opens one, whose pushed values go to
    /// `pushes`.
    pub(crate) async fn subscribe<P: AsyncPushSender>(
        &self,
        channel: &str,
        open: impl Fn(&str) -> Option<MultiplexedConnection>,
        pushes: impl FnOnce() -> P,
    ) -> RedisResult<(String, MultiplexedConnection)> {
        let subscribed = self.try_subscribe(channel, open, pushes).await;
        if subscribed.is_err() {
            // The slot may have moved, or another node may have taken over.
            self.groups.set_primaries(Vec::new());
        }
        subscribed
    }

    async fn try_subscribe<P: AsyncPushSender>(
        &self,
        channel: &str,
        open: impl Fn(&str) -> Option<MultiplexedConnection>,
        pushes: impl FnOnce() -> P,
    ) -> RedisResult<(String, MultiplexedConnection)> {
        let url = self.primary_url(channel).await?;
        let mut connection = match open(&url) {
            Some(connection) => connection,
            None => {
                // Values are pushed only in this version of the protocol.
                let client = self.client(&format!("{url}?protocol=resp3"))?;
                let config = self.connection_config().set_push_sender(pushes());
                client.get_multiplexed_async_connection_with_config(&config).await?
            }
        };
        let command = if self.options.is_cluster { "SSUBSCRIBE" } else { "SUBSCRIBE" };
        connection.req_packed_command(redis::cmd(command).arg(channel)).await?.extract_error()?;
        Ok((url, connection))
    }
}

fn open_client(url: &str, certificates: Option<&TlsCertificates>) -> RedisResult<Client> {
    match certificates {
        Some(certificates) => Client::build_with_tls(url, certificates.clone()),
        None => Client::open(url),
    }
}

/// Returns the address in a line of CLUSTER NODES, `ID HOST:PORT@BUS,NAME FLAGS …`; `None` for a node that is not in use.
fn node_address(line: &str) -> Option<&str> {
    let mut words = line.split(' ').skip(1);
    let (address, flags) = (words.next()?, words.next()?);
    let is_unused = flags.split(',').any(|flag| matches!(flag, "fail" | "noaddr" | "handshake"));
    address.split('@').next().filter(|address| !is_unused && !address.starts_with(':'))
}

/// Returns the hash slot of a key: the CRC-16 (XMODEM) of the part in braces.
pub(crate) fn slot_of(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    let crc = hashed.bytes().fold(0_u16, |crc, byte| {
        (0..8)
            .fold(crc ^ (u16::from(byte) << 8), |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 })
    });
    crc % 16_384
}

#[cfg(test)]
mod tests {
    use super::slot_of;

    #[test]
    fn slots_are_those_of_redis() {
        // From CLUSTER KEYSLOT.
        assert_eq!([slot_of("123456789"), slot_of("a{foo}b"), slot_of("foo")], [12_739, 12_182, 12_182]);
    }
}
