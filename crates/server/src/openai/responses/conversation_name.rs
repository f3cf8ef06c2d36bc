//! The conversation that a request for a response selects, with `conversation` in the body or with the header `Threadkeep-Thread`.

use axum::http::StatusCode;
use threadkeep::{Scope, ThreadId, Value};

use super::create::CreateResponseJson;
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::openai::ids;
use crate::thread_names;

/// The name of a conversation: its id, or the id or key of its thread.
#[derive(Clone, Debug)]
pub(super) enum ConversationName {
    /// The conversation in the body. It must exist.
    Body(String),
    /// The thread in the header. An unknown key creates a thread.
    Header(String),
}

impl ConversationName {
    /// Reads the name of a request's conversation; `None` if the request selects none.
    pub(super) fn read(request: &CreateResponseJson) -> Result<Option<Self>> {
        let id = match &request.conversation {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(Value::Object(members)) if members.get("id").is_some_and(Value::is_string) => {
                members.get("id").and_then(Value::as_str).map(str::to_owned)
            }
            Some(_) => {
                return Err(ApiError::invalid(
                    "conversation",
                    "Invalid 'conversation': expected an id or an object with an 'id'.",
                ));
            }
        };
        let exclusive = |other: &str| {
            let message = format!(
                "Mutually exclusive parameters: Ensure you are only providing one of: 'previous_response_id' or '{other}'."
            );
            ApiError::new(StatusCode::BAD_REQUEST, "mutually_exclusive_parameters", message)
        };
        match (id, &request.thread_name, &request.previous_response_id) {
            (Some(_), _, Some(_)) => Err(exclusive("conversation")),
            (None, Some(_), Some(_)) => Err(exclusive("Threadkeep-Thread")),
            (Some(_), Some(_), None) => {
                let message = "send either 'conversation' or the header 'Threadkeep-Thread', not both";
                Err(ApiError::invalid("Threadkeep-Thread", message).code("mutually_exclusive_parameters"))
            }
            (Some(id), None, None) => Ok(Some(Self::Body(id))),
            (None, Some(name), None) => Ok(Some(Self::Header(name.clone()))),
            (None, None, _) => Ok(None),
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Body(name) | Self::Header(name) => name,
        }
    }

    /// Returns the id of the thread. If it is named by its id, the thread may not exist.
    pub(super) async fn find_thread(&self, app: &App, scope: &Scope) -> Result<ThreadId> {
        match self {
            Self::Body(name) => ids::find_conversation(app, scope, name).await,
            Self::Header(name) => {
                let found = thread_names::resolve_or_open(app, scope, name).await;
                found.map_err(|error| error.param("Threadkeep-Thread"))
            }
        }
    }
}
