//! Determines the messages of the model call for a request without making the call.

use threadkeep::core::ChatMessage;
use threadkeep::{Draft, Role, Scope};

use super::chain;
use super::conversation_name::ConversationName;
use super::create::CreateResponseJson;
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::openai::{ids, references, requests, turn};

/// The context and the new input of a request.
pub(super) struct ResolvedInput {
    pub(super) context: Vec<ChatMessage>,
    /// The context as drafts, if the request continues an earlier response; otherwise empty.
    pub(super) chain: Vec<Draft>,
    pub(super) input: Vec<Draft>,
}

impl ResolvedInput {
    pub(super) async fn read(app: &App, scope: &Scope, request: &CreateResponseJson) -> Result<Self> {
        let input = requests::read_input(request.input.as_deref())?;
        let Some(conversation) = ConversationName::read(request)? else {
            let may_truncate = request.truncation.as_deref() == Some("auto");
            let chain = match &request.previous_response_id {
                Some(previous) => chain::read(app, scope, previous, may_truncate).await?,
                None => Vec::new(),
            };
            let input = references::resolve_new(app, scope, None, input).await?;
            return Ok(Self { context: requests::to_chat_messages(&chain), chain, input });
        };
        let conversation = conversation.text();
        let thread = ids::find_conversation(app, scope, conversation).await?;
        let found = app.memory().get_thread(scope, thread).await;
        found.map_err(ApiError::from).map_err(ids::not_found_as(conversation))?;
        let input = references::resolve_new(app, scope, Some(thread), input).await?;
        let context = turn::assemble_context(app, scope, thread, &input).await?;
        Ok(Self { context, chain: Vec::new(), input })
    }

    /// Returns all messages of the model call.
    pub(super) fn messages(self, instructions: Option<String>) -> Vec<ChatMessage> {
        let instructions = instructions.map(|text| ChatMessage::text(Role::System, text));
        instructions.into_iter().chain(self.context).chain(requests::to_chat_messages(&self.input)).collect()
    }
}
