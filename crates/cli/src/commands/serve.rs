mod announce;
mod log;
mod signals;

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Result;
use threadkeep::MemoryOptions;
use threadkeep::core::redact_address;
use threadkeep_server::{
    Keys, OutgoingProxy, Page, Quota, RateLimit, Server, ServerOptions, SharedKey, TelemetryOptions, Tls,
    TrustedIssuer, WebhookOptions,
};

use super::{App, Status};
use crate::assistants::BUILT_IN;
use crate::failure::Failure;
use crate::listen::ListenAddress;
use crate::local_token;
use crate::models;
use crate::served::ServedAssistants;
use crate::settings::{self, Settings};
use crate::store::Purpose;
use announce::{Access, announce};
use log::init_log;
use signals::shutdown_requested;

const PORT: u16 = 7437;
/// The default size of the thread cache, enough for several thousand threads. Cached data is validated on use, so other
/// programs can write to the store.
const THREAD_CACHE_BYTES: usize = 16 * 1024 * 1024;

/// Serve the store and the assistants over HTTP: REST, live events, the OpenAI API
///
/// Listens on this machine only, unless --listen is given. Until the first key is created (`threadkeep keys create`), programs
/// on this machine authenticate with the server's token and act as the user given by --user. The token is generated once and
/// stored in the user's state folder. On a terminal it is printed in a line to paste; otherwise only the path of its file is
/// printed. Ctrl-C and SIGTERM finish accepted requests and end every stream with an event; a second signal exits immediately.
/// Options that are not given are read from the environment and the configuration file: `threadkeep config show` lists them.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "Examples:
  threadkeep serve                                     on 127.0.0.1:7437
  threadkeep open                                      open its web page in the browser
  curl http://127.0.0.1:7437/v1/threads -H \"Authorization: Bearer $OPENAI_API_KEY\"
  threadkeep keys create phone && threadkeep serve --listen 0.0.0.0:7437")]
pub(crate) struct Arguments {
    /// The host and port to listen on; port 0 picks a free port [default: 127.0.0.1:7437]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<ListenAddress>,
    /// The token that clients send while no key exists, at least 16 characters [default: generated and stored]. Other users can
    /// read it in the process list; prefer THREADKEEP_TOKEN, or THREADKEEP_TOKEN_FILE with the path of a file
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Let every program on this machine call without a token while no key exists. INSECURE: this includes all clients of a
    /// proxy on this machine
    #[arg(long, conflicts_with = "token")]
    insecure_no_token: bool,
    /// Requests per minute for a key without its own limit [default: unlimited]
    #[arg(long, value_name = "COUNT")]
    rate: Option<RateLimit>,
    /// Requests per UTC day for a key without its own quota [default: unlimited]
    #[arg(long, value_name = "COUNT")]
    quota: Option<Quota>,
    /// Accept tokens (JWT) of this issuer, for users of the tenant given by --tenant
    #[arg(long, value_name = "ISSUER")]
    token_issuer: Option<String>,
    /// The audience that such tokens must have
    #[arg(long, value_name = "AUDIENCE")]
    token_audience: Option<String>,
    /// The file with the secret that signs such tokens (HS256)
    #[arg(long, value_name = "FILE")]
    token_secret_file: Option<PathBuf>,
    /// The file or URL with the public keys of such tokens (JWKS)
    #[arg(long, value_name = "FILE|URL", conflicts_with = "token_secret_file")]
    token_jwks: Option<String>,
    /// Accept such tokens with the role `service_role` for the whole tenant
    #[arg(long)]
    token_service_role: bool,
    /// The model of the OpenAI-compatible API, as `threadkeep models` lists it [default: the first one found]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Serve only this assistant: a built-in one, or a YAML file by name or path; can be repeated [default: all assistants].
    /// Changes to the files take effect without a restart
    #[arg(long = "assistant", value_name = "NAME")]
    assistants: Vec<String>,
    /// The server's certificate chain in PEM; enables TLS
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key in PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Write the log as JSON, one object per line
    #[arg(long)]
    log_json: bool,
    /// Print the OpenAPI document of the server's routes, and exit
    #[arg(long)]
    openapi: bool,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let settings = &app.settings;
    if arguments.openapi {
        app.output.line(Server::openapi())?;
        return Ok(Status::Done);
    }
    init_log(settings, arguments.log_json)?;
    app.interrupt.enable_graceful_stop();
    let memory = app.open(Purpose::Serve).await?.memory;
    if let Some(ledger) = app.erasure_ledger().ledger(&app.location()?)
        && let Err(error) = ledger.try_open()
    {
        tracing::warn!("{error}; choose another file with --erasure-ledger");
    }
    let thread_cache_bytes = settings.read("THREADKEEP_TAIL_BYTES")?.unwrap_or(THREAD_CACHE_BYTES);
    let memory = memory.with_options(MemoryOptions { thread_cache_bytes, ..memory.options().clone() })?;
    let keys = Keys::new(&memory);
    let token_issuers: Vec<TrustedIssuer> = issuer(app, &arguments)?.into_iter().collect();
    let has_keys_or_issuer = !token_issuers.is_empty() || keys.has_any().await?;
    let listen = either(arguments.listen.clone(), "THREADKEEP_LISTEN", settings)?;
    let listen = listen.unwrap_or_else(|| ListenAddress::loopback(PORT));
    let addresses = listen.resolve()?;
    if !addresses.iter().all(|address| address.ip().is_loopback()) && !has_keys_or_issuer {
        let failure = Failure::usage(format!("other machines can reach {listen}, but there are no keys yet"));
        return Err(failure.hint("create a key with `threadkeep keys create NAME`").into());
    }
    let access = match (has_keys_or_issuer, arguments.insecure_no_token) {
        (true, _) => Access::Keys,
        (false, true) => Access::ThisMachine,
        (false, false) => Access::Token(local_token::find(arguments.token.as_deref(), settings)?),
    };
    let options = ServerOptions { local_access: access.to_server(), ..options(app, token_issuers, &arguments)? };
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let served = ServedAssistants::open(app, &memory, &arguments.assistants, arguments.model.as_deref())?;
    let server = Server::new(memory, options).with_assistants(served.assistants());
    let server = with_models(server, arguments.model.as_deref(), settings)?;
    let server = match super::slack::door_options(settings)? {
        Some(options) => server.with_door(super::slack::open_door(options)?)?,
        None => server,
    };
    let listener = listen.bind(&addresses).await?;
    announce(app, scheme, listener.local_addr()?, &access);
    tokio::select! {
        ended = server.serve(listener, shutdown_requested(app.interrupt.clone())) => ended?,
        never = served.watch() => match never {},
    }
    Ok(Status::Done)
}

/// Returns the errors in the settings that would prevent a server from starting. Opens no files or ports.
pub(crate) fn problems(app: &App) -> Vec<String> {
    let (arguments, settings) = (Arguments::default(), &app.settings);
    let results = [
        issuer(app, &arguments).map(drop),
        tls(&arguments, settings).map(drop),
        local_token::check_setting(settings),
        telemetry(settings).map(drop),
        browser_origins(settings).map(drop),
        webhook_options(settings).map(drop),
        super::slack::door_options(settings).map(drop),
        models::chat_model(None, settings).map(drop),
        models::embedder(settings).map(drop),
    ];
    results.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect()
}

/// Returns the value of an option, or otherwise of the setting.
fn either<T: FromStr>(typed: Option<T>, name: &str, settings: &Settings) -> Result<Option<T>> {
    match typed {
        Some(typed) => Ok(Some(typed)),
        None => settings.read(name),
    }
}

fn options(app: &App, token_issuers: Vec<TrustedIssuer>, arguments: &Arguments) -> Result<ServerOptions> {
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
        strict_models: settings.read("THREADKEEP_STRICT_MODELS")?.unwrap_or(built_in.strict_models),
        browser_origins: browser_origins(settings)?,
        webhooks: webhook_options(settings)?,
        resume_turns: settings.read("THREADKEEP_RESUME_TURNS")?.unwrap_or(built_in.resume_turns),
        page: Page::new(threadkeep_page::FILES),
        ..built_in
    })
}

/// Returns the origins of pages that may call from a browser.
fn browser_origins(settings: &Settings) -> Result<Vec<String>> {
    let listed = settings.get("THREADKEEP_BROWSER_ORIGINS").unwrap_or_default();
    let origins = listed.split(',').map(str::trim).filter(|origin| !origin.is_empty());
    let check = |origin: &str| {
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        if host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*', '?', '#', '@', ' '])) {
            return Ok(origin.to_ascii_lowercase());
        }
        let failure =
            Failure::usage(format!("THREADKEEP_BROWSER_ORIGINS: {} is not an origin", redact_address(origin)));
        Err(failure.hint("list origins without paths, such as https://app.example,http://localhost:5173").into())
    };
    origins.map(check).collect()
}

/// Returns the options of webhooks.
fn webhook_options(settings: &Settings) -> Result<WebhookOptions> {
    let listed = settings.get("THREADKEEP_WEBHOOK_NETWORKS").unwrap_or_default();
    let mut options = WebhookOptions::default();
    for network in listed.split(',').map(str::trim).filter(|network| !network.is_empty()) {
        let address = network.parse::<IpAddr>().map(Into::into).ok();
        let network = address.or_else(|| network.parse().ok()).ok_or_else(|| {
            Failure::usage(format!("THREADKEEP_WEBHOOK_NETWORKS: {network} is not a network"))
                .hint("list networks or addresses, such as 10.0.0.0/8,127.0.0.1")
        })?;
        options.networks.push(network);
    }
    Ok(options)
}

/// Returns the client key that all assistants' endpoints share: the value of the first key setting that is present.
fn shared_key(settings: &Settings) -> Option<SharedKey> {
    let keys = BUILT_IN.iter().filter_map(|plugin| plugin.client_key);
    keys.filter_map(|key| settings.get(key.variable)).find_map(|key| SharedKey::new(&key))
}

/// Returns the certificate and key for TLS, or `None` if neither is set.
fn tls(arguments: &Arguments, settings: &Settings) -> Result<Option<Tls>> {
    let certificates = either(arguments.tls_cert.clone(), "THREADKEEP_TLS_CERT", settings)?;
    let key = either(arguments.tls_key.clone(), "THREADKEEP_TLS_KEY", settings)?;
    match (certificates, key) {
        (None, None) => Ok(None),
        (Some(certificates), Some(key)) => Ok(Some(Tls::from_pem_files(&certificates, &key)?)),
        _ => Err(Failure::usage("TLS requires both a certificate and its key")
            .hint("set both --tls-cert and --tls-key")
            .into()),
    }
}

/// Returns the destination of exported traces, or `None` if traces are not exported.
fn telemetry(settings: &Settings) -> Result<Option<TelemetryOptions>> {
    let Some(endpoint) = settings.get("OTEL_EXPORTER_OTLP_ENDPOINT") else { return Ok(None) };
    if !["http://", "https://"].iter().any(|scheme| endpoint.starts_with(scheme)) {
        let failure =
            Failure::usage(format!("OTEL_EXPORTER_OTLP_ENDPOINT: {} is not an HTTP URL", redact_address(&endpoint)));
        return Err(failure.hint("set the collector's URL, such as http://127.0.0.1:4318").into());
    }
    let service = settings.get("OTEL_SERVICE_NAME").unwrap_or_else(|| "threadkeep".to_owned());
    let header_list = settings.get("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    let mut headers = Vec::new();
    for header in header_list.split(',').filter(|header| !header.trim().is_empty()) {
        let (name, value) = header
            .split_once('=')
            .ok_or_else(|| Failure::usage("invalid OTEL_EXPORTER_OTLP_HEADERS: expected api-key=…,other=…"))?;
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let proxy = proxy(settings, &endpoint);
    Ok(Some(TelemetryOptions { endpoint, headers, service, proxy }))
}

/// Returns the proxy for requests to a URL. The conventional proxy variables configure it.
fn proxy(settings: &Settings, target: &str) -> Option<OutgoingProxy> {
    let names = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let first = if target.starts_with("https:") { 0 } else { 2 };
    let url = names[first..].iter().find_map(|name| settings.get(name))?;
    let exceptions = ["NO_PROXY", "no_proxy"].iter().find_map(|name| settings.get(name));
    Some(OutgoingProxy { url, exceptions })
}

/// Adds the model and the embedder according to the settings.
fn with_models(mut server: Server, model: Option<&str>, settings: &Settings) -> Result<Server> {
    if let Some(model) = models::chat_model(model, settings)? {
        server = server.with_model(model);
    }
    if let Some(embedder) = models::embedder(settings)? {
        server = server.with_embedder(embedder);
    }
    Ok(server)
}

/// Returns the issuer whose tokens are accepted, or `None` if none is configured.
fn issuer(app: &App, arguments: &Arguments) -> Result<Option<TrustedIssuer>> {
    let settings = &app.settings;
    let option_or_setting = |typed: &Option<String>, name| typed.clone().or_else(|| settings.get(name));
    let Some(issuer) = option_or_setting(&arguments.token_issuer, "THREADKEEP_TOKEN_ISSUER") else { return Ok(None) };
    let audience = option_or_setting(&arguments.token_audience, "THREADKEEP_TOKEN_AUDIENCE").unwrap_or_default();
    let (tenant, secret_file) = (app.global.tenant_id()?, arguments.token_secret_file.as_deref());
    let jwks = option_or_setting(&arguments.token_jwks, "THREADKEEP_TOKEN_JWKS").filter(|_| secret_file.is_none());
    let issuer = match (jwks, secret_file) {
        (Some(jwks), _) => TrustedIssuer::jwks(&jwks, proxy(settings, &jwks).as_ref(), issuer, audience, tenant),
        (None, Some(file)) => TrustedIssuer::hs256(settings::secret_file(file)?, issuer, audience, tenant),
        (None, None) => {
            let secret = settings.get("THREADKEEP_TOKEN_SECRET").ok_or_else(|| {
                let failure = Failure::usage(format!("no key or secret to verify the tokens of {issuer}"));
                failure.hint(
                    "set the keys with --token-jwks or THREADKEEP_TOKEN_JWKS, or the secret with --token-secret-file",
                )
            })?;
            TrustedIssuer::hs256(secret, issuer, audience, tenant)
        }
    };
    let mut issuer = issuer.map_err(|error| {
        let failure = Failure::usage(format!("invalid token settings: {error}"));
        failure.hint("--token-issuer requires --token-audience, and --token-jwks or --token-secret-file")
    })?;
    issuer.accepts_service_role =
        arguments.token_service_role || settings.read("THREADKEEP_TOKEN_SERVICE_ROLE")?.unwrap_or(false);
    Ok(Some(issuer))
}
