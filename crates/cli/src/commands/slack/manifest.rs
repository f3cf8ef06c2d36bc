use anyhow::Result;
use serde_json::{Value, json};
use threadkeep_slack::{EVENTS_PATH, INTERACTIONS_PATH};

use crate::commands::{App, Status};
use crate::failure::Failure;

/// The permissions of the bot.
const SCOPES: [&str; 11] = [
    "app_mentions:read",
    "channels:history",
    "chat:write",
    "groups:history",
    "im:history",
    "im:read",
    "im:write",
    "metadata.message:read",
    "reactions:read",
    "reactions:write",
    "users:read",
];

/// The events that the bot gets.
const EVENTS: [&str; 5] = ["app_mention", "message.channels", "message.groups", "message.im", "reaction_added"];

/// Print the manifest of the Slack app, to paste at api.slack.com/apps
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  threadkeep slack manifest https://bot.example.com > manifest.json")]
pub(crate) struct Arguments {
    /// The URL at which Slack reaches this server, with https
    #[arg(value_name = "URL")]
    url: String,
    /// The name of the app and its bot
    #[arg(long, value_name = "NAME", default_value = "threadkeep")]
    name: String,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Status> {
    let url = arguments.url.trim_end_matches('/');
    if !url.starts_with("https://") || url.len() <= "https://".len() || url.contains(char::is_whitespace) {
        let failure = Failure::usage(format!("{url} is not an https URL"));
        return Err(failure
            .hint("Slack sends events only to https; give the URL of the proxy in front of the server")
            .into());
    }
    let manifest = manifest(url, &arguments.name);
    if app.output.is_json() {
        app.output.json(&manifest)?;
    } else {
        app.output.line(serde_json::to_string_pretty(&manifest)?)?;
    }
    Ok(Status::Done)
}

fn manifest(url: &str, name: &str) -> Value {
    json!({
        "display_information": { "name": name, "description": "Operates systems, and changes nothing without an approval" },
        "features": {
            "app_home": { "home_tab_enabled": false, "messages_tab_enabled": true, "messages_tab_read_only_enabled": false },
            "bot_user": { "display_name": name, "always_online": true },
        },
        "oauth_config": { "scopes": { "bot": SCOPES } },
        "settings": {
            "event_subscriptions": { "request_url": format!("{url}{EVENTS_PATH}"), "bot_events": EVENTS },
            "interactivity": { "is_enabled": true, "request_url": format!("{url}{INTERACTIONS_PATH}") },
            "org_deploy_enabled": false,
            "socket_mode_enabled": false,
            "token_rotation_enabled": false,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_names_both_endpoints_and_the_events() {
        let manifest = manifest("https://bot.example.com", "ops");
        let settings = &manifest["settings"];
        assert_eq!(settings["event_subscriptions"]["request_url"], "https://bot.example.com/slack/events");
        assert_eq!(settings["interactivity"]["request_url"], "https://bot.example.com/slack/interactions");
        assert!(manifest["oauth_config"]["scopes"]["bot"].as_array().unwrap().contains(&json!("chat:write")));
    }
}
