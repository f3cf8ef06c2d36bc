//! A response that an assistant gives: a turn in the response's conversation, or in a thread of its own that later
//! responses go on in.

use serde_json::{Map, Value, json};
use threadkeep::agent::{RunningTurn, TurnState, find_turn_state};
use threadkeep::core::{ChatDelta, Finish};
use threadkeep::{Agent, MessageId, MessageName, Role, Scope, ThreadId, Turn as AgentTurn, TurnEvent, TurnStatus};
use threadkeep_service::{Attempt, carried};
use tokio::sync::oneshot;

use super::answer::{Answered, Answering, Work, conversation, told_before, told_failure};
use super::create::CreateResponseJson;
use super::pieces::Heard;
use super::retrieve::Found;
use super::{body, chain, mint_id, thread_of, words_of};
use crate::app::App;
use crate::connections::Held;
use crate::error::{ApiError, Result};
use crate::openai::assistant;
use crate::openai::conversations::checked;
use crate::openai::items::{Item, items_of};
use crate::openai::members::{Members, quoted};
use crate::openai::turn::{self, Record};
use crate::openai::{ids, references, requests};
use crate::security::MayDrive;
use crate::turns::{self, Asking, Told};

/// An assistant's turn on its way.
pub(super) struct Run {
    app: App,
    pub(super) asking: Asking,
    held: Held,
    /// Told once the question is stored: from then on the turn goes on whatever becomes of the server.
    pub(super) begun: Option<oneshot::Sender<()>>,
}

/// Checks a request to an assistant, and finds its thread.
pub(super) async fn prepare(
    app: App,
    scope: Scope,
    held: Held,
    agent: Agent,
    request: CreateResponseJson,
    attempt: Attempt,
) -> Result<Answering> {
    assistant::refuse_tools(request.raw_tools.len())?;
    checked(request.metadata.clone())?;
    let input = references::settle(&app, &scope, None, requests::input(request.input.as_deref())?).await?;
    let (said, ask) = assistant::question(input, "input")?;
    let is_kept = request.store != Some(false);
    let is_named = request.conversation.as_ref().is_some_and(|given| !given.is_null());
    let is_passing = !is_kept && !is_named && request.previous_response_id.is_none();
    let thread = match named_thread(&app, &scope, &request).await? {
        Some(thread) => thread,
        None => assistant::new_thread(&app, &agent, &scope, &attempt, said, is_passing).await?,
    };
    let memory = app.memory();
    let id = mint_id(memory, attempt.named_id(&scope), Some(thread));
    if let Some(record) = turn::before(&app, &scope, thread, &id, &attempt).await? {
        return told_before(app, scope, attempt, thread, record).await;
    }
    let created_at = memory.now().as_millis().div_euclid(1000);
    let shell = body::shell(&id, created_at, &request, Some(&ids::conversation(thread)));
    let words = words_of(&id);
    let asking = Asking {
        service: app.service().clone(),
        agent,
        scope: scope.clone(),
        thread,
        ask,
        attempt: attempt.clone(),
        is_passing,
    };
    let work = Work::Run(Box::new(Run { app: app.clone(), asking, held, begun: None }));
    Ok(Answering { app, scope, attempt, id, shell, words, is_streamed: false, work })
}

/// The thread of the conversation, or of the response before.
async fn named_thread(app: &App, scope: &Scope, request: &CreateResponseJson) -> Result<Option<ThreadId>> {
    if let Some(name) = conversation(request)? {
        let thread = ids::thread(&name)?;
        let found = app.memory().get_thread(scope, thread).await;
        return Ok(Some(found.map_err(|error| ids::about(&name)(error.into()))?.id));
    }
    let Some(previous) = &request.previous_response_id else { return Ok(None) };
    let unknown = || chain::not_found(previous);
    let thread = thread_of(previous).ok().flatten().ok_or_else(unknown)?;
    let record = turn::find(app, scope, thread, previous).await?.ok_or_else(unknown)?;
    let last: Vec<_> = record.output.last().copied().into_iter().collect();
    let last = turn::said(app, scope, thread, &last).await?.pop().map(|message| message.seq);
    let seq = app.memory().get_thread(scope, thread).await?.positions.seq;
    if last != Some(seq) {
        let message = "An assistant goes on from its last response only: its thread has gone on from this one.";
        return Err(ApiError::invalid("previous_response_id", message).code("previous_response_not_last"));
    }
    Ok(Some(thread))
}

/// Has the assistant answer, and stores by which name the answer is found.
pub(super) async fn run(
    run: Run,
    id: &str,
    mut shell: Map<String, Value>,
    words: MessageId,
    is_streamed: bool,
    deltas: &mut (dyn FnMut(ChatDelta) + Send),
) -> Result<Answered, (ApiError, String)> {
    let Run { app, asking, held, begun } = run;
    let (scope, digest, is_passing) = (asking.scope.clone(), asking.attempt.digest().to_owned(), asking.is_passing);
    let waiting = turns::start(held, turns::Work::Ask(asking));
    let mut heard = Heard::default();
    let mut note = |delta: ChatDelta| {
        if is_streamed {
            heard.note(&delta);
        }
        deltas(delta);
    };
    let turn = match hear(waiting, begun, &mut note).await {
        Ok(turn) => turn,
        Err(error) => return Err(told_failure(&mut shell, error)),
    };
    let named = Named { id, digest: &digest, words, is_passing };
    let response = response_of(&app, &scope, named, &mut shell, &turn, &heard, MayDrive::Yes).await;
    response.map_err(|error| told_failure(&mut shell, error))
}

/// A response that an assistant gives, by its names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub(super) id: &'a str,
    /// Of the request that it answers.
    pub(super) digest: &'a str,
    pub(super) words: MessageId,
    /// Whether nothing of it stays.
    pub(super) is_passing: bool,
}

/// What became of a response whose maker is gone: others go on with its turn. `None` where it was never begun.
pub(super) async fn taken_up(
    app: &App,
    scope: &Scope,
    named: Named<'_>,
    mut shell: Map<String, Value>,
    turn: &str,
    may_drive: MayDrive,
) -> Result<Option<Found>> {
    let Some(thread) = thread_of(named.id)? else { return Ok(None) };
    match find_turn_state(app.memory(), scope, thread, turn).await? {
        Some(TurnState::Running(running)) => {
            if may_drive == MayDrive::Yes {
                go_on(app, scope, thread, running);
            }
            Ok(Some(Found::Going { shell, words: None, heard: Vec::new() }))
        }
        Some(TurnState::Settled(turn)) => {
            let heard = Heard::default();
            let answered = response_of(app, scope, named, &mut shell, &turn, &heard, may_drive).await?;
            Ok(Some(Found::Over { shell, output: answered.output, cuts: Vec::new() }))
        }
        _ => Ok(None),
    }
}

/// Goes on with a turn that nobody goes on with unasked.
fn go_on(app: &App, scope: &Scope, thread: ThreadId, running: RunningTurn) {
    if app.options().resume_turns {
        return;
    }
    let (app, scope) = (app.clone(), scope.clone());
    let Some(agent) = app.assistants().find(&running.assistant) else { return };
    tokio::spawn(carried(async move {
        if let Err(error) = turns::resume(&app, &agent, &scope, thread, &running.turn).await {
            tracing::warn!(%error, "a turn could not be gone on with");
        }
    }));
}

/// The response that a turn became, which is noted by its name where the caller may change anything.
async fn response_of(
    app: &App,
    scope: &Scope,
    Named { id, digest, words, is_passing }: Named<'_>,
    shell: &mut Map<String, Value>,
    turn: &AgentTurn,
    heard: &Heard,
    may_drive: MayDrive,
) -> Result<Answered> {
    let status = told(shell, turn);
    let alias = format!("msg_{}", words.0.simple());
    let said = if is_passing { None } else { answer_of(app, scope, turn).await? };
    let (item, message) = match said {
        Some((item, message)) => (called(item, &alias), Some(message)),
        None => (written(&alias, &turn.reply), None),
    };
    let output = vec![item];
    if let Some(message) = message.filter(|_| may_drive == MayDrive::Yes) {
        let record = Record {
            id: id.to_owned(),
            digest: digest.to_owned(),
            input: first_of(app, scope, turn).await.unwrap_or_default(),
            output: vec![message],
            shell: threadkeep::JsonText::from(&Value::Object(shell.clone())),
            alias: Some(alias),
            cuts: heard.cuts(&output),
        };
        // The turn is stored; without its name only this response is not found again.
        if let Err(error) = turn::note(app, scope, turn.thread, &record).await {
            tracing::warn!(code = error.code, "a response could not be named");
        }
    }
    Ok(Answered { response: body::with_output(shell, &output), output, status })
}

async fn hear(
    mut waiting: turns::Waiting,
    mut begun: Option<oneshot::Sender<()>>,
    deltas: &mut (dyn FnMut(ChatDelta) + Send),
) -> Result<AgentTurn> {
    while let Some(told) = waiting.recv().await {
        match told {
            Told::Event(TurnEvent::Token { text }) => deltas(ChatDelta::Text(text)),
            Told::Event(TurnEvent::Restarted) => deltas(ChatDelta::Restarted),
            Told::Event(TurnEvent::Started { .. }) => {
                // Whoever waited for it may have given up.
                begun.take().map(|begun| begun.send(()));
            }
            Told::Event(_) => {}
            Told::End(ended) => return Ok(ended?.turn),
        }
    }
    Err(ApiError::internal("a turn broke off"))
}

/// Says in a shell how the turn ended.
fn told(shell: &mut Map<String, Value>, turn: &AgentTurn) -> &'static str {
    body::finished(shell, Finish::Stop, Some(&assistant::usage(turn)));
    shell.insert("threadkeep".to_owned(), assistant::beside(turn));
    let status = match (turn.status, &turn.error) {
        (TurnStatus::Failed, Some(error)) if error.code == "stopped" => "cancelled",
        (TurnStatus::Failed, Some(error)) => {
            body::failed(shell, &error.code, &error.message);
            "failed"
        }
        _ => "completed",
    };
    shell.insert("status".to_owned(), status.into());
    status
}

/// What the user reads, as the thread has it, with its id.
async fn answer_of(app: &App, scope: &Scope, turn: &AgentTurn) -> Result<Option<(Item, MessageId)>> {
    let is_answer = |stored: &&threadkeep::agent::StoredMessage| stored.role == Role::Assistant;
    let Some(stored) = turn.stored.iter().rfind(is_answer) else { return Ok(None) };
    let found = app.memory().find_messages(scope, turn.thread, &[MessageName::Seq(stored.seq)]).await?;
    let Some(message) = found.first() else { return Ok(None) };
    Ok(items_of(message).pop().map(|item| (item, message.id)))
}

async fn first_of(app: &App, scope: &Scope, turn: &AgentTurn) -> Result<Vec<MessageId>> {
    let first = turn.stored.first().map(|stored| MessageName::Seq(stored.seq));
    let found = app.memory().find_messages(scope, turn.thread, first.as_slice()).await?;
    Ok(found.iter().map(|message| message.id).collect())
}

/// An item by the name that a stream has told already.
pub(super) fn called(item: Item, alias: &str) -> Item {
    let Ok(mut members) = Members::read(&item.json) else { return item };
    members.set("id", quoted(alias));
    Item { id: alias.to_owned(), json: members.to_json() }
}

fn written(id: &str, text: &str) -> Item {
    let content = json!([{ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }]);
    let item = json!({ "id": id, "type": "message", "status": "completed", "role": "assistant", "content": content });
    Item { id: id.to_owned(), json: item.to_string() }
}
