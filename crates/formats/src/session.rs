//! Builds the items of a conversation whose messages are in separate records, such as the lines of a session file.

use std::collections::HashSet;

use threadkeep_core::exchange::{ImportItem, ImportedMessage, ImportedThread};
use threadkeep_core::{Content, Map, Timestamp};

use crate::conversation::{Converted, check_content};
use crate::error::Rejection;
use crate::fields::{self, Fields, MAX_ENTRIES};
use crate::records::Record;
use crate::{ConversationName, Format, identity, name};

/// The maximum size of a field that is copied to the metadata.
const METADATA_VALUE_BYTES: usize = 4 * 1024;

/// Converts records that continue a conversation.
pub(crate) trait SessionRecords: Send {
    /// Converts a record. Only messages that earlier records did not contain are returned.
    fn convert(&mut self, record: &Record, fields: Fields<'_>) -> Result<Converted, Rejection>;

    /// Returns the conversation to which the last record belongs.
    fn name(&self) -> ConversationName;
}

/// The conversation to which the current record belongs.
#[derive(Debug)]
pub(crate) struct Session {
    format: Format,
    id: Option<String>,
    /// The record with which the conversation begins.
    first_record: u64,
    /// The external ids of its messages.
    seen: HashSet<String>,
}

/// What is known about a conversation when it begins.
#[derive(Debug, Default)]
pub(crate) struct SessionStart {
    pub(crate) title: Option<String>,
    pub(crate) metadata: Map,
    pub(crate) created_at: Option<Timestamp>,
}

impl Session {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, id: None, first_record: 0, seen: HashSet::new() }
    }

    /// Returns the id of the current conversation.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub(crate) fn name(&self) -> ConversationName {
        ConversationName { title: None, id: self.id.as_deref().and_then(name::truncated) }
    }

    /// Begins a conversation, unless it is the current one. Without an id, the record identifies it.
    pub(crate) fn begin(
        &mut self,
        record: &Record,
        id: Option<&str>,
        start: SessionStart,
    ) -> Result<Option<ImportItem>, Rejection> {
        if self.id.is_some() && self.id.as_deref() == id {
            return Ok(None);
        }
        let key = identity::thread_key(self.format, record, id)?;
        (self.id, self.first_record) = (Some(id.unwrap_or_default().to_owned()), record.index);
        self.seen.clear();
        let SessionStart { title, metadata, created_at } = start;
        Ok(Some(ImportItem::Thread(Box::new(ImportedThread {
            id: None,
            key: Some(key),
            title,
            metadata,
            state: Map::new(),
            created_at,
            expires_at: None,
        }))))
    }

    /// Returns the external id of the message in a record: the position of the record, and a hash of its text.
    pub(crate) fn id_of_record(&self, record: &Record) -> String {
        identity::message_id_by_record(record.index - self.first_record.min(record.index), record)
    }

    /// Whether the conversation contains a message with this id.
    pub(crate) fn contains(&self, external_id: &str) -> bool {
        self.seen.contains(external_id)
    }

    /// Returns a message, or `None` if the conversation contains a message with this id.
    pub(crate) fn message(
        &mut self,
        record: &Record,
        external_id: String,
        created_at: Option<Timestamp>,
        content: Content,
    ) -> Result<Option<ImportItem>, Rejection> {
        check_content(&content, record.text.len())?;
        if self.seen.len() >= MAX_ENTRIES {
            return Err(Rejection::new(format!("more than {MAX_ENTRIES} messages in one conversation")));
        }
        if !self.seen.insert(external_id.clone()) {
            return Ok(None);
        }
        let external_id = Some(external_id);
        Ok(Some(ImportItem::Message(Box::new(ImportedMessage { id: None, external_id, created_at, content }))))
    }
}

/// Copies small fields to the metadata.
pub(crate) fn copy_metadata(fields: &mut Fields<'_>, names: &[&str], metadata: &mut Map) -> Result<(), Rejection> {
    for name in names {
        if let Some(json) = fields.take(name).filter(|json| json.get().len() <= METADATA_VALUE_BYTES) {
            metadata.insert((*name).to_owned(), fields::value(json).map_err(|rejection| rejection.at(name))?);
        }
    }
    Ok(())
}
