//! LoCoMo: very long conversations of two people in dated sessions, in a list or a single one.
//!
//! A conversation becomes one thread; its turns follow in the order of the sessions. Whoever speaks first is user, everyone
//! else assistant; all stay as `author`. The external id is the turn's `dia_id`. A session's date has no zone and is read as
//! UTC; each of its turns is dated one millisecond after the one before, so that time keeps their order.
//!
//! A turn's `blip_caption` becomes a picture's description after the text; session, date as written, `query`, `img_url`
//! and whatever else stands in the turn are the message's `data`. What annotates the conversation (`qa`, `event_summary`,
//! `observation`, `session_summary` and the like) is not part of it and is left out.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::value::RawValue;
use threadkeep_core::{Content, ImageReference, JsonText, Map, Part, Role, Timestamp, Value};

use crate::Format;
use crate::conversation::{Conversation, clean_name};
use crate::error::Refusal;
use crate::fields::{self, Fields, Kind, kind, missing};
use crate::records::Record;

const DATE: &str = "%I:%M %p on %d %B, %Y";
const SPEAKERS: [&str; 2] = ["speaker_a", "speaker_b"];

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Refusal> {
    let id = fields.take_id("sample_id")?;
    let mut spoken = fields.take_fields("conversation")?.ok_or_else(|| missing("conversation"))?;
    let mut conversation = Conversation::new(Format::Locomo, record, id.as_deref())?;
    for name in SPEAKERS {
        if let Some(speaker) = spoken.take_value(name)? {
            conversation.keep(name, speaker);
        }
    }
    let sessions = sessions(spoken)?;
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

/// The sessions by their numbers, read in one pass. A date without a session is one without turns.
fn sessions(spoken: Fields<'_>) -> Result<BTreeMap<u64, Session<'_>>, Refusal> {
    let mut sessions: BTreeMap<u64, Session<'_>> = BTreeMap::new();
    for (name, json) in spoken.into_members() {
        if kind(json) == Kind::Null {
            continue;
        }
        if let Some(number) = session_number(&name) {
            sessions.entry(number).or_default().turns = fields::list(json).map_err(|refusal| refusal.at(name))?;
        } else if let Some(number) = name.strip_suffix("_date_time").and_then(session_number) {
            sessions.entry(number).or_default().date = Some(fields::text(json).map_err(|refusal| refusal.at(name))?);
        }
    }
    sessions.retain(|_, session| !session.turns.is_empty());
    Ok(sessions)
}

fn session_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("session_")?;
    let number = digits.parse().ok()?;
    // `session_01` would otherwise replace `session_1`.
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
        let place = format!("session {number}, turn");
        conversation.each_message(&place, turns, |conversation, index, mut turn| {
            let speaker = turn.require_text("speaker")?;
            let role = if *first_speaker.get_or_insert_with(|| speaker.clone()) == speaker {
                Role::User
            } else {
                Role::Assistant
            };
            let id = turn.take_id("dia_id")?;
            let mut content = Content::text(role, turn.require_text("text")?);
            content.author = clean_name(&speaker);
            content.parts.extend(picture(&mut turn)?);
            content.data = Some(data(number, date.as_deref(), turn)?);
            let offset_ms = i64::try_from(index).unwrap_or(i64::MAX);
            conversation.push(id.as_deref(), started_at.map(|at| at.plus_ms(offset_ms)), content)
        });
    }
}

/// The picture that a turn shows; its addresses stay for the data as well.
fn picture(turn: &mut Fields<'_>) -> Result<Option<Part>, Refusal> {
    let description = turn.take_text("blip_caption")?;
    let urls: Vec<String> =
        turn.get("img_url").and_then(|urls| serde_json::from_str(urls.get()).ok()).unwrap_or_default();
    let url = urls.into_iter().next();
    if url.is_none() && description.is_none() {
        return Ok(None);
    }
    Ok(Some(Part::Image(ImageReference { url: url.unwrap_or_default(), description })))
}

fn data(session: u64, date: Option<&str>, rest: Fields<'_>) -> Result<JsonText, Refusal> {
    let mut data = Map::new();
    data.insert("session".to_owned(), session.into());
    if let Some(date) = date {
        data.insert("session_date".to_owned(), date.into());
    }
    data.extend(rest.into_map()?);
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
    fn only_plain_numbers_name_sessions() {
        assert_eq!(session_number("session_12"), Some(12));
        for name in ["session_1_date_time", "session_01", "session_+1", "session_", "session"] {
            assert_eq!(session_number(name), None, "{name}");
        }
    }
}
