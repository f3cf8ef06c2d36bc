//! A model for tests that plays a script.

mod reply;

use std::collections::VecDeque;
use std::fmt;
use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use threadkeep_core::{ChatAnswer, ChatDelta, ChatModel, ChatRequest, DeltaSink, ModelError, Portable};

pub use reply::{Failure, Reply};

use reply::Ending;

/// The default name.
const NAME: &str = "scripted";

/// A model for tests. Each step checks a request and returns the reply to it.
///
/// If a check fails or no steps are left, the call returns `InvalidAnswer` with the name of the step. All later calls return
/// the same error. An agent turns a failing model into a failed turn, so a test should end with [`ScriptedModel::verify`].
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use threadkeep_core::{ChatMessage, ChatModel, ChatRequest, Role};
/// use threadkeep_models::{Reply, ScriptedModel, Turn};
/// # use serde_json::json;
///
/// let model = ScriptedModel::new()
///     .step("looks up the station", |request| {
///         let turn = Turn::of(request);
///         if !turn.question().contains("Times Sq") {
///             return Err(format!("unexpected question {:?}", turn.question()));
///         }
///         Ok(Reply::call("find_station", json!({"name": "Times Sq"})))
///     })
///     .step("requests arrivals with the id of the station", |request| {
///         let found = Turn::of(request).result("find_station")?;
///         Ok(Reply::call("get_arrivals", json!({"stop": found["id"]})))
///     });
///
/// let request = ChatRequest {
///     messages: vec![ChatMessage::text(Role::User, "Next train at Times Sq?")],
///     ..ChatRequest::default()
/// };
/// let answer = model.answer(&request, &mut |_| {}).await?;
/// assert_eq!(answer.tool_calls().next().map(|call| call.name.as_str()), Some("find_station"));
/// assert_eq!(model.verify().unwrap_err(), "1 of 2 steps were not played; next: requests arrivals with the id of the station");
/// # Ok::<(), threadkeep_core::ModelError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ScriptedModel {
    name: String,
    /// Replies when no steps are left.
    always: Option<Box<dyn ReplyFn>>,
    state: Mutex<State>,
}

/// A function from a request to a reply.
trait ReplyFn: Portable + Fn(&ChatRequest) -> Result<Reply, String> {}
impl<F: Portable + Fn(&ChatRequest) -> Result<Reply, String>> ReplyFn for F {}

struct Step {
    name: String,
    answer: Box<dyn ReplyFn>,
}

#[derive(Default)]
struct State {
    steps: VecDeque<Step>,
    requests: Vec<ChatRequest>,
    played: usize,
    error: Option<String>,
    abandoned: usize,
}

impl ScriptedModel {
    /// Creates an empty script.
    #[must_use]
    pub fn new() -> Self {
        Self { name: NAME.to_owned(), always: None, state: Mutex::default() }
    }

    /// Creates a model whose reply depends only on the request, for any number of calls. Suitable for tests that restart in
    /// the middle of a turn, where a script would have to know which steps were played.
    #[must_use]
    pub fn always(answer: impl Fn(&ChatRequest) -> Result<Reply, String> + Portable) -> Self {
        Self { always: Some(Box::new(answer)), ..Self::new() }
    }

    /// Sets the model's name, for tests with several models.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Adds a step. `name` identifies the step in errors.
    #[must_use]
    pub fn step(
        self,
        name: impl Into<String>,
        answer: impl Fn(&ChatRequest) -> Result<Reply, String> + Portable,
    ) -> Self {
        self.state().steps.push_back(Step { name: name.into(), answer: Box::new(answer) });
        self
    }

    /// Adds a step that replies to any request with text.
    #[must_use]
    pub fn says(self, text: impl Into<String>) -> Self {
        let reply = Reply::text(text);
        self.step("says", move |_| Ok(reply.clone()))
    }

    /// Adds a step that fails for any request.
    #[must_use]
    pub fn fails(self, failure: Failure) -> Self {
        self.step("fails", move |_| Ok(Reply::failing(failure.clone())))
    }

    /// Returns the requests so far, in order.
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.state().requests.clone()
    }

    /// Returns the number of calls that the caller dropped before they were answered.
    pub fn abandoned(&self) -> usize {
        self.state().abandoned
    }

    /// Checks that all steps were played and none failed.
    ///
    /// # Errors
    /// A message that names the failed step, or the next step that was not played.
    pub fn verify(&self) -> Result<(), String> {
        let state = self.state();
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        let Some(next) = state.steps.front() else { return Ok(()) };
        let (left, total) = (state.steps.len(), state.steps.len() + state.played);
        Err(format!("{left} of {total} steps were not played; next: {}", next.name))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panicking step leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(&self, request: &ChatRequest) -> Result<Reply, String> {
        let mut state = self.state();
        state.requests.push(request.clone());
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        let number = state.played + 1;
        let (step_name, reply) = match (state.steps.pop_front(), &self.always) {
            (Some(step), _) => {
                // Counted before the call, because the call may panic.
                state.played = number;
                (step.name, (step.answer)(request))
            }
            (None, Some(always)) => ("always".to_owned(), always(request)),
            (None, None) => ("none".to_owned(), Err(format!("the script ended after step {}", state.played))),
        };
        let reply = reply.map_err(|reason| format!("step {number} ({step_name}): {reason}"));
        if let Err(error) = &reply {
            state.error = Some(error.clone());
        }
        reply
    }
}

impl Default for ScriptedModel {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("ScriptedModel")
            .field("name", &self.name)
            .field("played", &state.played)
            .field("left", &state.steps.len())
            .finish_non_exhaustive()
    }
}

/// Counts a call that is dropped before its answer.
struct AbandonGuard<'a> {
    model: &'a ScriptedModel,
    is_over: bool,
}

impl Drop for AbandonGuard<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.model.state().abandoned += 1;
        }
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let reply =
            self.reply(request).map_err(|detail| ModelError::InvalidAnswer { model: self.name.clone(), detail })?;
        let mut guard = AbandonGuard { model: self, is_over: false };
        for piece in &reply.pieces {
            deltas(ChatDelta::Text(piece.clone()));
        }
        if reply.ending == Ending::Hang {
            pending::<()>().await;
        }
        guard.is_over = true;
        reply.finish(&self.name, request)
    }
}
