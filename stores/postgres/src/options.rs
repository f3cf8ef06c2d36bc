use std::path::PathBuf;
use std::time::Duration;

use threadkeep_core::{Result, StoreError};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use crate::error::PostgresError;
use crate::tls::{self, Trust};

/// Ports on which poolers listen that give each transaction another connection: PgBouncer's and Supabase's.
const POOLER_PORTS: [u16; 2] = [6432, 6543];

/// How a database is opened.
#[derive(Clone)]
pub struct PostgresOptions {
    /// Where the server is, and who asks.
    pub(crate) server: Config,
    /// Where it can be reached without a pooler between, for what needs a connection of its own.
    pub(crate) direct: Option<Config>,
    pub(crate) trust: Trust,
    /// Connections at most. Default 16.
    pub pool_size: usize,
    /// Whether statements are prepared once for each connection. Off where a pooler gives each transaction another
    /// connection. Default yes, but for the ports 6432 and 6543.
    pub prepare: bool,
    /// How other instances' commits are heard of. Default [`Listen::Notify`], and [`Listen::Poll`] where `prepare` is off
    /// and no direct URL is given.
    pub listen: Listen,
    /// Whether a missing or older schema is made or brought up to date. Default yes.
    pub migrate: bool,
    /// Index new messages and remove leftovers in the background while nobody commits. Default yes.
    pub background: bool,
    /// How long a connection may take to be made. Default 5 seconds.
    pub connect_timeout: Duration,
    /// How long one call may take. Default 30 seconds.
    pub statement_timeout: Duration,
    /// How often is looked for other instances' commits where they are polled for. Default 500 milliseconds.
    pub poll_interval: Duration,
}

/// How other instances' commits are heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// By notifications, on a connection of its own that a pooler must not stand before.
    Notify,
    /// By looking now and then.
    Poll,
    /// Not at all, and others are not told of this instance's either: for a single instance.
    Off,
}

impl PostgresOptions {
    /// Reads a URL: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?…` (or `postgresql:`).
    ///
    /// The parameters of libpq that mean something here are `sslmode` (`disable`, `prefer`, `require`, `verify-ca`,
    /// `verify-full`), `sslrootcert` (a PEM file; without it, the certificate authorities of the public web),
    /// `application_name`, `connect_timeout` (seconds), `target_session_attrs`, and what else
    /// [`tokio_postgres::Config`] reads. Our own:
    ///
    /// - `pool_size=16`, `statement_timeout=30` (seconds), `migrate=off`, `background=off`;
    /// - `prepare=off` behind a pooler in transaction mode;
    /// - `listen=notify`, `poll` or `off`, and `poll_interval=500` (milliseconds);
    /// - `direct=URL` (percent-encoded): the same database without the pooler, for listening and migrations.
    ///
    /// # Errors
    /// `Invalid`, which names the parameter. The URL is not repeated, as it may hold a password.
    pub fn from_url(url: &str) -> Result<Self> {
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let mut passed_on = Vec::new();
        let mut own = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| invalid("a parameter has no value"))?;
            match name {
                "sslmode" | "sslrootcert" | "pool_size" | "prepare" | "listen" | "migrate" | "background"
                | "statement_timeout" | "poll_interval" | "direct" => own.push((name, decoded(value)?)),
                _ => passed_on.push(pair),
            }
        }
        let url = if passed_on.is_empty() { place.to_owned() } else { format!("{place}?{}", passed_on.join("&")) };
        let mut options = Self::of_server(server(&url)?);
        let mut listen = None;
        for (name, value) in &own {
            match *name {
                "sslmode" => options.set_ssl_mode(value)?,
                "sslrootcert" => options.trust.root_file = Some(PathBuf::from(value)),
                "pool_size" => options.pool_size = number(name, value)?.clamp(1, 10_000) as usize,
                "prepare" => options.prepare = is_on(name, value)?,
                "listen" => listen = Some(listen_of(value)?),
                "migrate" => options.migrate = is_on(name, value)?,
                "background" => options.background = is_on(name, value)?,
                "statement_timeout" => options.statement_timeout = Duration::from_secs(number(name, value)?.max(1)),
                "poll_interval" => options.poll_interval = Duration::from_millis(number(name, value)?.max(10)),
                _ => options.direct = Some(server(value)?),
            }
        }
        let by_itself = if options.prepare || options.direct.is_some() { Listen::Notify } else { Listen::Poll };
        options.listen = listen.unwrap_or(by_itself);
        options.connect_timeout = options.server.get_connect_timeout().copied().unwrap_or(options.connect_timeout);
        Ok(options)
    }

    fn of_server(server: Config) -> Self {
        let behind_pooler = server.get_ports().iter().any(|port| POOLER_PORTS.contains(port));
        Self {
            server,
            direct: None,
            trust: Trust::default(),
            pool_size: 16,
            prepare: !behind_pooler,
            listen: Listen::Notify,
            migrate: true,
            background: true,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            poll_interval: Duration::from_millis(500),
        }
    }

    fn set_ssl_mode(&mut self, mode: &str) -> Result<()> {
        let (ssl_mode, is_verified) = match mode {
            "disable" => (SslMode::Disable, false),
            "allow" | "prefer" => (SslMode::Prefer, false),
            "require" => (SslMode::Require, false),
            "verify-ca" | "verify-full" => (SslMode::Require, true),
            _ => return Err(invalid("sslmode is none of disable, prefer, require, verify-ca, verify-full")),
        };
        self.server.ssl_mode(ssl_mode);
        self.trust.is_verified = is_verified;
        Ok(())
    }

    /// Opens one connection outside of any store, for an administrator: past a pooler where a direct URL is given, as the
    /// role that the URL names, with no schema looked for. A task drives it until the client is dropped.
    ///
    /// # Errors
    /// `Invalid` for credentials that are refused, `Unavailable` when the server cannot be reached.
    pub async fn connect(&self) -> Result<tokio_postgres::Client> {
        let connecting = self.direct_server();
        let connecting = connecting.connect(tls::connector(&self.trust)?);
        let connected = tokio::time::timeout(self.connect_timeout, connecting).await;
        let (client, connection) = connected
            .map_err(|_| PostgresError::Silence)
            .and_then(|connected| connected.map_err(PostgresError::from))?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// The server as a connection of its own reaches it.
    pub(crate) fn direct_server(&self) -> Config {
        let mut direct = self.direct.clone().unwrap_or_else(|| self.server.clone());
        direct.ssl_mode(self.server.get_ssl_mode()).connect_timeout(self.connect_timeout);
        direct
    }
}

impl std::fmt::Debug for PostgresOptions {
    /// Leaves out where the server is and who asks.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("pool_size", &self.pool_size)
            .field("prepare", &self.prepare)
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}

fn invalid(reason: impl Into<String>) -> StoreError {
    StoreError::invalid("database URL", reason)
}

fn server(url: &str) -> Result<Config> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(invalid("it does not start with postgres:// or postgresql://"));
    }
    // What the parser says may quote the URL.
    let mut server: Config = url.parse().map_err(|_| invalid("it is not of the form postgres://USER@HOST/DATABASE"))?;
    if server.get_application_name().is_none() {
        server.application_name("threadkeep");
    }
    Ok(server)
}

fn number(name: &str, value: &str) -> Result<u64> {
    value.parse().map_err(|_| invalid(format!("{name} is not a number")))
}

fn is_on(name: &str, value: &str) -> Result<bool> {
    match value {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => Err(invalid(format!("{name} is neither on nor off"))),
    }
}

fn listen_of(value: &str) -> Result<Listen> {
    match value {
        "notify" => Ok(Listen::Notify),
        "poll" => Ok(Listen::Poll),
        "off" => Ok(Listen::Off),
        _ => Err(invalid("listen is none of notify, poll, off")),
    }
}

fn decoded(value: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = tail;
            continue;
        }
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(|| invalid("a parameter is not percent-encoded"))?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| invalid("a parameter is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_everything() {
        let options = PostgresOptions::from_url(
            "postgres://ana:secret@db.example:5432/app?sslmode=verify-full&pool_size=4&prepare=off&listen=poll\
             &application_name=x&direct=postgres%3A%2F%2Fana%40db.example%3A5433%2Fapp&statement_timeout=7",
        )
        .unwrap();
        assert_eq!((options.pool_size, options.prepare, options.listen), (4, false, Listen::Poll));
        assert_eq!(options.server.get_application_name(), Some("x"));
        assert_eq!(options.direct_server().get_ports(), [5433]);
        assert_eq!(options.statement_timeout, Duration::from_secs(7));
        assert!(options.trust.is_verified);
        assert!(!format!("{options:?}").contains("secret"));
    }

    #[test]
    fn behind_a_pooler_nothing_is_prepared_and_commits_are_polled_for() {
        let pooled = PostgresOptions::from_url("postgres://ana@db.example:6543/app").unwrap();
        assert_eq!((pooled.prepare, pooled.listen), (false, Listen::Poll));
        let direct = "postgres://ana@db.example:6432/app?direct=postgres://ana@db.example/app";
        assert_eq!(PostgresOptions::from_url(direct).unwrap().listen, Listen::Notify);
    }

    #[test]
    fn what_is_wrong_is_named_and_the_password_is_not() {
        for (url, named) in [
            ("mysql://ana:secret@db/app", "does not start"),
            ("postgres://ana:secret@db:port/app", "not of the form"),
            ("postgres://ana:secret@db/app?listen=loudly", "listen"),
            ("postgres://ana:secret@db/app?pool_size=many", "pool_size"),
            ("postgres://ana:secret@db/app?prepare=perhaps", "prepare"),
            ("postgres://ana:secret@db/app?sslmode=strict", "sslmode"),
            ("postgres://ana:secret@db/app?sslrootcert=%zz", "percent"),
            ("postgres://ana:secret@db/app?listen", "no value"),
            ("postgres://ana:secret@db/app?colour=red", "not of the form"),
        ] {
            let error = PostgresOptions::from_url(url).unwrap_err().to_string();
            assert!(error.contains(named) && !error.contains("secret"), "{url}: {error}");
        }
    }
}
