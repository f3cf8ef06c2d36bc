//! Imports records into the corpus, with bounded memory.
//!
//! A file is read on its own thread, one record at a time. Items are stored in batches, so that an interrupted import leaves only
//! complete batches; importing the same file again skips items that have not changed.

mod reader;

use std::path::{Path, PathBuf};

use threadkeep::{Embedder, EmbedderError, Scope, StoreError, Timestamp};
use tokio::sync::mpsc;

use crate::corpus::{Corpus, CorpusDescription, Item};
pub use reader::ReadError;

/// The number of items that are stored in one batch.
const BATCH: usize = 1_000;
/// The number of texts that are embedded in one call.
const EMBEDDING_BATCH: usize = 64;
/// The maximum number of problems that a report lists.
const MAX_PROBLEMS: usize = 100;

/// An error in an import.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The embedder failed.
    #[error(transparent)]
    Embedder(#[from] EmbedderError),
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Records that were read: tesis, articles and documents.
    pub records: u64,
    /// Items that were stored, because they are new or changed.
    pub stored: u64,
    /// Items that were already stored and have not changed.
    pub unchanged: u64,
    /// Records that cannot be imported.
    pub broken: u64,
    /// The first 100 broken records, with file and line.
    pub problems: Vec<String>,
}

/// What an import needs besides the files.
pub struct ImportRequest<'a> {
    /// The tenant's scope.
    pub tenant: &'a Scope,
    /// Embeds the items, so that they are also found by meaning.
    pub embedder: Option<&'a dyn Embedder>,
    /// The day as of which the corpus is complete: `2026-05-15`. Default: today.
    pub as_of: Option<String>,
    /// Called with the number of bytes read so far, and the total.
    pub progress: &'a (dyn Fn(u64, u64) + Send + Sync),
}

impl std::fmt::Debug for ImportRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImportRequest").field("tenant", self.tenant).field("as_of", &self.as_of).finish_non_exhaustive()
    }
}

/// A message from the thread that reads a file.
#[derive(Debug)]
pub(crate) enum ReaderMessage {
    Items(Vec<Item>),
    Broken(String),
    Bytes(u64),
}

impl Corpus {
    /// Imports files, and the files in folders.
    ///
    /// # Errors
    /// A file cannot be read, or the store or the embedder fails. Items that were stored before the error remain
    /// stored, and repeating the import continues it.
    pub async fn import(&self, paths: &[PathBuf], request: &ImportRequest<'_>) -> Result<ImportReport, ImportError> {
        let files = reader::files(paths)?;
        let total: u64 = files.iter().map(|file| file.metadata().map_or(0, |metadata| metadata.len())).sum();
        let mut report = ImportReport::default();
        let mut before = 0;
        for file in &files {
            self.import_file(file, request, &mut report, &mut |read| (request.progress)(before + read, total)).await?;
            before += file.metadata().map_or(0, |metadata| metadata.len());
            (request.progress)(before, total);
        }
        let previous = self.description(request.tenant).await?.unwrap_or_default();
        let as_of = request.as_of.clone().unwrap_or_else(|| day(self.now()));
        let description = CorpusDescription { as_of, imported: previous.imported + report.stored };
        if description != previous && (report.stored > 0 || request.as_of.is_some()) {
            self.describe(request.tenant, &description).await?;
        }
        Ok(report)
    }

    async fn import_file(
        &self,
        file: &Path,
        request: &ImportRequest<'_>,
        report: &mut ImportReport,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), ImportError> {
        let (sender, mut receiver) = mpsc::channel(64);
        let path = file.to_owned();
        let reading = tokio::task::spawn_blocking(move || reader::read(&path, &sender));
        let mut batch = Vec::new();
        while let Some(parsed) = receiver.recv().await {
            match parsed {
                ReaderMessage::Items(items) => {
                    report.records += 1;
                    batch.extend(items);
                }
                ReaderMessage::Broken(problem) => {
                    report.broken += 1;
                    if report.problems.len() < MAX_PROBLEMS {
                        report.problems.push(problem);
                    }
                }
                ReaderMessage::Bytes(read) => progress(read),
            }
            if batch.len() >= BATCH {
                self.store_batch(std::mem::take(&mut batch), request, report).await?;
            }
        }
        self.store_batch(batch, request, report).await?;
        match reading.await {
            Ok(result) => Ok(result?),
            Err(_) => Err(ReadError::of(file, "the reader stopped unexpectedly").into()),
        }
    }

    async fn store_batch(
        &self,
        items: Vec<Item>,
        request: &ImportRequest<'_>,
        report: &mut ImportReport,
    ) -> Result<(), ImportError> {
        for items in items.chunks(BATCH) {
            let mut embedded = Vec::with_capacity(items.len());
            for items in items.chunks(EMBEDDING_BATCH) {
                let embeddings = match request.embedder {
                    Some(embedder) => {
                        let texts: Vec<String> =
                            items.iter().map(|item| format!("{}\n{}", item.title(), item.text())).collect();
                        embedder.embed(&texts).await?.into_iter().map(Some).collect()
                    }
                    None => vec![None; items.len()],
                };
                embedded.extend(items.iter().cloned().zip(embeddings));
            }
            // If several items in a batch have the same key, only the last is stored.
            let mut seen = std::collections::HashSet::new();
            embedded.reverse();
            embedded.retain(|(item, _)| seen.insert(item.key()));
            embedded.reverse();
            let stored = self.put(request.tenant, &embedded).await? as u64;
            report.stored += stored;
            report.unchanged += items.len() as u64 - stored;
        }
        Ok(())
    }
}

/// Returns the day of an instant: `2026-05-15`.
fn day(now: Timestamp) -> String {
    now.to_string().chars().take(10).collect()
}
