use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use threadkeep::core::{DocumentState, OpenThread, PutDocument, codec};
use threadkeep::{
    AppendOptions, DocumentName, Draft, JsonText, Map, MemoryError, Message, MessageQuery, Namespace, Scope,
    StoreError, Thread, ThreadId,
};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{self, JsonBody, Names};
use crate::output::{created_or_found, with_etag};
use crate::rest::json::thread::ThreadJson;
use crate::security::Caller;

/// Messages read at a time.
const PAGE: usize = 500;
/// Bytes of content written at a time, about; one message more still fits what a commit takes.
const COMMIT_BYTES: usize = 8 * 1024 * 1024;

/// What to take over.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ForkJson {
    /// The last position that is taken over; all where it is left out.
    through_seq: Option<u64>,
    /// The new thread's title; that of the old where it is left out.
    title: Option<String>,
    /// The new thread's metadata; that of the old where it is left out.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
}

/// How far a fork with an Idempotency-Key has come.
#[derive(Debug, Deserialize, Serialize)]
struct Progress {
    /// The last position that is taken over.
    through: u64,
    is_whole: bool,
}

/// Makes a thread that begins as another one did
///
/// Messages keep their ids and instants, and get positions from 1. State is taken over, keys and documents are not. The new thread
/// belongs to the caller. A fork that breaks off is continued by the same Idempotency-Key.
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/fork",
    tag = "threads",
    params(("id" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body = ForkJson,
    responses(
        (status = 201, body = ThreadJson),
        (status = 200, description = "It was made before.", body = ThreadJson),
        (status = "4XX", body = ErrorEnvelope<'_>)
    ),
    security(("key" = []))
)]
pub(crate) async fn fork(
    State(app): State<App>,
    caller: Caller,
    names: Names,
    headers: HeaderMap,
    JsonBody { value: body, digest }: JsonBody<ForkJson>,
) -> Result {
    let (scope, memory) = (&caller.scope, app.memory());
    let from = memory.get_thread(scope, names.thread()?).await?;
    let attempt = input::attempt(&headers, "fork", &format!("{}:{digest}", from.id))?;
    let id = attempt.thread_id(&app, scope);
    let through = body.through_seq.unwrap_or(from.positions.seq);
    let title = body.title.or(from.title.clone());
    let metadata = body.metadata.unwrap_or_else(|| {
        let mut metadata = from.metadata.clone();
        // It says which branch of an imported conversation a thread is; the new thread is none.
        metadata.remove("branch");
        metadata
    });
    let open = OpenThread { title, metadata, state: from.state.clone(), ..OpenThread::new(scope, id) };
    let opened = memory.open_thread(scope, open).await?;
    let is_noted = attempt.note_creation(&app, scope, id).await?;
    if is_noted {
        copy_once(&app, scope, &from, id, through).await?;
    } else {
        copy(&app, scope, &from, id, through).await?;
    }
    let thread = memory.get_thread(scope, id).await?;
    let change = thread.positions.change;
    Ok(with_etag(created_or_found(opened.created, &ThreadJson::from(thread)), change))
}

/// Copies what an earlier try of the same request has not. The other thread may have changed since: where the fork ends was
/// settled by the first try, and a fork that is whole is left alone.
async fn copy_once(app: &App, scope: &Scope, from: &Thread, to: ThreadId, through: u64) -> Result<()> {
    let (memory, name) =
        (app.memory(), DocumentName { namespace: Namespace::system("server")?, key: "fork".to_owned() });
    let put = |progress: &Progress| -> Result<PutDocument> {
        Ok(PutDocument { name: name.clone(), value: JsonText::of(progress)?, expires_at: None })
    };
    let begun = Progress { through, is_whole: false };
    let first = memory.batch().require(name.clone(), DocumentState::Absent).put(put(&begun)?).commit(scope, to).await;
    let begun = match first {
        Ok(_) => begun,
        Err(MemoryError::Store(StoreError::Conflict(_))) => {
            let found = memory.find_thread_document(scope, to, &name).await?;
            found.map(|document| document.value.read()).transpose()?.unwrap_or(begun)
        }
        Err(error) => return Err(error.into()),
    };
    if begun.is_whole {
        return Ok(());
    }
    copy(app, scope, from, to, begun.through).await?;
    memory.batch().put(put(&Progress { is_whole: true, ..begun })?).commit(scope, to).await?;
    Ok(())
}

async fn copy(app: &App, scope: &Scope, from: &Thread, to: ThreadId, through: u64) -> Result<()> {
    let mut after = from.positions.first_seq - 1;
    loop {
        let page = app.memory().messages(scope, from.id, &MessageQuery::following(after, PAGE)).await?;
        let Some(last) = page.messages.last().map(|message| message.seq) else { return Ok(()) };
        let (mut drafts, mut bytes, mut first) = (Vec::new(), 0, 0);
        for message in page.messages.into_iter().filter(|message| message.seq <= through) {
            bytes += codec::encode_content(&message.content)?.len();
            first = if drafts.is_empty() { message.seq } else { first };
            drafts.push(draft(message));
            if bytes > COMMIT_BYTES {
                bytes = 0;
                write(app, scope, to, first, std::mem::take(&mut drafts)).await?;
            }
        }
        write(app, scope, to, first, drafts).await?;
        if !page.more || last >= through {
            return Ok(());
        }
        after = last;
    }
}

/// A key of its own makes each piece count once, whoever breaks off and comes again.
async fn write(app: &App, scope: &Scope, to: ThreadId, first: u64, drafts: Vec<Draft>) -> Result<()> {
    if drafts.is_empty() {
        return Ok(());
    }
    let options = AppendOptions { idempotency_key: Some(format!("http:fork:{first}")), ..AppendOptions::default() };
    app.memory().append_all(scope, to, drafts, &options).await?;
    Ok(())
}

fn draft(message: Message) -> Draft {
    let Message { id, external_id, created_at, content, .. } = message;
    Draft { content, id: Some(id), external_id, created_at: Some(created_at) }
}
