//! The part of IndexedDB that the store uses: transactions over one ordered table of rows.
//!
//! A row has a binary key, a text and any number of index keys, which IndexedDB maintains with the row. Futures of this module may
//! only be awaited in a task of [`wasm_bindgen_futures::spawn_local`], and nothing else may be awaited within a transaction: the
//! browser commits a transaction as soon as its last request is done and no callback makes another one.

use std::cell::Cell;
use std::future::Future;

use futures::channel::oneshot;
use js_sys::{Array, Function, JsString, Object, Reflect, Uint8Array};
use threadkeep_core::{Reason, Result, StoreError, SyncPolicy};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{
    DomException, Event, IdbCursor, IdbCursorDirection, IdbDatabase, IdbFactory, IdbIndex, IdbIndexParameters,
    IdbKeyRange, IdbObjectStore, IdbOpenDbRequest, IdbRequest, IdbTransaction, IdbVersionChangeEvent,
};

use crate::Durability;

/// The version of the layout. Each version has a step in [`upgrade`].
const VERSION: u32 = 1;
/// The table.
const ROWS: &str = "rows";
/// The index over the index keys of all rows.
const INDEX: &str = "index";
/// The fields of a row.
const TEXT: &str = "text";
const INDEX_KEYS: &str = "keys";

/// An open database.
pub(crate) struct Database {
    handle: IdbDatabase,
    durability: Durability,
    /// Closes the database if another tab wants to delete or upgrade it, which would otherwise wait for this tab.
    _on_version_change: Closure<dyn FnMut(Event)>,
}

impl Database {
    /// Opens a database, and creates or upgrades it if necessary.
    pub(crate) async fn open(name: &str, durability: Durability) -> Result<Self> {
        let handle = open(name, VERSION, upgrade).await?;
        let closing = handle.clone();
        let on_version_change = Closure::<dyn FnMut(Event)>::new(move |_| closing.close());
        handle.set_onversionchange(Some(on_version_change.as_ref().unchecked_ref()));
        Ok(Self { handle, durability, _on_version_change: on_version_change })
    }

    pub(crate) fn read(&self) -> Result<Transaction> {
        self.begin("readonly", SyncPolicy::Deferred)
    }

    /// Starts a transaction that is alone: the browser serialises those of all tabs.
    pub(crate) fn write(&self) -> Result<Transaction> {
        self.write_with(SyncPolicy::Now)
    }

    pub(crate) fn write_with(&self, sync_policy: SyncPolicy) -> Result<Transaction> {
        self.begin("readwrite", sync_policy)
    }

    fn begin(&self, mode: &str, sync_policy: SyncPolicy) -> Result<Transaction> {
        let options = Object::new();
        let durability = match self.durability {
            _ if sync_policy == SyncPolicy::Deferred => "relaxed",
            Durability::Strict => "strict",
            Durability::Relaxed => "relaxed",
        };
        set(&options, "durability", &durability.into());
        // web-sys has no stable binding with options.
        let begin: Function = get(&self.handle, "transaction").unchecked_into();
        let transaction = begin.call3(&self.handle, &ROWS.into(), &mode.into(), &options);
        let handle: IdbTransaction = transaction.map_err(|error| to_error(&error))?.unchecked_into();
        let rows = handle.object_store(ROWS).map_err(|error| to_error(&error))?;
        let index = rows.index(INDEX).map_err(|error| to_error(&error))?;
        let (sender, ended) = oneshot::channel();
        let sender = Cell::new(Some(sender));
        let on_end = Closure::<dyn FnMut(Event)>::new(move |event: Event| {
            if let Some(sender) = sender.take() {
                let _ = sender.send(event.type_() == "complete");
            }
        });
        handle.set_oncomplete(Some(on_end.as_ref().unchecked_ref()));
        handle.set_onabort(Some(on_end.as_ref().unchecked_ref()));
        Ok(Transaction { handle, rows, index, ended: Some(ended), _on_end: on_end })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.handle.set_onversionchange(None);
        self.handle.close();
    }
}

/// Opens a database at a version.
async fn open(name: &str, version: u32, upgrade: fn(&IdbDatabase, u32) -> Result<(), JsValue>) -> Result<IdbDatabase> {
    let factory = get(&js_sys::global(), "indexedDB");
    let factory: IdbFactory =
        factory.dyn_into().map_err(|_| StoreError::Unsupported("browsers that do not offer IndexedDB to this page"))?;
    let request = factory.open_with_u32(name, version).map_err(|error| to_error(&error))?;
    let upgraded = request.clone();
    let on_upgrade = Closure::<dyn FnMut(IdbVersionChangeEvent)>::new(move |event: IdbVersionChangeEvent| {
        let handle: IdbDatabase = upgraded.result().unwrap_or_default().unchecked_into();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "this code assigns the versions")]
        let old_version = event.old_version() as u32;
        if upgrade(&handle, old_version).is_err()
            && let Some(transaction) = upgraded.transaction()
        {
            let _ = transaction.abort();
        }
    });
    request.set_onupgradeneeded(Some(on_upgrade.as_ref().unchecked_ref()));
    let (sender, blocked) = oneshot::channel();
    let sender = Cell::new(Some(sender));
    let on_blocked = Closure::<dyn FnMut(Event)>::new(move |_| {
        if let Some(sender) = sender.take() {
            let _ = sender.send(());
        }
    });
    request.set_onblocked(Some(on_blocked.as_ref().unchecked_ref()));
    let (sender, opened) = oneshot::channel();
    wasm_bindgen_futures::spawn_local(async move {
        let opened = Request::of(&request).await.map(|handle| handle.unchecked_into::<IdbDatabase>());
        request.set_onupgradeneeded(None);
        request.set_onblocked(None);
        drop((on_upgrade, on_blocked));
        if let Err(Ok(handle)) = sender.send(opened) {
            handle.close();
        }
    });
    match futures::future::select(opened, blocked).await {
        futures::future::Either::Left((opened, _)) => {
            opened.map_err(|_| StoreError::unavailable(Reason::Closed))?.map_err(|error| match error {
                StoreError::Incompatible(_) => StoreError::Incompatible(format!(
                    "a later version of Threadkeep wrote the database {name}, reload the page to get that version"
                )),
                error => error,
            })
        }
        futures::future::Either::Right((Ok(()), _)) => Err(unavailable(
            Reason::Busy,
            "another tab uses the database with an earlier version of Threadkeep; close or reload it",
        )),
        // The channel of `blocked` is dropped after the request is done.
        futures::future::Either::Right((Err(_), opened)) => {
            opened.await.map_err(|_| StoreError::unavailable(Reason::Closed))?
        }
    }
}

/// Brings a database to [`VERSION`], step by step. Version 0 is an empty database.
fn upgrade(database: &IdbDatabase, old_version: u32) -> Result<(), JsValue> {
    if old_version < 1 {
        let options = IdbIndexParameters::new();
        options.set_multi_entry(true);
        let rows = database.create_object_store(ROWS)?;
        rows.create_index_with_str_and_optional_parameters(INDEX, INDEX_KEYS, &options)?;
    }
    Ok(())
}

/// Deletes a database. It waits for other tabs that have the database open.
pub(crate) async fn delete(name: &str) -> Result<()> {
    let factory = get(&js_sys::global(), "indexedDB");
    let factory: IdbFactory =
        factory.dyn_into().map_err(|_| StoreError::Unsupported("browsers that do not offer IndexedDB to this page"))?;
    let request: IdbOpenDbRequest = factory.delete_database(name).map_err(|error| to_error(&error))?;
    Request::of(&request).await.map(drop)
}

/// A transaction. Dropping it without a call of [`Transaction::commit`] undoes what it wrote.
pub(crate) struct Transaction {
    handle: IdbTransaction,
    rows: IdbObjectStore,
    index: IdbIndex,
    /// Receives whether the transaction was committed.
    ended: Option<oneshot::Receiver<bool>>,
    _on_end: Closure<dyn FnMut(Event)>,
}

impl Transaction {
    /// Returns the text of a row.
    pub(crate) async fn get(&self, key: &[u8]) -> Result<Option<String>> {
        text_of(&Request::start(self.rows.get(&bytes(key)))?.await?)
    }

    /// Returns the text of the first row with an index key.
    pub(crate) async fn get_indexed(&self, index_key: &[u8]) -> Result<Option<String>> {
        text_of(&Request::start(self.index.get(&bytes(index_key)))?.await?)
    }

    /// Returns the texts of the first `limit` rows with a key in a range, without its end.
    pub(crate) async fn range(&self, range: &Range, limit: usize) -> Result<Vec<String>> {
        let Some(range) = range.to_js()? else { return Ok(Vec::new()) };
        texts_of(&Request::start(self.rows.get_all_with_key_and_limit(&range, to_count(limit)))?.await?)
    }

    /// Returns the texts of the first `limit` rows with an index key in a range, in the order of these keys.
    pub(crate) async fn range_indexed(&self, range: &Range, limit: usize) -> Result<Vec<String>> {
        let Some(range) = range.to_js()? else { return Ok(Vec::new()) };
        texts_of(&Request::start(self.index.get_all_with_key_and_limit(&range, to_count(limit)))?.await?)
    }

    /// Returns the keys of the first `limit` rows in a range.
    pub(crate) async fn keys(&self, range: &Range, limit: usize) -> Result<Vec<Vec<u8>>> {
        let Some(range) = range.to_js()? else { return Ok(Vec::new()) };
        keys_of(&Request::start(self.rows.get_all_keys_with_key_and_limit(&range, to_count(limit)))?.await?)
    }

    /// Returns the keys of all rows with an index key.
    pub(crate) async fn keys_indexed(&self, index_key: &[u8]) -> Result<Vec<Vec<u8>>> {
        keys_of(&Request::start(self.index.get_all_keys_with_key(&bytes(index_key)))?.await?)
    }

    /// Returns the number of rows with an index key.
    pub(crate) async fn count_indexed(&self, index_key: &[u8]) -> Result<u64> {
        let count = Request::start(self.index.count_with_key(&bytes(index_key)))?.await?.as_f64().unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the browser counts rows")]
        Ok(count as u64)
    }

    /// Returns the keys of the last `limit` rows with an index key, in descending order.
    pub(crate) async fn last_keys_indexed(&self, index_key: &[u8], limit: usize) -> Result<Vec<Vec<u8>>> {
        // Browsers that offer `getAllRecords` also read keys in descending order. A cursor takes several times as long.
        if !get(&self.index, "getAllRecords").is_undefined() {
            let options = Object::new();
            set(&options, "query", &bytes(index_key));
            set(&options, "count", &to_count(limit).into());
            set(&options, "direction", &"prev".into());
            return keys_of(&Request::start(self.index.get_all_keys_with_key(&options))?.await?);
        }
        let (key, direction) = (bytes(index_key), IdbCursorDirection::Prev);
        let request = self.index.open_key_cursor_with_range_and_direction(&key, direction);
        let request = request.map_err(|error| to_error(&error))?;
        let mut keys = Vec::new();
        while keys.len() < limit {
            let cursor = Request::of(&request).await?;
            if cursor.is_null() {
                break;
            }
            let cursor: &IdbCursor = cursor.unchecked_ref();
            keys.push(key_of(&cursor.primary_key().map_err(|error| to_error(&error))?));
            cursor.continue_().map_err(|error| to_error(&error))?;
        }
        Ok(keys)
    }

    /// Returns the last key in a range.
    pub(crate) async fn last_key(&self, range: &Range) -> Result<Option<Vec<u8>>> {
        let Some(range) = range.to_js()? else { return Ok(None) };
        let request = self.rows.open_key_cursor_with_range_and_direction(&range, IdbCursorDirection::Prev);
        let cursor = Request::start(request)?.await?;
        if cursor.is_null() {
            return Ok(None);
        }
        let key = cursor.unchecked_ref::<IdbCursor>().primary_key().map_err(|error| to_error(&error))?;
        Ok(Some(key_of(&key)))
    }

    /// Writes a row. An error appears when the transaction is committed.
    pub(crate) fn put(&self, key: &[u8], text: &str, index_keys: &[Vec<u8>]) -> Result<()> {
        let row = Object::new();
        set(&row, TEXT, &text.into());
        if !index_keys.is_empty() {
            let keys: Array = index_keys.iter().map(|key| bytes(key)).collect();
            set(&row, INDEX_KEYS, &keys);
        }
        self.rows.put_with_key(&row, &bytes(key)).map(drop).map_err(|error| to_error(&error))
    }

    /// Deletes a row, if it exists.
    pub(crate) fn delete(&self, key: &[u8]) -> Result<()> {
        self.rows.delete(&bytes(key)).map(drop).map_err(|error| to_error(&error))
    }

    /// Deletes the rows with a key in a range.
    pub(crate) fn delete_range(&self, range: &Range) -> Result<()> {
        let Some(range) = range.to_js()? else { return Ok(()) };
        self.rows.delete(&range).map(drop).map_err(|error| to_error(&error))
    }

    /// Commits, and waits until the data is as durable as configured. If this fails, nothing is written.
    pub(crate) async fn commit(mut self) -> Result<()> {
        // Without this call, which not every browser offers, the transaction ends a little later.
        if let Some(commit) = get(&self.handle, "commit").dyn_ref::<Function>() {
            let _ = commit.call0(&self.handle);
        }
        let Some(ended) = self.ended.take() else { return Ok(()) };
        if ended.await.unwrap_or(false) {
            return Ok(());
        }
        Err(self
            .handle
            .error()
            .map_or_else(|| unavailable(Reason::Io, "the browser ended a transaction"), |error| to_error(&error)))
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.handle.set_oncomplete(None);
        self.handle.set_onabort(None);
        if self.ended.is_some() {
            // Fails if the transaction has ended.
            let _ = self.handle.abort();
        }
    }
}

/// A range of keys, without its end.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Vec<u8>,
}

impl Range {
    /// The range of all keys with a prefix.
    pub(crate) fn of_prefix(prefix: Vec<u8>) -> Self {
        let mut end = prefix.clone();
        while end.last() == Some(&u8::MAX) {
            end.pop();
        }
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        Self { start: prefix, end }
    }

    /// Leaves out the keys up to and including a key.
    pub(crate) fn after(mut self, key: &[u8]) -> Self {
        let mut start = key.to_vec();
        start.push(0);
        self.start = self.start.max(start);
        self
    }

    /// `None` for an empty range, which IndexedDB rejects.
    fn to_js(&self) -> Result<Option<IdbKeyRange>> {
        if self.start >= self.end {
            return Ok(None);
        }
        let range =
            IdbKeyRange::bound_with_lower_open_and_upper_open(&bytes(&self.start), &bytes(&self.end), false, true);
        range.map(Some).map_err(|error| to_error(&error))
    }
}

/// The result of a request, as a future.
struct Request {
    request: IdbRequest,
    done: oneshot::Receiver<()>,
    _on_done: Closure<dyn FnMut(Event)>,
}

impl Request {
    fn start(request: Result<IdbRequest, JsValue>) -> Result<Self> {
        request.map(|request| Self::of(&request)).map_err(|error| to_error(&error))
    }

    fn of(request: &IdbRequest) -> Self {
        let (sender, done) = oneshot::channel();
        let sender = Cell::new(Some(sender));
        let on_done = Closure::<dyn FnMut(Event)>::new(move |event: Event| {
            // An error that no one handles would also be reported to the page.
            event.prevent_default();
            if let Some(sender) = sender.take() {
                let _ = sender.send(());
            }
        });
        request.set_onsuccess(Some(on_done.as_ref().unchecked_ref()));
        request.set_onerror(Some(on_done.as_ref().unchecked_ref()));
        Self { request: request.clone(), done, _on_done: on_done }
    }
}

impl Future for Request {
    type Output = Result<JsValue>;

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.done).poll(context).map(|_| match self.request.error() {
            Ok(Some(error)) => Err(to_error(&error)),
            Ok(None) => self.request.result().map_err(|error| to_error(&error)),
            Err(error) => Err(to_error(&error)),
        })
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.request.set_onsuccess(None);
        self.request.set_onerror(None);
    }
}

fn bytes(key: &[u8]) -> Uint8Array {
    Uint8Array::new_from_slice(key)
}

fn key_of(key: &JsValue) -> Vec<u8> {
    Uint8Array::new(key).to_vec()
}

fn keys_of(keys: &JsValue) -> Result<Vec<Vec<u8>>> {
    Ok(keys.unchecked_ref::<Array>().iter().map(|key| key_of(&key)).collect())
}

fn text_of(row: &JsValue) -> Result<Option<String>> {
    if row.is_undefined() {
        return Ok(None);
    }
    let text = get(row, TEXT).as_string();
    text.map(Some).ok_or_else(|| StoreError::corrupt("row", "without a text"))
}

fn texts_of(rows: &JsValue) -> Result<Vec<String>> {
    let texts = rows.unchecked_ref::<Array>().iter().map(|row| text_of(&row).map(Option::unwrap_or_default));
    texts.collect()
}

fn to_count(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

/// Returns a field of an object; undefined if it does not exist.
pub(crate) fn get(object: &JsValue, name: &str) -> JsValue {
    Reflect::get(object, &JsString::from(name)).unwrap_or(JsValue::UNDEFINED)
}

fn set(object: &Object, name: &str, value: &JsValue) {
    // Fails only for objects that cannot be changed.
    let _ = Reflect::set(object, &JsString::from(name), value);
}

/// Converts what the browser throws or reports.
fn to_error(error: &JsValue) -> StoreError {
    let Some(exception) = error.dyn_ref::<DomException>() else {
        return unavailable(Reason::Io, &format!("{error:?}"));
    };
    let detail = format!("{}: {}", exception.name(), exception.message());
    match exception.name().as_str() {
        "QuotaExceededError" => unavailable(Reason::Full, &detail),
        "VersionError" => StoreError::Incompatible(detail),
        "InvalidStateError" => unavailable(Reason::Closed, &detail),
        "TimeoutError" => unavailable(Reason::Timeout, &detail),
        "ReadOnlyError" => unavailable(Reason::ReadOnly, &detail),
        "SecurityError" | "NotAllowedError" => {
            StoreError::Unsupported("browsers that do not offer IndexedDB to this page")
        }
        _ => unavailable(Reason::Io, &detail),
    }
}

/// A failure after which nothing was written.
fn unavailable(reason: Reason, detail: &str) -> StoreError {
    StoreError::Unavailable { reason, maybe_applied: false, source: Some(detail.into()) }
}
