//! Starting a server, connecting to it and ending it.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::link::{Connected, Lost};
use super::reader::{LimitedReader, ReadCount};
use super::spec::{ServerConnection, ServerSpec};
use crate::protocol::client::{Handshake, MESSAGE_BYTES, Session, connect_http, connect_streams};

/// The environment variables that each server gets.
const VARIABLES: &[&str] =
    if cfg!(windows) { &["PATH", "USERPROFILE", "APPDATA", "SYSTEMROOT", "TEMP"] } else { &["PATH", "HOME", "LANG"] };
/// How long a server may take to exit after its input was closed.
const EXIT_WAIT: Duration = Duration::from_secs(2);
/// How long to read the standard error of a process that has ended.
const READ_WAIT: Duration = Duration::from_millis(500);
/// How much of the end of a server's standard error is kept, in bytes.
const ERROR_BYTES: usize = 4_096;
/// How long to wait for a connection over HTTP.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An open connection to a server, and its process.
pub(crate) struct Connection {
    session: Session,
    process: Option<Process>,
    count: Option<Arc<ReadCount>>,
    lost: Arc<Lost>,
    /// Notified when the server's list of tools changes.
    pub(crate) changed: Arc<Notify>,
}

impl Connection {
    /// Starts the server if it is a program, and connects to it.
    ///
    /// # Errors
    /// The reason, for the operator.
    pub(crate) async fn open(spec: &ServerSpec) -> Result<Self, String> {
        // Servers of all versions before 2026-07-28 require `initialize`, and most later ones accept it.
        match Self::open_with(spec, Handshake::Initialize).await {
            Err(reason) if reason.starts_with("the server refused the connection") => {
                Self::open_with(spec, Handshake::Discover).await.map_err(|_| reason)
            }
            opened => opened,
        }
    }

    async fn open_with(spec: &ServerSpec, handshake: Handshake) -> Result<Self, String> {
        let changed = Arc::new(Notify::new());
        match &spec.connection {
            ServerConnection::Command { .. } => {
                let mut process = Process::start(spec)?;
                let (Some(input), Some(output)) = (process.child.stdin.take(), process.child.stdout.take()) else {
                    return Err("the streams of the program cannot be opened".to_owned());
                };
                let count = Arc::<ReadCount>::default();
                let output = LimitedReader::new(output, MESSAGE_BYTES, Arc::clone(&count));
                match connect_streams(output, input, handshake, Arc::clone(&changed)).await {
                    Ok(session) => {
                        Ok(Self { session, process: Some(process), count: Some(count), lost: Arc::default(), changed })
                    }
                    Err(reason) => {
                        let reason = count.exceeded().unwrap_or(reason);
                        Err(process.end().await.describe(&reason))
                    }
                }
            }
            ServerConnection::Http { url, headers } => {
                let headers: Option<HashMap<HeaderName, HeaderValue>> = headers
                    .iter()
                    .map(|(name, value)| Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?)))
                    .collect();
                let headers = headers.ok_or("invalid headers")?;
                let session = connect_http(http_client()?, url, headers, handshake, Arc::clone(&changed)).await?;
                Ok(Self { session, process: None, count: None, lost: Arc::default(), changed })
            }
        }
    }

    pub(crate) fn connected(&self) -> Connected {
        Connected { caller: self.session.caller(), count: self.count.clone(), lost: Arc::clone(&self.lost) }
    }

    /// Waits until the server closes the connection.
    pub(crate) async fn closed(&mut self) {
        self.session.closed().await;
    }

    /// Closes the connection and ends the process. Returns why the server ended, for the operator.
    pub(crate) async fn close(self, reason: &str) -> String {
        let reason = self.count.as_ref().and_then(|count| count.exceeded()).unwrap_or_else(|| reason.to_owned());
        let Some(process) = self.process else {
            self.session.close().await;
            return reason;
        };
        // Closing the session closes the input of the process, which should then exit.
        drop(timeout(EXIT_WAIT, self.session.close()).await);
        process.end().await.describe(&reason)
    }
}

/// A client that sends requests to the configured address only.
fn http_client() -> Result<reqwest::Client, String> {
    let tls = threadkeep::models::client_tls().map_err(|error| error.to_string())?;
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirect could send headers with secrets to another host.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("threadkeep/", env!("CARGO_PKG_VERSION")))
        .build();
    client.map_err(|error| error.to_string())
}

/// The process of a server. Dropping it kills the process.
struct Process {
    child: Child,
    /// Its process group. The number is not used for another group as long as one of its processes is running.
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
    /// The end of its standard error.
    errors: Arc<Mutex<Vec<u8>>>,
    /// The task that reads its standard error.
    reading: Option<JoinHandle<()>>,
}

/// How a process ended.
pub(crate) struct Ended {
    status: Option<String>,
    last_error: Option<String>,
}

impl Process {
    fn start(spec: &ServerSpec) -> Result<Self, String> {
        let ServerConnection::Command { program, arguments, environment, folder } = &spec.connection else {
            return Err("not a program".to_owned());
        };
        let mut command = Command::new(program);
        command.args(arguments).env_clear();
        // The environment of this process may contain secrets, such as the keys of model providers.
        command.envs(VARIABLES.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
        command.envs(environment);
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // A group of its own, so that programs which the server starts can be ended with it, and Ctrl-C does not end it.
        #[cfg(unix)]
        command.process_group(0);
        let is_missing = folder.as_ref().is_some_and(|folder| !Path::new(folder).is_dir());
        let mut child = command.spawn().map_err(|error| match (is_missing, folder) {
            (true, Some(folder)) => format!("cwd: {folder} is not a folder"),
            _ => format!("cannot start {program}: {error}"),
        })?;
        let errors = Arc::<Mutex<Vec<u8>>>::default();
        let reading = child.stderr.take().map(|stream| tokio::spawn(keep_end(stream, Arc::clone(&errors))));
        Ok(Self {
            #[cfg(unix)]
            group: child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?)),
            child,
            errors,
            reading,
        })
    }

    /// Waits for the process to exit, and kills it if it does not.
    async fn end(mut self) -> Ended {
        drop((self.child.stdin.take(), self.child.stdout.take()));
        let status = match timeout(EXIT_WAIT, self.child.wait()).await {
            Ok(Ok(status)) => Some(status.to_string()),
            _ => None,
        };
        self.kill_group();
        if let Some(reading) = self.reading.take() {
            drop(timeout(READ_WAIT, reading).await);
        }
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let errors = String::from_utf8_lossy(&errors).into_owned();
        let last_error = errors.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let printable = |line: &str| line.chars().filter(|c| !c.is_control()).take(300).collect();
        Ended { status, last_error: last_error.map(printable) }
    }

    /// Kills the process and those that it started.
    fn kill_group(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.group.take() {
            // Fails if no process of the group is left.
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
        drop(self.child.start_kill());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
    }
}

impl Ended {
    /// Adds how the process ended to a reason.
    fn describe(&self, reason: &str) -> String {
        let status = self.status.as_ref().map(|status| format!(" ({status})")).unwrap_or_default();
        let error = self.last_error.as_ref().map(|error| format!("; its last line on standard error: {error}"));
        format!("{reason}{status}{}", error.unwrap_or_default())
    }
}

/// Reads a stream to its end, and keeps the last bytes.
async fn keep_end(mut stream: impl AsyncRead + Unpin, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..count]);
        let excess = kept.len().saturating_sub(ERROR_BYTES);
        kept.drain(..excess);
    }
}
