//! The conformance suite as a module for a browser: `cargo xtask browser` builds it and runs every case in Chromium.
//!
//! A panic ends the module, so the page that runs a case reports the message of the panic and then loads the module again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::channel::oneshot;
use futures::future::BoxFuture;
use js_sys::{Date, Function, Reflect};
use threadkeep_core::{Backend, Consistency, MonotonicTime, Runtime};
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

/// The runtime of a page. Its times are those of the date, which suffices for time limits of a test.
struct BrowserRuntime;

impl Runtime for BrowserRuntime {
    fn now(&self) -> MonotonicTime {
        MonotonicTime::from_nanos(0) + Duration::from_secs_f64(Date::now() / 1000.0)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (sender, slept) = oneshot::channel::<()>();
        let wake = Closure::once_into_js(move || drop(sender));
        let millis = JsValue::from_f64(duration.as_secs_f64() * 1000.0);
        let set_timeout = Reflect::get(&js_sys::global(), &"setTimeout".into()).unwrap_or_default();
        let _ = set_timeout.unchecked_into::<Function>().call2(&JsValue::UNDEFINED, &wake, &millis);
        Box::pin(async move {
            let _ = slept.await;
        })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        wasm_bindgen_futures::spawn_local(task);
    }
}
