//! A server for tests, and its clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;
use threadkeep::agent::plugin::{Lookup, MapOf};
use threadkeep::core::{ChatModel, Embedder};
use threadkeep::{Agent, AssistantPlugin, Definition, Memory, TenantId, UserId};
use threadkeep_postgres_server::Database;
use threadkeep_server::{Door, KeyRole, Keys, LocalAccess, LocalToken, NewKey, ServeError, Server, ServerOptions};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::compat::LOOKUPS;
use crate::pausable_store::StoreControl;

/// How long a test waits for any event before the test fails.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// The local token of test servers. The token is valid as long as no key exists.
pub(crate) const TOKEN: &str = "tkl_dGhlIHRva2VuIG9mIGFsbCBzZXJ2ZXJzIG9mIHRlc3Q";

pub(crate) struct TestServer {
    pub(crate) memory: Memory,
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<(), ServeError>>,
    folder: Option<tempfile::TempDir>,
    database: Option<Database>,
}

/// The configuration of a test server.
pub(crate) struct TestConfig {
    pub(crate) options: ServerOptions,
    pub(crate) model: Option<Arc<dyn ChatModel>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) assistants: Vec<Definition>,
    /// The lookup tools that the assistants' compatibility endpoints call.
    pub(crate) lookups: &'static [Lookup],
    /// The map of the assistants.
    pub(crate) network_map: Option<MapOf>,
    /// Doors in addition to the built-in ones.
    pub(crate) doors: Vec<Door>,
}

impl Default for TestConfig {
    fn default() -> Self {
        let local_access = LocalAccess::Token(LocalToken::new(TOKEN).unwrap());
        let options = ServerOptions { local_access, sweep_every: None, ..ServerOptions::default() };
        Self {
            options,
            model: None,
            embedder: None,
            assistants: Vec::new(),
            lookups: &LOOKUPS,
            network_map: None,
            doors: Vec::new(),
        }
    }
}

impl TestServer {
    /// Starts a server on a SQLite file that accepts [`TOKEN`].
    pub(crate) async fn start() -> Self {
        Self::start_with(TestConfig::default()).await
    }

    pub(crate) async fn start_with(config: TestConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("store.db").display());
        let memory = threadkeep::open(&url).await.unwrap();
        Self { folder: Some(folder), ..Self::start_on(memory, config).await }
    }

    /// Starts a server on a SQLite file, with a store whose calls a test can pause.
    pub(crate) async fn start_with_control(store_control: &StoreControl, config: TestConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("store.db").display());
        let memory = Memory::new(store_control.wrap(threadkeep::open_backend(&url).await.unwrap()));
        Self { folder: Some(folder), ..Self::start_on(memory, config).await }
    }

    /// Starts a server on its own PostgreSQL database; `None` if tests on PostgreSQL are skipped.
    pub(crate) async fn start_on_postgres(config: TestConfig) -> Option<Self> {
        let database = threadkeep_postgres_server::Server::shared()?.create_database().await;
        let memory = threadkeep::open(&database.url()).await.unwrap();
        Some(Self { database: Some(database), ..Self::start_on(memory, config).await })
    }

    /// Starts a server on the shared Redis server, with its own keys; `None` if tests on Redis are skipped.
    pub(crate) async fn start_on_redis(config: TestConfig) -> Option<Self> {
        let memory = threadkeep::open(&redis_url().await?).await.unwrap();
        Some(Self::start_on(memory, config).await)
    }

    /// Starts a server on the shared Redis Cluster, with its own keys; `None` if tests on Redis are skipped.
    pub(crate) async fn start_on_redis_cluster(config: TestConfig) -> Option<Self> {
        let memory = threadkeep::open(&redis_cluster_url().await?).await.unwrap();
        Some(Self::start_on(memory, config).await)
    }

    /// Returns the URL of the file that [`TestServer::start`] created.
    pub(crate) fn store_url(&self) -> String {
        let folder = self.folder.as_ref().expect("the server was started on a file");
        format!("sqlite:{}", folder.path().join("store.db").display())
    }

    /// Starts a server on an existing memory, which other servers may share.
    pub(crate) async fn start_on(memory: Memory, config: TestConfig) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut server = Server::new(memory.clone(), config.options);
        if let Some(model) = config.model {
            server = server.with_model(model);
        }
        if let Some(embedder) = config.embedder {
            server = server.with_embedder(embedder);
        }
        let assistants = Server::assistants();
        let plugin = AssistantPlugin {
            lookups: config.lookups,
            network_map: config.network_map,
            ..AssistantPlugin::new("test", "", |_, _| unreachable!("the assistants exist already"))
        };
        for assistant in config.assistants {
            assistants.put_with_plugin(Agent::new(memory.clone(), assistant), &plugin).unwrap();
        }
        server = server.with_assistants(assistants);
        for door in config.doors {
            server = server.with_door(door).unwrap();
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(server.serve(listener, async move { drop(stopped.await) }));
        Self { memory, address, stop: Some(stop), running, folder: None, database: None }
    }

    /// Returns the path of the SQLite file.
    pub(crate) fn store_file(&self) -> std::path::PathBuf {
        self.folder.as_ref().unwrap().path().join("store.db")
    }

    /// Returns the PostgreSQL database; panics unless the server was started with [`TestServer::start_on_postgres`].
    pub(crate) fn database(&self) -> &Database {
        self.database.as_ref().unwrap()
    }

    /// Returns the URL of the PostgreSQL database.
    pub(crate) fn database_url(&self) -> String {
        self.database.as_ref().unwrap().url()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns a client that sends [`TOKEN`], which is valid as long as no key exists.
    pub(crate) fn client(&self) -> Client {
        Client { key: Some(TOKEN.to_owned()), ..self.anonymous_client() }
    }

    /// Returns a client without credentials.
    pub(crate) fn anonymous_client(&self) -> Client {
        // Creating a client requires a provider, even without TLS.
        drop(rustls::crypto::ring::default_provider().install_default());
        Client { http: reqwest::Client::new(), base: self.url(""), key: None, user: None }
    }

    /// Creates a key, and returns a client that sends the key.
    pub(crate) async fn client_with_new_key(&self, tenant: &str, user: Option<&str>, roles: &[KeyRole]) -> Client {
        let (_, secret) = Keys::new(&self.memory).create(new_key(tenant, user, roles)).await.unwrap();
        Client { key: Some(secret.as_str().to_owned()), ..self.client() }
    }

    /// Requests the shutdown of the server.
    pub(crate) fn request_shutdown(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits until the server has stopped.
    pub(crate) async fn wait_until_stopped(self) -> Result<(), ServeError> {
        let ended = tokio::time::timeout(TIMEOUT, self.running).await.unwrap().unwrap();
        drop(self.folder);
        ended
    }
}

pub(crate) fn new_key(tenant: &str, user: Option<&str>, roles: &[KeyRole]) -> NewKey {
    NewKey {
        tenant: TenantId::new(tenant).unwrap(),
        user: user.map(|user| UserId::new(user).unwrap()),
        name: "test".to_owned(),
        roles: roles.to_vec(),
        expires_at: None,
        rate_limit: None,
        quota: None,
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    pub(crate) key: Option<String>,
    user: Option<String>,
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Client {
    pub(crate) fn with_key(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }
    }

    /// Returns a client that sends the same key and acts on behalf of a user.
    pub(crate) fn as_user(&self, user: &str) -> Self {
        Self { user: Some(user.to_owned()), ..self.clone() }
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method: Method = method.parse().unwrap();
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if let Some(user) = &self.user {
            request = request.header("threadkeep-user", user);
        }
        request
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        send(self.request("GET", path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        send(self.request("DELETE", path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        send(self.request("POST", path).json(&body)).await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: Value) -> Answer {
        send(self.request(method, path).json(&body)).await
    }

    /// Creates a thread and returns its id.
    pub(crate) async fn new_thread(&self) -> String {
        let answer = self.post("/v1/threads", serde_json::json!({})).await;
        answer.expect(201)["id"].as_str().unwrap().to_owned()
    }

    /// Appends a user message, and returns the response body.
    pub(crate) async fn say(&self, thread: &str, text: &str) -> Value {
        let body = serde_json::json!({ "messages": [{ "role": "user", "text": text }] });
        self.post(&format!("/v1/threads/{thread}/messages"), body).await.expect(201)
    }

    /// Returns the texts of a thread's messages, oldest first.
    pub(crate) async fn texts(&self, thread: &str) -> Vec<String> {
        let page = self.get(&format!("/v1/threads/{thread}/messages?order=asc&limit=1000")).await.expect(200);
        page["data"].as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
    }
}

/// Returns the URL of a new store on the shared Redis server; `None` if tests on Redis are skipped.
pub(crate) async fn redis_url() -> Option<String> {
    let server = tokio::task::spawn_blocking(threadkeep_redis_server::Server::shared).await.unwrap()?;
    Some(format!("redis://{}?{}", server.address(), own_keys()))
}

/// Returns the URL of a new store on the shared Redis Cluster; `None` if tests on Redis are skipped.
pub(crate) async fn redis_cluster_url() -> Option<String> {
    let cluster = tokio::task::spawn_blocking(threadkeep_redis_server::Cluster::shared).await.unwrap()?;
    Some(format!("redis-cluster://{}?{}", cluster.addresses(), own_keys()))
}

fn own_keys() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("prefix=test-{}&connect_timeout=30", COUNT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) async fn send(request: RequestBuilder) -> Answer {
    let response = tokio::time::timeout(TIMEOUT, request.send()).await.unwrap().unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    Answer { status: StatusCode::as_u16(&status), headers, text: response.text().await.unwrap() }
}

impl Answer {
    /// Returns the body; panics unless the response has this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        if self.text.is_empty() { Value::Null } else { serde_json::from_str(&self.text).unwrap() }
    }

    /// Returns the error; panics unless the response has this status and the error has the standard format.
    #[track_caller]
    pub(crate) fn error(&self, status: u16) -> Value {
        let error = self.expect(status)["error"].take();
        assert!(error["message"].is_string() && error["code"].is_string(), "{error}");
        assert_eq!(error["request_id"], self.header("x-request-id"), "{error}");
        error
    }

    /// Returns the code of the error; panics unless the response has this status.
    #[track_caller]
    pub(crate) fn code(&self, status: u16) -> String {
        self.error(status)["code"].as_str().unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}
