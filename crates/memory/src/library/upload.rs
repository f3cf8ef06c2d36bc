use serde::{Deserialize, Serialize};
use threadkeep_core::{
    Conflict, JsonText, Namespace, Record, RecordOwner, RecordQuery, RecordWrite, Scope, StoreError, Timestamp, limits,
};

use super::record_owner;
use crate::retry::{retry, retry_with_outcome};
use crate::{Memory, Result};

/// Maximum size of an uploaded document, in bytes.
pub const UPLOAD_BYTES: usize = 16 * 1024 * 1024;
/// Size of the pieces in which a text is stored. As a JSON string, a piece is at most six times as long, which fits into a record.
const PIECE_BYTES: usize = 512 * 1024;

/// An uploaded document: what is known about its file, and how many of its passages are stored. Its original text is stored
/// with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryUpload {
    /// The id, which is also the id of the document in the library. Unique for its owner.
    pub id: String,
    /// The library to which the document is added.
    pub library: String,
    /// The name of the file.
    pub filename: String,
    /// The purpose of the file, in the terms of the uploader. It has no effect here.
    pub purpose: String,
    /// The format of the text, in the terms of the uploader.
    pub format: String,
    /// The size of the text in bytes.
    pub bytes: usize,
    /// A digest of the request, by which a repeated request is recognised.
    pub digest: String,
    /// When the upload was created.
    pub created_at: Timestamp,
    /// The state.
    pub state: UploadState,
    /// The number of passages.
    pub passages: usize,
    /// The number of passages that are stored.
    pub stored_passages: usize,
    /// Why the state is `Failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The time until which a process is working on the upload. If the upload is still unfinished after that, the process was
    /// interrupted.
    pub leased_until: Timestamp,
}

impl LibraryUpload {
    /// Whether the upload is unfinished and no process is working on it.
    #[must_use]
    pub fn is_interrupted(&self, now: Timestamp) -> bool {
        matches!(self.state, UploadState::Receiving | UploadState::Processing) && self.leased_until <= now
    }
}

/// The state of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UploadState {
    /// The text is being stored.
    Receiving,
    /// The text is stored; its passages are being added to the library.
    Processing,
    /// All passages are stored.
    Processed,
    /// The document could not be added.
    Failed,
}

/// An upload with the version of its record, which [`Memory::update_upload`] requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredUpload {
    /// The upload.
    pub upload: LibraryUpload,
    /// The version.
    pub version: u64,
}

impl Memory {
    /// Stores the text of an upload. The stored upload is in the state `Processing`.
    ///
    /// The upload is first stored in the state `Receiving`. If storing the text is interrupted, it stays in this state, so that it is
    /// listed and can be removed.
    ///
    /// # Errors
    /// `Conflict` if the owner has an upload with this id, `LimitExceeded` for more than [`UPLOAD_BYTES`], errors from the store.
    pub async fn store_upload(&self, scope: &Scope, upload: LibraryUpload, text: &str) -> Result<StoredUpload> {
        limits::check_at_most("document bytes", text.len(), UPLOAD_BYTES)?;
        let receiving = LibraryUpload { state: UploadState::Receiving, ..upload };
        let receiving = self.update_upload(scope, StoredUpload { upload: receiving, version: 0 }).await?;
        let mut rest = text;
        for number in 0.. {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
            self.write_piece(scope, &receiving.upload.id, number, Some(piece)).await?;
            rest = after;
        }
        let StoredUpload { upload, version } = receiving;
        let id = upload.id.clone();
        let processing = LibraryUpload { state: UploadState::Processing, ..upload };
        let updated = self.update_upload(scope, StoredUpload { upload: processing, version }).await;
        if updated.is_err() && self.find_upload(scope, &id).await?.is_none() {
            // The upload was removed, or its user was erased, while the text was being stored.
            self.remove_pieces(scope, &id).await?;
        }
        updated
    }

    /// Changes an upload, if its record still has the version in `stored`. Returns the upload with its new version.
    ///
    /// # Errors
    /// `Conflict` if others changed or removed the upload; errors from the store.
    pub async fn update_upload(&self, scope: &Scope, stored: StoredUpload) -> Result<StoredUpload> {
        let StoredUpload { upload, version } = stored;
        let write = RecordWrite {
            owner: record_owner(scope),
            namespace: uploads(),
            key: upload.id.clone(),
            expected: Some(version),
            value: Some(JsonText::of(&upload)?),
            expires_at: None,
        };
        let now = self.now();
        let written = retry_with_outcome(self.runtime(), || self.store().write_record(scope, write.clone(), now)).await;
        match written.result {
            Ok(outcome) => Ok(StoredUpload { upload, version: outcome.version }),
            // An earlier attempt may have changed the upload, although its reply was lost.
            Err(error @ StoreError::Conflict(Conflict::Record { .. })) if written.may_have_applied_before => {
                let found = self.find_upload(scope, &upload.id).await?;
                found.filter(|found| found.upload == upload).ok_or_else(|| error.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Finds an upload in the scope's own libraries.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn find_upload(&self, scope: &Scope, id: &str) -> Result<Option<StoredUpload>> {
        let found = self.find_upload_record(scope, &uploads(), id).await?;
        let decode = |record: Record| {
            Ok::<_, StoreError>(StoredUpload { upload: record.value.read()?, version: record.version })
        };
        Ok(found.map(decode).transpose()?)
    }

    /// Lists the uploads in the scope's own libraries, ordered by id.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn list_uploads(&self, scope: &Scope) -> Result<Vec<LibraryUpload>> {
        let query = RecordQuery { namespace: Some(uploads()), ..RecordQuery::of(record_owner(scope)) };
        let records = self.all_records(scope, query).await?;
        records.iter().map(|record| Ok(record.value.read()?)).collect()
    }

    /// Reads the text of an upload; `None` if it has been removed in the meantime.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn read_upload(&self, scope: &Scope, upload: &LibraryUpload) -> Result<Option<String>> {
        let mut text = String::with_capacity(upload.bytes.min(UPLOAD_BYTES));
        for number in 0.. {
            if text.len() >= upload.bytes {
                break;
            }
            let key = piece_key(&upload.id, number);
            let Some(piece) = self.find_upload_record(scope, &texts(), &key).await? else { return Ok(None) };
            text.push_str(&piece.value.read::<String>()?);
        }
        Ok(Some(text))
    }

    /// Removes an upload and its text. Returns whether the upload existed.
    ///
    /// # Errors
    /// Errors from the store.
    pub(super) async fn remove_upload(&self, scope: &Scope, library: &str, id: &str) -> Result<bool> {
        let found = self.find_upload(scope, id).await?;
        if found.is_none_or(|found| found.upload.library != library) {
            return Ok(false);
        }
        self.remove_pieces(scope, id).await?;
        self.write_upload_record(scope, uploads(), id.to_owned(), None).await?;
        Ok(true)
    }

    async fn remove_pieces(&self, scope: &Scope, id: &str) -> Result<()> {
        // The pieces are listed, not derived from the size of the text, because storing them may have been interrupted.
        let after = Some((texts(), piece_prefix(id)));
        let query = RecordQuery { namespace: Some(texts()), after, ..RecordQuery::of(record_owner(scope)) };
        let query = RecordQuery { limit: UPLOAD_BYTES / PIECE_BYTES + 2, ..query };
        loop {
            let now = self.now();
            let found = retry(self.runtime(), || self.store().list_records(scope, &query, now)).await?;
            let pieces: Vec<Record> =
                found.into_iter().take_while(|record| record.key.starts_with(&piece_prefix(id))).collect();
            if pieces.is_empty() {
                return Ok(());
            }
            for piece in pieces {
                self.write_upload_record(scope, texts(), piece.key, None).await?;
            }
        }
    }

    async fn write_piece(&self, scope: &Scope, id: &str, number: usize, piece: Option<&str>) -> Result<()> {
        let value = piece.map(JsonText::of).transpose()?;
        self.write_upload_record(scope, texts(), piece_key(id, number), value).await
    }

    async fn write_upload_record(
        &self,
        scope: &Scope,
        namespace: Namespace,
        key: String,
        value: Option<JsonText>,
    ) -> Result<()> {
        let owner = record_owner(scope);
        let write = RecordWrite { owner, namespace, key, expected: None, value, expires_at: None };
        let now = self.now();
        retry(self.runtime(), || self.store().write_record(scope, write.clone(), now)).await?;
        Ok(())
    }

    async fn find_upload_record(&self, scope: &Scope, namespace: &Namespace, key: &str) -> Result<Option<Record>> {
        let (owner, now): (RecordOwner, Timestamp) = (record_owner(scope), self.now());
        Ok(retry(self.runtime(), || self.store().find_record(scope, &owner, namespace, key, now)).await?)
    }
}

fn uploads() -> Namespace {
    Namespace::System("library.uploads".to_owned())
}

fn texts() -> Namespace {
    Namespace::System("library.texts".to_owned())
}

fn piece_prefix(id: &str) -> String {
    format!("{id}/")
}

fn piece_key(id: &str, number: usize) -> String {
    format!("{}{number:04}", piece_prefix(id))
}
