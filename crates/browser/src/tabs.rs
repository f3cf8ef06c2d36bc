//! The tabs of this browser, so that a turn whose tab was closed or reloaded can be taken over at once.
//!
//! Each tab holds a lock (Web Locks API) with its name for as long as it exists. The browser releases it, however the tab ends.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;
use js_sys::{Array, Date, Function, Promise, Reflect};
use threadkeep_core::Processes;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::platform::{global, random_text};

/// The prefix of the names of locks.
const LOCK: &str = "threadkeep-tab:";
/// A tab whose name is younger than this at the time of a query may not have its lock yet.
const GRACE_MS: f64 = 1_000.0;

/// The tabs that use Threadkeep at this origin.
#[derive(Clone, Debug)]
pub struct BrowserTabs {
    /// The name of this tab: when it was opened, in milliseconds, and a random text.
    name: String,
    known: Arc<Mutex<Known>>,
}

/// The result of the last query.
#[derive(Debug, Default)]
struct Known {
    at_ms: f64,
    alive: HashSet<String>,
}

impl BrowserTabs {
    /// Registers this tab. Returns `None` if the browser has no locks, as on pages that were not loaded securely.
    pub async fn register() -> Option<Self> {
        let name = format!("{}-{}", Date::now(), random_text());
        hold(&format!("{LOCK}{name}")).await?;
        let tabs = Self { name, known: Arc::default() };
        tabs.refresh().await?;
        Some(tabs)
    }

    /// Asks the browser which tabs exist.
    async fn refresh(&self) -> Option<()> {
        let at_ms = Date::now();
        let query = method(&locks()?, "query")?.call0(&locks()?).ok()?;
        let found = JsFuture::from(query.dyn_into::<Promise>().ok()?).await.ok()?;
        let mut alive = HashSet::new();
        for list in ["held", "pending"] {
            let list = Reflect::get(&found, &list.into()).ok()?;
            for lock in Array::from(&list).iter() {
                let name = Reflect::get(&lock, &"name".into()).ok().and_then(|name| name.as_string());
                alive.extend(name.as_deref().and_then(|name| name.strip_prefix(LOCK)).map(str::to_owned));
            }
        }
        *self.lock() = Known { at_ms, alive };
        Some(())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Processes for BrowserTabs {
    fn own_name(&self) -> Option<String> {
        Some(self.name.clone())
    }

    fn has_ended(&self, name: &str) -> bool {
        let Some(tab) = name.split(':').next() else { return false };
        let Some(opened_ms) = tab.split('-').next().and_then(|millis| millis.parse::<f64>().ok()) else { return false };
        let has_ended = {
            let known = self.lock();
            opened_ms + GRACE_MS < known.at_ms && !known.alive.contains(tab)
        };
        if !has_ended {
            // A call cannot wait for the browser, so the next one gets the answer.
            let tabs = self.clone();
            wasm_bindgen_futures::spawn_local(async move {
                tabs.refresh().await;
            });
        }
        has_ended
    }
}

/// Acquires a lock that this tab holds until it ends.
async fn hold(name: &str) -> Option<()> {
    let locks = locks()?;
    let (acquired, is_acquired) = oneshot::channel::<()>();
    let callback = Closure::once_into_js(move |_lock: JsValue| {
        // The receiver waits below.
        let _ = acquired.send(());
        Promise::new(&mut |_, _| {})
    });
    method(&locks, "request")?.call2(&locks, &name.into(), &callback).ok()?;
    is_acquired.await.ok()
}

fn locks() -> Option<JsValue> {
    let locks = Reflect::get(&global("navigator"), &"locks".into()).ok()?;
    locks.is_object().then_some(locks)
}

fn method(object: &JsValue, name: &str) -> Option<Function> {
    Reflect::get(object, &name.into()).ok()?.dyn_into().ok()
}
