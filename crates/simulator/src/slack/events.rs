//! Actions of users, which are sent to the app.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::Client;
use ring::hmac;
use serde_json::{Value, json};

use super::{BOT_USER, Message, SIGNING_SECRET, Slack, TEAM};
use crate::lock;

/// The maximum number of deliveries of an event that is not acknowledged.
pub(super) const ATTEMPTS: u32 = 4;
/// The time within which the app must acknowledge.
pub(super) const ACKNOWLEDGE_WITHIN: Duration = Duration::from_secs(3);

/// The app that receives the events.
#[derive(Clone, Debug)]
pub enum App {
    /// An app that receives requests.
    Endpoints {
        /// The URL for events.
        events: String,
        /// The URL for pressed buttons.
        interactions: String,
    },
    /// An app in Socket Mode, which has connected to this workspace.
    SocketMode,
}

impl App {
    /// Returns the app of a server whose endpoints have these paths.
    #[must_use]
    pub fn at(server: &str, events: &str, interactions: &str) -> Self {
        Self::Endpoints { events: format!("{server}{events}"), interactions: format!("{server}{interactions}") }
    }

    /// Returns the URL for events. It is empty in Socket Mode.
    #[must_use]
    pub fn events_url(&self) -> &str {
        match self {
            Self::Endpoints { events, .. } => events,
            Self::SocketMode => "",
        }
    }

    /// Returns the URL for pressed buttons. It is empty in Socket Mode.
    #[must_use]
    pub fn interactions_url(&self) -> &str {
        match self {
            Self::Endpoints { interactions, .. } => interactions,
            Self::SocketMode => "",
        }
    }
}

/// How a request was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The status of the last attempt; `None` if there was no answer.
    pub status: Option<u16>,
    /// The body of the last answer.
    pub body: String,
    /// The number of attempts.
    pub attempts: u32,
}

/// Returns the signature of a body: `v0=` and the HMAC-SHA256 of `v0:TIMESTAMP:BODY`.
#[must_use]
pub fn sign(secret: &str, timestamp: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("v0:{timestamp}:{body}").as_bytes());
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("v0={digits}")
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Slack {
    /// Adds a message by a user, and returns the message. No event is sent: see [`Slack::say`].
    pub fn write(&self, channel: &str, user: &str, text: &str, thread_ts: Option<&str>) -> Message {
        let mut workspace = lock(&self.shared.workspace);
        let message = Message {
            channel: channel.to_owned(),
            ts: workspace.next_ts(),
            thread_ts: thread_ts.map(str::to_owned),
            user: user.to_owned(),
            text: text.to_owned(),
            blocks: Value::Null,
            metadata: Value::Null,
            files: Vec::new(),
            is_edited: false,
        };
        workspace.messages.push(message.clone());
        drop(workspace);
        self.shared.notify();
        message
    }

    /// A user writes a message. The app receives `message`, and also `app_mention` if the text mentions the bot, as
    /// with the real Slack.
    pub async fn say(&self, app: &App, channel: &str, user: &str, text: &str, thread_ts: Option<&str>) -> Message {
        let message = self.write(channel, user, text, thread_ts);
        self.send_event(app, &message_event(&message, "message")).await;
        if text.contains(&format!("<@{BOT_USER}>")) && !channel.starts_with('D') {
            self.send_event(app, &message_event(&message, "app_mention")).await;
        }
        message
    }

    /// A user reacts to a message with an emoji.
    pub async fn react(&self, app: &App, channel: &str, ts: &str, user: &str, emoji: &str) -> Delivery {
        let event = json!({
            "type": "reaction_added", "user": user, "reaction": emoji,
            "item": { "type": "message", "channel": channel, "ts": ts }, "item_user": BOT_USER, "event_ts": self.tick(),
        });
        self.send_event(app, &event).await
    }

    /// A user changes the text of a message.
    pub async fn edit(&self, app: &App, channel: &str, ts: &str, text: &str) -> Delivery {
        let (mut before, mut after) = (Value::Null, Value::Null);
        for message in &mut lock(&self.shared.workspace).messages {
            if message.channel == channel && message.ts == ts {
                before = message_event(message, "message");
                text.clone_into(&mut message.text);
                message.is_edited = true;
                after = message_event(message, "message");
            }
        }
        let event = json!({
            "type": "message", "subtype": "message_changed", "channel": channel, "ts": self.tick(), "hidden": true,
            "message": after, "previous_message": before, "channel_type": "channel",
        });
        self.send_event(app, &event).await
    }

    /// A user deletes a message.
    pub async fn erase(&self, app: &App, channel: &str, ts: &str) -> Delivery {
        let mut previous = Value::Null;
        lock(&self.shared.workspace).messages.retain(|message| {
            let is_deleted = message.channel == channel && message.ts == ts;
            if is_deleted {
                previous = message_event(message, "message");
            }
            !is_deleted
        });
        let event = json!({
            "type": "message", "subtype": "message_deleted", "channel": channel, "ts": self.tick(), "hidden": true,
            "deleted_ts": ts, "previous_message": previous, "channel_type": "channel",
        });
        self.send_event(app, &event).await
    }

    /// A user presses a button of a message.
    pub async fn press(&self, app: &App, message: &Message, user: &str, action: &str) -> Delivery {
        let buttons = message
            .blocks
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|block| block["elements"].as_array().into_iter().flatten());
        let button = buttons.into_iter().find(|button| button["action_id"] == action).cloned().unwrap_or_default();
        let payload = json!({
            "type": "block_actions", "user": { "id": user, "username": user.to_lowercase(), "team_id": TEAM },
            "team": { "id": TEAM, "domain": "local" }, "api_app_id": "A0LOCAL", "trigger_id": "1.2.abc",
            "container": { "type": "message", "message_ts": message.ts, "channel_id": message.channel, "is_ephemeral": false },
            "channel": { "id": message.channel, "name": "ops" }, "message": { "ts": message.ts, "text": message.text },
            "actions": [{
                "type": "button", "action_id": button["action_id"], "block_id": "b", "value": button["value"],
                "text": button["text"], "action_ts": self.tick(),
            }],
        });
        let App::Endpoints { interactions, .. } = app else {
            return self.send_envelope("interactive", &payload).await;
        };
        let body =
            form_urlencoded::Serializer::new(String::new()).append_pair("payload", &payload.to_string()).finish();
        self.post(interactions, &body, "application/x-www-form-urlencoded", None).await
    }

    /// Sends an event, and redelivers it if it is not acknowledged.
    pub async fn send_event(&self, app: &App, event: &Value) -> Delivery {
        let App::Endpoints { events, .. } = app else {
            return self.send_envelope("events_api", &self.payload(event)).await;
        };
        let body = self.envelope(event);
        let mut delivery = self.post(events, &body, "application/json", None).await;
        while delivery.status != Some(200) && delivery.attempts < ATTEMPTS {
            let retry = delivery.attempts;
            delivery = self.post(events, &body, "application/json", Some(retry)).await;
            delivery.attempts = retry + 1;
        }
        delivery
    }

    /// Returns the body of an event, with a new event id.
    #[must_use]
    pub fn envelope(&self, event: &Value) -> String {
        self.payload(event).to_string()
    }

    fn payload(&self, event: &Value) -> Value {
        let number = {
            let mut workspace = lock(&self.shared.workspace);
            workspace.events += 1;
            workspace.events
        };
        json!({
            "token": "unused", "team_id": TEAM, "api_app_id": "A0LOCAL", "type": "event_callback",
            "event_id": format!("Ev{number:08}"), "event_time": unix_seconds(), "event": event,
            "authorizations": [{ "enterprise_id": null, "team_id": TEAM, "user_id": BOT_USER, "is_bot": true }],
        })
    }

    /// Sends a body with its signature, once.
    pub async fn post(&self, url: &str, body: &str, content_type: &str, retry: Option<u32>) -> Delivery {
        let timestamp = unix_seconds().to_string();
        let Ok(client) = Client::builder().no_proxy().timeout(ACKNOWLEDGE_WITHIN).build() else {
            return Delivery { status: None, body: String::new(), attempts: 1 };
        };
        let mut request = client
            .post(url)
            .header("content-type", content_type)
            .header("x-slack-request-timestamp", &timestamp)
            .header("x-slack-signature", sign(SIGNING_SECRET, &timestamp, body));
        if let Some(retry) = retry {
            request = request.header("x-slack-retry-num", retry).header("x-slack-retry-reason", "http_timeout");
        }
        match request.body(body.to_owned()).send().await {
            Ok(response) => {
                let status = Some(response.status().as_u16());
                Delivery { status, body: response.text().await.unwrap_or_default(), attempts: 1 }
            }
            Err(_) => Delivery { status: None, body: String::new(), attempts: 1 },
        }
    }

    fn tick(&self) -> String {
        lock(&self.shared.workspace).next_ts()
    }
}

fn message_event(message: &Message, kind: &str) -> Value {
    let mut event = json!({
        "type": kind, "channel": message.channel, "user": message.user, "text": message.text, "ts": message.ts, "team": TEAM,
        "event_ts": message.ts, "client_msg_id": format!("local-{}", message.ts),
    });
    if kind == "message" {
        event["channel_type"] = json!(if message.channel.starts_with('D') { "im" } else { "channel" });
    }
    if let Some(thread_ts) = &message.thread_ts {
        event["thread_ts"] = json!(thread_ts);
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    // S4.51
    #[test]
    fn a_signature_covers_the_timestamp_and_the_bytes_of_the_body() {
        // The example of Slack's documentation.
        let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&\
                    channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&\
                    response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&\
                    trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let signature = sign("8f742231b10e8888abcd99yyyzzz85a5", "1531420618", body);
        assert_eq!(signature, "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503");
    }
}
