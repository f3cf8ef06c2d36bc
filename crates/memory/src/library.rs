//! Libraries of documents that answers can cite. Documents are stored as passages, which are found by words and by embeddings.
//!
//! A library is a collection in the search index with a catalogue, which is one record (the *entry*) per document. It belongs to
//! the scope in which documents were added. A user also finds the documents in the tenant's library with the same name. The
//! entry is written before the passages and again after them, so if adding a document is interrupted, the document is listed as
//! incomplete and can be removed.
//!
//! A document that was uploaded also has an upload record with the state of its processing, and its original text.

mod find;
mod upload;

use serde::{Deserialize, Serialize};
use threadkeep_core::{
    Collection, Conflict, Embedder, Embedding, IndexEntry, JsonText, Map, Namespace, Record, RecordOwner, RecordQuery,
    RecordWrite, Scope, StoreError, Timestamp, Value, limits,
};

use crate::retry::{retry, retry_with_outcome};
use crate::{Memory, MemoryError, Result};
pub use find::{FoundPassage, FoundPassages, PassageOptions};
pub use upload::{LibraryUpload, StoredUpload, UPLOAD_BYTES, UploadState};

/// Maximum number of passages that are embedded and written in one call.
const PASSAGES_PER_CALL: usize = 64;
/// Maximum number of passages of one document.
pub const DOCUMENT_PASSAGES: usize = 20_000;
/// Maximum length of a document's id, in bytes. It leaves room for the suffix in the ids of passages.
pub const DOCUMENT_ID_BYTES: usize = 400;

/// A part of a document that is found and quoted as a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The location in the document, as shown to people, such as `Opening hours, lines 12-20`.
    pub place: String,
    /// The text.
    pub text: String,
}

/// A document to be added to a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLibraryDocument {
    /// The id in the library, such as a path; at most [`DOCUMENT_ID_BYTES`]. Replaces a document with the same id.
    pub id: String,
    /// The title, as shown to people.
    pub title: String,
    /// Any text that changes with the content of the document, such as a hash.
    pub revision: String,
    /// The passages, in order; at most [`DOCUMENT_PASSAGES`].
    pub passages: Vec<Passage>,
}

/// The catalogue entry of a document in a library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryDocument {
    /// The id in the library.
    pub id: String,
    /// The title, as shown to people.
    pub title: String,
    /// The revision that was passed when the document was added.
    pub revision: String,
    /// The number of passages. In an incomplete document, the maximum number that may be stored.
    pub passages: usize,
    /// The model that embedded the passages; `None` without an embedder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedded_by: Option<String>,
    /// Whether all passages are stored. `false` while the document is being added, and if adding it was interrupted or failed; in
    /// that case, add it again.
    pub is_complete: bool,
    /// When the document was added.
    pub added_at: Timestamp,
}

impl Memory {
    /// Adds a document to a library, or replaces the document with the same id. Returns the catalogue entry.
    ///
    /// With an embedder, the passages can also be found by embedding similarity. If the embedder fails, the call fails, and the
    /// document stays incomplete until it is added again.
    ///
    /// If the document is removed or its user is erased in the meantime, the call removes the added passages and fails.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for invalid names and sizes, `Embedder` if the embedder fails, `Conflict` if others removed
    /// or added the document at the same time.
    pub async fn put_library_document(
        &self,
        scope: &Scope,
        library: &str,
        document: NewLibraryDocument,
        embedder: Option<&dyn Embedder>,
    ) -> Result<LibraryDocument> {
        self.put_library_document_with_progress(scope, library, document, embedder, &|_| {}).await
    }

    /// Like [`Memory::put_library_document`], but calls `progress` with the number of passages that are stored, after each step.
    ///
    /// # Errors
    /// The same as [`Memory::put_library_document`].
    pub async fn put_library_document_with_progress(
        &self,
        scope: &Scope,
        library: &str,
        document: NewLibraryDocument,
        embedder: Option<&dyn Embedder>,
        progress: &(dyn Fn(usize) + Send + Sync),
    ) -> Result<LibraryDocument> {
        check_document(&document)?;
        let previous = self.find_library_document(scope, library, &document.id).await?;
        let previous_passages = previous.map_or(0, |previous| previous.passages);
        let NewLibraryDocument { id, title, revision, passages } = document;
        let complete = LibraryDocument {
            passages: passages.len(),
            embedded_by: embedder.map(|embedder| embedder.model().to_owned()),
            is_complete: true,
            added_at: self.now(),
            id,
            title,
            revision,
        };
        // Until the document is complete, its entry counts all passages that may be stored, old and new.
        let max_passages = previous_passages.max(passages.len());
        let incomplete = LibraryDocument { is_complete: false, passages: max_passages, ..complete.clone() };
        let version = self.write_entry(scope, library, &incomplete.id, Some(&incomplete)).await?;
        for (step, passages) in passages.chunks(PASSAGES_PER_CALL).enumerate() {
            let entries = index_entries(&complete, step * PASSAGES_PER_CALL, passages, embedder).await?;
            let collection = collection(library);
            self.check_entry(scope, library, &incomplete, version).await?;
            retry(self.runtime(), || self.search_index().upsert(scope, &collection, entries.clone())).await?;
            progress(step * PASSAGES_PER_CALL + entries.len());
        }
        self.remove_passages(scope, library, &complete.id, passages.len()..previous_passages).await?;
        self.check_entry(scope, library, &incomplete, version).await?;
        self.complete_entry(scope, library, &complete, version).await?;
        Ok(complete)
    }

    /// Checks that the document's entry still has this version. If the entry was deleted, removes the passages, because nothing
    /// refers to them any more.
    async fn check_entry(&self, scope: &Scope, library: &str, entry: &LibraryDocument, version: u64) -> Result<()> {
        let (owner, namespace, now) = (record_owner(scope), catalogue_namespace(library)?, self.now());
        let found =
            retry(self.runtime(), || self.store().find_record(scope, &owner, &namespace, &entry.id, now)).await?;
        let actual = found.map(|record| record.tagged());
        if actual.is_some_and(|actual| actual.number == version) {
            return Ok(());
        }
        if actual.is_none() {
            self.remove_passages(scope, library, &entry.id, 0..entry.passages).await?;
        }
        Err(StoreError::from(Conflict::Record { namespace, key: entry.id.clone(), actual }).into())
    }

    /// Marks a document as complete, unless others have changed its entry since `version`.
    async fn complete_entry(
        &self,
        scope: &Scope,
        library: &str,
        complete: &LibraryDocument,
        version: u64,
    ) -> Result<()> {
        let write = entry_write(scope, library, &complete.id, Some(complete), Some(version))?;
        let now = self.now();
        let written = retry_with_outcome(self.runtime(), || self.store().write_record(scope, write.clone(), now)).await;
        match written.result {
            // An earlier attempt may have written the entry, although its reply was lost.
            Err(StoreError::Conflict(_)) if written.may_have_applied_before => {
                let found = self.find_library_document(scope, library, &complete.id).await?;
                if found.as_ref() == Some(complete) {
                    return Ok(());
                }
            }
            Err(StoreError::Conflict(_)) => {}
            result => return Ok(result.map(drop)?),
        }
        // Reports the conflict, and removes the passages if the entry was deleted.
        self.check_entry(scope, library, complete, version).await
    }

    /// Removes a document and its passages from a library; if it was uploaded, also its original text. Returns whether the document
    /// existed.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn remove_library_document(&self, scope: &Scope, library: &str, id: &str) -> Result<bool> {
        // The upload is removed first, so that a process that is adding its passages does not start again.
        let was_uploaded = self.remove_upload(scope, library, id).await?;
        let Some(document) = self.find_library_document(scope, library, id).await? else { return Ok(was_uploaded) };
        self.remove_passages(scope, library, id, 0..document.passages).await?;
        self.write_entry(scope, library, id, None).await?;
        Ok(true)
    }

    /// Lists the documents in the scope's own part of a library, ordered by id.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn list_library(&self, scope: &Scope, library: &str) -> Result<Vec<LibraryDocument>> {
        let query =
            RecordQuery { namespace: Some(catalogue_namespace(library)?), ..RecordQuery::of(record_owner(scope)) };
        let records = self.all_records(scope, query).await?;
        records.iter().map(decode_entry).collect()
    }

    /// Finds a document in the scope's own part of a library.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn find_library_document(
        &self,
        scope: &Scope,
        library: &str,
        id: &str,
    ) -> Result<Option<LibraryDocument>> {
        let (owner, namespace, now) = (record_owner(scope), catalogue_namespace(library)?, self.now());
        let found = retry(self.runtime(), || self.store().find_record(scope, &owner, &namespace, id, now)).await?;
        found.as_ref().map(decode_entry).transpose()
    }

    async fn remove_passages(
        &self,
        scope: &Scope,
        library: &str,
        id: &str,
        numbers: std::ops::Range<usize>,
    ) -> Result<()> {
        let ids: Vec<String> = numbers.map(|number| passage_id(id, number)).collect();
        for ids in ids.chunks(limits::COMMIT_MESSAGES) {
            let collection = collection(library);
            retry(self.runtime(), || self.search_index().remove(scope, &collection, ids)).await?;
        }
        Ok(())
    }

    async fn write_entry(
        &self,
        scope: &Scope,
        library: &str,
        id: &str,
        document: Option<&LibraryDocument>,
    ) -> Result<u64> {
        let write = entry_write(scope, library, id, document, None)?;
        let now = self.now();
        Ok(retry(self.runtime(), || self.store().write_record(scope, write.clone(), now)).await?.version)
    }
}

fn entry_write(
    scope: &Scope,
    library: &str,
    id: &str,
    document: Option<&LibraryDocument>,
    expected: Option<u64>,
) -> Result<RecordWrite> {
    Ok(RecordWrite {
        owner: record_owner(scope),
        namespace: catalogue_namespace(library)?,
        key: id.to_owned(),
        expected,
        value: document.map(JsonText::of).transpose()?,
        expires_at: None,
    })
}

fn check_document(document: &NewLibraryDocument) -> Result<()> {
    limits::check_at_most("document id", document.id.len(), DOCUMENT_ID_BYTES)?;
    limits::check_at_most("document title", document.title.len(), limits::TITLE_BYTES)?;
    limits::check_at_most("passages per document", document.passages.len(), DOCUMENT_PASSAGES)?;
    match document.id.is_empty() {
        true => Err(MemoryError::invalid("document id", "must not be empty")),
        false => Ok(()),
    }
}

async fn index_entries(
    document: &LibraryDocument,
    first: usize,
    passages: &[Passage],
    embedder: Option<&dyn Embedder>,
) -> Result<Vec<IndexEntry>> {
    let texts: Vec<String> = passages.iter().map(|passage| passage.text.clone()).collect();
    let embeddings: Vec<Option<Embedding>> = match embedder {
        Some(embedder) => embedder.embed(&texts).await?.into_iter().map(Some).collect(),
        None => vec![None; texts.len()],
    };
    if embeddings.len() != texts.len() {
        let error = threadkeep_core::EmbedderError::InvalidAnswer(
            "the number of embeddings differs from the number of texts".to_owned(),
        );
        return Err(error.into());
    }
    let entries = passages.iter().zip(embeddings).enumerate().map(|(index, (passage, embedding))| IndexEntry {
        id: passage_id(&document.id, first + index),
        text: passage.text.clone(),
        fields: source_fields(document, passage),
        embedding,
    });
    Ok(entries.collect())
}

fn source_fields(document: &LibraryDocument, passage: &Passage) -> Map {
    let fields = [("document", &document.id), ("title", &document.title), ("place", &passage.place)];
    fields.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value.as_str()))).collect()
}

fn decode_entry(record: &Record) -> Result<LibraryDocument> {
    Ok(record.value.read()?)
}

fn passage_id(document: &str, number: usize) -> String {
    format!("{document}#{number}")
}

fn collection(library: &str) -> Collection {
    Collection::Named(format!("library:{library}"))
}

fn catalogue_namespace(library: &str) -> Result<Namespace> {
    Ok(Namespace::app(format!("library:{library}"))?)
}

fn record_owner(scope: &Scope) -> RecordOwner {
    scope.default_owner().into()
}
