//! Conversation formats for import and export: the lines of export and backup files, and the items into which the files of
//! other programs are converted.
//!
//! An export is JSON Lines. The first line is an [`ExportLine::Threadkeep`] header. The line of each thread is followed by its
//! messages in order and its records. Readers ignore unknown fields and reject later versions. A backup ([`BackupLine`]) contains
//! a whole store verbatim, also as JSON Lines.

use serde::{Deserialize, Serialize};

use crate::{
    Consistency, Content, Dump, JsonText, Map, Message, MessageId, Owner, Part, Record, RecordOwner, Role, Source,
    TenantId, ThreadId, ThreadKey, Timestamp, Usage,
};

/// The version of the export format that this program writes.
pub const EXPORT_VERSION: u32 = 1;

/// One line of an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportLine {
    /// The first line.
    Threadkeep {
        /// The [`EXPORT_VERSION`] of the writer.
        version: u32,
        /// When the export was made.
        exported_at: Timestamp,
    },
    /// A thread. Its messages and records follow.
    Thread(ExportedThread),
    /// A message of the preceding thread.
    Message(Box<ExportedMessage>),
    /// An application's record, owned by the preceding thread, a user or the tenant. In files, records are called documents, as in
    /// earlier versions.
    #[serde(rename = "document")]
    Record {
        /// The owner.
        owner: RecordOwner,
        /// The record.
        #[serde(rename = "document")]
        record: Record,
    },
}

/// A thread in an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportedThread {
    /// Its id.
    pub id: ThreadId,
    /// The owner.
    pub owner: Owner,
    /// The application's own key for the thread, such as `web:42`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<ThreadKey>,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Metadata set by the application.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map,
    /// The agent's state.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub state: Map,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A message in an export, and in `--json` output of the command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportedMessage {
    /// Its position. An import assigns new positions.
    pub seq: u64,
    /// Its id.
    pub id: MessageId,
    /// Its id in the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// The role of the author.
    pub role: Role,
    /// The name of the author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The parts of the content.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// Which agent wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Structured data returned by the assistant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<JsonText>,
    /// The sources of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Token usage and cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Metadata set by the application.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map,
    /// How many times its content was replaced.
    #[serde(default)]
    pub revision: u32,
    /// When it was created.
    pub created_at: Timestamp,
}

impl From<Message> for ExportedMessage {
    fn from(message: Message) -> Self {
        let Message { seq, id, external_id, revision, created_at, content } = message;
        let Content { role, author, parts, agent, data, sources, usage, metadata } = content;
        Self { seq, id, external_id, role, author, parts, agent, data, sources, usage, metadata, revision, created_at }
    }
}

impl ExportedMessage {
    /// Returns the content.
    #[must_use]
    pub fn into_content(self) -> Content {
        let Self { role, author, parts, agent, data, sources, usage, metadata, .. } = self;
        Content { role, author, parts, agent, data, sources, usage, metadata }
    }
}

/// The version of the backup format that this program writes.
pub const BACKUP_VERSION: u32 = 1;

/// One line of a backup. A backup contains a whole store with all tenants, verbatim, as JSON Lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupLine {
    /// The first line.
    ThreadkeepBackup {
        /// The [`BACKUP_VERSION`] of the writer.
        version: u32,
        /// When the backup was started.
        made_at: Timestamp,
        /// Which data in the backup is consistent as of one instant. Missing from files of earlier versions, in which each thread
        /// is consistent only by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        as_of: Option<Consistency>,
    },
    /// A chunk of a thread. The chunks of a thread are consecutive. If a thread's first chunk appears again, readers discard that
    /// thread's earlier chunks.
    Chunk {
        /// The thread's tenant.
        tenant: TenantId,
        /// The thread's id.
        thread: ThreadId,
        /// The thread's data in this chunk.
        dump: Dump,
    },
    /// A record of a user or of a tenant.
    #[serde(rename = "document")]
    Record {
        /// The tenant.
        tenant: TenantId,
        /// The owner.
        owner: RecordOwner,
        /// The record.
        #[serde(rename = "document")]
        record: Record,
    },
    /// The last line. A backup without it is truncated.
    End {
        /// The number of threads in the backup.
        threads: u64,
        /// The number of records of users and tenants in the backup.
        #[serde(rename = "documents")]
        records: u64,
        /// The SHA-256 of all lines before this one, including line endings, in hexadecimal.
        hash: String,
    },
}

/// An item of a file to import. A thread is followed by its messages and records.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportItem {
    /// A thread. Its messages and records follow.
    Thread(Box<ImportedThread>),
    /// A message of the preceding thread.
    Message(Box<ImportedMessage>),
    /// A whole thread with its messages, possibly with branches. No [`ImportItem::Message`] follows it.
    Tree(Box<ImportedTree>),
    /// A record, owned by the preceding thread, a user or the tenant.
    Record {
        /// The owner.
        owner: RecordOwner,
        /// The record.
        record: Record,
    },
}

/// A thread to import. At least one of `id` and `key` is set. A repeated import uses them to find the thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedThread {
    /// Its id. Only set if the source is a Threadkeep export.
    pub id: Option<ThreadId>,
    /// Its key: `import:FORMAT:IDENTITY` for formats of other programs. The identity is the id in the source, or the position in
    /// the file and a hash of the content.
    pub key: Option<ThreadKey>,
    /// Its title, if the source has one.
    pub title: Option<String>,
    /// Other data from the source.
    pub metadata: Map,
    /// The agent's state. Only set if the source is a Threadkeep export.
    pub state: Map,
    /// The creation time, if the source records it.
    pub created_at: Option<Timestamp>,
    /// When it expires. Only set if the source is a Threadkeep export.
    pub expires_at: Option<Timestamp>,
}

/// A message to import. At least one of `id` and `external_id` is set.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedMessage {
    /// Its id. Only set if the source is a Threadkeep export.
    pub id: Option<MessageId>,
    /// Its id in the source, or its position in the thread and a hash of its content.
    pub external_id: Option<String>,
    /// The creation time, if the source records it.
    pub created_at: Option<Timestamp>,
    /// The content.
    pub content: Content,
}

/// A thread whose messages form a tree. Editing a question or regenerating an answer creates a branch.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedTree {
    /// The thread. Its key is set.
    pub thread: ImportedThread,
    /// The messages. Parents come before their children, and siblings are in the order of the source.
    pub nodes: Vec<ImportedNode>,
    /// The index of the node that the source displayed last. The current branch leads through this node to its newest descendant. If
    /// `None`, the current branch leads to the newest message of the tree.
    pub current: Option<usize>,
    /// When the thread was last changed in the source. Importing an older file does not change the current branch.
    pub updated_at: Option<Timestamp>,
}

/// A message of a thread with branches.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedNode {
    /// The index of the parent in [`ImportedTree::nodes`], lower than the index of this node; `None` for a root.
    pub parent: Option<usize>,
    /// The message. Its external id is set and unique in the tree.
    pub message: ImportedMessage,
}
