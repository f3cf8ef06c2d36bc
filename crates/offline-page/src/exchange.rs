//! Moving conversations in, and erasing them.

use std::io::Cursor;

use threadkeep::{EraseOptions, ImportOptions, UserId};
use threadkeep_api::exchange::{ErasedJson, ImportedJson};
use threadkeep_browser::convert::to_js;
use threadkeep_browser::error::{ToJs, error_with_code};
use wasm_bindgen::prelude::*;

use crate::OfflineEngine;

#[wasm_bindgen]
impl OfflineEngine {
    /// Imports a file of any supported format, except archives. Importing it again changes nothing.
    ///
    /// # Errors
    /// `unreadable_file` if the format is unknown.
    pub async fn import(&self, bytes: Vec<u8>) -> Result<JsValue, JsValue> {
        let reader = threadkeep_formats::open_stream(Box::new(Cursor::new(bytes)), None);
        let reader = reader.map_err(|error| error_with_code("unreadable_file", &error.to_string()))?;
        let format = reader.format().to_string();
        let mut invalid = Vec::new();
        let items = reader.filter_map(|item| item.map_err(|error| invalid.push(error.to_string())).ok());
        let report = self.memory.import(&self.scope, items, ImportOptions::default(), |_| {}).await.to_js()?;
        to_js(&ImportedJson::of(format, &report, invalid))
    }

    /// Erases all data of a user.
    ///
    /// # Errors
    /// `denied` if this is not the engine's own user.
    #[wasm_bindgen(js_name = eraseUser)]
    pub async fn erase_user(&self, user: String) -> Result<JsValue, JsValue> {
        let user = UserId::new(user).to_js()?;
        let report = self.memory.erase_user(&self.scope, &user, EraseOptions::default()).await.to_js()?;
        let swept = self.memory.backend().maintenance.sweep(self.memory.now()).await.is_ok();
        to_js(&ErasedJson::of(&report, swept))
    }
}
