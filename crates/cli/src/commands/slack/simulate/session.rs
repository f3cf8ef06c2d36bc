//! What users do in the simulated channel.

use std::time::Duration;

use threadkeep_simulator::slack::{App, Message, Slack};

use crate::assistants::OPERATOR;

/// The channel of the simulation.
const CHANNEL: &str = "C0OPS";
/// How long to wait for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// How long to wait for the effect of a reaction, which may have none.
const REACTION_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the session waits for another request after one.
const NEXT_REQUEST_TIMEOUT: Duration = Duration::from_millis(1500);

const HELP: &str = "A line is a message of the current user in #ops.
/as USER       write as another user, such as bob
/approve       react with ✅ to the newest request; /deny reacts with ❌
/react EMOJI   react with another emoji, such as eyes
/thread        reply in the thread of your last message; /channel returns to the channel
/edit TEXT     change your last message; /delete deletes it
/quit          end";

/// What happens after a line of input.
pub(super) enum Next {
    /// Lines to print.
    Lines(Vec<String>),
    /// The end of the simulation.
    End,
}

/// The state of the simulation.
pub(super) struct Session {
    slack: Slack,
    app: App,
    user: String,
    thread: Option<String>,
    /// The number of messages that were printed.
    printed: usize,
    /// The last message of a user.
    last: Option<Message>,
}

impl Session {
    pub(super) fn new(slack: Slack, app: App) -> Self {
        Self { slack, app, user: "alice".to_owned(), thread: None, printed: 0, last: None }
    }

    pub(super) fn welcome(&self) -> String {
        format!(
            "#ops, with {} and a local cluster. You are {}. /help lists the commands; try “anything crashing in prod?”",
            OPERATOR.name, self.user
        )
    }

    /// Formats a line of input as a line of the transcript.
    pub(super) fn echo(&self, line: &str) -> String {
        let indent = if self.thread.is_some() { "  ↳ " } else { "" };
        format!("\n{indent}{}: {line}", self.user)
    }

    fn user_id(&self) -> String {
        format!("U0{}", self.user.to_uppercase())
    }

    /// Executes a line of input.
    pub(super) async fn act(&mut self, line: &str) -> Next {
        let (command, rest) = line.split_once(' ').map_or((line, ""), |(command, rest)| (command, rest.trim()));
        match command {
            "/quit" | "/exit" => Next::End,
            "/help" => Next::Lines(vec![HELP.to_owned()]),
            "/as" => Next::Lines(vec![self.change_user(rest)]),
            "/channel" => {
                self.thread = None;
                Next::Lines(vec!["(in the channel)".to_owned()])
            }
            "/thread" => Next::Lines(vec![self.open_thread()]),
            "/approve" => self.react("white_check_mark").await,
            "/deny" => self.react("x").await,
            "/react" if !rest.is_empty() => self.react(rest.trim_matches(':')).await,
            "/edit" if !rest.is_empty() => self.edit(rest).await,
            "/delete" => self.delete().await,
            command if command.starts_with('/') => {
                Next::Lines(vec![format!("unknown command {command}; /help lists the commands")])
            }
            _ => self.say(line).await,
        }
    }

    fn change_user(&mut self, name: &str) -> String {
        let is_valid = (1..=20).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric());
        if !is_valid {
            return "a user name consists of letters and digits: /as bob".to_owned();
        }
        self.user = name.to_lowercase();
        format!("(now {})", self.user)
    }

    fn open_thread(&mut self) -> String {
        match &self.last {
            Some(last) => {
                self.thread = Some(last.thread_ts.clone().unwrap_or_else(|| last.ts.clone()));
                "(in a thread)".to_owned()
            }
            None => "write a message first; /thread replies to it".to_owned(),
        }
    }

    async fn say(&mut self, text: &str) -> Next {
        let text = text.replace("@bot", "<@U0BOT>").replace(&format!("@{}", OPERATOR.name), "<@U0BOT>");
        self.printed = self.slack.messages().len() + 1;
        let message = self.slack.say(&self.app, CHANNEL, &self.user_id(), &text, self.thread.as_deref()).await;
        self.last = Some(message);
        self.new_posts(ANSWER_TIMEOUT, "(no answer)").await
    }

    async fn react(&mut self, emoji: &str) -> Next {
        let requests = self.slack.messages().into_iter().rev().filter(|message| message.is_from_bot());
        let mut requests = requests.filter(has_buttons);
        let Some(request) = requests.next() else { return Next::Lines(vec!["there is no request yet".to_owned()]) };
        self.printed = self.slack.messages().len();
        self.slack.react(&self.app, CHANNEL, &request.ts, &self.user_id(), emoji).await;
        self.new_posts(REACTION_TIMEOUT, "(nothing happened)").await
    }

    async fn edit(&mut self, text: &str) -> Next {
        let Some(last) = self.last.clone() else { return Next::Lines(vec!["there is no message yet".to_owned()]) };
        self.slack.edit(&self.app, CHANNEL, &last.ts, text).await;
        Next::Lines(vec!["(edited)".to_owned()])
    }

    async fn delete(&mut self) -> Next {
        let Some(last) = self.last.take() else { return Next::Lines(vec!["there is no message yet".to_owned()]) };
        self.slack.erase(&self.app, CHANNEL, &last.ts).await;
        Next::Lines(vec!["(deleted)".to_owned()])
    }

    /// Waits for posts of the bot, and returns them.
    async fn new_posts(&mut self, timeout: Duration, nothing: &str) -> Next {
        let printed = self.printed;
        let has_post =
            self.slack.wait_for(|messages| messages.iter().skip(printed).any(Message::is_from_bot).then_some(()));
        if tokio::time::timeout(timeout, has_post).await.is_err() {
            return Next::Lines(vec![nothing.to_owned()]);
        }
        let mut messages = self.slack.messages();
        // Several requests are posted one after the other, because Slack limits the posts of a channel.
        while messages.last().is_some_and(has_buttons) {
            let count = messages.len();
            let next = self.slack.wait_for(|messages| (messages.len() > count).then_some(()));
            if tokio::time::timeout(NEXT_REQUEST_TIMEOUT, next).await.is_err() {
                break;
            }
            messages = self.slack.messages();
        }
        let posts = messages.iter().skip(printed).filter(|message| message.is_from_bot()).map(post);
        let lines = posts.collect();
        self.printed = messages.len();
        Next::Lines(lines)
    }
}

/// Whether a post is a request that no one has decided yet.
fn has_buttons(message: &Message) -> bool {
    message.blocks.to_string().contains("button")
}

/// Returns a post of the bot as it is printed: with its buttons, and indented in a thread.
fn post(message: &Message) -> String {
    let mut text = message.text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    if has_buttons(message) {
        text.push_str("\n[Approve] [Deny]");
    }
    let text = format!("{}: {text}", OPERATOR.name);
    match message.thread_ts {
        Some(_) => text.lines().map(|line| format!("  ↳ {line}")).collect::<Vec<_>>().join("\n"),
        None => text,
    }
}
