//! Threads and their messages.

use futures::StreamExt;
use js_sys::Function;
use serde::Serialize;
use threadkeep::core::TaggedNumber;
use threadkeep::{
    Bound, Map, MessageQuery, MessageRef, OnCorrupt, OpenThread, OrderBy, RangeEnd, Start, SubscribeOptions, ThreadId,
    ThreadOrder, ThreadPatch, ThreadQuery, ThreadUpdate,
};
use threadkeep_api::event::EventJson;
use threadkeep_api::message::MessageJson;
use threadkeep_api::thread::ThreadJson;
use threadkeep_browser::Subscription;
use threadkeep_browser::convert::{from_js, to_js};
use threadkeep_browser::error::{ToJs, invalid};
use wasm_bindgen::prelude::*;

use crate::{OfflineEngine, not_found, thread_id};

/// A page of threads.
#[derive(Serialize)]
struct ThreadsJson {
    data: Vec<ThreadJson>,
    next: Option<String>,
}

/// A page of messages in ascending order, and the position from which to follow the thread.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessagesJson<'a> {
    messages: Vec<MessageJson<'a>>,
    has_more: bool,
    position: String,
}

/// An update of a thread. `position` is the position from which to resume after it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum UpdateJson<'a> {
    Commit { position: String, change: u64, events: Vec<EventJson<'a>> },
    Reset { position: String },
    Deleted,
}

#[wasm_bindgen]
impl OfflineEngine {
    /// Lists threads, the most recently changed first.
    ///
    /// # Errors
    /// `invalid_request` for an invalid cursor or limit.
    pub async fn threads(&self, after: Option<String>, limit: usize) -> Result<JsValue, JsValue> {
        let query = ThreadQuery { after, ..ThreadQuery::new(ThreadOrder::Recent, limit) };
        let page = self.memory.list_threads(&self.scope, &query).await.to_js()?;
        to_js(&ThreadsJson { data: page.threads.into_iter().map(Into::into).collect(), next: page.next })
    }

    /// Returns a thread.
    ///
    /// # Errors
    /// `not_found` for an unknown thread.
    pub async fn thread(&self, thread: &str) -> Result<JsValue, JsValue> {
        self.thread_json(thread_id(thread)?).await
    }

    /// Creates a thread, or returns the thread with this id.
    ///
    /// # Errors
    /// `invalid_request` for invalid metadata.
    #[wasm_bindgen(js_name = createThread)]
    pub async fn create_thread(&self, thread: &str, metadata: JsValue) -> Result<JsValue, JsValue> {
        let metadata: Map = from_js("metadata", &metadata)?;
        let open = OpenThread { metadata, ..OpenThread::new(&self.scope, thread_id(thread)?) };
        to_js(&ThreadJson::from(self.memory.open_thread(&self.scope, open).await.to_js()?.thread))
    }

    /// Sets or removes the title of a thread.
    ///
    /// # Errors
    /// `not_found` for an unknown thread.
    #[wasm_bindgen(js_name = renameThread)]
    pub async fn rename_thread(&self, thread: &str, title: Option<String>) -> Result<JsValue, JsValue> {
        let thread = thread_id(thread)?;
        let patch = ThreadPatch { title: Some(title), ..ThreadPatch::default() };
        self.memory.patch_thread(&self.scope, thread, patch, None).await.to_js()?;
        self.thread_json(thread).await
    }

    /// Deletes a thread with its messages.
    ///
    /// # Errors
    /// `not_found` for an unknown thread.
    #[wasm_bindgen(js_name = deleteThread)]
    pub async fn delete_thread(&self, thread: &str) -> Result<(), JsValue> {
        self.memory.delete_thread(&self.scope, thread_id(thread)?).await.to_js()
    }

    /// Creates a thread with copies of the messages up to a position. A repeated call with the same key continues an interrupted one.
    ///
    /// # Errors
    /// `not_found` for an unknown thread.
    #[wasm_bindgen(js_name = forkThread)]
    pub async fn fork_thread(&self, thread: &str, through_seq: u32, key: &str) -> Result<JsValue, JsValue> {
        let from = self.memory.get_thread(&self.scope, thread_id(thread)?).await.to_js()?;
        let id = ThreadId::from_name(format!("fork\n{}\n{key}", from.id).as_bytes());
        let mut metadata = from.metadata.clone();
        // This field identifies a branch of an imported conversation. The new thread is not such a branch.
        metadata.shift_remove("branch");
        let open = OpenThread {
            title: from.title.clone(),
            metadata,
            state: from.state.clone(),
            ..OpenThread::new(&self.scope, id)
        };
        self.memory.open_thread(&self.scope, open).await.to_js()?;
        self.memory.copy_messages(&self.scope, &from, id, through_seq.into(), "fork").await.to_js()?;
        self.thread_json(id).await
    }

    /// Reads messages: the newest ones, or those before or after a position.
    ///
    /// # Errors
    /// `not_found` for an unknown thread.
    pub async fn messages(
        &self,
        thread: &str,
        before: Option<u32>,
        after: Option<u32>,
        limit: usize,
    ) -> Result<JsValue, JsValue> {
        let query = MessageQuery {
            before: before.map(|seq| Bound::Seq(seq.into())),
            after: after.map(|seq| Bound::Seq(seq.into())),
            roles: Vec::new(),
            order: OrderBy::Seq,
            take: if after.is_some() { RangeEnd::Oldest } else { RangeEnd::Newest },
            limit,
            on_corrupt: OnCorrupt::Report,
        };
        let page = self.memory.messages(&self.scope, thread_id(thread)?, &query).await.to_js()?;
        let messages = page.messages.iter().map(MessageJson::from).collect();
        to_js(&MessagesJson { messages, has_more: page.more, position: page.positions.tagged().to_string() })
    }

    /// Returns the message at a position.
    ///
    /// # Errors
    /// `not_found` for an unknown thread or message.
    pub async fn message(&self, thread: &str, seq: u32) -> Result<JsValue, JsValue> {
        let found = self.find_message(thread_id(thread)?, seq).await?;
        to_js(&MessageJson::from(&found))
    }

    /// Erases the message at a position.
    ///
    /// # Errors
    /// `not_found` for an unknown thread or message.
    #[wasm_bindgen(js_name = eraseMessage)]
    pub async fn erase_message(&self, thread: &str, seq: u32) -> Result<(), JsValue> {
        let thread = thread_id(thread)?;
        let found = self.find_message(thread, seq).await?;
        self.memory.erase_messages(&self.scope, thread, &[found.id]).await.to_js().map(drop)
    }

    /// Calls a function with each update of a thread after a position, also with those of other tabs.
    ///
    /// # Errors
    /// `not_found` for an unknown thread, `invalid_request` for an invalid position.
    pub async fn follow(&self, thread: &str, position: &str, listener: Function) -> Result<Subscription, JsValue> {
        let thread = thread_id(thread)?;
        let position: TaggedNumber = position.parse().map_err(|_| invalid("position", "is not a position"))?;
        let options = SubscribeOptions { start: Start::After(position), ..SubscribeOptions::default() };
        let updates = self.memory.subscribe(&self.scope, thread, options).await.to_js()?;
        let (memory, scope) = (self.memory.clone(), self.scope.clone());
        let updates = updates.filter_map(move |update| {
            let (memory, scope) = (memory.clone(), scope.clone());
            async move {
                let update = match update.to_js() {
                    Ok(update) => update,
                    Err(error) => return Some(Err(error)),
                };
                let json = match &*update {
                    ThreadUpdate::Commit { change, tag, events, .. } => UpdateJson::Commit {
                        position: TaggedNumber { number: *change, tag: *tag }.to_string(),
                        change: *change,
                        events: EventJson::visible(&memory, &scope, thread, events).await,
                    },
                    ThreadUpdate::Reset { positions } => UpdateJson::Reset { position: positions.tagged().to_string() },
                    ThreadUpdate::Deleted => UpdateJson::Deleted,
                    ThreadUpdate::History { .. } => return None,
                };
                Some(to_js(&json))
            }
        });
        Ok(Subscription::begin(updates, listener))
    }

    async fn thread_json(&self, thread: ThreadId) -> Result<JsValue, JsValue> {
        to_js(&ThreadJson::from(self.memory.get_thread(&self.scope, thread).await.to_js()?))
    }

    async fn find_message(&self, thread: ThreadId, seq: u32) -> Result<threadkeep::Message, JsValue> {
        let found = self.memory.find_messages(&self.scope, thread, &[MessageRef::Seq(seq.into())]).await.to_js()?;
        found.into_iter().next().ok_or_else(|| not_found("message"))
    }
}
