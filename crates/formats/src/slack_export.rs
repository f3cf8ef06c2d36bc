//! Reads the files of a Slack export: `CHANNEL/YYYY-MM-DD.json`, each a list of the messages of one day.
//!
//! Source: "How to read Slack data exports" and "Reference: message events" in Slack's documentation. The fixture was written by
//! hand from these pages.
//!
//! A channel becomes a thread; the folder of the file names it. Messages are identified by their `ts`, which is unique
//! in a channel and contains the time. Replies stay in chronological order, with `thread_ts` in the metadata. The
//! author is the name in `user_profile`, or else the id of the user. Messages of bots get the role `assistant`, and
//! messages about the channel (joins, topics) the role `system`. Programs often write only blocks or attachments, so their
//! texts follow the text of the message. The descriptions of files become metadata; the files are not part of an export.

use threadkeep_core::{Content, Map, Part, Role, Timestamp, Value};

use crate::conversation::{Converted, clean_name};
use crate::error::Rejection;
use crate::fields::{Fields, missing};
use crate::file::FileName;
use crate::records::Record;
use crate::session::{Session, SessionRecords, SessionStart, copy_metadata};
use crate::{ConversationName, Format, identity};

/// The fields of a message that are copied to the metadata.
const METADATA: [&str; 7] = ["user", "bot_id", "subtype", "thread_ts", "edited", "files", "reactions"];
/// Subtypes of messages that someone wrote. All others report events in the channel.
const WRITTEN: [&str; 4] = ["bot_message", "thread_broadcast", "me_message", "file_share"];

#[derive(Debug)]
pub(crate) struct Messages {
    session: Session,
    channel: Option<String>,
}

impl Messages {
    pub(crate) fn new(file: FileName) -> Self {
        Self { session: Session::new(Format::SlackExport), channel: file.folder }
    }
}

impl SessionRecords for Messages {
    fn convert(&mut self, record: &Record, mut message: Fields<'_>) -> Result<Converted, Rejection> {
        let ts = message.require_text("ts")?;
        let created_at = instant(&ts).ok_or_else(|| Rejection::new("ts: not a time in seconds"))?;
        let content = read_message(&mut message)?;
        let thread = match self.session.id() {
            Some(_) => None,
            None => {
                let title = self.channel.as_deref().and_then(clean_name).map(|name| format!("#{name}"));
                let metadata = self.channel.iter().map(|channel| ("channel".to_owned(), channel.clone().into()));
                let metadata = metadata.collect::<Map>();
                let start = SessionStart { title, metadata, created_at: Some(created_at) };
                self.session.begin(record, self.channel.as_deref(), start)?
            }
        };
        let message = self.session.message(record, identity::message_id(&ts), Some(created_at), content)?;
        Ok(Converted { items: thread.into_iter().chain(message).collect(), ..Converted::default() })
    }

    fn name(&self) -> ConversationName {
        self.session.name()
    }
}

fn read_message(message: &mut Fields<'_>) -> Result<Content, Rejection> {
    let kind = message.require_text("type")?;
    if kind != "message" {
        return Err(Rejection::new("`type` is not message"));
    }
    let text = message.take_text("text")?.ok_or_else(|| missing("text"))?;
    let subtype = message.get("subtype").map(crate::fields::text).transpose()?;
    let is_written = subtype.as_deref().is_none_or(|subtype| WRITTEN.contains(&subtype));
    let role = match (is_written, message.get("bot_id").is_some()) {
        (false, _) => Role::System,
        (true, true) => Role::Assistant,
        (true, false) => Role::User,
    };
    let mut content = Content::empty(role);
    let mut texts = vec![text];
    if texts[0].trim().is_empty() {
        // Otherwise the text says the same as the blocks.
        message.take_value("blocks")?.iter().for_each(|blocks| add_texts(blocks, &mut texts));
    }
    message.take_value("attachments")?.iter().for_each(|attachments| add_attachments(attachments, &mut texts));
    let texts = texts.iter().map(|text| unescaped(text)).filter(|text| !text.trim().is_empty());
    let text = texts.collect::<Vec<_>>().join("\n");
    content.parts.extend((!text.is_empty()).then_some(Part::Text(text)));
    content.author = author(message)?.as_deref().and_then(clean_name);
    copy_metadata(message, &METADATA, &mut content.metadata)?;
    Ok(content)
}

/// The members of a block that can contain texts.
const BLOCK_MEMBERS: [&str; 5] = ["text", "elements", "fields", "blocks", "title"];

/// Adds the texts of blocks, in order.
fn add_texts(block: &Value, texts: &mut Vec<String>) {
    match block {
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, texts)),
        Value::Object(members) => {
            for member in BLOCK_MEMBERS.iter().filter_map(|name| members.get(*name)) {
                match member {
                    Value::String(text) => texts.push(text.clone()),
                    member => add_texts(member, texts),
                }
            }
        }
        _ => {}
    }
}

/// Adds the texts of attachments; the fallback of those without other texts.
fn add_attachments(attachments: &Value, texts: &mut Vec<String>) {
    for attachment in attachments.as_array().into_iter().flatten() {
        let before = texts.len();
        for name in ["pretext", "title", "text"] {
            texts.extend(attachment[name].as_str().map(str::to_owned));
        }
        for field in attachment["fields"].as_array().into_iter().flatten() {
            let text = |name: &str| field[name].as_str().unwrap_or_default();
            texts.push(format!("{} {}", text("title"), text("value")));
        }
        add_texts(&attachment["blocks"], texts);
        if texts.len() == before {
            texts.extend(attachment["fallback"].as_str().map(str::to_owned));
        }
    }
}

fn author(message: &mut Fields<'_>) -> Result<Option<String>, Rejection> {
    let mut names = Vec::new();
    if let Some(mut profile) = message.take_fields("user_profile")? {
        names.extend([profile.take_text("display_name")?, profile.take_text("real_name")?, profile.take_text("name")?]);
    }
    names.push(message.take_text("username")?);
    names.push(message.get("user").map(crate::fields::text).transpose()?);
    Ok(names.into_iter().flatten().find(|name| !name.trim().is_empty()))
}

/// Slack escapes three characters.
fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Reads `SECONDS.FRACTION`, with up to six digits of a second, without rounding.
fn instant(ts: &str) -> Option<Timestamp> {
    let (seconds, fraction) = ts.split_once('.').unwrap_or((ts, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.is_empty() || !is_number(seconds) || !is_number(fraction) || fraction.len() > 6 {
        return None;
    }
    let micros: i64 = format!("{fraction:0<6}").parse().ok()?;
    Timestamp::from_micros(seconds.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(micros)?).ok()
}
