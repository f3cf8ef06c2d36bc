//! Reads dialogues of the Schema-Guided Dialogue data set, one per line: `{"dialogue_id": …, "services": […], "turns":
//! [{"speaker": "user", "text": …}], "final_state": {…}}`.
//!
//! The speaker `user` becomes `user` and `system` becomes `assistant`; `author` contains the original. Other fields of the
//! dialogue, such as `services` and `final_state`, go to the metadata of the thread.

use threadkeep_core::{Content, Role};

use crate::Format;
use crate::conversation::Conversation;
use crate::error::Rejection;
use crate::fields::Fields;
use crate::records::Record;

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Rejection> {
    let id = fields.take_id("dialogue_id")?;
    let turns = fields.require_list("turns")?;
    let mut conversation = Conversation::new(Format::Sgd, record, id.as_deref())?;
    conversation.add_remaining_metadata(fields)?;
    conversation.each_message("turn", turns, |conversation, _, mut turn| {
        let speaker = turn.require_text("speaker")?;
        let role = match speaker.as_str() {
            "user" => Role::User,
            "system" => Role::Assistant,
            _ => return Err(Rejection::new("`speaker` is neither user nor system")),
        };
        let mut content = Content::text(role, turn.require_text("text")?);
        content.author = Some(speaker);
        content.metadata = turn.into_map()?;
        conversation.push(None, None, content)
    });
    Ok(conversation)
}
