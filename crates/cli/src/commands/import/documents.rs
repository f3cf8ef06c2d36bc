//! Adds the documents in exports of Claude and ChatGPT to the library of `threadkeep docs`.

use std::path::Path;

use anyhow::Result;
use threadkeep_formats::{DocumentFormat, ExportedDocument, RecordError, SecretMask, read_exported_documents};

use super::super::docs::{self, LIBRARY};
use super::Import;
use super::files::File;
use super::intake::Intake;
use crate::failure::sentence;
use crate::models;

impl Import<'_> {
    /// Adds the documents of a file. Returns whether it contains any, and the records that cannot be read.
    pub(super) async fn documents(&self, file: &File, intake: &mut Intake<'_>) -> Result<(bool, Vec<RecordError>)> {
        // If the file cannot be opened, that is reported when its conversations are read.
        let Some(Ok(Ok(documents))) = file.stream().map(|stream| stream.map(read_exported_documents)) else {
            return Ok((false, Vec::new()));
        };
        let embedder = models::embedder(&self.app.settings)?;
        let mut mask = SecretMask::default();
        let (mut has_documents, mut unreadable) = (false, Vec::new());
        for document in documents {
            if self.app.interrupt.is_stop_requested() {
                break;
            }
            let ExportedDocument { id, title, mut text } = match document {
                Ok(document) => document,
                Err(error) => {
                    unreadable.push(error);
                    continue;
                }
            };
            if !std::mem::replace(&mut has_documents, true) {
                intake.begin("documents");
            }
            if !self.selection.keep_secrets {
                mask.mask_string(&mut text);
            }
            let format = DocumentFormat::from_path(Path::new(&title)).unwrap_or(DocumentFormat::Markdown);
            let (names, content) = ((id.as_str(), title.as_str()), (text.as_str(), format));
            let added = docs::add_text(&self.memory, &self.scope, LIBRARY, names, content, embedder.as_ref()).await;
            match added {
                Ok(added) => intake.count_document(added.is_some()),
                Err(error) => intake.row_problem(&format!("{title}: {}", sentence(&error))),
            }
        }
        intake.count(mask.masked(), 0);
        Ok((has_documents, unreadable))
    }
}
