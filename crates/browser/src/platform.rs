//! The environment of a page: its clock, its random numbers, its timers and its event loop.

use std::time::Duration;

use futures::channel::oneshot;
use futures::future::BoxFuture;
use js_sys::{Date, Function, Reflect, Uint8Array};
use threadkeep_core::{Clock, MonotonicTime, Runtime, Timestamp};
use wasm_bindgen::prelude::*;

/// The date and the random numbers of the browser.
#[derive(Clone, Copy, Debug, Default)]
pub struct BrowserClock;

/// Returns random hexadecimal digits.
pub(crate) fn random_text() -> String {
    BrowserClock.random().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Clock for BrowserClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::cast_possible_truncation, reason = "dates of a browser are within ±8.64e15 ms")]
        let millis = Date::now() as i64;
        Timestamp::from_millis(millis).unwrap_or(Timestamp::MAX)
    }

    fn random(&self) -> [u8; 10] {
        let (array, crypto) = (Uint8Array::new_with_length(10), global("crypto"));
        let fill = Reflect::get(&crypto, &"getRandomValues".into()).unwrap_or_default();
        // Every browser with IndexedDB has this function, and it fails only for more than 65,536 bytes.
        let _ = fill.unchecked_into::<Function>().call1(&crypto, &array);
        let mut bytes = [0; 10];
        array.copy_to(&mut bytes);
        bytes
    }
}

/// The timers and the event loop of a page or worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct BrowserRuntime;

impl Runtime for BrowserRuntime {
    fn now(&self) -> MonotonicTime {
        MonotonicTime::from_nanos(0) + Duration::from_secs_f64(now_millis() / 1000.0)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (sender, slept) = oneshot::channel::<()>();
        let wake = Closure::once_into_js(move || drop(sender));
        let millis = JsValue::from_f64(duration.as_secs_f64() * 1000.0);
        let set_timeout = global("setTimeout").unchecked_into::<Function>();
        // Every page and worker has timers.
        let _ = set_timeout.call2(&JsValue::UNDEFINED, &wake, &millis);
        Box::pin(async move {
            let _ = slept.await;
        })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        wasm_bindgen_futures::spawn_local(task);
    }
}

/// Returns the milliseconds since the page was opened, on a clock that is never set.
fn now_millis() -> f64 {
    let performance = global("performance");
    let now = Reflect::get(&performance, &"now".into()).unwrap_or_default();
    now.unchecked_into::<Function>().call0(&performance).ok().and_then(|now| now.as_f64()).unwrap_or(0.0)
}

/// Returns a global value, or `undefined`.
pub(crate) fn global(name: &str) -> JsValue {
    Reflect::get(&js_sys::global(), &name.into()).unwrap_or_default()
}
