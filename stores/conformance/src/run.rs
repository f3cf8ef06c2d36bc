use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use uuid::Uuid;

use crate::cases::{CASES, Case};
use crate::client::Client;
use crate::{Abilities, Factory, FaultyStore, Instance};

/// Longer than any case takes; a case that waits for ever fails instead of hanging the run.
const PATIENCE: Duration = Duration::from_secs(180);

/// Makes a test of every case: `plain::THEME::CASE` over the store as it is, `weak::THEME::CASE` over [`FaultyStore`].
///
/// Takes the path, from the crate's root, of an async function that gives a [`Factory`], or `None` where what the store stands on
/// is to be left out of this run.
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
        mod weak {
            $(mod $theme {
                $(#[test]
                fn $case() {
                    $crate::run_case(concat!(stringify!($theme), "::", stringify!($case)), $factory(), true);
                })+
            })+
        }
    };
}

/// Runs one case in a runtime of its own.
///
/// # Panics
/// When it fails, with the seed.
#[doc(hidden)]
pub fn run_case<F: Factory>(name: &str, factory: impl Future<Output = Option<F>>, is_weak: bool) {
    let case = CASES.iter().find(|case| case.name == name).expect("tests are made of the list");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let Some(factory) = factory.await else { return };
        let stage = Stage { factory: &factory, weak_seed: is_weak.then(new_seed) };
        if let Err(reason) = run(case, &stage).await {
            panic!("{name} {}: {reason}", stage.describe());
        }
    });
}

async fn run(case: &Case, stage: &Stage<'_>) -> Result<(), String> {
    let guarded = AssertUnwindSafe((case.run)(stage)).catch_unwind();
    match tokio::time::timeout(PATIENCE, guarded).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(panic)) => Err(words_of(&*panic)),
        Err(_) => Err(format!("did not end within {} s", PATIENCE.as_secs())),
    }
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

pub(crate) fn new_seed() -> u64 {
    Uuid::new_v4().as_u64_pair().0
}

/// Where a case runs: it makes stores, plain or weak.
pub(crate) struct Stage<'a> {
    factory: &'a dyn Factory,
    weak_seed: Option<u64>,
}

impl Stage<'_> {
    /// Makes a fresh store.
    pub(crate) async fn open(&self) -> Subject {
        Subject::new(self.factory.create().await, self.weak_seed)
    }

    /// Makes a fresh store that is not weak, to be a part of one.
    pub(crate) async fn open_plain(&self) -> Subject {
        Subject::new(self.factory.create().await, None)
    }

    pub(crate) fn weak_seed(&self) -> Option<u64> {
        self.weak_seed
    }

    pub(crate) fn abilities(&self) -> Abilities {
        self.factory.abilities()
    }

    pub(crate) fn is_weak(&self) -> bool {
        self.weak_seed.is_some()
    }

    fn describe(&self) -> String {
        match self.weak_seed {
            None => "(plain)".to_owned(),
            Some(seed) => format!("(weak, seed {seed})"),
        }
    }
}

/// One store that a case works on.
pub(crate) struct Subject {
    pub(crate) client: Client,
    instance: Box<dyn Instance>,
    weak_seed: Option<u64>,
}

impl Subject {
    pub(crate) fn new(instance: Box<dyn Instance>, weak_seed: Option<u64>) -> Self {
        let backend = instance.backend();
        let backend = match weak_seed {
            None => backend,
            Some(seed) => FaultyStore::over(backend, seed),
        };
        Self { client: Client::new(backend), instance, weak_seed }
    }

    /// Closes the store and opens the same data again. The case must have dropped every clone of the client.
    pub(crate) async fn reopen(self) -> Self {
        let Self { client, instance, weak_seed } = self;
        drop(client);
        Self::new(instance.reopen().await, weak_seed)
    }

    pub(crate) fn has_files(&self) -> bool {
        !self.instance.files().is_empty()
    }

    /// Whether any of the store's files holds these bytes, in whatever case of letters.
    pub(crate) fn files_hold(&self, bytes: &[u8]) -> bool {
        self.instance.files().iter().any(|file| {
            // A file may vanish between being listed and being read, as a write-ahead log does when it is closed.
            let held = std::fs::read(file).unwrap_or_default();
            held.windows(bytes.len()).any(|window| window.eq_ignore_ascii_case(bytes))
        })
    }
}
