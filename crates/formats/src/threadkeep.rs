//! Threadkeep's own export, line by line: a header, then threads, each followed by its messages and documents.
//!
//! Members that this version does not know are skipped; an export of a later version is refused. A message whose thread could not
//! be read is refused too, so that it cannot slip into the thread before.

use serde::Deserialize;
use serde_json::value::RawValue;
use threadkeep_core::exchange::{
    EXPORT_VERSION, ExportedMessage, ExportedThread, ImportItem, ImportedMessage, ImportedThread,
};
use threadkeep_core::{Document, DocumentOwner, DocumentWrite, Namespace, ThreadId, ThreadPatch};

use crate::ConversationName;
use crate::conversation::check_content;
use crate::error::Refusal;
use crate::fields::{Fields, unreadable};
use crate::name::told;

const HEADER: &str = "threadkeep";

/// Reads lines, and knows which thread they belong to.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    thread: Option<ThreadId>,
    title: Option<String>,
}

impl Lines {
    pub(crate) fn convert(&mut self, mut fields: Fields<'_>) -> Result<Option<ImportItem>, Refusal> {
        if let Some(version) = version(&fields) {
            self.thread = None;
            return match version {
                Some(version) if version <= u64::from(EXPORT_VERSION) => Ok(None),
                Some(version) => Err(Refusal::new(format!("the export goes on with version {version}"))),
                None => Err(Refusal::new("the header has no version")),
            };
        }
        if let Some(json) = fields.take("thread") {
            self.thread = None;
            return self.thread(json).map(Some).map_err(|refusal| refusal.at("thread"));
        }
        if let Some(json) = fields.take("message") {
            return self.message(json).map(Some).map_err(|refusal| refusal.at("message"));
        }
        if let Some(json) = fields.take("document") {
            return self.document(json).map(Some).map_err(|refusal| refusal.at("document"));
        }
        Err(Refusal::new("neither a thread nor a message nor a document"))
    }

    fn thread(&mut self, json: &RawValue) -> Result<ImportItem, Refusal> {
        let ExportedThread { id, owner: _, key, title, metadata, state, created_at, expires_at } = read(json)?;
        let patch = ThreadPatch { title: Some(title), metadata: Some(metadata), state: Some(state), expires_at: None };
        patch.check()?;
        self.thread = Some(id);
        self.title = patch.title.as_ref().and_then(|title| told(title.as_deref()?));
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

    /// The thread that the last line belongs to.
    pub(crate) fn name(&self) -> ConversationName {
        let id = self.thread.map(|thread| thread.to_string());
        ConversationName { title: self.title.clone().filter(|_| id.is_some()), id }
    }

    fn message(&self, json: &RawValue) -> Result<ImportItem, Refusal> {
        if self.thread.is_none() {
            return Err(Refusal::new("there is no thread above that it could belong to"));
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

    fn document(&self, json: &RawValue) -> Result<ImportItem, Refusal> {
        let ExportedDocument { owner, document } = read(json)?;
        // Approvals and journals are system documents; a file from anywhere must not be able to forge one.
        if matches!(document.namespace, Namespace::System(_)) {
            return Err(Refusal::new("documents of Threadkeep itself are not imported"));
        }
        if matches!(&owner, DocumentOwner::Thread(thread) if self.thread != Some(*thread)) {
            return Err(Refusal::new("it does not belong to the thread above"));
        }
        check(&document)?;
        Ok(ImportItem::Document { owner, document })
    }
}

/// The version that a header gives: the outer `None` where the line is no header, the inner where it has none.
pub(crate) fn version(fields: &Fields<'_>) -> Option<Option<u64>> {
    let header = fields.get(HEADER)?;
    let version = Fields::read(header).ok().and_then(|header| header.get("version"));
    Some(version.and_then(|version| serde_json::from_str(version.get()).ok()))
}

#[derive(Deserialize)]
struct ExportedDocument {
    owner: DocumentOwner,
    document: Document,
}

fn read<'a, T: Deserialize<'a>>(json: &'a RawValue) -> Result<T, Refusal> {
    // Of the parser's own words only these never quote a value, which may be somebody's words.
    serde_json::from_str(json.get()).map_err(|error| match unreadable(&error) {
        refusal if refusal.as_str().starts_with("missing field") => refusal,
        _ => Refusal::new(format!("not as an export has it, at its column {}", error.column())),
    })
}

fn check(document: &Document) -> Result<(), Refusal> {
    // The bounds do not depend on the owner, and a thread's own documents have no check of their own.
    let write = DocumentWrite {
        owner: DocumentOwner::Tenant,
        namespace: document.namespace.clone(),
        key: document.key.clone(),
        expected: None,
        value: Some(document.value.clone()),
        expires_at: None,
    };
    Ok(write.check()?)
}
