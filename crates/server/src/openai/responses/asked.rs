//! What a request would ask a model, without asking it.

use threadkeep::core::ChatMessage;
use threadkeep::{Draft, Role, Scope};

use super::answer::conversation;
use super::chain;
use super::create::CreateResponseJson;
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::openai::{ids, references, requests, turn};

/// What was said before, and what is new.
pub(super) struct Asked {
    pub(super) before: Vec<ChatMessage>,
    /// The same, where it can be told item by item: after an earlier response.
    pub(super) chain: Vec<Draft>,
    pub(super) input: Vec<Draft>,
}

impl Asked {
    pub(super) async fn read(app: &App, scope: &Scope, request: &CreateResponseJson) -> Result<Self> {
        let given = requests::input(request.input.as_deref())?;
        let named = conversation(request)?;
        let Some(name) = named else {
            let is_cut = request.truncation.as_deref() == Some("auto");
            let chain = match &request.previous_response_id {
                Some(previous) => chain::read(app, scope, previous, is_cut).await?,
                None => Vec::new(),
            };
            let input = references::settle(app, scope, None, given).await?;
            return Ok(Self { before: requests::shown(&chain), chain, input });
        };
        let thread = ids::thread(&name)?;
        let found = app.memory().get_thread(scope, thread).await;
        found.map_err(ApiError::from).map_err(ids::about(&name))?;
        let input = references::settle(app, scope, Some(thread), given).await?;
        let before = turn::context(app, scope, thread, &input).await?;
        Ok(Self { before, chain: Vec::new(), input })
    }

    /// All messages that a model would be asked with.
    pub(super) fn messages(self, instructions: Option<String>) -> Vec<ChatMessage> {
        let instructions = instructions.map(|text| ChatMessage::text(Role::System, text));
        instructions.into_iter().chain(self.before).chain(requests::shown(&self.input)).collect()
    }
}
