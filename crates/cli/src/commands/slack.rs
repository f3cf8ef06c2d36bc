//! Slack: the app's manifest, the door of `serve`, and a simulation without Slack and Kubernetes.

mod manifest;
mod simulate;

use anyhow::Result;
use clap::Subcommand;
use threadkeep_server::Door;
use threadkeep_slack::{EventSource, SlackOptions, door};

use super::{App, Status};
use crate::assistants::{OPERATOR, operator_rules};
use crate::failure::Failure;
use crate::settings::Settings;

/// Set up a Slack bot, or try it without Slack
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep slack simulate                      try the Kubernetes assistant in a simulated channel
  threadkeep slack simulate ./cluster            with the objects of a folder
  threadkeep slack manifest https://bot.example.com

docs/slack.md describes how to get from an empty workspace to a bot.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Manifest(manifest::Arguments),
    Simulate(simulate::Arguments),
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    match arguments.action {
        Action::Manifest(arguments) => manifest::run(app, &arguments),
        Action::Simulate(arguments) => simulate::run(app, arguments).await,
    }
}

/// Returns the options of the Slack door; `None` if no Slack app is configured.
///
/// # Errors
/// A token is missing, or the assistant's configuration is invalid.
pub(crate) fn door_options(settings: &Settings) -> Result<Option<SlackOptions>> {
    let (secret, app_token) = (settings.get("SLACK_SIGNING_SECRET"), settings.get("SLACK_APP_TOKEN"));
    let (source, tokens) = match (secret, app_token, settings.get("SLACK_BOT_TOKEN")) {
        (None, None, None) => return Ok(None),
        (_, Some(app_token), Some(tokens)) => (EventSource::SocketMode { app_token }, tokens),
        (Some(signing_secret), None, Some(tokens)) => (EventSource::Requests { signing_secret }, tokens),
        (_, _, None) | (None, None, Some(_)) => {
            let failure = Failure::usage(
                "a Slack app needs a bot token, and either its signing secret or a token for Socket Mode",
            );
            return Err(failure
                .hint("set SLACK_BOT_TOKEN, and either SLACK_SIGNING_SECRET or SLACK_APP_TOKEN; docs/slack.md says where to find them")
                .into());
        }
    };
    let tokens = tokens.split(',').map(|token| token.trim().to_owned()).filter(|token| !token.is_empty()).collect();
    let assistant = settings.get("SLACK_ASSISTANT").unwrap_or_else(|| OPERATOR.name.to_owned());
    let rules = operator_rules(settings)?;
    let default = SlackOptions::new(source, tokens, assistant);
    Ok(Some(SlackOptions {
        api_url: settings.get("SLACK_API_URL").unwrap_or_else(|| default.api_url.clone()),
        answers_all: settings.read("SLACK_ANSWER_ALL")?.unwrap_or(false),
        remembers: rules.remembers,
        requester_may_approve: rules.requester_may_approve,
        ..default
    }))
}

/// Creates the Slack door.
pub(crate) fn open_door(options: SlackOptions) -> Result<Door> {
    Ok(door(options).map_err(|error| Failure::usage(error.to_string()))?)
}
