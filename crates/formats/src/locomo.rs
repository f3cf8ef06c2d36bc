//! Reads LoCoMo: very long conversations between two people in dated sessions. A file contains one conversation or a list.
//!
//! A conversation becomes one thread, with its turns in the order of the sessions. The first speaker becomes `user` and all
//! others `assistant`; `author` contains their names. The external id is the `dia_id` of the turn. The date of a session has
//! no time zone and is read as UTC. Each turn is dated one millisecond after the previous turn, so that ordering by time
//! preserves their order.
//!
//! The `blip_caption` of a turn becomes the description of an image after the text. The session number, the session's date
//! as written, `query`, `img_url` and all other fields of the turn go to the `data` of the message. Annotations of the
//! conversation (`qa`, `event_summary`, `observation`, `session_summary` and others) are not imported.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::value::RawValue;
use threadkeep_core::{Content, ImageReference, JsonText, Map, Part, Role, Timestamp, Value};

use crate::Format;
use crate::conversation::{Conversation, clean_name};
use crate::error::Rejection;
use crate::fields::{self, Fields, Kind, kind, missing};
use crate::records::Record;

const DATE: &str = "%I:%M %p on %d %B, %Y";
const SPEAKERS: [&str; 2] = ["speaker_a", "speaker_b"];

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Rejection> {
    let id = fields.take_id("sample_id")?;
    let mut session_fields = fields.take_fields("conversation")?.ok_or_else(|| missing("conversation"))?;
    let mut conversation = Conversation::new(Format::Locomo, record, id.as_deref())?;
    for name in SPEAKERS {
        if let Some(speaker) = session_fields.take_value(name)? {
            conversation.add_metadata(name, speaker);
        }
    }
    let sessions = sessions(session_fields)?;
    conversation.set_created_at(sessions.values().find_map(Session::started_at));
    let mut first_speaker = None;
    for (number, session) in sessions {
        session.read(number, &mut conversation, &mut first_speaker);
    }
    Ok(conversation)
}

#[derive(Default)]
struct Session<'a> {
    date: Option<String>,
    turns: Vec<&'a RawValue>,
}

/// Reads the sessions in one pass, by number. A date without turns is ignored.
fn sessions(session_fields: Fields<'_>) -> Result<BTreeMap<u64, Session<'_>>, Rejection> {
    let mut sessions: BTreeMap<u64, Session<'_>> = BTreeMap::new();
    for (name, json) in session_fields.into_remaining() {
        if kind(json) == Kind::Null {
            continue;
        }
        if let Some(number) = session_number(&name) {
            sessions.entry(number).or_default().turns = fields::list(json).map_err(|rejection| rejection.at(name))?;
        } else if let Some(number) = name.strip_suffix("_date_time").and_then(session_number) {
            sessions.entry(number).or_default().date =
                Some(fields::text(json).map_err(|rejection| rejection.at(name))?);
        }
    }
    sessions.retain(|_, session| !session.turns.is_empty());
    Ok(sessions)
}

fn session_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("session_")?;
    let number = digits.parse().ok()?;
    // Leading zeros are not accepted: `session_01` would replace `session_1`.
    (format!("{number}") == digits).then_some(number)
}

impl Session<'_> {
    fn started_at(&self) -> Option<Timestamp> {
        let date = DateTime::strptime(DATE, self.date.as_deref()?.trim()).ok()?;
        let instant = TimeZone::UTC.to_timestamp(date).ok()?;
        Timestamp::from_micros(instant.as_microsecond()).ok()
    }

    fn read(self, number: u64, conversation: &mut Conversation, first_speaker: &mut Option<String>) {
        let started_at = self.started_at();
        let Self { date, turns } = self;
        let location = format!("session {number}, turn");
        conversation.each_message(&location, turns, |conversation, index, mut turn| {
            let speaker = turn.require_text("speaker")?;
            let role = if *first_speaker.get_or_insert_with(|| speaker.clone()) == speaker {
                Role::User
            } else {
                Role::Assistant
            };
            let id = turn.take_id("dia_id")?;
            let mut content = Content::text(role, turn.require_text("text")?);
            content.author = clean_name(&speaker);
            content.parts.extend(image(&mut turn)?);
            content.data = Some(data(number, date.as_deref(), turn)?);
            let offset_ms = i64::try_from(index).unwrap_or(i64::MAX);
            conversation.push(id.as_deref(), started_at.map(|at| at.plus_ms(offset_ms)), content)
        });
    }
}

/// Reads the image of a turn. The image's URLs are also part of the turn's data.
fn image(turn: &mut Fields<'_>) -> Result<Option<Part>, Rejection> {
    let description = turn.take_text("blip_caption")?;
    let urls: Vec<String> =
        turn.get("img_url").and_then(|urls| serde_json::from_str(urls.get()).ok()).unwrap_or_default();
    let url = urls.into_iter().next();
    if url.is_none() && description.is_none() {
        return Ok(None);
    }
    Ok(Some(Part::Image(ImageReference { url: url.unwrap_or_default(), description, detail: None })))
}

fn data(session: u64, date: Option<&str>, remaining: Fields<'_>) -> Result<JsonText, Rejection> {
    let mut data = Map::new();
    data.insert("session".to_owned(), session.into());
    if let Some(date) = date {
        data.insert("session_date".to_owned(), date.into());
    }
    data.extend(remaining.into_map()?);
    Ok(JsonText::from(&Value::Object(data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_dates_are_read_as_utc() {
        let at = |date: &str| {
            let session = Session { date: Some(date.to_owned()), turns: Vec::new() };
            session.started_at().map(|at| at.to_string())
        };
        assert_eq!(at("1:56 pm on 8 May, 2023"), Some("2023-05-08T13:56:00Z".to_owned()));
        assert_eq!(at("12:09 am on 13 September, 2023"), Some("2023-09-13T00:09:00Z".to_owned()));
        assert_eq!(at("12:30 pm on 29 February, 2024"), Some("2024-02-29T12:30:00Z".to_owned()));
        assert_eq!(at("some day"), None);
    }

    #[test]
    fn session_names_have_plain_numbers() {
        assert_eq!(session_number("session_12"), Some(12));
        for name in ["session_1_date_time", "session_01", "session_+1", "session_", "session"] {
            assert_eq!(session_number(name), None, "{name}");
        }
    }
}
