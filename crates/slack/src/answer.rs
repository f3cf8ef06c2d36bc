//! The messages of one answer in Slack: they grow while the answer is written, and become files if there are too many.

use serde_json::{Value, json};
use threadkeep::TurnEvent;
use threadkeep_service::Error;
use threadkeep_service::turns::{TurnResult, TurnUpdate, TurnUpdates};
use tokio::time::{Instant, sleep_until};

use crate::api::{Bot, CallError};
use crate::events::Place;
use crate::markup::{close_code, split, to_slack};
use crate::worker::{WorkError, Worker};

/// The maximum length of a message, in characters. Slack displays about 4,000.
const MAX_MESSAGE: usize = 3_900;
/// The maximum number of messages of an answer. A longer answer is also uploaded as a file.
const MAX_PARTS: usize = 3;
/// The maximum number of messages of an answer that cannot be uploaded.
const MAX_PARTS_WITHOUT_FILE: usize = 10;
/// The suffix of an answer that is still being written.
const UNFINISHED: &str = " …";
/// The event type in the metadata of posted messages.
const EVENT_TYPE: &str = "threadkeep_turn";

/// A message of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Post {
    pub(crate) ts: String,
    text: String,
}

/// An answer, with the messages that have been posted so far.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    bot: &'a Bot,
    place: &'a Place,
    /// What the answer is for: the key of a question, or the id of an approval that was decided on.
    cause: &'a str,
    /// The turn; empty until it has started.
    turn: String,
    posts: Vec<Post>,
    has_file: bool,
}

impl<'a> Answer<'a> {
    pub(crate) fn new(bot: &'a Bot, place: &'a Place, cause: &'a str) -> Self {
        Self { bot, place, cause, turn: String::new(), posts: Vec::new(), has_file: false }
    }

    pub(crate) fn bot(&self) -> &'a Bot {
        self.bot
    }

    pub(crate) fn place(&self) -> &'a Place {
        self.place
    }

    pub(crate) fn set_turn(&mut self, turn: &str) {
        turn.clone_into(&mut self.turn);
    }

    /// Takes the last message out of the answer, to replace it with something else.
    pub(crate) fn take_post(&mut self) -> Option<Post> {
        self.posts.pop()
    }

    /// Returns the id of a message of the answer.
    fn id(&self, number: usize) -> String {
        format!("{} {number}", self.cause)
    }

    fn file_name(&self) -> String {
        let cause: String = self.cause.chars().filter(char::is_ascii_alphanumeric).collect();
        format!("answer-{}-{cause}.txt", self.turn)
    }

    /// Returns the metadata of a message.
    pub(crate) fn metadata(&self, id: &str) -> Value {
        json!({ "event_type": EVENT_TYPE, "event_payload": { "turn": self.turn, "id": id } })
    }

    /// Finds, among the messages of the channel or thread, the parts of the answer that an earlier instance posted.
    pub(crate) fn find_posted_parts(&mut self, posted: &[Value]) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for number in 0.. {
            let id = self.id(number);
            let Some(message) = posted.iter().find(|message| is_post(message, &self.turn, &id)) else { break };
            self.posts.push(Post { ts: text(&message["ts"]), text: text(&message["text"]) });
        }
        let (name, mut files) =
            (self.file_name(), posted.iter().flat_map(|message| message["files"].as_array().into_iter().flatten()));
        self.has_file = files.any(|file| file["name"] == *name);
    }
}

/// Whether a message is the post of a turn with the given id.
pub(crate) fn is_post(message: &Value, turn: &str, id: &str) -> bool {
    let payload = &message["metadata"]["event_payload"];
    payload["turn"] == *turn && payload["id"] == *id
}

impl Worker {
    /// Waits for the end of a turn. If the model writes for longer than a moment, the posted answer grows meanwhile.
    pub(crate) async fn follow(
        &self,
        mut updates: TurnUpdates,
        answer: &mut Answer<'_>,
    ) -> Result<Box<TurnResult>, Error> {
        let (mut text, mut grows_at, mut may_grow) = (String::new(), None::<Instant>, true);
        loop {
            let growth = async {
                match grows_at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                update = updates.recv() => match update {
                    Some(TurnUpdate::Event(TurnEvent::Started { turn, .. })) => answer.set_turn(&turn),
                    Some(TurnUpdate::Event(TurnEvent::Token { text: token })) => {
                        text.push_str(&token);
                        if may_grow && grows_at.is_none() {
                            grows_at = Some(Instant::now() + self.options().growth_interval);
                        }
                    }
                    // Text that the model wrote before a tool call or a retry is not part of the answer.
                    Some(TurnUpdate::Event(TurnEvent::Restarted | TurnEvent::ToolStarted { .. })) => text.clear(),
                    Some(TurnUpdate::Event(_)) => {}
                    Some(TurnUpdate::End(result)) => return result,
                    None => return Err(Error::internal("the task of a turn ended without a result")),
                },
                () = growth => {
                    grows_at = self.api.try_growth(answer.bot).err();
                    if grows_at.is_some() {
                        continue;
                    }
                    if let Err(error) = self.grow(answer, &text).await {
                        // The answer is posted when it is complete.
                        tracing::warn!(%error, "failed to show an unfinished answer; will post it when complete");
                        may_grow = false;
                    }
                }
            }
        }
    }

    /// Shows an unfinished answer.
    async fn grow(&self, answer: &mut Answer<'_>, text: &str) -> Result<(), WorkError> {
        if text.trim().is_empty() || answer.turn.is_empty() {
            return Ok(());
        }
        let mut parts = split(&to_slack(text), MAX_MESSAGE);
        parts.truncate(MAX_PARTS);
        if let Some(last) = parts.last_mut() {
            *last = close_code(last) + UNFINISHED;
        }
        self.show(answer, &parts).await
    }

    /// Shows the complete answer. If it is long, also uploads it.
    pub(crate) async fn finish(&self, answer: &mut Answer<'_>, text: &str) -> Result<(), WorkError> {
        let mut parts = split(&to_slack(text), MAX_MESSAGE);
        if parts.len() <= MAX_PARTS {
            return self.show(answer, &parts).await;
        }
        let all = parts.clone();
        parts.truncate(MAX_PARTS);
        append_note(&mut parts, "The file contains the whole answer.");
        self.show(answer, &parts).await?;
        if answer.has_file {
            return Ok(());
        }
        match self.upload(answer, text).await {
            Err(WorkError::Slack(error @ CallError::Refused { .. })) => {
                tracing::warn!(%error, "failed to upload a long answer; posting it as messages");
                let mut parts = all;
                let is_cut = parts.len() > MAX_PARTS_WITHOUT_FILE;
                parts.truncate(MAX_PARTS_WITHOUT_FILE);
                if is_cut {
                    append_note(&mut parts, "The answer is too long for Slack; the rest is omitted.");
                }
                self.show(answer, &parts).await
            }
            done => done,
        }
    }

    /// Changes, posts and deletes messages until the messages of the answer have these texts.
    async fn show(&self, answer: &mut Answer<'_>, parts: &[String]) -> Result<(), WorkError> {
        for (number, part) in parts.iter().enumerate() {
            match answer.posts.get(number) {
                Some(post) if post.text == *part => {}
                Some(post) => {
                    let metadata = answer.metadata(&answer.id(number));
                    self.replace_post(answer, &post.ts.clone(), part, None, metadata).await?;
                    answer.posts[number].text.clone_from(part);
                }
                None => {
                    let id = answer.id(number);
                    let ts = self.post(answer, &id, part, None).await?;
                    answer.posts.push(Post { ts, text: part.clone() });
                }
            }
        }
        self.remove_posts(answer, parts.len()).await
    }

    /// Deletes the messages of an answer, starting at the index `from`.
    pub(crate) async fn remove_posts(&self, answer: &mut Answer<'_>, from: usize) -> Result<(), WorkError> {
        while answer.posts.len() > from {
            let Some(post) = answer.posts.pop() else { break };
            let arguments = json!({ "channel": answer.place.channel, "ts": post.ts });
            self.api.call(answer.bot, "chat.delete", &arguments).await?;
        }
        Ok(())
    }

    /// Posts a message with its id as metadata. Returns its timestamp.
    pub(crate) async fn post(
        &self,
        answer: &Answer<'_>,
        id: &str,
        text: &str,
        blocks: Option<Value>,
    ) -> Result<String, WorkError> {
        let mut arguments = json!({
            "channel": answer.place.channel, "text": text, "unfurl_links": false, "metadata": answer.metadata(id),
        });
        if let Some(thread_ts) = &answer.place.thread_ts {
            arguments["thread_ts"] = json!(thread_ts);
        }
        if let Some(blocks) = blocks {
            arguments["blocks"] = blocks;
        }
        let posted = self.api.call(answer.bot, "chat.postMessage", &arguments).await?;
        Ok(posted["ts"].as_str().unwrap_or_default().to_owned())
    }

    /// Replaces a message.
    pub(crate) async fn replace_post(
        &self,
        answer: &Answer<'_>,
        ts: &str,
        text: &str,
        blocks: Option<Value>,
        metadata: Value,
    ) -> Result<(), WorkError> {
        let mut arguments = json!({ "channel": answer.place.channel, "ts": ts, "text": text, "metadata": metadata });
        if let Some(blocks) = blocks {
            arguments["blocks"] = blocks;
        }
        self.api.call(answer.bot, "chat.update", &arguments).await?;
        Ok(())
    }

    /// Uploads an answer as a file, and shares it in the channel or thread of the answer.
    async fn upload(&self, answer: &mut Answer<'_>, text: &str) -> Result<(), WorkError> {
        let name = answer.file_name();
        let announced = json!({ "filename": name, "length": text.len() });
        let place = self.api.call(answer.bot, "files.getUploadURLExternal", &announced).await?;
        self.api.upload(place["upload_url"].as_str().unwrap_or_default(), text).await?;
        let mut shared = json!({
            "files": [{ "id": place["file_id"], "title": "The whole answer" }], "channel_id": answer.place.channel,
        });
        if let Some(thread_ts) = &answer.place.thread_ts {
            shared["thread_ts"] = json!(thread_ts);
        }
        self.api.call(answer.bot, "files.completeUploadExternal", &shared).await?;
        answer.has_file = true;
        Ok(())
    }
}

/// Appends a note to the last message.
fn append_note(parts: &mut [String], note: &str) {
    if let Some(last) = parts.last_mut() {
        last.push_str(&format!("\n_{note}_"));
    }
}
