//! From a request to the answer, whole or piece by piece.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use threadkeep::core::{ChatDelta, ChatMessage, ChatRequest, Sampling};
use threadkeep::{Draft, JsonText, Message, MessageId, Role, Scope, ThreadId};
use threadkeep_service::{Attempt, carried};

use super::assistant::Run;
use super::create::CreateResponseJson;
use super::kept::{self, Kept};
use super::pieces::Heard;
use super::{body, chain, mint_id, words_of};
use crate::app::App;
use crate::connections::Held;
use crate::error::{ApiError, Result};
use crate::openai::conversations::checked;
use crate::openai::items::{Given, Item, items_of};
use crate::openai::turn::{self, Begun, Fresh, Record, Turn};
use crate::openai::{assistant, ids, references, requests};

/// How a client wants its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Whole,
    Streamed,
    /// Later, by asking for it.
    Background,
    /// As it is made, and later.
    BackgroundStreamed,
}

/// A response on its way.
pub(super) struct Answering {
    pub(super) app: App,
    pub(super) scope: Scope,
    pub(super) attempt: Attempt,
    pub(super) id: String,
    /// The response but for its output.
    pub(super) shell: Map<String, Value>,
    /// The id of the message that the first words become.
    pub(super) words: MessageId,
    /// Whether it is told piece by piece.
    pub(super) is_streamed: bool,
    pub(super) work: Work,
}

pub(super) enum Work {
    /// The model has to be asked.
    Ask(Box<Ask>),
    /// An assistant has to be asked.
    Run(Box<Run>),
    /// It was answered before: the text, and its output.
    Told { response: String, output: Vec<Item> },
}

pub(super) struct Ask {
    pub(super) turn: Option<Turn>,
    input: Vec<Draft>,
    request: ChatRequest,
    store: bool,
    previous: Option<String>,
}

impl Ask {
    /// Makes it a turn of a conversation. Gives what the model is shown before the input.
    async fn in_conversation(
        &mut self,
        app: &App,
        scope: &Scope,
        thread: ThreadId,
        fresh: Fresh,
        input: Vec<Given>,
    ) -> Result<Vec<ChatMessage>> {
        let read = async {
            self.input = references::settle(app, scope, Some(thread), input).await?;
            turn::check(app, &self.input)?;
            fresh.context(app, scope, thread, &self.input).await
        };
        match read.await {
            Ok(context) => {
                self.turn = Some(fresh.turn);
                Ok(context)
            }
            Err(error) => {
                fresh.turn.abandon().await;
                Err(error)
            }
        }
    }

    /// Lets it follow an earlier response. Gives what the model is shown before the input.
    async fn after(
        &mut self,
        app: &App,
        scope: &Scope,
        previous: String,
        is_cut: bool,
        input: Vec<Given>,
    ) -> Result<Vec<ChatMessage>> {
        let chain = chain::read(app, scope, &previous, is_cut).await?;
        let is_said = |draft: &Draft| draft.id.is_some() && chain.iter().any(|said| said.id == draft.id);
        self.input = references::settle(app, scope, None, input).await?;
        self.input.retain(|draft| !is_said(draft));
        self.previous = Some(previous);
        Ok(requests::shown(&chain))
    }
}

/// What came of it.
pub(super) struct Answered {
    /// The whole response, as text.
    pub(super) response: String,
    pub(super) output: Vec<Item>,
    /// `completed`, `incomplete`, or where an assistant answered `failed` or `cancelled`.
    pub(super) status: &'static str,
}

impl Answering {
    /// Checks a request and takes its conversation.
    pub(super) async fn prepare(
        app: App,
        scope: Scope,
        held: Held,
        request: CreateResponseJson,
        attempt: Attempt,
    ) -> Result<Self> {
        if let Some(agent) = assistant::find(&app, request.model.as_deref())? {
            return super::assistant::prepare(app, scope, held, agent, request, attempt).await;
        }
        if app.model().is_none() {
            return Err(turn::no_model());
        }
        let conversation = conversation(&request)?;
        let mut chat = chat_request(&request)?;
        checked(request.metadata.clone())?;
        let input = requests::input(request.input.as_deref())?;
        if input.is_empty() && conversation.is_none() && request.previous_response_id.is_none() {
            let message = "Missing required parameter: 'input'.";
            return Err(ApiError::invalid("input", message).code("missing_required_parameter"));
        }
        let thread = conversation.as_deref().map(ids::thread).transpose()?;
        let id = mint_id(app.memory(), attempt.named_id(&scope), thread);
        let created_at = app.memory().now().as_millis().div_euclid(1000);
        let mut shell = body::shell(&id, created_at, &request, conversation.as_deref());
        if request.model.is_none() {
            let model = app.model().map_or("", |model| model.name());
            shell.insert("model".to_owned(), model.into());
        }
        let mut ask = Ask {
            turn: None,
            input: Vec::new(),
            request: ChatRequest::default(),
            store: request.store.unwrap_or(true),
            previous: None,
        };
        let before = match (thread, &conversation, request.previous_response_id) {
            (Some(thread), Some(name), _) => {
                let begun = Turn::begin(&app, &scope, thread, &id, &attempt).await.map_err(ids::about(name))?;
                match begun {
                    Begun::Before(record) => return told_before(app, scope, attempt, thread, record).await,
                    Begun::Turn(fresh) => ask.in_conversation(&app, &scope, thread, fresh, input).await?,
                }
            }
            (_, _, Some(previous)) => {
                let is_cut = request.truncation.as_deref() == Some("auto");
                ask.after(&app, &scope, previous, is_cut, input).await?
            }
            _ => {
                ask.input = references::settle(&app, &scope, None, input).await?;
                Vec::new()
            }
        };
        let told = if thread.is_none() { told_outside(&app, &scope, &attempt, &id).await? } else { None };
        let instructions = request.instructions.map(|text| ChatMessage::text(Role::System, text));
        chat.messages = instructions.into_iter().chain(before).chain(requests::shown(&ask.input)).collect();
        ask.request = chat;
        let words = words_of(&id);
        let work = told.unwrap_or_else(|| Work::Ask(Box::new(ask)));
        Ok(Self { app, scope, attempt, id, shell, words, is_streamed: false, work })
    }

    /// Answers whole.
    pub(super) async fn respond(self) -> Result<Response> {
        // A client that goes away does not undo what it asked for.
        let answering = tokio::spawn(carried(async move { self.answer(&mut |_| {}).await }));
        let answered = answering.await.map_err(|_| ApiError::broken_off())?;
        let answered = answered.map_err(|(error, _)| error)?;
        Ok(([(header::CONTENT_TYPE, "application/json")], answered.response).into_response())
    }

    /// Asks the model and stores what it says. A failure comes with the response that says so.
    pub(super) async fn answer(
        self,
        deltas: &mut (dyn FnMut(ChatDelta) + Send),
    ) -> Result<Answered, (ApiError, String)> {
        let Self { app, scope, attempt, id, mut shell, words, is_streamed, work } = self;
        let ask = match work {
            Work::Told { response, output } => return Ok(Answered { response, output, status: "completed" }),
            Work::Run(run) => return super::assistant::run(*run, &id, shell, words, is_streamed, deltas).await,
            Work::Ask(ask) => *ask,
        };
        let mut heard = Heard::default();
        let mut hear = |delta: ChatDelta| {
            if is_streamed {
                heard.note(&delta);
            }
            deltas(delta);
        };
        let asked = match &ask.turn {
            Some(turn) => turn.ask(&app, &ask.request, &mut hear).await,
            None => turn::ask(&app, &ask.request, &mut hear).await,
        };
        let answer = match asked {
            Ok(answer) => answer,
            Err(error) => {
                if let Some(turn) = ask.turn {
                    turn.abandon().await;
                }
                return Err(told_failure(&mut shell, error));
            }
        };
        body::finished(&mut shell, answer.finish, answer.usage.as_ref());
        let drafts = turn::output(&answer, words);
        let output: Vec<Item> = drafts.iter().flat_map(|draft| items_of(&unplaced(&app, draft))).collect();
        let status = if shell["status"] == "incomplete" { "incomplete" } else { "completed" };
        let response = body::with_output(&shell, &output);
        let cuts = heard.cuts(&output);
        let stored = store(&app, &scope, &attempt, &id, &shell, &response, ask, drafts, cuts).await;
        match stored {
            Ok(()) => Ok(Answered { response, output, status }),
            Err(error) => Err(told_failure(&mut shell, error)),
        }
    }
}

pub(super) fn told_failure(shell: &mut Map<String, Value>, error: ApiError) -> (ApiError, String) {
    body::failed(shell, error.code, &error.message);
    let text = body::with_output(shell, &[]);
    (error, text)
}

#[expect(clippy::too_many_arguments, reason = "the end of one response, taken apart for its length only")]
async fn store(
    app: &App,
    scope: &Scope,
    attempt: &Attempt,
    id: &str,
    shell: &Map<String, Value>,
    response: &str,
    ask: Ask,
    output: Vec<Draft>,
    cuts: Vec<u32>,
) -> Result<()> {
    let Ask { turn, input, store, previous, .. } = ask;
    // Ids are made here, so that the record can name what it stores.
    let named = |draft: Draft| if draft.id.is_some() { draft } else { draft.with_id(app.memory().mint_message_id()) };
    let input: Vec<Draft> = input.into_iter().map(named).collect();
    let ids = |drafts: &[Draft]| drafts.iter().filter_map(|draft| draft.id).collect();
    match turn {
        Some(turn) => {
            let shell = JsonText::of(&Value::Object(shell.clone()))?;
            let record = Record {
                id: id.to_owned(),
                digest: attempt.digest().to_owned(),
                input: ids(&input),
                output: ids(&output),
                shell,
                alias: None,
                cuts,
            };
            let drafts = input.into_iter().chain(output).collect();
            turn.finish(app, &record, drafts).await
        }
        None if store => {
            let items =
                |drafts: &[Draft]| drafts.iter().flat_map(|draft| items_of(&unplaced(app, draft))).collect::<Vec<_>>();
            let (input, output) = (kept::texts(&items(&input))?, kept::texts(&items(&output))?);
            let digest = attempt.digest().to_owned();
            let kept = Kept { digest, response: JsonText::new(response)?, input, output, previous, cuts };
            kept::write(app, scope, id, &kept).await
        }
        None => Ok(()),
    }
}

/// What this request was answered before, outside of any conversation.
async fn told_outside(app: &App, scope: &Scope, attempt: &Attempt, id: &str) -> Result<Option<Work>> {
    let Some(kept) = kept::find(app, scope, id).await? else { return Ok(None) };
    attempt.check_same(&kept.digest)?;
    let output = kept.output.iter().map(as_item).collect();
    Ok(Some(Work::Told { response: kept.response.as_str().to_owned(), output }))
}

pub(super) async fn told_before(
    app: App,
    scope: Scope,
    attempt: Attempt,
    thread: ThreadId,
    record: Record,
) -> Result<Answering> {
    let (shell, output) = recalled(&app, &scope, thread, &record).await?;
    let response = body::with_output(&shell, &output);
    let words = words_of(&record.id);
    let work = Work::Told { response, output };
    Ok(Answering { app, scope, attempt, id: record.id, shell, words, is_streamed: false, work })
}

/// A response of a conversation as it stands: what was erased since is gone from it.
pub(super) async fn recalled(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    record: &Record,
) -> Result<(Map<String, Value>, Vec<Item>)> {
    let shell: Map<String, Value> = record.shell.read()?;
    let said = turn::said(app, scope, thread, &record.output).await?;
    let mut items: Vec<Item> = said.iter().flat_map(items_of).collect();
    if let Some(alias) = &record.alias {
        let last = items.pop().map(|last| super::assistant::called(last, alias));
        items.extend(last);
    }
    Ok((shell, items))
}

/// A draft as a message that has no place yet.
pub(crate) fn unplaced(app: &App, draft: &Draft) -> Message {
    Message {
        seq: 0,
        id: draft.id.unwrap_or_else(|| app.memory().mint_message_id()),
        external_id: draft.external_id.clone(),
        revision: 0,
        created_at: app.memory().now(),
        content: draft.content.clone(),
    }
}

pub(super) fn as_item(json: &JsonText) -> Item {
    let id = json.read::<Value>().ok().and_then(|item| item["id"].as_str().map(str::to_owned));
    Item { id: id.unwrap_or_default(), json: json.as_str().to_owned() }
}

pub(super) fn conversation(request: &CreateResponseJson) -> Result<Option<String>> {
    let given = match &request.conversation {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id.clone()),
        Some(Value::Object(members)) if members.get("id").is_some_and(Value::is_string) => {
            members.get("id").and_then(Value::as_str).map(str::to_owned)
        }
        Some(_) => {
            return Err(ApiError::invalid("conversation", "Invalid 'conversation': an id, or an object with one."));
        }
    };
    if given.is_some() && request.previous_response_id.is_some() {
        let message = "Mutually exclusive parameters: Ensure you are only providing one of: 'previous_response_id' or 'conversation'.";
        let error = ApiError::new(StatusCode::BAD_REQUEST, "mutually_exclusive_parameters", message);
        return Err(error);
    }
    Ok(given)
}

fn chat_request(request: &CreateResponseJson) -> Result<ChatRequest> {
    let tools = request.raw_tools.iter().cloned().map(serde_json::from_value).collect::<Result<Vec<_>, _>>();
    let tools = tools.map_err(|_| ApiError::invalid("tools", "Invalid 'tools': a tool is an object with a 'type'."))?;
    let effort = request.reasoning.as_ref().and_then(|reasoning| reasoning.get("effort")?.as_str());
    Ok(ChatRequest {
        messages: Vec::new(),
        tools: requests::tools(Some(tools))?,
        tool_choice: requests::tool_choice(request.tool_choice.as_ref())?,
        temperature: request.temperature,
        max_tokens: request.max_output_tokens,
        format: requests::format(request.text.as_ref().and_then(|text| text.get("format")), "text.format")?,
        parallel_tool_calls: request.parallel_tool_calls,
        reasoning_effort: effort.map(str::to_owned),
        sampling: Sampling { top_p: request.top_p, ..Sampling::default() },
    })
}
