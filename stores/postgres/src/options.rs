use std::path::PathBuf;
use std::time::Duration;

use threadkeep_core::{Result, StoreError};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use crate::error::PostgresError;
use crate::tls::{self, Trust};

/// The default ports of poolers in transaction mode: PgBouncer's and Supabase's.
const POOLER_PORTS: [u16; 2] = [6432, 6543];

/// Options for opening a database.
#[derive(Clone)]
pub struct PostgresOptions {
    /// The server's address and the credentials.
    pub(crate) server: Config,
    /// The server's address and the credentials for connections that must bypass a pooler.
    pub(crate) direct: Option<Config>,
    pub(crate) trust: Trust,
    /// The maximum number of connections. Default: 16.
    pub pool_size: usize,
    /// Prepare each statement once per connection. Must be off behind a pooler in transaction mode. Default: true, except for
    /// the ports 6432 and 6543.
    pub prepare: bool,
    /// How to detect other instances' commits. Default: [`Listen::Notify`], or [`Listen::Poll`] if `prepare` is off and
    /// there is no direct URL.
    pub listen: Listen,
    /// Create a missing schema and migrate an older one. Default: true.
    pub migrate: bool,
    /// Index new messages and remove leftovers in the background while no commits arrive. Default: true.
    pub background: bool,
    /// The timeout for establishing a connection. Default: 5 seconds.
    pub connect_timeout: Duration,
    /// The timeout of a call. Default: 30 seconds.
    pub statement_timeout: Duration,
    /// The interval of polling for other instances' commits. Default: 500 milliseconds.
    pub poll_interval: Duration,
}

/// How to detect other instances' commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// By notifications, on a dedicated connection that must not go through a pooler.
    Notify,
    /// By polling.
    Poll,
    /// Not at all, and without notifying other instances: for a single instance.
    Off,
}

impl PostgresOptions {
    /// Parses a URL: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?…` (or `postgresql:`).
    ///
    /// Supported parameters of libpq are `sslmode` (`disable`, `prefer`, `require`, `verify-ca`, `verify-full`),
    /// `sslrootcert` (a PEM file; default: Mozilla's root certificates), `application_name`, `connect_timeout` (seconds),
    /// `target_session_attrs`, and the others of [`tokio_postgres::Config`]. Additional parameters:
    ///
    /// - `pool_size=16`, `statement_timeout=30` (seconds), `migrate=off`, `background=off`;
    /// - `prepare=off` behind a pooler in transaction mode;
    /// - `listen=notify`, `poll` or `off`, and `poll_interval=500` (milliseconds);
    /// - `direct=URL` (percent-encoded): the same database without the pooler, for listening and migrations.
    ///
    /// # Errors
    /// `Invalid`, which names the parameter. The error does not contain the URL, which may include a password.
    pub fn from_url(url: &str) -> Result<Self> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut driver_parameters = Vec::new();
        let mut own_parameters = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| invalid("parameter without a value"))?;
            match name {
                "sslmode" | "sslrootcert" | "pool_size" | "prepare" | "listen" | "migrate" | "background"
                | "statement_timeout" | "poll_interval" | "direct" => {
                    own_parameters.push((name, percent_decode(value)?))
                }
                _ => driver_parameters.push(pair),
            }
        }
        let url = match driver_parameters.as_slice() {
            [] => base.to_owned(),
            parameters => format!("{base}?{}", parameters.join("&")),
        };
        let mut options = Self::for_server(server(&url)?);
        let mut listen = None;
        for (name, value) in &own_parameters {
            match *name {
                "sslmode" => options.set_ssl_mode(value)?,
                "sslrootcert" => options.trust.root_file = Some(PathBuf::from(value)),
                "pool_size" => options.pool_size = number(name, value)?.clamp(1, 10_000) as usize,
                "prepare" => options.prepare = parse_switch(name, value)?,
                "listen" => listen = Some(parse_listen(value)?),
                "migrate" => options.migrate = parse_switch(name, value)?,
                "background" => options.background = parse_switch(name, value)?,
                "statement_timeout" => options.statement_timeout = Duration::from_secs(number(name, value)?.max(1)),
                "poll_interval" => options.poll_interval = Duration::from_millis(number(name, value)?.max(10)),
                _ => options.direct = Some(server(value)?),
            }
        }
        let default_listen = if options.prepare || options.direct.is_some() { Listen::Notify } else { Listen::Poll };
        options.listen = listen.unwrap_or(default_listen);
        options.connect_timeout = options.server.get_connect_timeout().copied().unwrap_or(options.connect_timeout);
        Ok(options)
    }

    fn for_server(server: Config) -> Self {
        let is_pooler = server.get_ports().iter().any(|port| POOLER_PORTS.contains(port));
        Self {
            server,
            direct: None,
            trust: Trust::default(),
            pool_size: 16,
            prepare: !is_pooler,
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
            _ => return Err(invalid("sslmode must be disable, prefer, require, verify-ca or verify-full")),
        };
        self.server.ssl_mode(ssl_mode);
        self.trust.is_verified = is_verified;
        Ok(())
    }

    /// Opens a connection for administration: with the URL's role, without checking the schema, and bypassing the pooler if
    /// there is a direct URL. A spawned task drives it until the client is dropped.
    ///
    /// # Errors
    /// `Invalid` for rejected credentials, `Unavailable` if the server cannot be reached.
    pub async fn connect(&self) -> Result<tokio_postgres::Client> {
        let server = self.direct_server();
        let connecting = server.connect(tls::connector(&self.trust)?);
        let result = tokio::time::timeout(self.connect_timeout, connecting).await;
        let (client, connection) =
            result.map_err(|_| PostgresError::NoResponse).and_then(|result| result.map_err(PostgresError::from))?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Returns the configuration for a connection that bypasses the pooler.
    pub(crate) fn direct_server(&self) -> Config {
        let mut direct = self.direct.clone().unwrap_or_else(|| self.server.clone());
        direct.ssl_mode(self.server.get_ssl_mode()).connect_timeout(self.connect_timeout);
        direct
    }
}

impl std::fmt::Debug for PostgresOptions {
    /// Omits the server's address and the credentials.
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
        return Err(invalid("does not start with postgres:// or postgresql://"));
    }
    // The parser's error is dropped, because it may quote the URL.
    let mut server: Config = url.parse().map_err(|_| invalid("not of the form postgres://USER@HOST/DATABASE"))?;
    if server.get_application_name().is_none() {
        server.application_name("threadkeep");
    }
    Ok(server)
}

fn number(name: &str, value: &str) -> Result<u64> {
    value.parse().map_err(|_| invalid(format!("{name} is not a number")))
}

fn parse_switch(name: &str, value: &str) -> Result<bool> {
    match value {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => Err(invalid(format!("{name} must be on or off"))),
    }
}

fn parse_listen(value: &str) -> Result<Listen> {
    match value {
        "notify" => Ok(Listen::Notify),
        "poll" => Ok(Listen::Poll),
        "off" => Ok(Listen::Off),
        _ => Err(invalid("listen must be notify, poll or off")),
    }
}

fn percent_decode(value: &str) -> Result<String> {
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
        bytes.push(byte.ok_or_else(|| invalid("parameter with an invalid percent-encoding"))?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| invalid("parameter is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_sets_all_options() {
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
    fn pooler_ports_disable_preparing_and_notifications() {
        let pooled = PostgresOptions::from_url("postgres://ana@db.example:6543/app").unwrap();
        assert_eq!((pooled.prepare, pooled.listen), (false, Listen::Poll));
        let direct = "postgres://ana@db.example:6432/app?direct=postgres://ana@db.example/app";
        assert_eq!(PostgresOptions::from_url(direct).unwrap().listen, Listen::Notify);
    }

    #[test]
    fn errors_name_the_problem_and_omit_the_password() {
        for (url, expected) in [
            ("mysql://ana:secret@db/app", "does not start"),
            ("postgres://ana:secret@db:port/app", "not of the form"),
            ("postgres://ana:secret@db/app?listen=loudly", "listen"),
            ("postgres://ana:secret@db/app?pool_size=many", "pool_size"),
            ("postgres://ana:secret@db/app?prepare=perhaps", "prepare"),
            ("postgres://ana:secret@db/app?sslmode=strict", "sslmode"),
            ("postgres://ana:secret@db/app?sslrootcert=%zz", "percent"),
            ("postgres://ana:secret@db/app?listen", "without a value"),
            ("postgres://ana:secret@db/app?colour=red", "not of the form"),
        ] {
            let error = PostgresOptions::from_url(url).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("secret"), "{url}: {error}");
        }
    }
}
