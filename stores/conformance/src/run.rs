use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use threadkeep_core::Runtime;
use uuid::Uuid;

use crate::cases::{CASES, Case};
use crate::client::Client;
use crate::tasks::{self, Task};
use crate::{Capabilities, Factory, FaultyStore, Instance};

/// The time limit of a case, with a margin. A case that hangs fails instead of blocking the run.
const CASE_TIMEOUT: Duration = Duration::from_secs(180);

/// Generates two tests for every case: `plain::THEME::CASE` runs on the plain store, `faulty::THEME::CASE` on [`FaultyStore`].
///
/// Takes the path, from the crate root, of an async function that returns a [`Factory`], or `None` to skip the tests, for
/// example if a required server is not available.
#[macro_export]
macro_rules! conformance_tests {
    ($factory:path) => {
        $crate::__with_all_cases!(__tests { $factory });
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    ({ $factory:path } $($theme:ident { $($case:ident),+ $(,)? })+) => {
        mod plain {
            $(mod $theme {
                $(#[test]
                fn $case() {
                    $crate::run_case(concat!(stringify!($theme), "::", stringify!($case)), $factory(), false);
                })+
            })+
        }
        mod faulty {
            $(mod $theme {
                $(#[test]
                fn $case() {
                    $crate::run_case(concat!(stringify!($theme), "::", stringify!($case)), $factory(), true);
                })+
            })+
        }
    };
}

/// Returns the names of all cases, `THEME::CASE`.
pub fn case_names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name)
}

/// Runs one case on a runtime. On a target that aborts when code panics, a case that panics ends the program.
///
/// # Errors
/// If the case fails. The message contains the seed.
pub async fn run_case_on(
    runtime: Arc<dyn Runtime>,
    name: &str,
    factory: &dyn Factory,
    has_faults: bool,
) -> Result<(), String> {
    let case = CASES.iter().find(|case| case.name == name).ok_or_else(|| format!("no case has the name {name}"))?;
    let env = TestEnv { factory, fault_seed: has_faults.then(new_seed), runtime };
    run(case, &env).await.map_err(|reason| format!("{name} {}: {reason}", env.describe()))
}

async fn run(case: &Case, env: &TestEnv<'_>) -> Result<(), String> {
    let guarded = AssertUnwindSafe((case.run)(env)).catch_unwind();
    match env.runtime.timeout(CASE_TIMEOUT, guarded).await {
        Some(Ok(())) => Ok(()),
        Some(Err(panic)) => Err(panic_message(&*panic)),
        None => Err(format!("timed out after {} s", CASE_TIMEOUT.as_secs())),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("panic without a message").to_owned()
}

pub(crate) fn new_seed() -> u64 {
    Uuid::new_v4().as_u64_pair().0
}

/// The environment of a case. Creates the stores, with or without faults.
pub(crate) struct TestEnv<'a> {
    factory: &'a dyn Factory,
    fault_seed: Option<u64>,
    runtime: Arc<dyn Runtime>,
}

impl TestEnv<'_> {
    /// Creates an empty store, with faults if the case runs with faults.
    pub(crate) async fn open(&self) -> TestStore {
        TestStore::new(self.factory.create().await, self.fault_seed)
    }

    /// Creates an empty store without faults.
    pub(crate) async fn open_plain(&self) -> TestStore {
        TestStore::new(self.factory.create().await, None)
    }

    pub(crate) fn fault_seed(&self) -> Option<u64> {
        self.fault_seed
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.factory.capabilities()
    }

    pub(crate) fn has_faults(&self) -> bool {
        self.fault_seed.is_some()
    }

    /// Spawns a task whose result can be awaited.
    pub(crate) fn spawn<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Task<T> {
        tasks::spawn(&self.runtime, future)
    }

    /// Waits for a future, for at most a duration. Returns `None` on timeout.
    pub(crate) async fn timeout<F: Future>(&self, duration: Duration, future: F) -> Option<F::Output> {
        self.runtime.timeout(duration, future).await
    }

    fn describe(&self) -> String {
        match self.fault_seed {
            None => "(plain)".to_owned(),
            Some(seed) => format!("(faulty, seed {seed})"),
        }
    }
}

/// A store under test and the client that accesses it.
pub(crate) struct TestStore {
    pub(crate) client: Client,
    instance: Box<dyn Instance>,
    fault_seed: Option<u64>,
}

impl TestStore {
    pub(crate) fn new(instance: Box<dyn Instance>, fault_seed: Option<u64>) -> Self {
        let backend = instance.backend();
        let backend = match fault_seed {
            None => backend,
            Some(seed) => FaultyStore::wrap(backend, seed),
        };
        Self { client: Client::new(backend), instance, fault_seed }
    }

    /// Closes the store and opens its data again. The case must drop all clones of the client first.
    pub(crate) async fn reopen(self) -> Self {
        let Self { client, instance, fault_seed } = self;
        drop(client);
        Self::new(instance.reopen().await, fault_seed)
    }

    pub(crate) fn has_files(&self) -> bool {
        !self.instance.files().is_empty()
    }

    /// Whether any of the store's files contains these bytes, ignoring ASCII case.
    pub(crate) fn files_contain(&self, bytes: &[u8]) -> bool {
        self.instance.files().iter().any(|file| {
            // A file may disappear after it was listed, for example a write-ahead log when it is closed.
            let content = std::fs::read(file).unwrap_or_default();
            content.windows(bytes.len()).any(|window| window.eq_ignore_ascii_case(bytes))
        })
    }
}
