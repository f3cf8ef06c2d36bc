use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, json as value};
use threadkeep::core::{ChatDelta, ChatMessage, ChatRequest, Finish, Sampling};
use threadkeep::{Draft, JsonText, Part, Role, Scope, ThreadId, TokenDetails, Usage, Value};
use threadkeep_service::{Attempt, carried};
use utoipa::ToSchema;

use super::{again, assistant, messages, stored, stream};
use crate::app::App;
use crate::connections::Held;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{self, JsonBody};
use crate::openai::conversations::checked;
use crate::openai::requests::{self, ToolJson};
use crate::openai::turn::{self, Begun, Fresh, Record, Turn};
use crate::openai::{assistant as assistants, ids};
use crate::output::json;
use crate::security::Caller;

/// What the ids of completions begin with.
pub(super) const PREFIX: &str = "chatcmpl-";
/// Names the thread that a chat goes on in.
pub(super) const THREAD: &str = "threadkeep-thread";

/// What is asked. Members that this server has no use for are ignored.
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
    #[serde(default)]
    max_completion_tokens: Option<u64>,
    #[serde(default)]
    max_tokens: Option<u64>,
    #[serde(default)]
    temperature: Option<f64>,
    #[serde(default)]
    top_p: Option<f64>,
    #[serde(default)]
    frequency_penalty: Option<f64>,
    #[serde(default)]
    presence_penalty: Option<f64>,
    #[serde(default)]
    seed: Option<i64>,
    /// A text, or at most four.
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
    /// Whether it can be retrieved later.
    #[serde(default)]
    store: Option<bool>,
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1)]
    n: Option<u64>,
    /// `thread` names the thread that the chat goes on in.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(super) metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct StreamOptionsJson {
    #[serde(default)]
    pub(super) include_usage: bool,
}

/// An answer on its way.
pub(super) struct Completing {
    pub(super) app: App,
    scope: Scope,
    attempt: Attempt,
    request: ChatRequest,
    turn: Option<Turn>,
    /// What is new in the thread.
    new: Vec<Draft>,
    pub(super) shell: Shell,
    before: Option<Answer>,
    /// What is stored with the completion, where it is to be stored.
    stored: Option<ToStore>,
}

/// What is stored with a completion.
struct ToStore {
    messages: Vec<Box<RawValue>>,
    metadata: Map<String, Value>,
}

/// What all pieces of an answer have.
#[derive(Clone, Debug)]
pub(super) struct Shell {
    pub(super) id: String,
    pub(super) created: i64,
    pub(super) model: String,
    pub(super) include_usage: bool,
}

/// What the model said.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) parts: Vec<Part>,
    pub(super) finish: String,
    pub(super) usage: Value,
}

/// Asks the model, with a thread's context before what is asked where one is named
///
/// The header `Threadkeep-Thread`, or `thread` in the metadata, names a thread by its id or as a conversation. Then
/// what is new is to be sent; it is stored with the answer. What is sent again of the thread before that, up to an answer, is not
/// stored twice. Without a thread nothing is stored.
///
/// The model `threadkeep/NAME` is an assistant: the last message is asked as a turn in the thread, which the header
/// `Threadkeep-Thread` of the answer names.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    tag = "openai",
    params(("Threadkeep-Thread" = Option<String>, Header), ("Idempotency-Key" = Option<String>, Header)),
    request_body = CompleteJson,
    responses((status = 200, description = "The answer, or a stream of it.", content((Object = "application/json"), (String = "text/event-stream"))), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn complete(
    State(app): State<App>,
    caller: Caller,
    Extension(held): Extension<Held>,
    headers: HeaderMap,
    JsonBody { value: body, digest }: JsonBody<CompleteJson>,
) -> Result<Response> {
    if body.n.is_some_and(|n| n != 1) {
        return Err(ApiError::invalid("n", "Invalid 'n': one answer is given."));
    }
    if let Some(agent) = assistants::find(&app, body.model.as_deref())? {
        return assistant::complete(app, caller, held, &headers, (body, &digest), agent).await;
    }
    let is_streamed = body.stream == Some(true);
    let completing = prepare(app, caller.scope, &headers, body, &digest).await?;
    if is_streamed {
        return Ok(stream::respond(completing));
    }
    let shell = completing.shell.clone();
    // A client that goes away does not undo what it asked for.
    let answering = tokio::spawn(carried(async move { completing.answer(&mut |_| {}).await }));
    let answer = answering.await.map_err(|_| ApiError::broken_off())??;
    Ok(json(&whole(&shell, &answer)))
}

async fn prepare(
    app: App,
    scope: Scope,
    headers: &HeaderMap,
    mut body: CompleteJson,
    digest: &str,
) -> Result<Completing> {
    let model = app.model().ok_or_else(turn::no_model)?.name().to_owned();
    let drafts = messages::read(&body.messages)?;
    let thread = thread(headers, body.metadata.as_ref())?;
    let thread_name = thread.map(|thread| thread.to_string()).unwrap_or_default();
    let attempt = input::attempt(headers, "chat", &format!("{thread_name}:{digest}"))?;
    let memory = app.memory();
    let own = attempt.named_id(&scope).unwrap_or_else(|| memory.mint_thread_id());
    let shell = Shell {
        id: format!("{PREFIX}{}", own.0.simple()),
        created: memory.now().as_millis().div_euclid(1000),
        model: body.model.take().unwrap_or(model),
        include_usage: body.stream_options.take().unwrap_or_default().include_usage,
    };
    let mut request = chat_request(&mut body)?;
    let stored = match body.store {
        // In a thread it is there already, and goes with it.
        Some(true) if thread.is_none() => Some(ToStore { messages: body.messages, metadata: checked(body.metadata)? }),
        _ => None,
    };
    let Some(thread) = thread else {
        request.messages = requests::shown(&drafts);
        let (new, turn, before) = (Vec::new(), None, None);
        return Ok(Completing { app, scope, attempt, request, turn, new, shell, before, stored });
    };
    in_thread(app, scope, thread, attempt, (request, shell), drafts).await
}

/// What the model is asked, but for what is said.
fn chat_request(body: &mut CompleteJson) -> Result<ChatRequest> {
    Ok(ChatRequest {
        messages: Vec::new(),
        tools: requests::tools(body.tools.take())?,
        tool_choice: requests::tool_choice(body.tool_choice.as_ref())?,
        temperature: body.temperature,
        max_tokens: body.max_completion_tokens.or(body.max_tokens),
        format: requests::format(body.response_format.as_ref(), "response_format")?,
        parallel_tool_calls: body.parallel_tool_calls,
        reasoning_effort: body.reasoning_effort.take(),
        sampling: Sampling {
            top_p: body.top_p,
            frequency_penalty: body.frequency_penalty,
            presence_penalty: body.presence_penalty,
            seed: body.seed,
            stop: requests::stop(body.stop.as_ref())?,
        },
    })
}

/// The same in a thread, which it takes.
async fn in_thread(
    app: App,
    scope: Scope,
    thread: ThreadId,
    attempt: Attempt,
    (mut request, shell): (ChatRequest, Shell),
    drafts: Vec<Draft>,
) -> Result<Completing> {
    let (system, new): (Vec<Draft>, Vec<Draft>) =
        drafts.into_iter().partition(|draft| draft.content.role == Role::System);
    let begun = Turn::begin(&app, &scope, thread, &shell.id, &attempt).await?;
    let fresh = match begun {
        Begun::Before(record) => {
            let (shell, before) = told_before(&app, &scope, thread, &record, shell).await?;
            let before = Some(before);
            return Ok(Completing { app, scope, attempt, request, turn: None, new, shell, before, stored: None });
        }
        Begun::Turn(fresh) => fresh,
    };
    match read(&app, &scope, thread, &fresh, new).await {
        Ok((new, context)) => {
            request.messages =
                requests::shown(&system).into_iter().chain(context).chain(requests::shown(&new)).collect();
            Ok(Completing {
                app,
                scope,
                attempt,
                request,
                turn: Some(fresh.turn),
                new,
                shell,
                before: None,
                stored: None,
            })
        }
        Err(error) => {
            fresh.turn.abandon().await;
            Err(error)
        }
    }
}

/// What is new in the thread, and what the model is shown before that.
async fn read(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    fresh: &Fresh,
    new: Vec<Draft>,
) -> Result<(Vec<Draft>, Vec<ChatMessage>)> {
    let new = again::without_known(app, scope, thread, new).await?;
    requests::check_new(new.len(), "messages")?;
    turn::check(app, &new)?;
    let context = fresh.context(app, scope, thread, &new).await?;
    Ok((new, context))
}

impl Completing {
    /// Asks the model, and stores the turn where there is a thread.
    pub(super) async fn answer(self, deltas: &mut (dyn FnMut(ChatDelta) + Send)) -> Result<Answer> {
        let Self { app, scope, attempt, request, turn, new, shell, before, stored } = self;
        if let Some(before) = before {
            return Ok(before);
        }
        let answered = match &turn {
            Some(turn) => turn.ask(&app, &request, deltas).await,
            None => turn::ask(&app, &request, deltas).await,
        };
        let (answer, turn) = match (answered, turn) {
            (Ok(answer), turn) => (answer, turn),
            (Err(error), turn) => {
                if let Some(turn) = turn {
                    turn.abandon().await;
                }
                return Err(error);
            }
        };
        let told = Answer {
            parts: answer.parts.clone(),
            finish: finish(answer.finish).to_owned(),
            usage: usage(answer.usage.as_ref()),
        };
        if let Some(turn) = turn {
            let output = turn::output(&answer, turn::words_id(app.memory().mint_message_id()));
            let named = |draft: Draft| draft.with_id(app.memory().mint_message_id());
            let input: Vec<Draft> = new.into_iter().map(named).collect();
            let ids = |drafts: &[Draft]| drafts.iter().filter_map(|draft| draft.id).collect();
            let kept =
                value!({ "created": shell.created, "model": shell.model, "finish": told.finish, "usage": told.usage });
            let (input_ids, output_ids) = (ids(&input), ids(&output));
            let record = Record {
                id: shell.id.clone(),
                digest: attempt.digest().to_owned(),
                input: input_ids,
                output: output_ids,
                shell: JsonText::from(&kept),
                alias: None,
                cuts: Vec::new(),
            };
            let drafts = input.into_iter().chain(output).collect();
            turn.finish(&app, &record, drafts).await?;
        }
        if let Some(ToStore { messages, metadata }) = stored {
            stored::keep(&app, &scope, &whole(&shell, &told), &messages, metadata).await?;
        }
        Ok(told)
    }
}

async fn told_before(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    record: &Record,
    shell: Shell,
) -> Result<(Shell, Answer)> {
    let kept: Value = record.shell.read()?;
    let said = turn::said(app, scope, thread, &record.output).await?;
    let parts = said.into_iter().flat_map(|message| message.content.parts).collect();
    let text = |name: &str| kept[name].as_str().unwrap_or_default().to_owned();
    let created = kept["created"].as_i64().unwrap_or_default();
    let answer = Answer { parts, finish: text("finish"), usage: kept["usage"].clone() };
    Ok((Shell { id: record.id.clone(), created, model: text("model"), ..shell }, answer))
}

/// The thread that a request names, in the header or in its metadata.
pub(super) fn thread(headers: &HeaderMap, metadata: Option<&Map<String, Value>>) -> Result<Option<ThreadId>> {
    let header = headers.get(THREAD).map(|value| value.to_str().unwrap_or_default());
    let named = header.or_else(|| metadata.and_then(|metadata| metadata.get("thread")).and_then(Value::as_str));
    let Some(named) = named else { return Ok(None) };
    let id = if named.starts_with("conv_") {
        ids::thread(named)?
    } else {
        named.parse().map_err(|_| ApiError::not_found("thread"))?
    };
    Ok(Some(id))
}

pub(super) fn whole(shell: &Shell, answer: &Answer) -> Value {
    let text: Vec<&str> = answer.parts.iter().filter_map(Part::text).collect();
    let content = if text.is_empty() { Value::Null } else { text.concat().into() };
    let mut message = value!({ "role": "assistant", "content": content, "refusal": null });
    let calls = calls(answer);
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    value!({
        "id": shell.id,
        "object": "chat.completion",
        "created": shell.created,
        "model": shell.model,
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": answer.finish }],
        "usage": answer.usage,
    })
}

/// The tool calls of an answer.
pub(super) fn calls(answer: &Answer) -> Vec<Value> {
    let calls = answer.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => {
            let function = value!({ "name": call.name, "arguments": call.arguments.as_str() });
            Some(value!({ "id": call.id, "type": "function", "function": function }))
        }
        _ => None,
    });
    calls.collect()
}

fn finish(finish: Finish) -> &'static str {
    match finish {
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
        _ => "stop",
    }
}

/// What an answer took.
pub(super) fn usage(usage: Option<&Usage>) -> Value {
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
