use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use threadkeep_models::{EmbeddingModel, PriceTable, ProviderModel, Selected, select, select_embedder};
use threadkeep_server::{Keys, RateLimit, Server, ServerOptions, SharedKey, TokenIssuer};
use tokio::net::TcpListener;
use tracing_subscriber::EnvFilter;

use super::models::unselected;
use super::{App, Status};
use crate::failure::Failure;
use crate::served::Served;
use crate::store::Purpose;

/// Serve the store and the assistants over HTTP: REST, live events, the OpenAI wire
///
/// It listens on this machine only, unless told otherwise. As long as no key was ever made (`threadkeep keys create`),
/// programs on this machine may call without one, and act as the user that --user names. Ctrl-C and SIGTERM finish what
/// was accepted and end every stream with an event.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep serve                                     on 127.0.0.1:7437
  threadkeep keys create phone && threadkeep serve --listen 0.0.0.0:7437
  curl http://127.0.0.1:7437/v1/threads                its pages are at /docs")]
pub(crate) struct Arguments {
    /// The address and port to listen on; port 0 takes a free one
    #[arg(
        long,
        env = "THREADKEEP_LISTEN",
        hide_env_values = true,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:7437"
    )]
    listen: SocketAddr,
    /// Requests that a key without a limit of its own may make in a minute [default: no bound]
    #[arg(long, value_name = "COUNT")]
    rate: Option<RateLimit>,
    /// Take tokens (JWT, HS256) of this issuer, for users of the tenant that --tenant names; the secret is in the file
    #[arg(long, value_name = "ISSUER", requires_all = ["token_audience", "token_secret_file"])]
    token_issuer: Option<String>,
    /// What such a token has to name as its audience
    #[arg(long, value_name = "AUDIENCE")]
    token_audience: Option<String>,
    /// The file that holds the secret such tokens are signed with
    #[arg(long, value_name = "FILE")]
    token_secret_file: Option<PathBuf>,
    /// Take such tokens of the role `service_role` for the whole tenant
    #[arg(long, requires = "token_issuer")]
    token_service_role: bool,
    /// The model that answers on the OpenAI wire, as `threadkeep models` names it [default: the first that is found]
    #[arg(long, value_name = "NAME", env = "THREADKEEP_MODEL", hide_env_values = true)]
    model: Option<String>,
    /// Answer with this assistant only: general, or one written in YAML, by its name or its path; may be given more than once
    /// [default: all that there are]. Files are followed: what is written in them counts without a restart
    #[arg(long = "assistant", value_name = "NAME")]
    assistants: Vec<String>,
    /// Write the log as JSON, one object a line
    #[arg(long)]
    log_json: bool,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    begin_log(arguments.log_json);
    app.interrupt.stop_by_itself();
    let memory = app.open(Purpose::Serve).await?.memory;
    let keys = Keys::new(&memory);
    let token_issuers: Vec<TokenIssuer> = issuer(app, &arguments)?.into_iter().collect();
    let is_guarded = !token_issuers.is_empty() || keys.is_any_known().await?;
    if !arguments.listen.ip().is_loopback() && !is_guarded {
        let failure = Failure::usage(format!(
            "{} is no address of this machine alone, and there is no key yet",
            arguments.listen
        ));
        return Err(failure.hint("make one with `threadkeep keys create NAME`").into());
    }
    let options = ServerOptions {
        local_scope: app.scope()?,
        token_issuers,
        rate_limit: arguments.rate,
        shared_key: app.settings.get("SUBWAY_API_KEY").as_deref().and_then(SharedKey::new),
        ..ServerOptions::default()
    };
    let served = Served::open(app, &memory, &arguments.assistants, arguments.model.as_deref())?;
    let server = Server::new(memory, options).with_assistants(served.assistants());
    let server = with_models(server, arguments.model.as_deref())?;
    let listener = TcpListener::bind(arguments.listen).await;
    let listener = listener.with_context(|| format!("cannot listen on {}", arguments.listen))?;
    app.output.note(format_args!("listening on http://{}", listener.local_addr()?));
    tokio::select! {
        ended = server.serve(listener, asked_to_stop()) => ended?,
        never = served.follow() => match never {},
    }
    Ok(Status::Done)
}

/// The server with the model and the embedder that the environment names.
fn with_models(mut server: Server, model: Option<&str>) -> Result<Server> {
    let environment = |name: &str| std::env::var(name).ok();
    if let Selected::Provider(found) = select(model, &environment).map_err(unselected)? {
        server = server.with_model(Arc::new(ProviderModel::new(found.config(PriceTable::default()))?));
    }
    if let Some(config) = select_embedder(None, &environment).map_err(unselected)? {
        server = server.with_embedder(Arc::new(EmbeddingModel::new(config)?));
    }
    Ok(server)
}

/// Whose tokens are taken.
fn issuer(app: &App, arguments: &Arguments) -> Result<Option<TokenIssuer>> {
    let Arguments { token_issuer: Some(issuer), token_audience: Some(audience), .. } = arguments else {
        return Ok(None);
    };
    let file = arguments.token_secret_file.clone().unwrap_or_default();
    let secret = std::fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
    let issuer = TokenIssuer::hs256(secret.trim(), issuer, audience, app.global.tenant_id()?);
    let mut issuer = issuer.map_err(|error| Failure::usage(error.to_string()))?;
    issuer.takes_service_role = arguments.token_service_role;
    Ok(Some(issuer))
}

/// The log goes to standard error. RUST_LOG says how much of it; without it what an operator needs.
fn begin_log(as_json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    // Where a log was begun already, it stays.
    drop(if as_json { log.json().try_init() } else { log.try_init() });
}

async fn asked_to_stop() {
    let interrupted = async {
        // Where signals cannot be heard, the server runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminated) => tokio::select! {
                () = interrupted => {}
                _ = terminated.recv() => {}
            },
            Err(_) => interrupted.await,
        }
    }
    #[cfg(not(unix))]
    interrupted.await;
}
