mod log;
mod signals;
mod tell;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Result;
use threadkeep::MemoryOptions;
use threadkeep::core::shown_address;
use threadkeep_server::{
    Keys, OutgoingProxy, Quota, RateLimit, Server, ServerOptions, SharedKey, TelemetryOptions, Tls, TokenIssuer,
};

use super::{App, Status};
use crate::assistants::BUILT_IN;
use crate::failure::Failure;
use crate::listen::ListenAddress;
use crate::local_token;
use crate::models;
use crate::served::Served;
use crate::settings::{self, Settings};
use crate::store::Purpose;
use log::begin_log;
use signals::asked_to_stop;
use tell::{Access, tell};

const PORT: u16 = 7437;
/// Holds the ends of some thousand threads. They are looked at before they are shown, whoever else writes to the store.
const TAIL_BYTES: usize = 16 * 1024 * 1024;

/// Serve the store and the assistants over HTTP: REST, live events, the OpenAI wire
///
/// It listens on this machine only, unless told otherwise. As long as no key was ever made (`threadkeep keys create`), programs
/// on this machine may call with the server's token, and act as the user that --user names. The token is made once and kept in
/// the user's state folder; a terminal is told it in a line to paste, anything else where it is. Ctrl-C and SIGTERM finish what
/// was accepted and end every stream with an event; a second one ends at once. What no option says comes from the
/// environment and the configuration file: `threadkeep config show` lists it all.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "Examples:
  threadkeep serve                                     on 127.0.0.1:7437
  threadkeep open                                      its page in the browser
  curl http://127.0.0.1:7437/v1/threads -H \"Authorization: Bearer $OPENAI_API_KEY\"
  threadkeep keys create phone && threadkeep serve --listen 0.0.0.0:7437")]
pub(crate) struct Arguments {
    /// The host and port to listen on; port 0 takes a free one [default: 127.0.0.1:7437]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<ListenAddress>,
    /// What clients show while there is no key, 16 characters or more [default: one that is made and kept]. Others can read it
    /// in the list of processes: rather set THREADKEEP_TOKEN, or THREADKEEP_TOKEN_FILE to a file that holds it
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Have every program on this machine call without a token while there is no key. INSECURE: so may everyone for whom a
    /// proxy on this machine calls
    #[arg(long, conflicts_with = "token")]
    insecure_no_token: bool,
    /// Requests that a key without a limit of its own may make in a minute [default: no bound]
    #[arg(long, value_name = "COUNT")]
    rate: Option<RateLimit>,
    /// Requests that a key without a quota of its own may make in a day of UTC [default: no bound]
    #[arg(long, value_name = "COUNT")]
    quota: Option<Quota>,
    /// Take tokens (JWT) of this issuer, for users of the tenant that --tenant names
    #[arg(long, value_name = "ISSUER")]
    token_issuer: Option<String>,
    /// What such a token has to name as its audience
    #[arg(long, value_name = "AUDIENCE")]
    token_audience: Option<String>,
    /// The file that holds the secret such tokens are signed with (HS256)
    #[arg(long, value_name = "FILE")]
    token_secret_file: Option<PathBuf>,
    /// The file or the URL with the public keys of such tokens (JWKS)
    #[arg(long, value_name = "PLACE", conflicts_with = "token_secret_file")]
    token_jwks: Option<String>,
    /// Take such tokens of the role `service_role` for the whole tenant
    #[arg(long)]
    token_service_role: bool,
    /// The model that answers on the OpenAI wire, as `threadkeep models` names it [default: the first that is found]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Answer with this assistant only: general, or one written in YAML, by its name or its path; may be given more than once
    /// [default: all that there are]. Files are followed: what is written in them counts without a restart
    #[arg(long = "assistant", value_name = "NAME")]
    assistants: Vec<String>,
    /// The server's certificate and those above it, in PEM: speaks TLS
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Write the log as JSON, one object a line
    #[arg(long)]
    log_json: bool,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let settings = &app.settings;
    begin_log(settings, arguments.log_json)?;
    app.interrupt.stop_by_itself();
    let memory = app.open(Purpose::Serve).await?.memory;
    if let Some(ledger) = app.erasure_ledger().ledger(&app.location()?)
        && let Err(unwritten) = ledger.try_open()
    {
        tracing::warn!("{unwritten}; --erasure-ledger names another file");
    }
    let tail_bytes = settings.read("THREADKEEP_TAIL_BYTES")?.unwrap_or(TAIL_BYTES);
    let memory = memory.with_options(MemoryOptions { tail_bytes, ..memory.options().clone() })?;
    let keys = Keys::new(&memory);
    let token_issuers: Vec<TokenIssuer> = issuer(app, &arguments)?.into_iter().collect();
    let is_guarded = !token_issuers.is_empty() || keys.is_any_known().await?;
    let listen = either(arguments.listen.clone(), "THREADKEEP_LISTEN", settings)?;
    let listen = listen.unwrap_or_else(|| ListenAddress::loopback(PORT));
    let addresses = listen.resolve()?;
    if !addresses.iter().all(|address| address.ip().is_loopback()) && !is_guarded {
        let failure = Failure::usage(format!("{listen} is no address of this machine alone, and there is no key yet"));
        return Err(failure.hint("make one with `threadkeep keys create NAME`").into());
    }
    let access = match (is_guarded, arguments.insecure_no_token) {
        (true, _) => Access::Keys,
        (false, true) => Access::ThisMachine,
        (false, false) => Access::Token(local_token::find(arguments.token.as_deref(), settings)?),
    };
    let options = ServerOptions { local_access: access.to_server(), ..options(app, token_issuers, &arguments)? };
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let served = Served::open(app, &memory, &arguments.assistants, arguments.model.as_deref())?;
    let server = Server::new(memory, options).with_assistants(served.assistants());
    let server = with_models(server, arguments.model.as_deref(), settings)?;
    let listener = listen.bind(&addresses).await?;
    tell(app, scheme, listener.local_addr()?, &access);
    tokio::select! {
        ended = server.serve(listener, asked_to_stop(app.interrupt.clone())) => ended?,
        never = served.follow() => match never {},
    }
    Ok(Status::Done)
}

/// What would keep a server from starting with these settings, as far as they tell it by themselves.
pub(crate) fn problems(app: &App) -> Vec<String> {
    let (arguments, settings) = (Arguments::default(), &app.settings);
    let found = [
        issuer(app, &arguments).map(drop),
        tls(&arguments, settings).map(drop),
        local_token::check_given(settings),
        telemetry(settings).map(drop),
        models::speaker(None, settings).map(drop),
        models::embedder(settings).map(drop),
    ];
    found.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect()
}

/// What an option says, else the settings.
fn either<T: FromStr>(typed: Option<T>, name: &str, settings: &Settings) -> Result<Option<T>> {
    match typed {
        Some(typed) => Ok(Some(typed)),
        None => settings.read(name),
    }
}

fn options(app: &App, token_issuers: Vec<TokenIssuer>, arguments: &Arguments) -> Result<ServerOptions> {
    let (settings, built_in) = (&app.settings, ServerOptions::default());
    let seconds = |name| Ok::<_, anyhow::Error>(settings.read(name)?.map(Duration::from_secs));
    Ok(ServerOptions {
        local_scope: app.scope()?,
        token_issuers,
        rate_limit: either(arguments.rate, "THREADKEEP_RATE", settings)?,
        shared_key: shared_key(settings),
        quota: either(arguments.quota, "THREADKEEP_QUOTA", settings)?,
        tls: tls(arguments, settings)?,
        telemetry: telemetry(settings)?,
        body_bytes: settings.read("THREADKEEP_BODY_BYTES")?.unwrap_or(built_in.body_bytes),
        connections: settings.read("THREADKEEP_CONNECTIONS")?.unwrap_or(built_in.connections),
        action_timeout: seconds("THREADKEEP_ACTION_SECONDS")?.unwrap_or(built_in.action_timeout),
        grace: seconds("THREADKEEP_GRACE_SECONDS")?.unwrap_or(built_in.grace),
        resume_turns: settings.read("THREADKEEP_RESUME_TURNS")?.unwrap_or(built_in.resume_turns),
        ..built_in
    })
}

/// What clients of the documents' endpoints show: the first of the assistants' keys that is set.
fn shared_key(settings: &Settings) -> Option<SharedKey> {
    let keys = BUILT_IN.iter().filter_map(|plugin| plugin.client_key);
    keys.filter_map(|key| settings.get(key.variable)).find_map(|key| SharedKey::new(&key))
}

/// What connections are encrypted with.
fn tls(arguments: &Arguments, settings: &Settings) -> Result<Option<Tls>> {
    let certificates = either(arguments.tls_cert.clone(), "THREADKEEP_TLS_CERT", settings)?;
    let key = either(arguments.tls_key.clone(), "THREADKEEP_TLS_KEY", settings)?;
    match (certificates, key) {
        (None, None) => Ok(None),
        (Some(certificates), Some(key)) => Ok(Some(Tls::from_pem_files(&certificates, &key)?)),
        _ => {
            Err(Failure::usage("a certificate and its key come together").hint("give --tls-cert and --tls-key").into())
        }
    }
}

/// Where traces go.
fn telemetry(settings: &Settings) -> Result<Option<TelemetryOptions>> {
    let Some(endpoint) = settings.get("OTEL_EXPORTER_OTLP_ENDPOINT") else { return Ok(None) };
    if !["http://", "https://"].iter().any(|scheme| endpoint.starts_with(scheme)) {
        let failure =
            Failure::usage(format!("OTEL_EXPORTER_OTLP_ENDPOINT: {} is no address of HTTP", shown_address(&endpoint)));
        return Err(failure.hint("give the collector's, such as http://127.0.0.1:4318").into());
    }
    let service = settings.get("OTEL_SERVICE_NAME").unwrap_or_else(|| "threadkeep".to_owned());
    let given = settings.get("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    let mut headers = Vec::new();
    for header in given.split(',').filter(|header| !header.trim().is_empty()) {
        let (name, value) = header
            .split_once('=')
            .ok_or_else(|| Failure::usage("OTEL_EXPORTER_OTLP_HEADERS is not a list such as api-key=…,other=…"))?;
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let proxy = proxy(settings, &endpoint);
    Ok(Some(TelemetryOptions { endpoint, headers, service, proxy }))
}

/// Through which proxy a place is reached.
fn proxy(settings: &Settings, place: &str) -> Option<OutgoingProxy> {
    let names = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let those_of_http = if place.starts_with("https:") { 0 } else { 2 };
    let url = names[those_of_http..].iter().find_map(|name| settings.get(name))?;
    let exceptions = ["NO_PROXY", "no_proxy"].iter().find_map(|name| settings.get(name));
    Some(OutgoingProxy { url, exceptions })
}

/// The server with the model and the embedder that the settings name.
fn with_models(mut server: Server, model: Option<&str>, settings: &Settings) -> Result<Server> {
    if let Some(model) = models::speaker(model, settings)? {
        server = server.with_model(model);
    }
    if let Some(embedder) = models::embedder(settings)? {
        server = server.with_embedder(embedder);
    }
    Ok(server)
}

/// Whose tokens are taken.
fn issuer(app: &App, arguments: &Arguments) -> Result<Option<TokenIssuer>> {
    let settings = &app.settings;
    let given = |typed: &Option<String>, name| typed.clone().or_else(|| settings.get(name));
    let Some(issuer) = given(&arguments.token_issuer, "THREADKEEP_TOKEN_ISSUER") else { return Ok(None) };
    let audience = given(&arguments.token_audience, "THREADKEEP_TOKEN_AUDIENCE").unwrap_or_default();
    let (tenant, secret_file) = (app.global.tenant_id()?, arguments.token_secret_file.as_deref());
    let jwks = given(&arguments.token_jwks, "THREADKEEP_TOKEN_JWKS").filter(|_| secret_file.is_none());
    let issuer = match (jwks, secret_file) {
        (Some(jwks), _) => TokenIssuer::jwks(&jwks, proxy(settings, &jwks).as_ref(), issuer, audience, tenant),
        (None, Some(file)) => TokenIssuer::hs256(settings::secret_file(file)?, issuer, audience, tenant),
        (None, None) => {
            let secret = settings.get("THREADKEEP_TOKEN_SECRET").ok_or_else(|| {
                let failure =
                    Failure::usage(format!("tokens cannot be taken: there is nothing to check those of {issuer} with"));
                failure.hint(
                    "name their keys by --token-jwks or THREADKEEP_TOKEN_JWKS, or their secret by --token-secret-file",
                )
            })?;
            TokenIssuer::hs256(secret, issuer, audience, tenant)
        }
    };
    let mut issuer = issuer.map_err(|error| {
        let failure = Failure::usage(format!("tokens cannot be taken: {error}"));
        failure.hint("--token-issuer needs --token-audience, and --token-jwks or --token-secret-file")
    })?;
    issuer.takes_service_role =
        arguments.token_service_role || settings.read("THREADKEEP_TOKEN_SERVICE_ROLE")?.unwrap_or(false);
    Ok(Some(issuer))
}
