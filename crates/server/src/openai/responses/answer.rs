//! Prepares a request for a response, answers the request, and stores the answer.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use threadkeep::core::{ChatDelta, ChatMessage, ChatRequest, Sampling};
use threadkeep::{Draft, JsonText, Message, MessageId, Role, Scope, ThreadId};
use threadkeep_service::{RequestIdentity, in_current_span};

use super::assistant::AssistantRun;
use super::conversation_name::ConversationName;
use super::create::CreateResponseJson;
use super::stored_response::{self, StoredResponse};
use super::text_deltas::TextDeltas;
use super::{body, chain, create_id, text_message_id, thread_in_id};
use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, Result};
use crate::openai::conversations::check_metadata;
use crate::openai::items::{InputItem, Item, items_of};
use crate::openai::turn::{self, ActiveTurn, StartedTurn, TurnRecord, TurnStart};
use crate::openai::{assistant, ids, models, references, requests, resent, tool_results};

/// How the client wants to receive the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// As one JSON object, when it is finished.
    Whole,
    /// As a stream of events.
    Streamed,
    /// By retrieving it later.
    Background,
    /// As a stream of events, and by retrieving it later.
    BackgroundStreamed,
}

/// A request that is ready to be answered.
pub(super) struct PendingResponse {
    pub(super) app: App,
    pub(super) scope: Scope,
    pub(super) request_identity: RequestIdentity,
    pub(super) id: String,
    /// The response without its output.
    pub(super) envelope: Map<String, Value>,
    /// The id of the message that contains the first text.
    pub(super) text_id: MessageId,
    pub(super) is_streamed: bool,
    pub(super) work: Work,
}

/// The work that is necessary to answer a request.
pub(super) enum Work {
    CallModel(Box<ModelCall>),
    RunAssistant(Box<AssistantRun>),
    /// None, because an earlier attempt at the request was answered. Contains the response as JSON and its output.
    Answered {
        response: String,
        output: Vec<Item>,
    },
}

/// A model call and the data that is stored with its answer.
pub(super) struct ModelCall {
    /// The turn, if the response is in a conversation.
    pub(super) turn: Option<ActiveTurn>,
    input: Vec<Draft>,
    request: ChatRequest,
    store: bool,
    /// The id of the response that this one continues.
    previous: Option<String>,
}

impl ModelCall {
    /// Makes the call a turn of a conversation. Returns the context that precedes the input. Abandons the turn on errors.
    async fn set_conversation(
        &mut self,
        app: &App,
        scope: &Scope,
        thread: ThreadId,
        started: StartedTurn,
        input: Vec<InputItem>,
    ) -> Result<Vec<ChatMessage>> {
        let context = async {
            let resolved = references::resolve(app, scope, Some(thread), input).await?;
            self.input = resent::without_resent_items(app, scope, thread, resolved).await?;
            turn::check_input(app, &self.input)?;
            let context = started.assemble_context(app, scope, thread, &self.input).await?;
            tool_results::check_in_thread(app, scope, thread, &self.input, &context, "input").await?;
            Ok(context)
        };
        match context.await {
            Ok(context) => {
                self.turn = Some(started.turn);
                Ok(context)
            }
            Err(error) => {
                started.turn.abandon().await;
                Err(error)
            }
        }
    }

    /// Makes the call the continuation of an earlier response. Returns the messages that precede the input.
    async fn set_previous(
        &mut self,
        app: &App,
        scope: &Scope,
        previous: String,
        may_truncate: bool,
        input: Vec<InputItem>,
    ) -> Result<Vec<ChatMessage>> {
        let chain = chain::read(app, scope, &previous, may_truncate).await?;
        let is_in_chain = |draft: &Draft| draft.id.is_some() && chain.iter().any(|earlier| earlier.id == draft.id);
        self.input = references::resolve_new(app, scope, None, input).await?;
        self.input.retain(|draft| !is_in_chain(draft));
        let context = requests::to_chat_messages(&chain);
        match thread_in_id(&previous)? {
            // The chain contains only the latest messages of a conversation.
            Some(thread) => {
                tool_results::check_in_thread(app, scope, thread, &self.input, &context, "input").await?;
            }
            None => tool_results::check(&self.input, &context, "input")?,
        }
        self.previous = Some(previous);
        Ok(context)
    }
}

/// A finished response.
pub(super) struct FinishedResponse {
    /// The response as JSON.
    pub(super) response: String,
    pub(super) output: Vec<Item>,
    /// `completed` or `incomplete`. The response of an assistant can also be `failed` or `cancelled`.
    pub(super) status: &'static str,
}

impl PendingResponse {
    /// Checks a request, and starts a turn in its conversation if it has one.
    pub(super) async fn prepare(
        app: App,
        scope: Scope,
        connection: ConnectionGuard,
        request: CreateResponseJson,
        request_identity: RequestIdentity,
    ) -> Result<Self> {
        if let Some(agent) = assistant::find(&app, request.model.as_deref())? {
            return super::assistant::prepare(app, scope, connection, agent, request, request_identity).await;
        }
        let model = models::answering_model(&app, request.model.as_deref())?.to_owned();
        let conversation = ConversationName::read(&request)?;
        let mut chat = chat_request(&request)?;
        check_metadata(request.metadata.clone())?;
        let input = requests::read_input(request.input.as_deref())?;
        if input.is_empty() && conversation.is_none() && request.previous_response_id.is_none() {
            let message = "Missing required parameter: 'input'.";
            return Err(ApiError::invalid("input", message).code("missing_required_parameter"));
        }
        let new: Vec<&Draft> = input.iter().filter_map(InputItem::draft).collect();
        turn::reject_ignored_options(&app, &mut chat, &new, "input")?;
        let thread = match &conversation {
            Some(conversation) => Some(conversation.find_thread(&app, &scope).await?),
            None => None,
        };
        let id = create_id(app.memory(), request_identity.named_id(&scope), thread);
        let created_at = app.memory().now().as_millis().div_euclid(1000);
        let conversation_id = thread.map(ids::conversation_id);
        let mut envelope = body::envelope(&id, created_at, &request, conversation_id.as_deref());
        envelope.insert("model".to_owned(), model.into());
        let mut call = ModelCall {
            turn: None,
            input: Vec::new(),
            request: ChatRequest::default(),
            store: request.store.unwrap_or(true),
            previous: None,
        };
        let context = match (thread, conversation.as_ref().map(ConversationName::text), request.previous_response_id) {
            (Some(thread), Some(name), _) => {
                let start = ActiveTurn::start(&app, &scope, thread, &id, &request_identity).await;
                match start.map_err(ids::not_found_as(name))? {
                    TurnStart::Answered(record) => {
                        return read_answered(app, scope, request_identity, thread, record).await;
                    }
                    TurnStart::New(started) => call.set_conversation(&app, &scope, thread, started, input).await?,
                }
            }
            (_, _, Some(previous)) => {
                let may_truncate = request.truncation.as_deref() == Some("auto");
                call.set_previous(&app, &scope, previous, may_truncate, input).await?
            }
            _ => {
                call.input = references::resolve_new(&app, &scope, None, input).await?;
                tool_results::check(&call.input, &[], "input")?;
                Vec::new()
            }
        };
        let answered = if thread.is_none() { find_answered(&app, &scope, &request_identity, &id).await? } else { None };
        let instructions = request.instructions.map(|text| ChatMessage::text(Role::System, text));
        chat.messages =
            instructions.into_iter().chain(context).chain(requests::to_chat_messages(&call.input)).collect();
        call.request = chat;
        let work = answered.unwrap_or_else(|| Work::CallModel(Box::new(call)));
        Ok(Self { text_id: text_message_id(&id), is_streamed: false, app, scope, request_identity, id, envelope, work })
    }

    /// Answers the request, and responds with the finished response.
    pub(super) async fn respond(self) -> Result<Response> {
        // The answer is generated in its own task, so that it is finished even if the client disconnects.
        let answering = tokio::spawn(in_current_span(async move { self.answer(&mut |_| {}).await }));
        let result = answering.await.map_err(|_| ApiError::task_panicked())?;
        let finished = result.map_err(|(error, _)| error)?;
        Ok(([(header::CONTENT_TYPE, "application/json")], finished.response).into_response())
    }

    /// Answers the request and stores the answer. An error is returned together with the JSON of the failed response.
    pub(super) async fn answer(
        self,
        deltas: &mut (dyn FnMut(ChatDelta) + Send),
    ) -> Result<FinishedResponse, (ApiError, String)> {
        let Self { app, scope, request_identity, id, mut envelope, text_id, is_streamed, work } = self;
        let call = match work {
            Work::Answered { response, output } => {
                return Ok(FinishedResponse { response, output, status: "completed" });
            }
            Work::RunAssistant(run) => {
                return super::assistant::run(*run, &id, envelope, text_id, is_streamed, deltas).await;
            }
            Work::CallModel(call) => *call,
        };
        let mut text_deltas = TextDeltas::default();
        let mut on_delta = |delta: ChatDelta| {
            if is_streamed {
                text_deltas.add(&delta);
            }
            deltas(delta);
        };
        let result = match &call.turn {
            Some(turn) => turn.call_model(&app, &call.request, "input", &mut on_delta).await,
            None => turn::call_model(&app, &call.request, "input", &mut on_delta).await,
        };
        let answer = match result {
            Ok(answer) => answer,
            Err(error) => {
                if let Some(turn) = call.turn {
                    turn.abandon().await;
                }
                return Err(failed_response(&mut envelope, error));
            }
        };
        body::set_finished(&mut envelope, answer.finish, answer.usage.as_ref());
        let drafts = turn::output_drafts(&answer, text_id);
        let output: Vec<Item> = drafts.iter().flat_map(|draft| items_of(&unstored_message(&app, draft))).collect();
        let status = if envelope["status"] == "incomplete" { "incomplete" } else { "completed" };
        let response = body::with_output(&envelope, &output);
        let lengths = text_deltas.lengths(&output);
        let stored =
            store_answer(&app, &scope, &request_identity, &id, &envelope, &response, call, drafts, lengths).await;
        match stored {
            Ok(()) => Ok(FinishedResponse { response, output, status }),
            Err(error) => Err(failed_response(&mut envelope, error)),
        }
    }
}

/// Returns an error together with the JSON of the failed response.
pub(super) fn failed_response(envelope: &mut Map<String, Value>, error: ApiError) -> (ApiError, String) {
    body::set_failed(envelope, error.code, &error.message);
    let text = body::with_output(envelope, &[]);
    (error, text)
}

#[expect(clippy::too_many_arguments, reason = "part of `answer`, which would otherwise be too long")]
async fn store_answer(
    app: &App,
    scope: &Scope,
    request_identity: &RequestIdentity,
    id: &str,
    envelope: &Map<String, Value>,
    response: &str,
    call: ModelCall,
    output: Vec<Draft>,
    delta_lengths: Vec<u32>,
) -> Result<()> {
    let ModelCall { turn, input, store, previous, .. } = call;
    // The messages get their ids here, because the record refers to them.
    let with_id =
        |draft: Draft| if draft.id.is_some() { draft } else { draft.with_id(app.memory().generate_message_id()) };
    let input: Vec<Draft> = input.into_iter().map(with_id).collect();
    let ids = |drafts: &[Draft]| drafts.iter().filter_map(|draft| draft.id).collect();
    match turn {
        Some(turn) => {
            let envelope = JsonText::of(&Value::Object(envelope.clone()))?;
            let record = TurnRecord {
                id: id.to_owned(),
                digest: request_identity.digest().to_owned(),
                input: ids(&input),
                output: ids(&output),
                envelope,
                alias: None,
                delta_lengths,
            };
            let drafts = input.into_iter().chain(output).collect();
            turn.finish(app, &record, drafts).await
        }
        None if store => {
            let items = |drafts: &[Draft]| {
                drafts.iter().flat_map(|draft| items_of(&unstored_message(app, draft))).collect::<Vec<_>>()
            };
            let (input, output) =
                (stored_response::json_texts(&items(&input))?, stored_response::json_texts(&items(&output))?);
            let digest = request_identity.digest().to_owned();
            let response = JsonText::new(response)?;
            let stored = StoredResponse { digest, response, input, output, previous, delta_lengths };
            stored_response::write(app, scope, id, &stored).await
        }
        None => Ok(()),
    }
}

/// Finds the stored answer to an earlier attempt at a request without a conversation.
async fn find_answered(app: &App, scope: &Scope, request_identity: &RequestIdentity, id: &str) -> Result<Option<Work>> {
    let Some(stored) = stored_response::find(app, scope, id).await? else { return Ok(None) };
    request_identity.check_same(&stored.digest)?;
    let output = stored.output.iter().map(stored_item).collect();
    Ok(Some(Work::Answered { response: stored.response.as_str().to_owned(), output }))
}

/// Reads the stored answer to an earlier attempt at a request in a conversation.
pub(super) async fn read_answered(
    app: App,
    scope: Scope,
    request_identity: RequestIdentity,
    thread: ThreadId,
    record: TurnRecord,
) -> Result<PendingResponse> {
    let (envelope, output) = read_response(&app, &scope, thread, &record).await?;
    let response = body::with_output(&envelope, &output);
    let text_id = text_message_id(&record.id);
    let work = Work::Answered { response, output };
    Ok(PendingResponse { app, scope, request_identity, id: record.id, envelope, text_id, is_streamed: false, work })
}

/// Reads a response in a conversation. Erased messages are missing.
pub(super) async fn read_response(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    record: &TurnRecord,
) -> Result<(Map<String, Value>, Vec<Item>)> {
    let envelope: Map<String, Value> = record.envelope.read()?;
    let messages = turn::stored_messages(app, scope, thread, &record.output).await?;
    let mut items: Vec<Item> = messages.iter().flat_map(items_of).collect();
    if let Some(alias) = &record.alias {
        let last = items.pop().map(|last| super::assistant::with_id(last, alias));
        items.extend(last);
    }
    Ok((envelope, items))
}

/// Converts a draft into a message without a position.
pub(crate) fn unstored_message(app: &App, draft: &Draft) -> Message {
    Message {
        seq: 0,
        id: draft.id.unwrap_or_else(|| app.memory().generate_message_id()),
        external_id: draft.external_id.clone(),
        revision: 0,
        created_at: app.memory().now(),
        content: draft.content.clone(),
    }
}

/// Returns an item from its stored JSON.
pub(super) fn stored_item(json: &JsonText) -> Item {
    let id = json.read::<Value>().ok().and_then(|item| item["id"].as_str().map(str::to_owned));
    Item { id: id.unwrap_or_default(), json: json.as_str().to_owned() }
}

pub(super) fn chat_request(request: &CreateResponseJson) -> Result<ChatRequest> {
    let tools = request.raw_tools.iter().cloned().map(serde_json::from_value).collect::<Result<Vec<_>, _>>();
    let tools =
        tools.map_err(|_| ApiError::invalid("tools", "Invalid 'tools': a tool must be an object with a 'type'."))?;
    let effort = request.reasoning.as_ref().and_then(|reasoning| reasoning.get("effort")?.as_str());
    Ok(ChatRequest {
        messages: Vec::new(),
        tools: requests::read_tools(Some(tools))?,
        tool_choice: requests::read_tool_choice(request.tool_choice.as_ref())?,
        temperature: request.temperature,
        max_tokens: request.max_output_tokens,
        format: requests::read_format(request.text.as_ref().and_then(|text| text.get("format")), "text.format")?,
        parallel_tool_calls: request.parallel_tool_calls,
        reasoning_effort: effort.map(str::to_owned),
        sampling: Sampling {
            top_p: request.top_p,
            verbosity: request.text.as_ref().and_then(|text| text.get("verbosity")?.as_str()).map(str::to_owned),
            ..Sampling::default()
        },
    })
}
