//! Parses events and interactions into jobs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::markup::to_plain;

/// The maximum length of a message, in characters; it equals Slack's limit.
const MAX_TEXT: usize = 40_000;

/// Returns the key of a conversation. Messages outside of threads share the key of their channel; each thread has its own.
///
/// ```
/// use threadkeep_slack::conversation_key;
///
/// assert_eq!(conversation_key("C123456", None), "C123456");
/// assert_eq!(conversation_key("C123456", Some("1234567890.123456")), "C123456:1234567890.123456");
/// ```
#[must_use]
pub fn conversation_key(channel: &str, thread_ts: Option<&str>) -> String {
    match thread_ts {
        Some(thread_ts) => format!("{channel}:{thread_ts}"),
        None => channel.to_owned(),
    }
}

/// A channel, or a thread in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) team: String,
    pub(crate) channel: String,
    /// The timestamp of the thread's root message; `None` outside of threads.
    pub(crate) thread_ts: Option<String>,
}

impl Place {
    pub(crate) fn key(&self) -> String {
        conversation_key(&self.channel, self.thread_ts.as_deref())
    }
}

/// The work that a request causes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Job {
    /// Answers a message to the bot.
    Answer { place: Place, ts: String, user: String, text: String },
    /// Approves or denies a request.
    Decide { team: String, channel: String, ts: String, user: String, user_team: Option<String>, approves: bool },
    /// Updates a message that its author edited.
    Edited { team: String, channel: String, ts: String, text: String },
    /// Erases a message that its author deleted.
    Deleted { team: String, channel: String, ts: String },
}

impl Job {
    pub(crate) fn team(&self) -> &str {
        match self {
            Self::Answer { place, .. } => &place.team,
            Self::Decide { team, .. } | Self::Edited { team, .. } | Self::Deleted { team, .. } => team,
        }
    }

    /// Returns the name of the queue. Jobs in one queue run sequentially.
    pub(crate) fn queue(&self) -> String {
        match self {
            Self::Answer { place, .. } => format!("{} {}", place.team, place.key()),
            Self::Decide { team, channel, .. }
            | Self::Edited { team, channel, .. }
            | Self::Deleted { team, channel, .. } => {
                format!("{team} {channel}")
            }
        }
    }
}

/// A job and its deduplication key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) key: String,
    pub(crate) job: Job,
}

/// The context for parsing a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParseContext<'a> {
    /// The user id of the bot, if known.
    pub(crate) bot_user: Option<&'a str>,
    pub(crate) answers_all: bool,
    /// Whether the bot has already answered in the message's thread.
    pub(crate) is_own_thread: bool,
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value[name].as_str().filter(|text| !text.is_empty())
}

/// Returns the channel or thread of a message; `None` if it contains no channel. The root message of a thread belongs
/// to the channel.
pub(crate) fn read_place(envelope: &Value) -> Option<Place> {
    let (team, event) = (text(envelope, "team_id")?, &envelope["event"]);
    let (channel, ts) = (text(event, "channel")?, text(event, "ts")?);
    let thread_ts = text(event, "thread_ts").filter(|thread_ts| *thread_ts != ts);
    Some(Place { team: team.to_owned(), channel: channel.to_owned(), thread_ts: thread_ts.map(str::to_owned) })
}

/// Returns the user id of the bot that an event was sent to.
pub(crate) fn bot_user(envelope: &Value) -> Option<&str> {
    let authorizations = envelope["authorizations"].as_array()?;
    authorizations.iter().find(|one| one["is_bot"] == true).and_then(|one| one["user_id"].as_str())
}

/// Parses an event; `None` if it needs no work.
pub(crate) fn read_event(envelope: &Value, context: ParseContext<'_>) -> Option<Accepted> {
    let event = &envelope["event"];
    let event_id = text(envelope, "event_id")?;
    match text(event, "type")? {
        "message" | "app_mention" => read_message(envelope, event_id, context),
        "reaction_added" => {
            let item = &event["item"];
            let user = text(event, "user").filter(|user| Some(*user) != context.bot_user)?;
            let approves = decision(text(event, "reaction")?)?;
            let job = Job::Decide {
                team: text(envelope, "team_id")?.to_owned(),
                channel: text(item, "channel")?.to_owned(),
                ts: text(item, "ts")?.to_owned(),
                user: user.to_owned(),
                user_team: None,
                approves,
            };
            Some(Accepted { key: event_id.to_owned(), job })
        }
        _ => None,
    }
}

fn read_message(envelope: &Value, event_id: &str, context: ParseContext<'_>) -> Option<Accepted> {
    let event = &envelope["event"];
    let team = text(envelope, "team_id")?.to_owned();
    if !event["bot_id"].is_null() {
        return None;
    }
    match text(event, "subtype") {
        None | Some("thread_broadcast" | "file_share") => {}
        Some("message_changed") => {
            let message = &event["message"];
            let is_by_bot = !message["bot_id"].is_null();
            let is_same = message["text"] == event["previous_message"]["text"];
            let job = Job::Edited {
                team,
                channel: text(event, "channel")?.to_owned(),
                ts: text(message, "ts")?.to_owned(),
                text: without_mention(&to_plain(text(message, "text")?), context.bot_user),
            };
            return (!is_by_bot && !is_same).then(|| Accepted { key: event_id.to_owned(), job });
        }
        Some("message_deleted") => {
            let job = Job::Deleted {
                team,
                channel: text(event, "channel")?.to_owned(),
                ts: text(event, "deleted_ts")?.to_owned(),
            };
            return Some(Accepted { key: event_id.to_owned(), job });
        }
        Some(_) => return None,
    }
    let user = text(event, "user").filter(|user| Some(*user) != context.bot_user)?;
    let place = read_place(envelope)?;
    let raw = text(event, "text")?;
    let mentions =
        context.bot_user.is_some_and(|bot| raw.contains(&format!("<@{bot}>")) || raw.contains(&format!("<@{bot}|")));
    let is_direct = event["channel_type"] == "im" || place.channel.starts_with('D');
    let is_mention = event["type"] == "app_mention" || mentions;
    if !(is_mention || is_direct || context.answers_all || context.is_own_thread) {
        return None;
    }
    let question = without_mention(&to_plain(raw), context.bot_user);
    let question: String = question.chars().take(MAX_TEXT).collect();
    if question.is_empty() {
        return None;
    }
    let ts = text(event, "ts")?.to_owned();
    // Slack sends both `message` and `app_mention` for a mention; they share this key.
    let key = message_key(&place.channel, &ts);
    Some(Accepted { key, job: Job::Answer { place, ts, user: user.to_owned(), text: question } })
}

/// Returns the key of a message in the inbox.
pub(crate) fn message_key(channel: &str, ts: &str) -> String {
    format!("message {channel} {ts}")
}

/// Removes mentions of the bot. If the bot's user id is unknown, removes a leading mention.
fn without_mention(text: &str, bot_user: Option<&str>) -> String {
    let mut text = text.to_owned();
    if let Some(bot) = bot_user {
        text = text.replace(&format!("<@{bot}>"), " ");
    } else if let Some(rest) = text.trim_start().strip_prefix("<@")
        && let Some((_, rest)) = rest.split_once('>')
    {
        text = rest.to_owned();
    }
    text.trim().to_owned()
}

/// Returns whether an emoji approves (`true`) or denies (`false`); `None` for other emoji. Skin tones are ignored.
fn decision(emoji: &str) -> Option<bool> {
    match emoji.split("::").next().unwrap_or_default() {
        "white_check_mark" | "heavy_check_mark" | "+1" | "thumbsup" => Some(true),
        "x" | "no_entry" | "-1" | "thumbsdown" => Some(false),
        _ => None,
    }
}

/// The action id of the button that approves.
pub(crate) const APPROVE: &str = "threadkeep_approve";
/// The action id of the button that denies.
pub(crate) const DENY: &str = "threadkeep_deny";

/// Parses a button press; `None` if the button does not belong to an approval.
pub(crate) fn read_interaction(payload: &Value) -> Option<Accepted> {
    if payload["type"] != "block_actions" {
        return None;
    }
    let action = payload["actions"].as_array()?.first()?;
    let approves = match action["action_id"].as_str()? {
        APPROVE => true,
        DENY => false,
        _ => return None,
    };
    let (container, user) = (&payload["container"], &payload["user"]);
    let (ts, channel) = (text(container, "message_ts")?, text(container, "channel_id")?);
    let user_id = text(user, "id")?;
    let job = Job::Decide {
        team: text(&payload["team"], "id")?.to_owned(),
        channel: channel.to_owned(),
        ts: ts.to_owned(),
        user: user_id.to_owned(),
        user_team: text(user, "team_id").map(str::to_owned),
        approves,
    };
    let action_ts = text(action, "action_ts").unwrap_or_default();
    Some(Accepted { key: format!("button {channel} {ts} {user_id} {action_ts}"), job })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CONTEXT: ParseContext<'static> =
        ParseContext { bot_user: Some("U0BOT"), answers_all: false, is_own_thread: false };

    fn envelope(event: &Value) -> Value {
        json!({ "team_id": "T1", "event_id": "Ev1", "event": event })
    }

    fn message(text: &str) -> Value {
        json!({ "type": "message", "channel": "C1", "user": "U1", "text": text, "ts": "1.1", "channel_type": "channel" })
    }

    fn key_of(event: &Value) -> Option<String> {
        read_event(&envelope(event), CONTEXT).map(|accepted| match accepted.job {
            Job::Answer { place, .. } => place.key(),
            other => format!("{other:?}"),
        })
    }

    // S4.04, S4.05, S4.07
    #[test]
    fn a_message_outside_of_a_thread_belongs_to_its_channel() {
        let mut event = message("<@U0BOT> list pods");
        assert_eq!(key_of(&event).as_deref(), Some("C1"));
        event["thread_ts"] = json!("1.1");
        assert_eq!(key_of(&event).as_deref(), Some("C1"), "the root of a thread");
        event["thread_ts"] = json!("0.9");
        assert_eq!(key_of(&event).as_deref(), Some("C1:0.9"));
        event["subtype"] = json!("thread_broadcast");
        assert_eq!(key_of(&event).as_deref(), Some("C1:0.9"));
    }

    // S4.46: the mention is stripped. S4.51: both events of a mention have the same key.
    #[test]
    fn a_mention_is_stripped_and_both_of_its_events_share_a_key() {
        let accepted = read_event(&envelope(&message("<@U0BOT> list &lt;pods&gt;")), CONTEXT).unwrap();
        let mut mention = message("<@U0BOT> list &lt;pods&gt;");
        mention["type"] = json!("app_mention");
        let again = read_event(&envelope(&mention), CONTEXT).unwrap();
        assert_eq!(accepted.key, again.key);
        let Job::Answer { text, user, .. } = accepted.job else { panic!() };
        assert_eq!((&*text, &*user), ("list <pods>", "U1"));
    }

    #[test]
    fn messages_that_are_not_for_the_bot_are_ignored() {
        assert_eq!(key_of(&message("lunch?")), None);
        let mut direct = message("hello");
        direct["channel"] = json!("D1");
        assert!(key_of(&direct).is_some());
        for (name, value) in
            [("bot_id", json!("B1")), ("subtype", json!("channel_join")), ("user", json!("U0BOT")), ("text", json!(""))]
        {
            let mut event = message("<@U0BOT> hi");
            event[name] = value;
            assert_eq!(key_of(&event), None, "{name}");
        }
    }

    // S4.49
    #[test]
    fn only_some_emoji_decide() {
        let decided = |emoji: &str, user: &str| {
            let event = json!({ "type": "reaction_added", "user": user, "reaction": emoji, "item": { "type": "message", "channel": "C1", "ts": "1.2" } });
            read_event(&envelope(&event), CONTEXT)
                .map(|accepted| matches!(accepted.job, Job::Decide { approves: true, .. }))
        };
        for (emoji, expected) in [
            ("white_check_mark", Some(true)),
            ("+1::skin-tone-3", Some(true)),
            ("x", Some(false)),
            ("-1", Some(false)),
            ("eyes", None),
            ("tada", None),
        ] {
            assert_eq!(decided(emoji, "U2"), expected, "{emoji}");
        }
        assert_eq!(decided("white_check_mark", "U0BOT"), None, "the bot's own reaction");
    }
}
