//! The objects that pages pass and receive (`types.ts`). Messages have the form of an export, threads that of the server's API.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use threadkeep_context::Report;
use threadkeep_core::exchange::ExportedMessage;
use threadkeep_core::{
    ChatMessage, Content, CorruptRow, Expected, Map, Message, MessageId, MessagePage, Namespace, OpenOutcome, Part,
    Positions, Role, Source, Thread, ThreadId, ThreadOrder, ThreadPage, Timestamp, Usage,
};
use threadkeep_memory::{
    AppendOptions, Appended, AssembledContext, Draft, Hit, ImportReport, RecallOptions, RecalledMessage, SearchOptions,
    SearchResults, Snippet, ThreadEvent, ThreadUpdate,
};

/// The default number of recalled messages, and of hits of a search.
const FOUND: usize = 10;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenOptionsJson {
    pub(crate) database: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) durability: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenThreadJson {
    pub(crate) id: Option<ThreadId>,
    pub(crate) key: Option<String>,
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) metadata: Map,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThreadsOptionsJson {
    pub(crate) order: Option<ThreadOrder>,
    pub(crate) limit: Option<usize>,
    pub(crate) after: Option<String>,
    #[serde(default)]
    pub(crate) metadata: Map,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessagesOptionsJson {
    pub(crate) limit: Option<usize>,
    pub(crate) before: Option<u64>,
    pub(crate) after: Option<u64>,
    #[serde(default)]
    pub(crate) roles: Vec<Role>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubscribeOptionsJson {
    pub(crate) last: Option<usize>,
    pub(crate) after: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AppendOptionsJson {
    idempotency_key: Option<String>,
    expected_seq: Option<u64>,
}

impl From<AppendOptionsJson> for AppendOptions {
    fn from(AppendOptionsJson { idempotency_key, expected_seq }: AppendOptionsJson) -> Self {
        Self { idempotency_key, expected: expected_seq.map(Expected::Seq), ..Self::default() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecallOptionsJson {
    thread: Option<ThreadId>,
    limit: Option<usize>,
}

impl From<RecallOptionsJson> for RecallOptions {
    fn from(RecallOptionsJson { thread, limit }: RecallOptionsJson) -> Self {
        Self { thread, limit: limit.unwrap_or(FOUND), ..Self::default() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchOptionsJson {
    thread: Option<ThreadId>,
    limit: Option<usize>,
    #[serde(default)]
    roles: Vec<Role>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl From<SearchOptionsJson> for SearchOptions {
    fn from(SearchOptionsJson { thread, limit, roles, since, until }: SearchOptionsJson) -> Self {
        Self { thread, limit: limit.unwrap_or(FOUND), roles, since, until, ..Self::default() }
    }
}

/// One message, or several.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum DraftsJson {
    Several(Vec<DraftJson>),
    One(Box<DraftJson>),
}

impl DraftsJson {
    pub(crate) fn into_drafts(self) -> Vec<Draft> {
        match self {
            Self::Several(drafts) => drafts.into_iter().map(Draft::from).collect(),
            Self::One(draft) => vec![Draft::from(*draft)],
        }
    }
}

/// A message to append. `text` stands for a single text part.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DraftJson {
    id: Option<MessageId>,
    external_id: Option<String>,
    created_at: Option<Timestamp>,
    role: Role,
    text: Option<String>,
    author: Option<String>,
    #[serde(default)]
    parts: Vec<Part>,
    agent: Option<String>,
    #[serde(default)]
    sources: Vec<Source>,
    usage: Option<Usage>,
    #[serde(default)]
    metadata: Map,
}

impl From<DraftJson> for Draft {
    fn from(draft: DraftJson) -> Self {
        let DraftJson { id, external_id, created_at, role, text, author, parts, agent, sources, usage, metadata } =
            draft;
        let parts = text.map(Part::Text).into_iter().chain(parts).collect();
        let content = Content { role, author, parts, agent, data: None, sources, usage, metadata };
        Self { content, id, external_id, created_at }
    }
}

#[derive(Serialize)]
pub(crate) struct ThreadJson {
    id: ThreadId,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    metadata: Map,
    messages: u64,
    first_seq: u64,
    seq: u64,
    change: u64,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Whether the call created the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<bool>,
}

impl ThreadJson {
    pub(crate) fn opened(OpenOutcome { thread, created }: OpenOutcome) -> Self {
        Self { created: Some(created), ..thread.into() }
    }
}

impl From<Thread> for ThreadJson {
    fn from(thread: Thread) -> Self {
        let Thread { id, key, title, metadata, positions, message_count, created_at, updated_at, .. } = thread;
        Self {
            id,
            key: key.map(|key| key.as_str().to_owned()),
            title,
            metadata,
            messages: message_count,
            first_seq: positions.first_seq,
            seq: positions.seq,
            change: positions.change,
            created_at,
            updated_at,
            created: None,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct ThreadsJson {
    threads: Vec<ThreadJson>,
    next: Option<String>,
}

impl From<ThreadPage> for ThreadsJson {
    fn from(ThreadPage { threads, next }: ThreadPage) -> Self {
        Self { threads: threads.into_iter().map(ThreadJson::from).collect(), next }
    }
}

#[derive(Serialize)]
pub(crate) struct AppendJson {
    change: u64,
    first_seq: u64,
    messages: Vec<Value>,
    replayed: bool,
}

impl From<Appended> for AppendJson {
    fn from(appended: Appended) -> Self {
        let Appended { change, first_seq, messages, replayed, .. } = appended;
        let messages = messages.into_iter().map(|message| json!({"seq": message.seq, "id": message.id})).collect();
        Self { change, first_seq, messages, replayed }
    }
}

#[derive(Serialize)]
pub(crate) struct MessagesJson {
    messages: Vec<ExportedMessage>,
    /// The positions of messages that cannot be decoded.
    unreadable: Vec<u64>,
    more: bool,
    seq: u64,
    change: u64,
}

impl From<MessagePage> for MessagesJson {
    fn from(page: MessagePage) -> Self {
        let MessagePage { messages, corrupt, more, positions } = page;
        let Positions { seq, change, .. } = positions;
        Self { messages: exported(messages), unreadable: seqs(&corrupt), more, seq, change }
    }
}

fn exported(messages: Vec<Message>) -> Vec<ExportedMessage> {
    messages.into_iter().map(ExportedMessage::from).collect()
}

fn seqs(corrupt: &[CorruptRow]) -> Vec<u64> {
    corrupt.iter().map(|row| row.seq).collect()
}

#[derive(Serialize)]
pub(crate) struct ContextJson {
    messages: Vec<ChatMessage>,
    report: Report,
    unreadable: Vec<u64>,
    seq: u64,
    change: u64,
}

impl From<AssembledContext> for ContextJson {
    fn from(assembled: AssembledContext) -> Self {
        let AssembledContext { context, positions, unreadable, .. } = assembled;
        let Positions { seq, change, .. } = positions;
        Self { messages: context.messages, report: context.report, unreadable: seqs(&unreadable), seq, change }
    }
}

#[derive(Serialize)]
pub(crate) struct RecallJson {
    thread: ThreadId,
    message: ExportedMessage,
    score: f64,
}

impl From<RecalledMessage> for RecallJson {
    fn from(recalled: RecalledMessage) -> Self {
        let RecalledMessage { thread, message, score, .. } = recalled;
        Self { thread, message: message.into(), score }
    }
}

#[derive(Serialize)]
pub(crate) struct SearchJson {
    hits: Vec<HitJson>,
    truncated: bool,
    corrections: Vec<Value>,
}

#[derive(Serialize)]
struct HitJson {
    thread: ThreadId,
    message: ExportedMessage,
    score: f64,
    snippet: Snippet,
}

impl From<SearchResults> for SearchJson {
    fn from(results: SearchResults) -> Self {
        let SearchResults { hits, truncated, corrections, .. } = results;
        let hits = hits.into_iter().map(|Hit { thread, message, score, snippet }| HitJson {
            thread,
            message: message.into(),
            score,
            snippet,
        });
        let corrections = corrections.into_iter().map(|found| json!({"word": found.word, "instead": found.instead}));
        Self { hits: hits.collect(), truncated, corrections: corrections.collect() }
    }
}

/// An update of a subscription. `type` distinguishes the kinds.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum UpdateJson {
    History { messages: Vec<ExportedMessage>, unreadable: Vec<u64>, seq: u64, change: u64 },
    Commit { change: u64, at: Timestamp, events: Vec<EventJson> },
    Reset { seq: u64, change: u64 },
    Deleted,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum EventJson {
    Appended { messages: Vec<ExportedMessage>, unreadable: Vec<u64> },
    Replaced { message: Box<ExportedMessage> },
    Erased { seq: u64, id: MessageId },
    Trimmed { first_seq: u64 },
    Record { namespace: Namespace, key: String },
    Patched,
}

impl From<&ThreadUpdate> for UpdateJson {
    fn from(update: &ThreadUpdate) -> Self {
        match update {
            ThreadUpdate::History { messages, corrupt, positions } => Self::History {
                messages: exported(messages.clone()),
                unreadable: seqs(corrupt),
                seq: positions.seq,
                change: positions.change,
            },
            ThreadUpdate::Commit { change, at, events, .. } => {
                Self::Commit { change: *change, at: *at, events: events.iter().map(EventJson::from).collect() }
            }
            ThreadUpdate::Reset { positions } => Self::Reset { seq: positions.seq, change: positions.change },
            ThreadUpdate::Deleted => Self::Deleted,
        }
    }
}

impl From<&ThreadEvent> for EventJson {
    fn from(event: &ThreadEvent) -> Self {
        match event {
            ThreadEvent::Appended { messages, corrupt } => {
                Self::Appended { messages: exported(messages.clone()), unreadable: seqs(corrupt) }
            }
            ThreadEvent::Replaced { message } => Self::Replaced { message: Box::new((**message).clone().into()) },
            ThreadEvent::Erased { seq, id } => Self::Erased { seq: *seq, id: *id },
            ThreadEvent::Trimmed { first_seq } => Self::Trimmed { first_seq: *first_seq },
            ThreadEvent::Record { name, .. } => {
                Self::Record { namespace: name.namespace.clone(), key: name.key.clone() }
            }
            ThreadEvent::Patched => Self::Patched,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct ImportJson {
    threads_created: u64,
    threads_found: u64,
    messages_added: u64,
    messages_already_there: u64,
    records_added: u64,
    /// What could not be read or stored, and why.
    problems: Vec<String>,
}

impl ImportJson {
    pub(crate) fn new(report: &ImportReport, unreadable: Vec<String>) -> Self {
        let failed = report.problems.iter().map(|problem| match &problem.name {
            Some(name) => format!("{name}: {}", problem.error),
            None => format!("item {}: {}", problem.item, problem.error),
        });
        Self {
            threads_created: report.threads_created,
            threads_found: report.threads_found,
            messages_added: report.messages_added,
            messages_already_there: report.messages_already_there,
            records_added: report.records_added,
            problems: unreadable.into_iter().chain(failed).collect(),
        }
    }
}
