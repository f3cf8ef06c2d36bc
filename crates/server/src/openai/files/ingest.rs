//! Adds the passages of uploaded documents to their libraries, in the background.
//!
//! The process that works on an upload renews a lease in the upload's record, together with the progress. If the process is
//! interrupted, the work is restarted when the lease has expired and a client with the role `write` retrieves the file.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};
use threadkeep::core::Embedder;
use threadkeep::memory::{LibraryUpload, NewLibraryDocument, Passage, StoredUpload, UploadState};
use threadkeep::{MemoryError, Scope, StoreError, Timestamp};
use threadkeep_formats::{DocumentFormat, DocumentPassage, SPLIT_VERSION, SplitDocument, split_document};
use threadkeep_service::hex;
use tokio::task::JoinHandle;

use super::form::unsupported_file;
use crate::app::App;
use crate::error::{ApiError, Result};

/// How long a process may work on an upload without renewing its lease.
pub(super) const LEASE_MS: i64 = 60_000;
/// A lease is renewed when it has at most this long left.
const RENEWAL_MS: i64 = 40_000;
/// How often the progress is stored.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Starts adding the passages of an upload whose lease this process holds.
pub(super) fn start(app: &App, scope: &Scope, stored: StoredUpload) -> JoinHandle<()> {
    let (app, scope) = (app.clone(), scope.clone());
    let guard = app.delay_shutdown();
    tokio::spawn(async move {
        let _guard = guard;
        if let Err(error) = run(&app, &scope, stored).await {
            error.log("cannot store the state of an upload");
        }
    })
}

/// Restarts the work on an upload if it was interrupted, unless another process restarts it at the same time.
pub(super) async fn resume(app: &App, scope: &Scope, stored: StoredUpload) -> Result<()> {
    let now = app.memory().now();
    if stored.upload.state != UploadState::Processing || !stored.upload.is_interrupted(now) {
        return Ok(());
    }
    match update(app, scope, stored, |upload| upload.leased_until = lease_end(now)).await {
        Ok(stored) => drop(start(app, scope, stored)),
        Err(MemoryError::Store(StoreError::Conflict(_))) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Splits a document into passages. Rejects a document without text.
pub(super) async fn split(text: String, format: DocumentFormat) -> Result<SplitDocument> {
    // Splitting a large document would block a thread of the asynchronous runtime.
    let split = tokio::task::spawn_blocking(move || split_document(&text, format)).await;
    let split = split.map_err(|_| ApiError::task_panicked())?;
    let split = split.map_err(|error| unsupported_file(format!("Invalid 'file': {error}.")))?;
    if split.passages.is_empty() {
        return Err(unsupported_file("Invalid 'file': the file contains no text."));
    }
    Ok(split)
}

pub(super) fn lease_end(now: Timestamp) -> Timestamp {
    now.plus_ms(LEASE_MS)
}

/// Returns the name under which a format is stored.
pub(super) fn format_name(format: DocumentFormat) -> &'static str {
    match format {
        DocumentFormat::Markdown => "markdown",
        DocumentFormat::Html => "html",
        _ => "text",
    }
}

fn read_format(name: &str) -> DocumentFormat {
    match name {
        "markdown" => DocumentFormat::Markdown,
        "html" => DocumentFormat::Html,
        _ => DocumentFormat::Text,
    }
}

async fn run(app: &App, scope: &Scope, mut stored: StoredUpload) -> Result<()> {
    let (upload, progress) = (stored.upload.clone(), AtomicUsize::new(0));
    let mut holds_lease = true;
    let mut work = pin!(add_passages(app, scope, &upload, &progress));
    let result = loop {
        tokio::select! {
            biased;
            result = &mut work => break result,
            () = app.stopped() => {
                // Another instance, or this one after its restart, continues immediately.
                let now = app.memory().now();
                update(app, scope, stored, |upload| upload.leased_until = now).await?;
                return Ok(());
            }
            () = tokio::time::sleep(PROGRESS_INTERVAL), if holds_lease => {
                let (now, added) = (app.memory().now(), progress.load(Ordering::Relaxed));
                let is_renewed = stored.upload.leased_until > now.plus_ms(RENEWAL_MS);
                if is_renewed && added == stored.upload.stored_passages {
                    continue;
                }
                let change = |upload: &mut LibraryUpload| {
                    upload.stored_passages = added;
                    upload.leased_until = lease_end(now);
                };
                match update(app, scope, stored.clone(), change).await {
                    Ok(renewed) => stored = renewed,
                    // Either the upload has been removed, or another process is working on it. The library detects both while it
                    // adds passages, and removes those of a document that is gone.
                    Err(MemoryError::Store(StoreError::Conflict(_))) => holds_lease = false,
                    Err(error) => ApiError::from(error).log("cannot store the progress of an upload"),
                }
            }
        }
    };
    finish(app, scope, stored, result).await
}

/// Stores the result of the work.
async fn finish(app: &App, scope: &Scope, stored: StoredUpload, result: Result<usize>) -> Result<()> {
    let (library, id) = (stored.upload.library.clone(), stored.upload.id.clone());
    let ended = update(app, scope, stored, |upload| match result {
        Ok(passages) => {
            (upload.state, upload.passages, upload.stored_passages) = (UploadState::Processed, passages, passages);
        }
        Err(error) => {
            error.log("cannot process an upload");
            (upload.state, upload.error) = (UploadState::Failed, Some(error.message));
        }
    });
    match ended.await {
        Err(MemoryError::Store(StoreError::Conflict(_))) => {
            if app.memory().find_upload(scope, &id).await?.is_none() {
                // The upload was removed before its document was added.
                app.memory().remove_library_document(scope, &library, &id).await?;
            }
            Ok(())
        }
        ended => Ok(ended.map(drop)?),
    }
}

async fn update(
    app: &App,
    scope: &Scope,
    mut stored: StoredUpload,
    change: impl FnOnce(&mut LibraryUpload),
) -> Result<StoredUpload, MemoryError> {
    change(&mut stored.upload);
    app.memory().update_upload(scope, stored).await
}

/// Adds all passages of an upload to its library, and returns their number. A process works on only a few uploads at a time.
async fn add_passages(app: &App, scope: &Scope, upload: &LibraryUpload, progress: &AtomicUsize) -> Result<usize> {
    let _permit = app.upload_permits().acquire().await.map_err(|_| ApiError::internal("the permits are closed"))?;
    let Some(text) = app.memory().read_upload(scope, upload).await? else {
        return Err(ApiError::not_found("file"));
    };
    let revision = format!("{SPLIT_VERSION}:{}", hex(&Sha256::digest(text.as_bytes())));
    let split = split(text, read_format(&upload.format)).await?;
    let passages = split.passages.into_iter().map(|DocumentPassage { place, text }| Passage { place, text }).collect();
    let document = NewLibraryDocument { id: upload.id.clone(), title: upload.filename.clone(), revision, passages };
    let embedder = app.embedder().map(|embedder| -> &dyn Embedder { embedder.as_ref() });
    let report = |added| progress.store(added, Ordering::Relaxed);
    let memory = app.memory();
    let added = memory.put_library_document_with_progress(scope, &upload.library, document, embedder, &report).await?;
    Ok(added.passages)
}
