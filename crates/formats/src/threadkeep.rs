//! Reads Threadkeep's own export: a header line, then threads, each followed by its messages and records.
//!
//! Unknown fields are ignored. An export of a later version is rejected. A message is rejected if its thread could not be
//! read; otherwise it would be added to the previous thread.

use serde::Deserialize;
use serde_json::value::RawValue;
use threadkeep_core::exchange::{
    EXPORT_VERSION, ExportedMessage, ExportedThread, ImportItem, ImportedMessage, ImportedThread,
};
use threadkeep_core::{Namespace, Record, RecordOwner, RecordWrite, ThreadId, ThreadPatch};

use crate::ConversationName;
use crate::conversation::check_content;
use crate::error::Rejection;
use crate::fields::{Fields, parser_error};
use crate::name::truncated;

const HEADER: &str = "threadkeep";

/// Converts lines, and tracks the thread to which they belong.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    thread: Option<ThreadId>,
    title: Option<String>,
}

impl Lines {
    pub(crate) fn convert(&mut self, mut fields: Fields<'_>) -> Result<Option<ImportItem>, Rejection> {
        if let Some(version) = version(&fields) {
            self.thread = None;
            return match version {
                Some(version) if version <= u64::from(EXPORT_VERSION) => Ok(None),
                Some(version) => Err(Rejection::new(format!("export version {version} is not supported"))),
                None => Err(Rejection::new("the header has no version")),
            };
        }
        if let Some(json) = fields.take("thread") {
            self.thread = None;
            return self.thread(json).map(Some).map_err(|rejection| rejection.at("thread"));
        }
        if let Some(json) = fields.take("message") {
            return self.message(json).map(Some).map_err(|rejection| rejection.at("message"));
        }
        if let Some(json) = fields.take("document") {
            return self.record(json).map(Some).map_err(|rejection| rejection.at("document"));
        }
        Err(Rejection::new("not a thread, message or record"))
    }

    fn thread(&mut self, json: &RawValue) -> Result<ImportItem, Rejection> {
        let ExportedThread { id, owner: _, key, title, metadata, state, created_at, expires_at } = read(json)?;
        let patch = ThreadPatch { title: Some(title), metadata: Some(metadata), state: Some(state), expires_at: None };
        patch.check()?;
        self.thread = Some(id);
        self.title = patch.title.as_ref().and_then(|title| truncated(title.as_deref()?));
        Ok(ImportItem::Thread(Box::new(ImportedThread {
            id: Some(id),
            key,
            title: patch.title.flatten(),
            metadata: patch.metadata.unwrap_or_default(),
            state: patch.state.unwrap_or_default(),
            created_at: Some(created_at),
            expires_at,
        })))
    }

    /// Returns the thread of the last line.
    pub(crate) fn name(&self) -> ConversationName {
        let id = self.thread.map(|thread| thread.to_string());
        ConversationName { title: self.title.clone().filter(|_| id.is_some()), id }
    }

    fn message(&self, json: &RawValue) -> Result<ImportItem, Rejection> {
        if self.thread.is_none() {
            return Err(Rejection::new("no valid thread precedes the message"));
        }
        let message: ExportedMessage = read(json)?;
        let imported = ImportedMessage {
            id: Some(message.id),
            external_id: message.external_id.clone(),
            created_at: Some(message.created_at),
            content: message.into_content(),
        };
        check_content(&imported.content, json.get().len())?;
        Ok(ImportItem::Message(Box::new(imported)))
    }

    fn record(&self, json: &RawValue) -> Result<ImportItem, Rejection> {
        let ExportedRecord { owner, record } = read(json)?;
        // Approvals and journals are system records. An untrusted file must not be able to forge them.
        if matches!(record.namespace, Namespace::System(_)) {
            return Err(Rejection::new("system records cannot be imported"));
        }
        if matches!(&owner, RecordOwner::Thread(thread) if self.thread != Some(*thread)) {
            return Err(Rejection::new("the record belongs to another thread"));
        }
        check(&record)?;
        Ok(ImportItem::Record { owner, record })
    }
}

/// Reads the version of a header. The outer `None` means that the line is not a header, the inner one that the header has no
/// version.
pub(crate) fn version(fields: &Fields<'_>) -> Option<Option<u64>> {
    let header = fields.get(HEADER)?;
    let version = Fields::read(header).ok().and_then(|header| header.get("version"));
    Some(version.and_then(|version| serde_json::from_str(version.get()).ok()))
}

#[derive(Deserialize)]
struct ExportedRecord {
    owner: RecordOwner,
    #[serde(rename = "document")]
    record: Record,
}

fn read<'a, T: Deserialize<'a>>(json: &'a RawValue) -> Result<T, Rejection> {
    // Other messages of the parser may quote values, which can be message text.
    serde_json::from_str(json.get()).map_err(|error| match parser_error(&error) {
        rejection if rejection.as_str().starts_with("missing field") => rejection,
        _ => Rejection::new(format!("invalid value at column {} of the object", error.column())),
    })
}

fn check(record: &Record) -> Result<(), Rejection> {
    // The limits do not depend on the owner, so checking as the tenant is sufficient.
    let write = RecordWrite {
        owner: RecordOwner::Tenant,
        namespace: record.namespace.clone(),
        key: record.key.clone(),
        expected: None,
        value: Some(record.value.clone()),
        expires_at: None,
    };
    Ok(write.check()?)
}
