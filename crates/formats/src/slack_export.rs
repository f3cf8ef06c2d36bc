//! Reads the files of a Slack export: `CHANNEL/YYYY-MM-DD.json`, each a list of the messages of one day.
//!
//! Source: "How to read Slack data exports" and "Reference: message events" in Slack's documentation. The fixture was written by
//! hand from these pages.
//!
//! A channel becomes a thread; the folder of the file names it. Messages are identified by their `ts`, which is unique
//! in a channel and contains the time. Replies stay in chronological order, with `thread_ts` in the metadata. The
//! author is the name in `user_profile`, or else the id of the user. Messages of bots get the role `assistant`, and
//! messages about the channel (joins, topics) the role `system`. The descriptions of files become metadata; the files
//! are not part of an export.

use threadkeep_core::{Content, Map, Part, Role, Timestamp};

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
    let text = unescaped(&text);
    content.parts.extend((!text.is_empty()).then_some(Part::Text(text)));
    content.author = author(message)?.as_deref().and_then(clean_name);
    copy_metadata(message, &METADATA, &mut content.metadata)?;
    Ok(content)
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
