//! `threadkeep slack simulate`: a channel in the terminal, with the real Slack door, a simulated Slack and a simulated cluster.

mod session;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use threadkeep::agent::plugin::{AssistantParts, PluginSettings};
use threadkeep::{Agent, Memory, MemoryOptions};
use threadkeep_server::{Server, ServerOptions};
use threadkeep_simulator::cluster::{Cluster, World};
use threadkeep_simulator::slack::{App as SlackApp, BOT_TOKEN, SIGNING_SECRET, Slack};
use threadkeep_slack::{EVENTS_PATH, EventSource, INTERACTIONS_PATH, SlackOptions};
use tokio::net::TcpListener;

use crate::assistants::{OPERATOR, operator_rules};
use crate::commands::chat::lines::{Line, Reader};
use crate::commands::{App, Status};
use crate::failure::Failure;
use crate::models;
use crate::store::{Location, Purpose};
use session::{Next, Session};

/// The objects of the cluster that is simulated if no folder is given.
const WORLD: &str = include_str!("world/cluster.json");
const LOGS: [(&str, &str); 3] = [
    ("prod/web-6d4b75cb6d-hk2lp", include_str!("world/web.log")),
    ("prod/cache-59d7bfc8d4-q4z8p", include_str!("world/cache.log")),
    ("prod/cache-59d7bfc8d4-q4z8p.previous", include_str!("world/cache.previous.log")),
];

/// Simulate a Slack channel in the terminal, with a cluster loaded from a folder
///
/// Starts a local Slack and a local Kubernetes API server, and connects the server's Slack door and the Kubernetes assistant to
/// them. A line is a message of the current user; /help lists what else users can do. Nothing leaves this machine, except
/// requests to a configured language model.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep slack simulate
  threadkeep slack simulate ./cluster              objects in YAML or JSON, and logs/NAMESPACE/POD.log
  threadkeep slack simulate --keep                 remember the conversation in the store

In the channel: /as USER, /approve, /deny, /react EMOJI, /thread, /channel, /edit TEXT, /delete, /help, /quit")]
pub(crate) struct Arguments {
    /// A folder with the objects of the cluster [default: a small cluster with problems]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Keep the conversation in the store given by --store, in the tenant T0LOCAL [default: a temporary SQLite file]
    #[arg(long)]
    keep: bool,
    /// The model: offline, PROVIDER, PROVIDER:MODEL
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let world = world(&arguments)?;
    let cluster = Cluster::start(world).await.context("cannot start the local cluster")?;
    for reason in cluster.refused() {
        app.output.note(format_args!("not loaded: {reason}"));
    }
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, cluster.kubeconfig()).context("cannot write the kubeconfig")?;
    let memory = match arguments.keep {
        true => app.open(Purpose::CreateOrWrite).await?.memory,
        false => {
            let store = format!("sqlite:{}", folder.path().join("simulation.db").display());
            app.open_at(&Location::find(Some(&store))?, Purpose::CreateOrWrite).await?.memory
        }
    };
    let slack = Slack::start().await.context("cannot start the local Slack")?;
    let server = server(app, &arguments, &memory, &kubeconfig.display().to_string(), &slack)?;
    let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot open a port")?;
    let url = format!("http://{}", listener.local_addr()?);
    let endpoints = SlackApp::at(&url, EVENTS_PATH, INTERACTIONS_PATH);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(listener, async { drop(stopped.await) }));
    let status = run_lines(app, Session::new(slack, endpoints)).await;
    drop(stop);
    drop(serving.await);
    status
}

fn world(arguments: &Arguments) -> Result<World> {
    if let Some(folder) = &arguments.folder {
        let world = World::read(folder).map_err(|error| Failure::user_error(error.to_string()))?;
        if world.objects.is_empty() {
            let failure = Failure::user_error(format!("{} contains no objects", folder.display()));
            return Err(failure
                .hint("add YAML or JSON files with Kubernetes objects, such as the output of `kubectl get all -o yaml`")
                .into());
        }
        return Ok(world);
    }
    let objects = serde_json::from_str(WORLD).context("the built-in cluster is invalid")?;
    let logs = LOGS.iter().map(|(key, log)| ((*key).to_owned(), (*log).to_owned())).collect();
    Ok(World { objects, logs })
}

fn server(app: &App, arguments: &Arguments, memory: &Memory, kubeconfig: &str, slack: &Slack) -> Result<Server> {
    let settings = &app.settings;
    // The assistant uses the simulated cluster, whatever the settings specify.
    let names_context = |name: &str| {
        OPERATOR.settings.iter().any(|setting| setting.variable == name && setting.key.ends_with(".context"))
    };
    let value = |name: &str| match name {
        "KUBECONFIG" => Some(kubeconfig.to_owned()),
        name if names_context(name) => None,
        name => settings.get(name),
    };
    let plugin_settings = PluginSettings::new(OPERATOR.settings, value, None);
    let retention = (OPERATOR.retention)(&plugin_settings).map_err(Failure::from)?;
    let agent_memory = memory.with_options(MemoryOptions { retention, ..memory.options().clone() })?;
    let model = models::chat_model(arguments.model.as_deref(), settings)?;
    let parts = AssistantParts { memory: agent_memory.clone(), model, embedder: None, tool_sources: Vec::new() };
    let assistant = (OPERATOR.make)(parts, &plugin_settings).map_err(Failure::from)?;
    let assistants = Server::assistants();
    assistants.put(Agent::with_assistant(agent_memory, assistant))?;
    let rules = operator_rules(settings)?;
    let source = EventSource::Requests { signing_secret: SIGNING_SECRET.to_owned() };
    let options = SlackOptions {
        api_url: slack.api_url(),
        answers_all: true,
        remembers: rules.remembers,
        requester_may_approve: rules.requester_may_approve,
        post_interval: Duration::ZERO,
        // The terminal prints answers when they are complete.
        growth_interval: Duration::from_secs(86_400),
        ..SlackOptions::new(source, vec![BOT_TOKEN.to_owned()], OPERATOR.name)
    };
    let server = Server::new(memory.clone(), ServerOptions::default()).with_assistants(assistants);
    Ok(server.with_door(super::open_door(options)?)?)
}

/// Reads and executes lines until the end of the input.
async fn run_lines(app: &App, mut session: Session) -> Result<Status> {
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    app.output.line(session.welcome())?;
    loop {
        let line = tokio::task::spawn_blocking(move || Reader::new(is_terminal).and_then(|mut reader| reader.read()));
        let line = match line.await?? {
            Line::Text(line) => line,
            Line::Interrupted => return Ok(Status::Interrupted),
            Line::End => return Ok(Status::Done),
        };
        if line.trim().is_empty() {
            continue;
        }
        if !is_terminal {
            app.output.line(session.echo(line.trim()))?;
        }
        match session.act(line.trim()).await {
            Next::Lines(lines) => {
                for line in lines {
                    app.output.line(line)?;
                }
            }
            Next::End => return Ok(Status::Done),
        }
    }
}
