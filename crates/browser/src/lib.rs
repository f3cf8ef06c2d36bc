//! Threadkeep for pages: conversations in the IndexedDB of a browser, without a server. The npm package `@threadkeep/browser` is this
//! crate, compiled to WebAssembly by `cargo xtask browser --package`.
//!
//! Start with [`Threadkeep::open`]. This crate only translates between JavaScript and [`threadkeep_memory::Memory`]: options and results
//! are plain objects (`json.rs`), and errors are `Error`s with a `code` (`error.rs`). `types.ts` declares them.
#![warn(missing_docs)]

pub mod convert;
pub mod error;
mod json;
mod platform;
mod tabs;

use std::future::pending;
use std::io::Cursor;
use std::pin::pin;
use std::sync::Arc;

use futures::channel::oneshot;
use futures::future::{Either, select};
use futures::{Stream, StreamExt};
use js_sys::Function;
use threadkeep_context::ContextPolicy;
use threadkeep_core::{Bound, MessageQuery, MetadataFilter, OnCorrupt, Processes, ThreadQuery};
use threadkeep_core::{OpenThread, OrderBy, RangeEnd, Scope, TaggedNumber, ThreadId, ThreadKey, ThreadOrder};
use threadkeep_memory::{
    AppendOptions, ImportOptions, Memory, Platform, RecallOptions, SearchOptions, Start, SubscribeOptions,
    ThreadSelection,
};
use threadkeep_store_indexeddb::{Durability, IndexedDbStore};
use wasm_bindgen::prelude::*;

pub use crate::platform::{BrowserClock, BrowserRuntime};
pub use crate::tabs::BrowserTabs;

use crate::convert::{from_js, from_js_checked, to_js};
use crate::error::{ToJs, invalid};
use crate::json::{
    AppendJson, AppendOptionsJson, ContextJson, DraftsJson, ImportJson, MessagesJson, MessagesOptionsJson,
    OpenOptionsJson, OpenThreadJson, RecallJson, RecallOptionsJson, SearchJson, SearchOptionsJson,
    SubscribeOptionsJson, ThreadJson, ThreadsJson, ThreadsOptionsJson, UpdateJson,
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("types.ts");

/// The name of the database if the page chooses none.
const DATABASE: &str = "threadkeep";
/// The tenant if the page chooses none.
const TENANT: &str = "local";
/// The default number of items in a list.
const PAGE: usize = 50;

/// The conversations of one tenant, or of one of its users, in this browser.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Threadkeep {
    memory: Memory,
    scope: Scope,
}

impl Threadkeep {
    /// Returns the memory.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns whose conversations these are.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

#[wasm_bindgen]
impl Threadkeep {
    /// Opens the database of this origin, and creates it if it does not exist.
    ///
    /// # Errors
    /// `incompatible` if a later version of this package wrote the database, `unsupported` if the browser offers no IndexedDB.
    pub async fn open(
        #[wasm_bindgen(unchecked_optional_param_type = "OpenOptions")] options: JsValue,
    ) -> Result<Threadkeep, JsValue> {
        let options: OpenOptionsJson = from_js("options", &options)?;
        let tenant = options.tenant.unwrap_or_else(|| TENANT.to_owned());
        let scope = match options.user {
            Some(user) => Scope::user(tenant, user),
            None => Scope::tenant(tenant),
        };
        let scope = scope.to_js()?;
        let durability = match options.durability.as_deref() {
            None | Some("strict") => Durability::Strict,
            Some("relaxed") => Durability::Relaxed,
            Some(_) => return Err(invalid("durability", "must be \"strict\" or \"relaxed\"")),
        };
        let database = options.database.as_deref().unwrap_or(DATABASE);
        let backend = IndexedDbStore::open(database, durability).await.to_js()?;
        let processes = BrowserTabs::register().await.map(|tabs| Arc::new(tabs) as Arc<dyn Processes>);
        let platform = Platform { clock: Arc::new(BrowserClock), runtime: Arc::new(BrowserRuntime), processes };
        Ok(Self { memory: Memory::with_platform(backend, platform), scope })
    }

    /// Deletes a database with everything in it. Tabs that have it open close it.
    ///
    /// # Errors
    /// `unsupported` if the browser offers no IndexedDB.
    #[wasm_bindgen(js_name = deleteDatabase)]
    pub async fn delete_database(name: Option<String>) -> Result<(), JsValue> {
        IndexedDbStore::delete(name.as_deref().unwrap_or(DATABASE)).await.to_js()
    }

    /// Finds the thread with a key or an id, or creates it.
    ///
    /// # Errors
    /// `invalid_request` for invalid options.
    #[wasm_bindgen(js_name = openThread, unchecked_return_type = "OpenedThread")]
    pub async fn open_thread(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "OpenThreadOptions")] options: JsValue,
    ) -> Result<JsValue, JsValue> {
        let OpenThreadJson { id, key, title, metadata } = from_js("options", &options)?;
        let id = id.unwrap_or_else(|| self.memory.generate_thread_id());
        let key = key.map(ThreadKey::new).transpose().to_js()?;
        let open = OpenThread { key, title, metadata, ..OpenThread::new(&self.scope, id) };
        let opened = self.memory.open_thread(&self.scope, open).await.to_js()?;
        to_js(&ThreadJson::opened(opened))
    }

    /// Returns a thread, without its messages.
    ///
    /// # Errors
    /// `not_found` for an unknown thread.
    #[wasm_bindgen(unchecked_return_type = "Thread")]
    pub async fn thread(&self, thread: &str) -> Result<JsValue, JsValue> {
        let thread = thread_id(thread)?;
        to_js(&ThreadJson::from(self.memory.get_thread(&self.scope, thread).await.to_js()?))
    }

    /// Lists threads, the most recently changed first.
    ///
    /// # Errors
    /// `invalid_request` for invalid options.
    #[wasm_bindgen(unchecked_return_type = "ThreadPage")]
    pub async fn threads(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "ThreadsOptions")] options: JsValue,
    ) -> Result<JsValue, JsValue> {
        let ThreadsOptionsJson { order, limit, after, metadata } = from_js("options", &options)?;
        let metadata = MetadataFilter::from_map(&metadata).to_js()?;
        let query = ThreadQuery {
            after,
            metadata,
            ..ThreadQuery::new(order.unwrap_or(ThreadOrder::Recent), limit.unwrap_or(PAGE))
        };
        let page = self.memory.list_threads(&self.scope, &query).await.to_js()?;
        to_js(&ThreadsJson::from(page))
    }

    /// Deletes a thread with its messages.
    ///
    /// # Errors
    /// `not_found` for an unknown thread.
    #[wasm_bindgen(js_name = deleteThread)]
    pub async fn delete_thread(&self, thread: &str) -> Result<(), JsValue> {
        self.memory.delete_thread(&self.scope, thread_id(thread)?).await.to_js()
    }

    /// Appends messages in order, all or none. With an idempotency key, a repeated request is stored once.
    ///
    /// # Errors
    /// `not_found` for an unknown thread, `seq_conflict` if the thread is not at the expected position, `limit_exceeded`,
    /// `invalid_request`.
    #[wasm_bindgen(unchecked_return_type = "Appended")]
    pub async fn append(
        &self,
        thread: &str,
        #[wasm_bindgen(unchecked_param_type = "NewMessage | NewMessage[]")] messages: JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "AppendOptions")] options: JsValue,
    ) -> Result<JsValue, JsValue> {
        let thread = thread_id(thread)?;
        let drafts = from_js::<DraftsJson>("messages", &messages)?.into_drafts();
        let options: AppendOptions = from_js::<AppendOptionsJson>("options", &options)?.into();
        let appended = self.memory.append_all(&self.scope, thread, drafts, &options).await.to_js()?;
        to_js(&AppendJson::from(appended))
    }

    /// Appends messages, all or none. If the thread has a message with the id or the external id of one of them, its content is replaced;
    /// it keeps its position and its time.
    ///
    /// # Errors
    /// `not_found` for an unknown thread, `limit_exceeded`, `invalid_request`.
    #[wasm_bindgen(unchecked_return_type = "Appended")]
    pub async fn upsert(
        &self,
        thread: &str,
        #[wasm_bindgen(unchecked_param_type = "NewMessage | NewMessage[]")] messages: JsValue,
    ) -> Result<JsValue, JsValue> {
        let thread = thread_id(thread)?;
        let drafts = from_js::<DraftsJson>("messages", &messages)?.into_drafts();
        to_js(&AppendJson::from(self.memory.upsert(&self.scope, thread, drafts).await.to_js()?))
    }

    /// Reads messages, oldest first: the newest ones, or those before or after a position.
    ///
    /// # Errors
    /// `not_found` for an unknown thread, `invalid_request` for invalid options.
    #[wasm_bindgen(unchecked_return_type = "MessagePage")]
    pub async fn messages(
        &self,
        thread: &str,
        #[wasm_bindgen(unchecked_optional_param_type = "MessagesOptions")] options: JsValue,
    ) -> Result<JsValue, JsValue> {
        let thread = thread_id(thread)?;
        let MessagesOptionsJson { limit, before, after, roles } = from_js("options", &options)?;
        let query = MessageQuery {
            before: before.map(Bound::Seq),
            after: after.map(Bound::Seq),
            roles,
            order: OrderBy::Seq,
            take: if after.is_some() { RangeEnd::Oldest } else { RangeEnd::Newest },
            limit: limit.unwrap_or(PAGE),
            on_corrupt: OnCorrupt::Report,
        };
        to_js(&MessagesJson::from(self.memory.messages(&self.scope, thread, &query).await.to_js()?))
    }

    /// Erases messages. Their positions remain, and their content can no longer be read.
    ///
    /// # Errors
    /// `not_found` for an unknown thread or message.
    #[wasm_bindgen(js_name = eraseMessages)]
    pub async fn erase_messages(&self, thread: &str, ids: Vec<String>) -> Result<(), JsValue> {
        let thread = thread_id(thread)?;
        let ids = ids.iter().map(|id| id.parse().map_err(|_| invalid("ids", "must be UUIDs")));
        let ids = ids.collect::<Result<Vec<_>, JsValue>>()?;
        self.memory.erase_messages(&self.scope, thread, &ids).await.to_js().map(|_| ())
    }

    /// Assembles the context in which a model answers a question; without a question, the newest message.
    ///
    /// # Errors
    /// `not_found` for an unknown thread, `invalid_policy` for an invalid policy or a budget that is too small.
    #[wasm_bindgen(unchecked_return_type = "Context")]
    pub async fn context(
        &self,
        thread: &str,
        question: Option<String>,
        #[wasm_bindgen(unchecked_optional_param_type = "ContextPolicy")] policy: JsValue,
    ) -> Result<JsValue, JsValue> {
        let thread = thread_id(thread)?;
        let policy: ContextPolicy = from_js_checked("policy", &policy)?;
        let assembled = self.memory.context(&self.scope, thread, question.as_deref(), &policy).await.to_js()?;
        to_js(&ContextJson::from(assembled))
    }

    /// Recalls messages that may answer a question, best first.
    ///
    /// # Errors
    /// `invalid_request` for invalid options.
    #[wasm_bindgen(unchecked_return_type = "RecalledMessage[]")]
    pub async fn recall(
        &self,
        question: &str,
        #[wasm_bindgen(unchecked_optional_param_type = "RecallOptions")] options: JsValue,
    ) -> Result<JsValue, JsValue> {
        let options: RecallOptions = from_js::<RecallOptionsJson>("options", &options)?.into();
        let results = self.memory.recall(&self.scope, question, &options).await.to_js()?;
        to_js(&results.messages.into_iter().map(RecallJson::from).collect::<Vec<_>>())
    }

    /// Searches messages by their words. The query has the syntax of `threadkeep search`.
    ///
    /// # Errors
    /// `invalid_request` for invalid options.
    #[wasm_bindgen(unchecked_return_type = "SearchResults")]
    pub async fn search(
        &self,
        query: &str,
        #[wasm_bindgen(unchecked_optional_param_type = "SearchOptions")] options: JsValue,
    ) -> Result<JsValue, JsValue> {
        let options: SearchOptions = from_js::<SearchOptionsJson>("options", &options)?.into();
        to_js(&SearchJson::from(self.memory.search(&self.scope, query, &options).await.to_js()?))
    }

    /// Calls a function with each change to a thread, in order and without gaps, also with changes by other tabs. It is also called
    /// with the error that ends the subscription.
    ///
    /// # Errors
    /// `not_found` for an unknown thread.
    pub async fn subscribe(
        &self,
        thread: &str,
        #[wasm_bindgen(unchecked_param_type = "(update: Update | Error) => void")] listener: Function,
        #[wasm_bindgen(unchecked_optional_param_type = "SubscribeOptions")] options: JsValue,
    ) -> Result<Subscription, JsValue> {
        let thread = thread_id(thread)?;
        let SubscribeOptionsJson { last, after } = from_js("options", &options)?;
        let start = match (last, after) {
            (None, None) => Start::Now,
            (Some(last), None) => Start::Last(last),
            (None, Some(change)) => Start::After(TaggedNumber::from(change)),
            (Some(_), Some(_)) => return Err(invalid("options", "`last` and `after` exclude each other")),
        };
        let options = SubscribeOptions { start, ..SubscribeOptions::default() };
        let updates = self.memory.subscribe(&self.scope, thread, options).await.to_js()?;
        Ok(Subscription::begin(
            updates.map(|update| match update {
                Ok(update) => to_js(&UpdateJson::from(&*update)),
                Err(error) => Err(error).to_js(),
            }),
            listener,
        ))
    }

    /// Calls a function with each line of an export in Threadkeep's format (JSON Lines). Returns the number of lines.
    ///
    /// # Errors
    /// `not_found` for an unknown thread; the exception of the function, which ends the export.
    pub async fn export(
        &self,
        #[wasm_bindgen(unchecked_param_type = "(line: string) => void")] on_line: Function,
        thread: Option<String>,
    ) -> Result<u32, JsValue> {
        let selection = match thread {
            Some(thread) => ThreadSelection::Thread(thread_id(&thread)?),
            None => ThreadSelection::All,
        };
        let mut lines = self.memory.export(&self.scope, selection);
        let mut count = 0;
        while let Some(line) = lines.next().await {
            let text = serde_json::to_string(&line.to_js()?).map_err(|error| invalid("line", &error.to_string()))?;
            on_line.call1(&JsValue::NULL, &text.into())?;
            count += 1;
        }
        Ok(count)
    }

    /// Imports a file: an export of Threadkeep, or of one of the programs that `threadkeep import` reads. Importing a file again adds
    /// nothing.
    ///
    /// # Errors
    /// `invalid_request` if the format is unknown. Items that cannot be imported are in the report.
    #[wasm_bindgen(unchecked_return_type = "ImportReport")]
    pub async fn import(&self, bytes: Vec<u8>) -> Result<JsValue, JsValue> {
        let reader = threadkeep_formats::open_stream(Box::new(Cursor::new(bytes)), None);
        let reader = reader.map_err(|error| invalid("file", &error.to_string()))?;
        let mut unreadable = Vec::new();
        let items = reader.filter_map(|item| item.map_err(|error| unreadable.push(error.to_string())).ok());
        let report = self.memory.import(&self.scope, items, ImportOptions::default(), |_| {}).await.to_js()?;
        to_js(&ImportJson::new(&report, unreadable))
    }
}

/// A subscription to a thread. It lasts until it is stopped or the page is closed.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Subscription {
    stop: oneshot::Sender<()>,
}

impl Subscription {
    /// Calls a function with each update, and with the error that ends the updates.
    pub fn begin(updates: impl Stream<Item = Result<JsValue, JsValue>> + 'static, listener: Function) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        wasm_bindgen_futures::spawn_local(async move {
            let mut updates = pin!(updates);
            let mut stopped = pin!(async {
                // The browser drops a `Subscription` that the page no longer refers to. The listener is still called.
                if stopped.await.is_err() {
                    pending::<()>().await;
                }
            });
            // `select` polls its first future first, so a listener that has been stopped is not called again.
            while let Either::Right((Some(update), _)) = select(stopped.as_mut(), updates.next()).await {
                let (Ok(value) | Err(value)) = update;
                // An exception of the listener concerns only the listener.
                let _ = listener.call1(&JsValue::NULL, &value);
            }
        });
        Self { stop }
    }
}

#[wasm_bindgen]
impl Subscription {
    /// Ends the subscription. The listener is not called again.
    pub fn stop(self) {
        // Fails if the subscription has already ended.
        let _ = self.stop.send(());
    }
}

fn thread_id(text: &str) -> Result<ThreadId, JsValue> {
    text.parse().map_err(|_| invalid("thread", "must be the id of a thread"))
}
