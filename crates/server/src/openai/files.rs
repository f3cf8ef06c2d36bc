//! Files: documents that assistants can cite. An uploaded file is added to a library of the caller, as if it had been added on
//! the command line.
//!
//! An upload is stored first, and its passages are added to the library in the background (`ingest`). The state is in the store,
//! so any instance can report it, and can resume the work if a process is interrupted. Documents that were added on the command
//! line are listed as files too; their originals are not stored.

mod cases;
pub(crate) mod content;
pub(crate) mod create;
pub(crate) mod delete;
mod form;
mod ingest;
pub(crate) mod list;
pub(crate) mod retrieve;
pub(crate) mod search;

use axum::http::StatusCode;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use threadkeep::memory::{LibraryDocument, StoredUpload};
use threadkeep::{Scope, ThreadId, Timestamp};
use threadkeep_api::file::FileJson;

use crate::app::App;
use crate::error::{ApiError, Result};
pub(super) use cases::cases;

/// The library that is used unless a request names one. It is also the default of the command line.
const DEFAULT_LIBRARY: &str = "documents";
/// The maximum length of the name of a library, in bytes.
const MAX_LIBRARY_BYTES: usize = 100;
/// The prefix of the ids of uploaded files.
const UPLOAD_PREFIX: &str = "file-";
/// The prefix of the ids of documents that were not uploaded. The rest of the id encodes the library and the document's id.
const DOCUMENT_PREFIX: &str = "doc-";

/// A file that a request names.
#[derive(Debug)]
enum File {
    Upload(StoredUpload),
    /// A document that was not uploaded, with the name of its library.
    Document(String, LibraryDocument),
}

impl File {
    fn to_json(&self, now: Timestamp) -> FileJson {
        match self {
            Self::Upload(stored) => FileJson::of_upload(&stored.upload, now),
            Self::Document(library, document) => document_json(library, document),
        }
    }
}

/// Finds a file of the caller or of the caller's tenant, whose users can all read its files. Also returns the scope that owns the
/// file.
async fn find_file(app: &App, scope: &Scope, id: &str) -> Result<(Scope, File)> {
    let tenant = Scope::Tenant(scope.tenant_id().clone());
    for owner in [scope.clone(), tenant] {
        if let Some(file) = find_own_file(app, &owner, id).await? {
            return Ok((owner, file));
        }
    }
    Err(file_not_found(id))
}

async fn find_own_file(app: &App, scope: &Scope, id: &str) -> Result<Option<File>> {
    if is_upload_id(id) {
        return Ok(app.memory().find_upload(scope, id).await?.map(File::Upload));
    }
    let Some((library, document)) = read_document_id(id) else { return Ok(None) };
    let found = app.memory().find_library_document(scope, &library, &document).await?;
    Ok(found.map(|document| File::Document(library, document)))
}

fn document_json(library: &str, document: &LibraryDocument) -> FileJson {
    FileJson::of_document(file_id(library, &document.id), library, document)
}

/// Returns the file id of a document in a library.
fn file_id(library: &str, document: &str) -> String {
    if is_upload_id(document) {
        return document.to_owned();
    }
    format!("{DOCUMENT_PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(format!("{library}\n{document}")))
}

/// Decodes a file id into the library and the id of a document. Returns `None` if no document can have this file id.
fn read_document_id(id: &str) -> Option<(String, String)> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(id.strip_prefix(DOCUMENT_PREFIX)?).ok()?;
    let (library, document) = std::str::from_utf8(&bytes).ok()?.split_once('\n')?;
    let is_valid = check_library(library).is_ok()
        && document.len() <= threadkeep::memory::DOCUMENT_ID_BYTES
        && !document.is_empty()
        && !document.chars().any(char::is_control);
    is_valid.then(|| (library.to_owned(), document.to_owned()))
}

/// Whether this is the id of an uploaded file.
fn is_upload_id(id: &str) -> bool {
    let digits = id.strip_prefix(UPLOAD_PREFIX);
    digits.is_some_and(|digits| {
        digits.len() == 32 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn upload_id(id: ThreadId) -> String {
    format!("{UPLOAD_PREFIX}{}", id.0.simple())
}

/// Checks the name of a library.
fn check_library(library: &str) -> Result<()> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if (1..=MAX_LIBRARY_BYTES).contains(&library.len()) && library.chars().all(is_plain) {
        return Ok(());
    }
    let message =
        format!("Invalid 'library': expected 1 to {MAX_LIBRARY_BYTES} bytes of letters, digits, '-', '_' and '.'.");
    Err(ApiError::invalid("library", message))
}

fn file_not_found(id: &str) -> ApiError {
    let id: String = id.chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("No such File object: {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_ids_of_documents_encode_their_library_and_id() {
        let id = file_id("handbook", "/home/ana/notes/garden #1.md");
        assert!(id.starts_with("doc-") && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
        assert_eq!(read_document_id(&id), Some(("handbook".to_owned(), "/home/ana/notes/garden #1.md".to_owned())));
        let uploaded = format!("file-{}", "0f".repeat(16));
        assert_eq!(file_id("handbook", &uploaded), uploaded);
        for invalid in ["", "doc-", "doc-!", "doc-YWJj", "doc-CmE", "file-1"] {
            assert_eq!(read_document_id(invalid), None, "{invalid}");
        }
    }
}
