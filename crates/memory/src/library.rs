//! Documents that an assistant's answers can stand on: kept in passages, found by words and by meaning.
//!
//! A library is a collection of the search index together with a catalogue. It belongs to the scope that fills it; a user
//! also finds what its tenant put in. The catalogue is written before the passages and after them, so a document whose
//! adding was cut off is listed as incomplete rather than being found without being listed.

mod find;

use serde::{Deserialize, Serialize};
use threadkeep_core::{
    Collection, Conflict, Embedder, Embedding, IndexEntry, JsonText, Map, Namespace, Record, RecordOwner, RecordQuery,
    RecordWrite, Scope, StoreError, Timestamp, Value, limits,
};

use crate::retry::{repeat, repeat_simply};
use crate::{Memory, MemoryError, Result};
pub use find::{FoundPassage, FoundPassages, PassageOptions};

/// Passages written by one call, and texts that an embedder is given at once.
const STEP: usize = 64;
/// Passages of one document.
pub const DOCUMENT_PASSAGES: usize = 20_000;
/// Bytes of a document's id, so that its passages' ids are short enough.
pub const DOCUMENT_ID_BYTES: usize = 400;

/// A piece of a document, as long as one wants to quote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Where in the document it stands, in words for a reader: `Opening hours, lines 12-20`.
    pub place: String,
    /// What it says.
    pub text: String,
}

/// A document on its way into a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLibraryDocument {
    /// Its id in the library, such as its path; at most [`DOCUMENT_ID_BYTES`]. Adding one that is there replaces it.
    pub id: String,
    /// What a reader calls it.
    pub title: String,
    /// Tells whether it has changed since; any text, such as a hash.
    pub revision: String,
    /// What it says, in order; at most [`DOCUMENT_PASSAGES`].
    pub passages: Vec<Passage>,
}

/// A document of a library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryDocument {
    /// Its id in the library.
    pub id: String,
    /// What a reader calls it.
    pub title: String,
    /// Tells whether it has changed since.
    pub revision: String,
    /// How many passages it has.
    pub passages: usize,
    /// The model by which its passages are found by meaning, where an embedder joined in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedded_by: Option<String>,
    /// Whether all passages are in. Not so while it is added, or when that was cut off: add it again.
    pub is_complete: bool,
    /// When it was added.
    pub added_at: Timestamp,
}

impl Memory {
    /// Puts a document into a library, over the one with the same id, and tells what is there then.
    ///
    /// With an embedder its passages can be found by meaning too; one that fails makes the call fail, and the document
    /// stays incomplete until it is added again.
    ///
    /// Where the document is removed meanwhile, or its user erased, what was put in goes again and the call fails.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for names and sizes, `Embedder` for an embedder that fails, `Conflict` for a document
    /// that others removed or put at the same time.
    pub async fn put_library_document(
        &self,
        scope: &Scope,
        library: &str,
        document: NewLibraryDocument,
        embedder: Option<&dyn Embedder>,
    ) -> Result<LibraryDocument> {
        check(&document)?;
        let former = self.find_library_document(scope, library, &document.id).await?;
        let former_passages = former.map_or(0, |former| former.passages);
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
        // Until all is done the catalogue names every passage that may be there, old and new.
        let most = former_passages.max(passages.len());
        let begun = LibraryDocument { is_complete: false, passages: most, ..complete.clone() };
        let version = self.write_catalogue(scope, library, &begun.id, Some(&begun)).await?;
        for (step, passages) in passages.chunks(STEP).enumerate() {
            let entries = entries(&complete, step * STEP, passages, embedder).await?;
            let collection = collection(library);
            self.check_listed(scope, library, &begun, version).await?;
            repeat_simply(self.runtime(), || self.search_index().upsert(scope, &collection, entries.clone())).await?;
        }
        self.remove_passages(scope, library, &complete.id, passages.len()..former_passages).await?;
        self.check_listed(scope, library, &begun, version).await?;
        self.complete_catalogue(scope, library, &complete, version).await?;
        Ok(complete)
    }

    /// Checks that the catalogue still says what it said when adding began. Passages of a document that nobody lists any
    /// more could not be removed later, so they are removed here.
    async fn check_listed(&self, scope: &Scope, library: &str, begun: &LibraryDocument, version: u64) -> Result<()> {
        let (owner, namespace, now) = (owner(scope), catalogue(library)?, self.now());
        let found =
            repeat_simply(self.runtime(), || self.store().find_record(scope, &owner, &namespace, &begun.id, now))
                .await?;
        let actual = found.map(|document| document.tagged());
        if actual.is_some_and(|actual| actual.number == version) {
            return Ok(());
        }
        if actual.is_none() {
            self.remove_passages(scope, library, &begun.id, 0..begun.passages).await?;
        }
        Err(StoreError::from(Conflict::Record { namespace, key: begun.id.clone(), actual }).into())
    }

    /// Lists a document as complete, unless somebody else changed its listing since `version`.
    async fn complete_catalogue(
        &self,
        scope: &Scope,
        library: &str,
        complete: &LibraryDocument,
        version: u64,
    ) -> Result<()> {
        let write = catalogue_write(scope, library, &complete.id, Some(complete), Some(version))?;
        let now = self.now();
        let written = repeat(self.runtime(), || self.store().write_record(scope, write.clone(), now)).await;
        match written.result {
            // The attempt whose reply was lost did it.
            Err(StoreError::Conflict(_)) if written.may_have_applied_before => {
                let found = self.find_library_document(scope, library, &complete.id).await?;
                if found.as_ref() == Some(complete) {
                    return Ok(());
                }
            }
            Err(StoreError::Conflict(_)) => {}
            result => return Ok(result.map(drop)?),
        }
        // It says what became of the listing, and removes the passages if that is gone.
        self.check_listed(scope, library, complete, version).await
    }

    /// Removes a document and its passages from a library, and says whether it was there.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn remove_library_document(&self, scope: &Scope, library: &str, id: &str) -> Result<bool> {
        let Some(document) = self.find_library_document(scope, library, id).await? else { return Ok(false) };
        self.remove_passages(scope, library, id, 0..document.passages).await?;
        self.write_catalogue(scope, library, id, None).await?;
        Ok(true)
    }

    /// Lists the documents that the scope itself put into a library, by id.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list_library(&self, scope: &Scope, library: &str) -> Result<Vec<LibraryDocument>> {
        let query = RecordQuery { namespace: Some(catalogue(library)?), ..RecordQuery::of(owner(scope)) };
        let documents = self.all_records(scope, query).await?;
        documents.iter().map(read).collect()
    }

    /// Finds a document that the scope itself put into a library.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn find_library_document(
        &self,
        scope: &Scope,
        library: &str,
        id: &str,
    ) -> Result<Option<LibraryDocument>> {
        let (owner, namespace, now) = (owner(scope), catalogue(library)?, self.now());
        let found =
            repeat_simply(self.runtime(), || self.store().find_record(scope, &owner, &namespace, id, now)).await?;
        found.as_ref().map(read).transpose()
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
            repeat_simply(self.runtime(), || self.search_index().remove(scope, &collection, ids)).await?;
        }
        Ok(())
    }

    async fn write_catalogue(
        &self,
        scope: &Scope,
        library: &str,
        id: &str,
        document: Option<&LibraryDocument>,
    ) -> Result<u64> {
        let write = catalogue_write(scope, library, id, document, None)?;
        let now = self.now();
        Ok(repeat_simply(self.runtime(), || self.store().write_record(scope, write.clone(), now)).await?.version)
    }
}

fn catalogue_write(
    scope: &Scope,
    library: &str,
    id: &str,
    document: Option<&LibraryDocument>,
    expected: Option<u64>,
) -> Result<RecordWrite> {
    Ok(RecordWrite {
        owner: owner(scope),
        namespace: catalogue(library)?,
        key: id.to_owned(),
        expected,
        value: document.map(JsonText::of).transpose()?,
        expires_at: None,
    })
}

fn check(document: &NewLibraryDocument) -> Result<()> {
    limits::check_bytes("document id", document.id.len(), DOCUMENT_ID_BYTES)?;
    limits::check_bytes("document title", document.title.len(), limits::TITLE_BYTES)?;
    limits::check_bytes("passages of a document", document.passages.len(), DOCUMENT_PASSAGES)?;
    match document.id.is_empty() {
        true => Err(MemoryError::invalid("document id", "empty")),
        false => Ok(()),
    }
}

async fn entries(
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
        let error = threadkeep_core::EmbedderError::InvalidAnswer("not one point per text".to_owned());
        return Err(error.into());
    }
    let entries = passages.iter().zip(embeddings).enumerate().map(|(place, (passage, embedding))| IndexEntry {
        id: passage_id(&document.id, first + place),
        text: passage.text.clone(),
        fields: fields(document, passage),
        embedding,
    });
    Ok(entries.collect())
}

fn fields(document: &LibraryDocument, passage: &Passage) -> Map {
    let fields = [("document", &document.id), ("title", &document.title), ("place", &passage.place)];
    fields.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value.as_str()))).collect()
}

fn read(document: &Record) -> Result<LibraryDocument> {
    Ok(document.value.read()?)
}

fn passage_id(document: &str, number: usize) -> String {
    format!("{document}#{number}")
}

fn collection(library: &str) -> Collection {
    Collection::Named(format!("library:{library}"))
}

fn catalogue(library: &str) -> Result<Namespace> {
    Ok(Namespace::app(format!("library:{library}"))?)
}

fn owner(scope: &Scope) -> RecordOwner {
    match scope {
        Scope::Tenant(_) => RecordOwner::Tenant,
        Scope::User(_, user) => RecordOwner::User(user.clone()),
    }
}
