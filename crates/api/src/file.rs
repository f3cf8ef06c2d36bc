use serde::Serialize;
use threadkeep::Timestamp;
use threadkeep::memory::{LibraryDocument, LibraryUpload, UploadState};
use utoipa::ToSchema;

/// The purpose of a document whose uploader named none.
pub const DEFAULT_PURPOSE: &str = "assistants";

/// A file.
#[derive(Debug, Serialize, ToSchema)]
pub struct FileJson {
    pub id: String,
    object: &'static str,
    /// The size in bytes; null for a document that was added on the command line.
    bytes: Option<usize>,
    /// Seconds since 1970.
    pub created_at: i64,
    filename: String,
    pub purpose: String,
    status: FileStatusJson,
    /// Why the file could not be processed.
    status_details: Option<String>,
    /// The library that contains the document.
    library: String,
    /// The number of passages.
    passages: usize,
    /// The number of passages that can be found. While the file is being processed, this is the progress.
    processed_passages: usize,
}

/// The state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileStatusJson {
    /// The file is stored, and is being processed.
    Uploaded,
    /// All passages of the file can be found.
    Processed,
    /// The file could not be processed.
    Error,
}

impl FileJson {
    /// Converts an upload.
    pub fn of_upload(upload: &LibraryUpload, now: Timestamp) -> Self {
        let (status, status_details) = match upload.state {
            UploadState::Receiving if upload.is_interrupted(now) => {
                let details = "the upload was interrupted; delete this file and upload it again";
                (FileStatusJson::Error, Some(details.to_owned()))
            }
            UploadState::Receiving | UploadState::Processing => (FileStatusJson::Uploaded, None),
            UploadState::Processed => (FileStatusJson::Processed, None),
            UploadState::Failed => (FileStatusJson::Error, upload.error.clone()),
        };
        Self {
            id: upload.id.clone(),
            object: "file",
            bytes: Some(upload.bytes),
            created_at: upload.created_at.as_millis().div_euclid(1000),
            filename: upload.filename.clone(),
            purpose: upload.purpose.clone(),
            status,
            status_details,
            library: upload.library.clone(),
            passages: upload.passages,
            processed_passages: upload.stored_passages,
        }
    }

    /// Converts a document that was not uploaded. `id` is the id of its file.
    pub fn of_document(id: String, library: &str, document: &LibraryDocument) -> Self {
        let LibraryDocument { title, passages, is_complete, added_at, .. } = document;
        let (status, details) = match is_complete {
            true => (FileStatusJson::Processed, None),
            false => (FileStatusJson::Error, Some("adding the document was not completed; add it again")),
        };
        Self {
            id,
            object: "file",
            bytes: None,
            created_at: added_at.as_millis().div_euclid(1000),
            filename: title.clone(),
            purpose: DEFAULT_PURPOSE.to_owned(),
            status,
            status_details: details.map(str::to_owned),
            library: library.to_owned(),
            passages: *passages,
            processed_passages: if *is_complete { *passages } else { 0 },
        }
    }
}
