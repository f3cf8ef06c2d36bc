use anyhow::Result;
use serde_json::{Value, json};
use threadkeep_slack::{EVENTS_PATH, INTERACTIONS_PATH};

use crate::commands::{App, Status};
use crate::failure::Failure;

/// The permissions of the bot.
const SCOPES: [&str; 12] = [
    "app_mentions:read",
    "channels:history",
    "chat:write",
    "files:write",
    "groups:history",
    "im:history",
    "im:read",
    "im:write",
    "metadata.message:read",
    "reactions:read",
    "reactions:write",
    "users:read",
];

/// The events that the bot subscribes to.
const EVENTS: [&str; 5] = ["app_mention", "message.channels", "message.groups", "message.im", "reaction_added"];

/// Print the manifest of the Slack app, to paste at api.slack.com/apps
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  threadkeep slack manifest https://bot.example.com > manifest.json
  threadkeep slack manifest --socket > manifest.json        for a server that Slack cannot reach")]
pub(crate) struct Arguments {
    /// The https URL at which Slack reaches this server
    #[arg(value_name = "URL", required_unless_present = "socket")]
    url: Option<String>,
    /// Use Socket Mode: the server connects to Slack, and needs no URL
    #[arg(long, conflicts_with = "url")]
    socket: bool,
    /// The name of the app and its bot
    #[arg(long, value_name = "NAME", default_value = "threadkeep")]
    name: String,
}

pub(crate) fn run(app: &App, arguments: &Arguments) -> Result<Status> {
    let url = arguments.url.as_deref().map(|url| url.trim_end_matches('/'));
    if let Some(url) = url
        && (!url.starts_with("https://") || url.len() <= "https://".len() || url.contains(char::is_whitespace))
    {
        let failure = Failure::usage(format!("{url} is not an https URL"));
        return Err(failure
            .hint("Slack sends events only over https; pass the URL of the proxy in front of the server, or --socket")
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

/// Returns the manifest of an app with endpoints at a URL, or in Socket Mode.
fn manifest(url: Option<&str>, name: &str) -> Value {
    let mut events = json!({ "bot_events": EVENTS });
    let mut interactivity = json!({ "is_enabled": true });
    if let Some(url) = url {
        events["request_url"] = json!(format!("{url}{EVENTS_PATH}"));
        interactivity["request_url"] = json!(format!("{url}{INTERACTIONS_PATH}"));
    }
    json!({
        "display_information": { "name": name, "description": "Operates systems, and changes nothing without approval" },
        "features": {
            "app_home": { "home_tab_enabled": false, "messages_tab_enabled": true, "messages_tab_read_only_enabled": false },
            "bot_user": { "display_name": name, "always_online": true },
        },
        "oauth_config": { "scopes": { "bot": SCOPES } },
        "settings": {
            "event_subscriptions": events,
            "interactivity": interactivity,
            "org_deploy_enabled": false,
            "socket_mode_enabled": url.is_none(),
            "token_rotation_enabled": false,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_names_both_endpoints_and_the_events() {
        let manifest = manifest(Some("https://bot.example.com"), "ops");
        let settings = &manifest["settings"];
        assert_eq!(settings["event_subscriptions"]["request_url"], "https://bot.example.com/slack/events");
        assert_eq!(settings["interactivity"]["request_url"], "https://bot.example.com/slack/interactions");
        assert!(manifest["oauth_config"]["scopes"]["bot"].as_array().unwrap().contains(&json!("chat:write")));
    }

    #[test]
    fn an_app_in_socket_mode_has_no_url() {
        let manifest = manifest(None, "ops");
        assert_eq!(manifest["settings"]["socket_mode_enabled"], true);
        assert!(!manifest.to_string().contains("request_url"));
    }
}
