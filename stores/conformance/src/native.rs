//! Runs cases on tokio, for stores that are tested outside a browser.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use threadkeep_core::{MonotonicTime, Runtime};
use tokio::time::Instant;

use crate::{Factory, run_case_on};

/// Runs one case in its own runtime.
///
/// # Panics
/// If the case fails. The message contains the seed.
#[doc(hidden)]
pub fn run_case<F: Factory>(name: &str, factory: impl Future<Output = Option<F>>, has_faults: bool) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("the runtime starts").block_on(async {
        let Some(factory) = factory.await else { return };
        let runtime = Arc::new(TokioRuntime { origin: Instant::now() });
        if let Err(failure) = run_case_on(runtime, name, &factory, has_faults).await {
            panic!("{failure}");
        }
    });
}

struct TokioRuntime {
    origin: Instant,
}

impl Runtime for TokioRuntime {
    fn now(&self) -> MonotonicTime {
        MonotonicTime::from_nanos(0) + self.origin.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::task::unconstrained(tokio::time::sleep(duration)))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }
}
