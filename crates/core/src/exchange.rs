//! What conversations look like on their way in and out: the export format, and what readers of foreign files give.
//!
//! An export is JSON Lines. The first line is a [`ExportLine::Threadkeep`] header; each thread's line is followed by its
//! messages in order and its records. Readers skip members that they do not know and refuse a later version. A backup
//! ([`BackupLine`]) holds a whole store verbatim in the same manner.

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
        /// [`EXPORT_VERSION`] of the writer.
        version: u32,
        /// When it was written.
        exported_at: Timestamp,
    },
    /// A thread; what follows belongs to it.
    Thread(ExportedThread),
    /// A message of the thread above.
    Message(Box<ExportedMessage>),
    /// An application's record: of the thread above, of a user, or of the tenant.
    #[serde(rename = "document")]
    Record {
        /// Whose.
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
    /// Whom it belongs to.
    pub owner: Owner,
    /// What a channel calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<ThreadKey>,
    /// What a person calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The application's own notes.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map,
    /// The state that an agent keeps.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub state: Map,
    /// When it was opened first.
    pub created_at: Timestamp,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A message in an export, and in `--json` output of the command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportedMessage {
    /// Its position. An import gives new ones.
    pub seq: u64,
    /// Its id.
    pub id: MessageId,
    /// What its source calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Who speaks.
    pub role: Role,
    /// The speaker's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// What is said.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// Which agent wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What the assistant keeps beside the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<JsonText>,
    /// What the words stand on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The application's own notes.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map,
    /// How often it was replaced.
    #[serde(default)]
    pub revision: u32,
    /// When it was said.
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
    /// The content.
    #[must_use]
    pub fn into_content(self) -> Content {
        let Self { role, author, parts, agent, data, sources, usage, metadata, .. } = self;
        Content { role, author, parts, agent, data, sources, usage, metadata }
    }
}

/// The version of the backup format that this program writes.
pub const BACKUP_VERSION: u32 = 1;

/// One line of a backup: a whole store verbatim, every tenant's, as JSON Lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupLine {
    /// The first line.
    ThreadkeepBackup {
        /// [`BACKUP_VERSION`] of the writer.
        version: u32,
        /// When it was begun.
        made_at: Timestamp,
        /// What is as of that instant; files from before this member do not say, and are as of one instant per thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        as_of: Option<Consistency>,
    },
    /// A chunk of a thread. The chunks of a thread follow each other; its first may come again and begins it anew.
    Chunk {
        /// The thread's tenant.
        tenant: TenantId,
        /// The thread's id.
        thread: ThreadId,
        /// What it holds.
        dump: Dump,
    },
    /// A record of a user or of a tenant.
    #[serde(rename = "document")]
    Record {
        /// The tenant.
        tenant: TenantId,
        /// Whose.
        owner: RecordOwner,
        /// The record.
        #[serde(rename = "document")]
        record: Record,
    },
    /// The last line, without which a backup was cut.
    End {
        /// How many threads stand before it.
        threads: u64,
        /// How many records of users and tenants stand before it.
        #[serde(rename = "documents")]
        records: u64,
        /// SHA-256 of all lines before it with their ends, in hexadecimal digits.
        hash: String,
    },
}

/// What a reader of a conversation file gives, in order: a thread, then what belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportItem {
    /// A conversation begins.
    Thread(Box<ImportedThread>),
    /// A message of the conversation above.
    Message(Box<ImportedMessage>),
    /// A whole conversation that may have branches. No message follows it.
    Tree(Box<ImportedTree>),
    /// A record of the conversation above, of a user, or of the tenant.
    Record {
        /// Whose.
        owner: RecordOwner,
        /// The record.
        record: Record,
    },
}

/// A conversation on its way in. At least one of `id` and `key` is there: it is what makes a second import find it.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedThread {
    /// Its id, in our own format.
    pub id: Option<ThreadId>,
    /// What it is called: `import:FORMAT:IDENTITY` for foreign formats, where the identity is the source's own id, else
    /// its place in the file and a hash of its content.
    pub key: Option<ThreadKey>,
    /// Its title, where the source has one.
    pub title: Option<String>,
    /// What the source says beside the messages.
    pub metadata: Map,
    /// The state that an agent keeps, in our own format.
    pub state: Map,
    /// When the source began it.
    pub created_at: Option<Timestamp>,
    /// When it expires, in our own format.
    pub expires_at: Option<Timestamp>,
}

/// A message on its way in. At least one of `id` and `external_id` is there.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedMessage {
    /// Its id, in our own format.
    pub id: Option<MessageId>,
    /// The source's id, else its place in the conversation and a hash of its content.
    pub external_id: Option<String>,
    /// When it was said, where the source tells.
    pub created_at: Option<Timestamp>,
    /// What it says.
    pub content: Content,
}

/// A conversation whose messages form a tree: where a question was edited or an answer was made again, it branches.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedTree {
    /// The conversation. It has a key.
    pub thread: ImportedThread,
    /// The messages: a parent stands before its children, and siblings stand in the source's order.
    pub nodes: Vec<ImportedNode>,
    /// Which node the source showed last. The current branch goes through it, and on to the newest message below it; without one
    /// it leads to the newest message of all.
    pub current: Option<usize>,
    /// When the source changed the conversation last. An older file does not change which branch is current.
    pub updated_at: Option<Timestamp>,
}

/// A message of a conversation with branches.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedNode {
    /// The place of the message that it follows, among the nodes before it; `None` for a first message.
    pub parent: Option<usize>,
    /// The message. It has an external id that no other node has.
    pub message: ImportedMessage,
}
