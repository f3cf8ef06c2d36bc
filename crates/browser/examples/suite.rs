//! The conformance suite as a module for a browser: `cargo xtask browser` builds it and runs every case in Chromium.
//!
//! A panic ends the module, so the page that runs a case reports the message of the panic and then loads the module again.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use js_sys::{Function, Reflect};
use threadkeep_browser::BrowserRuntime;
use threadkeep_core::{
    Backend, Batch, Consistency, Content, Fingerprint, IdempotencyKey, MessageId, MessageQuery, NewMessage, OpenThread,
    Role, Scope, StoreError, ThreadId, Timestamp,
};
use threadkeep_store_conformance::{Capabilities, Factory, Instance, case_names, property_test, run_case_on};
use threadkeep_store_indexeddb::{Durability, IndexedDbStore};
use uuid::Uuid;
use wasm_bindgen::prelude::*;

/// Returns the names of all cases.
#[wasm_bindgen]
#[must_use]
pub fn cases() -> Vec<String> {
    case_names().map(str::to_owned).collect()
}

/// Runs a case, with or without faults.
///
/// # Errors
/// If the case fails in another way than by a panic.
#[wasm_bindgen]
pub async fn run(name: String, has_faults: bool) -> Result<(), JsValue> {
    report_panics();
    run_case_on(Arc::new(BrowserRuntime), &name, &BrowserFactory, has_faults).await.map_err(JsValue::from)
}

/// Compares the store with the model over random sequences of operations.
#[wasm_bindgen]
pub async fn compare_with_model(sequences: u32) {
    report_panics();
    property_test(&BrowserFactory, sequences).await;
}

/// Opens a database and appends messages to its only thread, each with one commit. Returns how many milliseconds a commit took.
///
/// # Errors
/// The error of the store.
#[wasm_bindgen]
pub async fn append(database: String, first: u32, count: u32, is_relaxed: bool) -> Result<f64, JsValue> {
    report_panics();
    let durability = if is_relaxed { Durability::Relaxed } else { Durability::Strict };
    let store = IndexedDbStore::open(&database, durability).await.map_err(to_js)?.store;
    let (scope, now) = (scope()?, Timestamp::from_micros(0).map_err(to_js)?);
    store.open_thread(&scope, OpenThread::new(&scope, THREAD), now).await.map_err(to_js)?;
    let start = now_millis();
    for number in first..first + count {
        let id = Uuid::from_u128(u128::from(number));
        let content = Content::text(Role::User, format!("message {number} about the allotment and its walrus"));
        let message = NewMessage { id: MessageId(id), external_id: None, created_at: now, content };
        let batch = Batch::new(IdempotencyKey::Generated(id), Fingerprint([0; 8]));
        store.commit(&scope, THREAD, Batch { append: vec![message], ..batch }, now).await.map_err(to_js)?;
    }
    Ok((now_millis() - start) / f64::from(count))
}

/// Reads the newest messages of the only thread of a database. Returns the position of the last one, how many there were without a gap,
/// and how many milliseconds the read took.
///
/// # Errors
/// The error of the store.
#[wasm_bindgen]
pub async fn newest(database: String, limit: usize) -> Result<Vec<f64>, JsValue> {
    report_panics();
    let store = IndexedDbStore::open(&database, Durability::Strict).await.map_err(to_js)?.store;
    let (scope, now) = (scope()?, Timestamp::from_micros(0).map_err(to_js)?);
    let start = now_millis();
    let page = store.list_messages(&scope, THREAD, &MessageQuery::newest(limit), now).await.map_err(to_js)?;
    let elapsed = now_millis() - start;
    let is_gapless = page.messages.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq);
    let count = if is_gapless { page.messages.len() } else { 0 };
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    Ok(vec![page.positions.seq as f64, count as f64, elapsed])
}

/// Waits until another tab changes the database.
///
/// # Errors
/// The error of the store.
#[wasm_bindgen]
pub async fn wait_for_change(database: String) -> Result<bool, JsValue> {
    let store = IndexedDbStore::open(&database, Durability::Strict).await.map_err(to_js)?.store;
    let mut wake_ups = store.wake_ups().await.map_err(to_js)?;
    Ok(wake_ups.next().await.is_some())
}

const THREAD: ThreadId = ThreadId(Uuid::from_u128(1));

fn scope() -> Result<Scope, JsValue> {
    Scope::user("acme", "ana").map_err(to_js)
}

fn to_js(error: StoreError) -> JsValue {
    JsValue::from(error.to_string())
}

fn now_millis() -> f64 {
    let performance = Reflect::get(&js_sys::global(), &"performance".into()).unwrap_or_default();
    let now = Reflect::get(&performance, &"now".into()).unwrap_or_default();
    now.unchecked_into::<Function>().call0(&performance).ok().and_then(|now| now.as_f64()).unwrap_or(0.0)
}

/// Leaves the message of a panic where the page finds it.
fn report_panics() {
    std::panic::set_hook(Box::new(|info| {
        let _ = Reflect::set(&js_sys::global(), &"panicMessage".into(), &info.to_string().into());
    }));
}

struct BrowserFactory;

#[async_trait]
impl Factory for BrowserFactory {
    async fn create(&self) -> Box<dyn Instance> {
        open(format!("suite-{}", Uuid::new_v4())).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { durable: true, named_collections: true, compaction: false, snapshots: Consistency::Store }
    }
}

async fn open(name: String) -> Box<dyn Instance> {
    let backend = IndexedDbStore::open(&name, Durability::Strict).await.expect("the database opens");
    Box::new(BrowserInstance { name, backend: Some(backend) })
}

struct BrowserInstance {
    name: String,
    backend: Option<Backend>,
}

#[async_trait]
impl Instance for BrowserInstance {
    fn backend(&self) -> Backend {
        self.backend.clone().expect("the store is open")
    }

    async fn reopen(mut self: Box<Self>) -> Box<dyn Instance> {
        self.backend = None;
        open(std::mem::take(&mut self.name)).await
    }

    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

impl Drop for BrowserInstance {
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        if !name.is_empty() {
            self.backend = None;
            wasm_bindgen_futures::spawn_local(async move {
                // The browser deletes what remains with the profile of the test.
                let _ = IndexedDbStore::delete(&name).await;
            });
        }
    }
}
