//! Documents that the assistant cites.

use std::path::Path;

use threadkeep::memory::{NewLibraryDocument, Passage};
use threadkeep_api::file::FileJson;
use threadkeep_browser::convert::to_js;
use threadkeep_browser::error::{ToJs, error_with_code};
use threadkeep_formats::{DocumentFormat, split_document};
use wasm_bindgen::prelude::*;

use crate::{OfflineEngine, not_found};

/// The library of documents.
pub(crate) const LIBRARY: &str = "documents";

#[wasm_bindgen]
impl OfflineEngine {
    /// Adds a document, or replaces the one with the same id.
    ///
    /// # Errors
    /// `unsupported_file` for a file that is not a text, `limit_exceeded` for one that is too large.
    #[wasm_bindgen(js_name = addDocument)]
    pub async fn add_document(&self, id: String, filename: String, text: &str) -> Result<JsValue, JsValue> {
        let unsupported = |message: &str| error_with_code("unsupported_file", message);
        let format = DocumentFormat::from_path(Path::new(&filename)).unwrap_or(DocumentFormat::Text);
        if text.contains('\0') {
            return Err(unsupported("the file is not a text"));
        }
        let split = split_document(text, format).map_err(|error| unsupported(&error.to_string()))?;
        if split.passages.is_empty() {
            return Err(unsupported("the file contains no text"));
        }
        let passages = split.passages.into_iter().map(|passage| Passage { place: passage.place, text: passage.text });
        // An id is used for one upload, so it also identifies the content.
        let document = NewLibraryDocument { revision: id.clone(), id, title: filename, passages: passages.collect() };
        let added = self.memory.put_library_document(&self.scope, LIBRARY, document, None).await.to_js()?;
        to_js(&FileJson::of_document(added.id.clone(), LIBRARY, &added))
    }

    /// Returns what is known about a document.
    ///
    /// # Errors
    /// `not_found` for an unknown document.
    pub async fn document(&self, id: &str) -> Result<JsValue, JsValue> {
        let found = self.memory.find_library_document(&self.scope, LIBRARY, id).await.to_js()?;
        let found = found.ok_or_else(|| not_found("document"))?;
        to_js(&FileJson::of_document(found.id.clone(), LIBRARY, &found))
    }

    /// Removes a document.
    ///
    /// # Errors
    /// `not_found` for an unknown document.
    #[wasm_bindgen(js_name = removeDocument)]
    pub async fn remove_document(&self, id: &str) -> Result<(), JsValue> {
        match self.memory.remove_library_document(&self.scope, LIBRARY, id).await.to_js()? {
            true => Ok(()),
            false => Err(not_found("document")),
        }
    }
}
