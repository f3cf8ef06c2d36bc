use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, json as value};
use threadkeep::core::{ChatDelta, ChatMessage, ChatRequest, Finish, Sampling};
use threadkeep::{Draft, JsonText, Part, Role, Scope, ThreadId, TokenDetails, Usage, Value};
use threadkeep_service::{RequestIdentity, in_current_span};
use utoipa::ToSchema;

use super::{assistant, messages, stored, stream};
use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{self, JsonBody, optional_whole_number};
use crate::openai::conversations::check_metadata;
use crate::openai::requests::{self, ToolJson};
use crate::openai::turn::{self, ActiveTurn, StartedTurn, TurnRecord, TurnStart};
use crate::openai::{assistant as assistants, models, resent, tool_results};
use crate::output::json;
use crate::security::Caller;
use crate::thread_names::{self, THREAD_HEADER};

/// The prefix of the ids of completions.
pub(super) const PREFIX: &str = "chatcmpl-";

/// The request. Fields that this server does not support are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct CompleteJson {
    #[serde(default)]
    pub(super) model: Option<String>,
    #[schema(value_type = Vec<Object>)]
    pub(super) messages: Vec<Box<RawValue>>,
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub(super) tools: Option<Vec<ToolJson>>,
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    tool_choice: Option<Value>,
    #[serde(default)]
    pub(super) stream: Option<bool>,
    #[serde(default)]
    pub(super) stream_options: Option<StreamOptionsJson>,
    #[serde(default, deserialize_with = "optional_whole_number")]
    pub(super) max_completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_whole_number")]
    max_tokens: Option<u64>,
    #[serde(default)]
    temperature: Option<f64>,
    #[serde(default)]
    top_p: Option<f64>,
    #[serde(default)]
    frequency_penalty: Option<f64>,
    #[serde(default)]
    presence_penalty: Option<f64>,
    #[serde(default, deserialize_with = "optional_whole_number")]
    seed: Option<i64>,
    /// Changes to the likelihood of tokens; passed to the model.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    logit_bias: Option<Map<String, Value>>,
    /// How detailed the answer should be; passed to the model.
    #[serde(default)]
    verbosity: Option<String>,
    /// A string, or an array of at most four strings.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    stop: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    response_format: Option<Value>,
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    #[serde(default)]
    reasoning_effort: Option<String>,
    /// Whether to store the completion, so that it can be retrieved later.
    #[serde(default)]
    store: Option<bool>,
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 1, maximum = 1)]
    n: Option<u64>,
    /// Options of OpenAI's API that this server does not support. A request that sets one of them is rejected.
    #[serde(flatten)]
    #[schema(ignore)]
    unsupported: UnsupportedOptions,
    /// The field `thread` selects the thread that the chat continues.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(super) metadata: Option<Map<String, Value>>,
}

/// Options that would change the answer but cannot be passed to the model.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UnsupportedOptions {
    logprobs: Value,
    top_logprobs: Value,
    prediction: Value,
    functions: Value,
    function_call: Value,
    audio: Value,
    web_search_options: Value,
}

impl UnsupportedOptions {
    /// Rejects any option that is set to something other than its default.
    fn reject(&self) -> Result<()> {
        let options = [
            ("logprobs", &self.logprobs),
            ("top_logprobs", &self.top_logprobs),
            ("prediction", &self.prediction),
            ("functions", &self.functions),
            ("function_call", &self.function_call),
            ("audio", &self.audio),
            ("web_search_options", &self.web_search_options),
        ];
        match options.into_iter().find(|(_, value)| requests::is_set(value)) {
            Some((name, _)) => Err(requests::unsupported(name)),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct StreamOptionsJson {
    #[serde(default)]
    pub(super) include_usage: bool,
}

/// A request that is ready to be answered.
pub(super) struct PendingCompletion {
    pub(super) app: App,
    scope: Scope,
    identity: RequestIdentity,
    request: ChatRequest,
    /// The thread that the request selects.
    thread: Option<ThreadId>,
    turn: Option<ActiveTurn>,
    /// The messages of the request that are not in the thread yet.
    new: Vec<Draft>,
    pub(super) envelope: Envelope,
    /// The stored answer, if an earlier attempt at the request was answered.
    answered: Option<Answer>,
    /// The data to store with the completion, if the client asked for the completion to be stored.
    store: Option<StoreRequest>,
}

/// The data that is stored together with a completion.
struct StoreRequest {
    messages: Vec<Box<RawValue>>,
    metadata: Map<String, Value>,
}

/// The fields that a completion and all chunks of its stream have in common.
#[derive(Clone, Debug)]
pub(super) struct Envelope {
    pub(super) id: String,
    pub(super) created: i64,
    pub(super) model: String,
    pub(super) include_usage: bool,
}

/// The model's answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) parts: Vec<Part>,
    pub(super) finish: String,
    pub(super) usage: Value,
}

/// Creates a chat completion, optionally in a thread
///
/// The header `Threadkeep-Thread`, or `thread` in the metadata, selects a thread by its id, its conversation id or its key; an
/// unknown key creates a thread. The model receives the thread's context before the messages of the request. New messages are
/// stored in the thread together with the answer. If the request repeats messages that the thread already contains, those up to
/// the last known answer are not stored again. Without a thread nothing is stored, unless `store` is set.
///
/// The model `threadkeep/NAME` is an assistant: the last message starts a turn in the thread. The header `Threadkeep-Thread` of
/// the response contains the thread's id.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    operation_id = "create_chat_completion",
    tag = "openai",
    params(("Threadkeep-Thread" = Option<String>, Header), ("Idempotency-Key" = Option<String>, Header)),
    request_body = CompleteJson,
    responses((status = 200, description = "The answer, or a stream of it.", content((Object = "application/json"), (String = "text/event-stream"))), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn complete(
    State(app): State<App>,
    caller: Caller,
    Extension(connection): Extension<ConnectionGuard>,
    headers: HeaderMap,
    JsonBody { value: body, digest }: JsonBody<CompleteJson>,
) -> Result<Response> {
    if body.n.is_some_and(|n| n != 1) {
        return Err(ApiError::invalid("n", "Invalid 'n': only 1 is supported."));
    }
    body.unsupported.reject()?;
    if let Some(agent) = assistants::find(&app, body.model.as_deref())? {
        return assistant::complete(app, caller, connection, &headers, (body, &digest), agent).await;
    }
    let is_streamed = body.stream == Some(true);
    let completion = prepare(app, caller.scope, &headers, body, &digest).await?;
    let thread = completion.thread;
    if is_streamed {
        return Ok(with_thread(stream::respond(completion).await?, thread));
    }
    let envelope = completion.envelope.clone();
    // The completion runs in its own task, so that it is finished even if the client disconnects.
    let answering = tokio::spawn(in_current_span(async move { completion.answer(&mut |_| {}).await }));
    let answer = answering.await.map_err(|_| ApiError::task_panicked())??;
    Ok(with_thread(json(&completion_json(&envelope, &answer)), thread))
}

/// Adds the header with the id of the thread that contains the answer, if there is one.
pub(super) fn with_thread(mut response: Response, thread: Option<ThreadId>) -> Response {
    if let Some(thread) = thread.and_then(|thread| HeaderValue::from_str(&thread.to_string()).ok()) {
        response.headers_mut().insert(THREAD_HEADER, thread);
    }
    response
}

async fn prepare(
    app: App,
    scope: Scope,
    headers: &HeaderMap,
    mut body: CompleteJson,
    digest: &str,
) -> Result<PendingCompletion> {
    let model = models::answering_model(&app, body.model.as_deref())?.to_owned();
    let drafts = messages::read_messages(&body.messages)?;
    // Checked before a thread is created, because an invalid request must not leave an empty thread behind.
    let mut request = chat_request(&mut body)?;
    turn::reject_ignored_options(&app, &mut request, &drafts.iter().collect::<Vec<_>>(), "messages")?;
    let thread = selected_thread(&app, &scope, headers, body.metadata.as_ref()).await?;
    let thread_name = thread.map(|thread| thread.to_string()).unwrap_or_default();
    let identity = input::read_identity(headers, "chat", &format!("{thread_name}:{digest}"))?;
    let memory = app.memory();
    let id = identity.named_id(&scope).unwrap_or_else(|| memory.generate_thread_id());
    let envelope = Envelope {
        id: format!("{PREFIX}{}", id.0.simple()),
        created: memory.now().as_millis().div_euclid(1000),
        model,
        include_usage: body.stream_options.take().unwrap_or_default().include_usage,
    };
    let store = match body.store {
        // In a thread, the messages are always stored, and are deleted with the thread.
        Some(true) if thread.is_none() => {
            Some(StoreRequest { messages: body.messages, metadata: check_metadata(body.metadata)? })
        }
        _ => None,
    };
    let Some(thread) = thread else {
        tool_results::check(&drafts, &[], "messages")?;
        request.messages = requests::to_chat_messages(&drafts);
        let (new, turn, answered) = (Vec::new(), None, None);
        return Ok(PendingCompletion { app, scope, identity, request, thread, turn, new, envelope, answered, store });
    };
    prepare_in_thread(app, scope, thread, identity, (request, envelope), drafts).await
}

/// Converts the parameters of the body into a model request without messages.
pub(super) fn chat_request(body: &mut CompleteJson) -> Result<ChatRequest> {
    Ok(ChatRequest {
        messages: Vec::new(),
        tools: requests::read_tools(body.tools.take())?,
        tool_choice: requests::read_tool_choice(body.tool_choice.as_ref())?,
        temperature: body.temperature,
        max_tokens: body.max_completion_tokens.or(body.max_tokens),
        format: requests::read_format(body.response_format.as_ref(), "response_format")?,
        parallel_tool_calls: body.parallel_tool_calls,
        reasoning_effort: body.reasoning_effort.take(),
        sampling: Sampling {
            top_p: body.top_p,
            frequency_penalty: body.frequency_penalty,
            presence_penalty: body.presence_penalty,
            seed: body.seed,
            stop: requests::read_stop_sequences(body.stop.as_ref())?,
            logit_bias: body.logit_bias.take().unwrap_or_default(),
            verbosity: body.verbosity.take(),
        },
    })
}

/// Starts a turn in a thread, unless an earlier attempt at the request was answered.
async fn prepare_in_thread(
    app: App,
    scope: Scope,
    thread: ThreadId,
    identity: RequestIdentity,
    (mut request, envelope): (ChatRequest, Envelope),
    drafts: Vec<Draft>,
) -> Result<PendingCompletion> {
    let thread_error = |error: ApiError| match error.code {
        "conversation_locked" => error.param("Threadkeep-Thread"),
        _ => error,
    };
    let (system, new): (Vec<Draft>, Vec<Draft>) =
        drafts.into_iter().partition(|draft| draft.content.role == Role::System);
    let started = match ActiveTurn::start(&app, &scope, thread, &envelope.id, &identity).await.map_err(thread_error)? {
        TurnStart::Answered(record) => {
            let (envelope, answer) = read_answered(&app, &scope, thread, &record, envelope).await?;
            return Ok(PendingCompletion {
                app,
                scope,
                identity,
                request,
                thread: Some(thread),
                turn: None,
                new,
                envelope,
                answered: Some(answer),
                store: None,
            });
        }
        TurnStart::New(started) => started,
    };
    match read_thread(&app, &scope, thread, &started, new).await {
        Ok((new, context)) => {
            request.messages = requests::to_chat_messages(&system)
                .into_iter()
                .chain(context)
                .chain(requests::to_chat_messages(&new))
                .collect();
            Ok(PendingCompletion {
                app,
                scope,
                identity,
                request,
                thread: Some(thread),
                turn: Some(started.turn),
                new,
                envelope,
                answered: None,
                store: None,
            })
        }
        Err(error) => {
            started.turn.abandon().await;
            Err(error)
        }
    }
}

/// Returns the messages that are not in the thread yet, and the context from the thread that precedes them.
async fn read_thread(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    started: &StartedTurn,
    new: Vec<Draft>,
) -> Result<(Vec<Draft>, Vec<ChatMessage>)> {
    let new = resent::without_resent(app, scope, thread, new).await?;
    requests::check_new_items(new.len(), "messages")?;
    turn::check_input(app, &new)?;
    let context = started.assemble_context(app, scope, thread, &new).await?;
    tool_results::check_in_thread(app, scope, thread, &new, &context, "messages").await?;
    Ok((new, context))
}

impl PendingCompletion {
    /// Calls the model, stores the turn if there is a thread, and stores the completion if the client asked for that.
    pub(super) async fn answer(self, deltas: &mut (dyn FnMut(ChatDelta) + Send)) -> Result<Answer> {
        let Self { app, scope, identity, request, turn, new, envelope, answered, store, .. } = self;
        if let Some(answer) = answered {
            return Ok(answer);
        }
        let result = match &turn {
            Some(turn) => turn.call_model(&app, &request, "messages", deltas).await,
            None => turn::call_model(&app, &request, "messages", deltas).await,
        };
        let (answer, turn) = match (result, turn) {
            (Ok(answer), turn) => (answer, turn),
            (Err(error), turn) => {
                if let Some(turn) = turn {
                    turn.abandon().await;
                }
                return Err(error);
            }
        };
        let completed = Answer {
            parts: answer.parts.clone(),
            finish: finish_reason(answer.finish).to_owned(),
            usage: usage_json(answer.usage.as_ref()),
        };
        if let Some(turn) = turn {
            let output = turn::output_drafts(&answer, turn::text_message_id(app.memory().generate_message_id()));
            let with_id = |draft: Draft| draft.with_id(app.memory().generate_message_id());
            let input: Vec<Draft> = new.into_iter().map(with_id).collect();
            let ids = |drafts: &[Draft]| drafts.iter().filter_map(|draft| draft.id).collect();
            let stored_envelope = value!({ "created": envelope.created, "model": envelope.model, "finish": completed.finish, "usage": completed.usage });
            let (input_ids, output_ids) = (ids(&input), ids(&output));
            let record = TurnRecord {
                id: envelope.id.clone(),
                digest: identity.digest().to_owned(),
                input: input_ids,
                output: output_ids,
                envelope: JsonText::from(&stored_envelope),
                alias: None,
                delta_lengths: Vec::new(),
            };
            let drafts = input.into_iter().chain(output).collect();
            turn.finish(&app, &record, drafts).await?;
        }
        if let Some(StoreRequest { messages, metadata }) = store {
            stored::write(&app, &scope, &completion_json(&envelope, &completed), &messages, metadata).await?;
        }
        Ok(completed)
    }
}

/// Reads the stored answer to an earlier attempt at the request.
async fn read_answered(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    record: &TurnRecord,
    envelope: Envelope,
) -> Result<(Envelope, Answer)> {
    let stored_envelope: Value = record.envelope.read()?;
    let messages = turn::stored_messages(app, scope, thread, &record.output).await?;
    let parts = messages.into_iter().flat_map(|message| message.content.parts).collect();
    let text = |name: &str| stored_envelope[name].as_str().unwrap_or_default().to_owned();
    let created = stored_envelope["created"].as_i64().unwrap_or_default();
    let answer = Answer { parts, finish: text("finish"), usage: stored_envelope["usage"].clone() };
    Ok((Envelope { id: record.id.clone(), created, model: text("model"), ..envelope }, answer))
}

/// Returns the thread that a request selects in the header or in its metadata; `None` if it selects no thread. A thread is named
/// by its id, conversation id or key; an unknown key creates a thread.
pub(super) async fn selected_thread(
    app: &App,
    scope: &Scope,
    headers: &HeaderMap,
    metadata: Option<&Map<String, Value>>,
) -> Result<Option<ThreadId>> {
    let name = thread_names::in_header(headers)
        .or_else(|| metadata.and_then(|metadata| metadata.get("thread")).and_then(Value::as_str));
    let Some(name) = name else { return Ok(None) };
    let found = thread_names::resolve_or_open(app, scope, name).await;
    found.map(Some).map_err(|error| error.param("Threadkeep-Thread"))
}

/// Returns the JSON of a completion.
pub(super) fn completion_json(envelope: &Envelope, answer: &Answer) -> Value {
    let text: Vec<&str> = answer.parts.iter().filter_map(Part::text).collect();
    let content = if text.is_empty() { Value::Null } else { text.concat().into() };
    let mut message = value!({ "role": "assistant", "content": content, "refusal": null });
    let calls = tool_calls_json(answer);
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    value!({
        "id": envelope.id,
        "object": "chat.completion",
        "created": envelope.created,
        "model": envelope.model,
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": answer.finish }],
        "usage": answer.usage,
    })
}

/// Returns the JSON of an answer's tool calls.
pub(super) fn tool_calls_json(answer: &Answer) -> Vec<Value> {
    let calls = answer.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => {
            let function = value!({ "name": call.name, "arguments": call.arguments.as_str() });
            Some(value!({ "id": call.id, "type": "function", "function": function }))
        }
        _ => None,
    });
    calls.collect()
}

fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
        _ => "stop",
    }
}

/// Returns the JSON of an answer's token usage.
pub(super) fn usage_json(usage: Option<&Usage>) -> Value {
    let (input, output) = usage.map_or((0, 0), |usage| (usage.input_tokens, usage.output_tokens));
    let details = usage.map_or_else(TokenDetails::default, |usage| usage.details);
    value!({
        "prompt_tokens": input,
        "prompt_tokens_details": { "cached_tokens": details.cached_input },
        "completion_tokens": output,
        "completion_tokens_details": { "reasoning_tokens": details.reasoning },
        "total_tokens": input + output,
    })
}
