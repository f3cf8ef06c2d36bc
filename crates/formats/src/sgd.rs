//! Dialogues of the Schema-Guided Dialogue data set, one a line:
//! `{"dialogue_id": …, "services": […], "turns": [{"speaker": "user", "text": …}], "final_state": {…}}`.
//!
//! `user` becomes user and `system`, the service that answers, assistant; both stay as `author`. `services`, `final_state`
//! and whatever else stands beside the turns go to the thread's metadata.

use threadkeep_core::{Content, Role};

use crate::Format;
use crate::conversation::Conversation;
use crate::error::Refusal;
use crate::fields::Fields;
use crate::records::Record;

pub(crate) fn convert(record: &Record, mut fields: Fields<'_>) -> Result<Conversation, Refusal> {
    let id = fields.take_id("dialogue_id")?;
    let turns = fields.require_list("turns")?;
    let mut conversation = Conversation::new(Format::Sgd, record, id.as_deref())?;
    conversation.keep_rest(fields)?;
    conversation.each_message("turn", turns, |conversation, _, mut turn| {
        let speaker = turn.require_text("speaker")?;
        let role = match speaker.as_str() {
            "user" => Role::User,
            "system" => Role::Assistant,
            _ => return Err(Refusal::new("`speaker` is neither user nor system")),
        };
        let mut content = Content::text(role, turn.require_text("text")?);
        content.author = Some(speaker);
        content.metadata = turn.into_map()?;
        conversation.push(None, None, content)
    });
    Ok(conversation)
}
