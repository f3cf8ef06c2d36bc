//! Random sequences of operations, held against a plain model.

mod model;
mod operation;

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use threadkeep_core::{
    ChangePage, Conflict, IDEMPOTENCY_WINDOW_MS, Message, MessageQuery, RecordOwner, RecordQuery, Result, StoreError,
    Tagged, ThreadName, ThreadOrder, ThreadQuery, Timestamp,
};
use tokio::runtime::Handle;

use self::model::Model;
use self::operation::{Operation, any_operation, scopes, thread_of};
use crate::client::Client;
use crate::given::at;
use crate::run::new_seed;
use crate::{Factory, FaultyStore};

/// Carries out random operations of two tenants with two users each, and compares every answer with a plain model's.
///
/// Half of the sequences go over [`FaultyStore`]. Needs a runtime with several threads.
///
/// # Panics
/// With the shortest failing sequence that was found, and the seed.
pub async fn property_test(factory: &dyn Factory, cases: u32) {
    let seed = new_seed();
    let config = Config {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        max_shrink_iters: 2000,
        ..Config::default()
    };
    let weak_seed = proptest::prop_oneof![Just(None), any::<u64>().prop_map(Some)];
    let sequences = (weak_seed, vec(any_operation(), 1..60));
    let outcome = TestRunner::new(config).run(&sequences, |(weak_seed, operations)| {
        let played = tokio::task::block_in_place(|| Handle::current().block_on(play(factory, weak_seed, operations)));
        played.map_err(TestCaseError::fail)
    });
    if let Err(error) = outcome {
        panic!("with seed {seed}: {error}");
    }
}

async fn play(factory: &dyn Factory, weak_seed: Option<u64>, operations: Vec<Operation>) -> Result<(), String> {
    let instance = factory.create().await;
    let backend = match weak_seed {
        None => instance.backend(),
        Some(seed) => FaultyStore::over(instance.backend(), seed),
    };
    let mut play =
        Play { client: Client::new(backend), model: Model::default(), now: at(0), is_weak: weak_seed.is_some() };
    for operation in operations {
        play.now = play.now.plus_ms(1000);
        let told = format!("{operation:?}");
        play.step(operation).await.map_err(|difference| format!("{difference}\nafter {told}"))?;
    }
    play.compare_everything().await
}

/// A store and its model, side by side.
struct Play {
    client: Client,
    model: Model,
    now: Timestamp,
    is_weak: bool,
}

impl Play {
    async fn step(&mut self, operation: Operation) -> Result<(), String> {
        let now = self.now;
        self.model.forget(now);
        match operation {
            Operation::Open(scope, open) => {
                let answer = self.client.open_thread(&scope, &open, now).await;
                same(answer, self.model.open_thread(&scope, &open, now))
            }
            Operation::Commit(scope, thread, commit) => {
                let batch = commit.batch(self.model.positions(scope.tenant_id(), thread), now);
                let mut answer = self.client.commit(&scope, thread, &batch, now).await;
                let expected = self.model.commit(&scope, thread, &batch, now);
                if let (Ok(answer), Ok(expected), true) = (&mut answer, &expected, self.is_weak) {
                    // Where a reply was lost, the store's answer is that of the repetition.
                    answer.replayed = expected.replayed;
                }
                same(answer, expected)
            }
            Operation::Delete(scope, thread) => {
                let answer = self.client.delete_thread(&scope, thread, now).await;
                same(answer, self.model.delete_thread(&scope, thread, now))
            }
            Operation::Write(scope, write) => {
                let write = write.with_version(&self.model, &scope);
                let answer = self.client.write_record(&scope, &write, now).await;
                self.model.check_write(&scope, &write, answer)
            }
            Operation::Derive(scope, thread, derive) => {
                let write = derive.write(&self.model, &scope, thread);
                let answer = self.client.write_derived(&scope, thread, &write, now).await;
                same(answer, self.model.write_derived(&scope, thread, &write))
            }
            Operation::Read(scope, thread, query) => {
                let answer = self.client.list_messages(&scope, thread, &query, now).await;
                let answer = answer.map(|page| (page.messages, page.more, page.positions));
                same(answer, self.model.list_messages(&scope, thread, &query))
            }
            Operation::Wait(ms) => {
                self.now = now.plus_ms(ms);
                Ok(())
            }
            Operation::Sweep => {
                self.model.sweep(now);
                self.client.sweep(now).await.map(drop).map_err(|error| error.to_string())
            }
        }
    }

    /// Looks at everything that anyone can see.
    async fn compare_everything(&mut self) -> Result<(), String> {
        self.model.forget(self.now);
        for scope in scopes() {
            for number in 0..operation::THREADS {
                let id = thread_of(number);
                let answer = self.client.find_thread(&scope, &ThreadName::Id(id), self.now).await;
                same(answer, Ok(self.model.find_thread(&scope, id)))?;
                let query = MessageQuery::newest(1000);
                let answer = self.client.list_messages(&scope, id, &query, self.now).await;
                let answer: Result<(Vec<Message>, bool, _)> =
                    answer.map(|page| (page.messages, page.more, page.positions));
                same(answer, self.model.list_messages(&scope, id, &query))?;
                self.compare_changes(&scope, id).await?;
                self.compare_records(&scope, RecordOwner::Thread(id)).await?;
            }
            for owner in operation::record_owners() {
                self.compare_records(&scope, owner).await?;
            }
            for order in [ThreadOrder::Created, ThreadOrder::Recent] {
                let answer = self.client.list_threads(&scope, &ThreadQuery::new(order, 1000), self.now).await;
                let answer = answer.map(|page| page.threads);
                same(answer, Ok(self.model.list_threads(&scope, order)))?;
            }
        }
        let report = self.client.verify().await.map_err(|error| error.to_string())?;
        if report.findings.is_empty() { Ok(()) } else { Err(format!("{:?}", report.findings)) }
    }

    async fn compare_records(&self, scope: &threadkeep_core::Scope, owner: RecordOwner) -> Result<(), String> {
        let answer = self.client.list_records(scope, &RecordQuery::of(owner.clone()), self.now).await;
        same(answer, Ok(self.model.list_records(scope, &owner)))
    }

    async fn compare_changes(
        &self,
        scope: &threadkeep_core::Scope,
        id: threadkeep_core::ThreadId,
    ) -> Result<(), String> {
        for after in 0..8 {
            let after = Tagged::from(after);
            let answer = self.client.list_changes(scope, id, after, 1000, self.now).await;
            let expected = self.model.list_changes(scope, id, after);
            // What is older than the window may be kept until a sweep, or not.
            if let (Ok(ChangePage::Reset { .. }), Ok(ChangePage::Changes { changes, .. })) = (&answer, &expected)
                && changes.first().is_some_and(|first| first.at.plus_ms(IDEMPOTENCY_WINDOW_MS) < self.now)
            {
                continue;
            }
            same(answer, expected)?;
            let answer = self.client.list_changes_with_messages(scope, id, after, 1000, self.now).await;
            same(answer.map(|read| read.page), self.model.list_changes(scope, id, after))?;
        }
        Ok(())
    }
}

/// What an error is for whoever compares: its kind, and a conflict's actual state.
fn class(error: &StoreError) -> String {
    match error {
        // Of several ids that are taken, any may be told.
        StoreError::Conflict(Conflict::MessageId { .. } | Conflict::ExternalId { .. }) => "an id is taken".to_owned(),
        StoreError::Invalid { .. } => "invalid".to_owned(),
        StoreError::Denied(_) => "denied".to_owned(),
        other => format!("{other:?}"),
    }
}

fn same<T: PartialEq + Debug>(answer: Result<T>, expected: Result<T>) -> Result<(), String> {
    match (answer, expected) {
        (Ok(answer), Ok(expected)) if answer == expected => Ok(()),
        (Err(answer), Err(expected)) if class(&answer) == class(&expected) => Ok(()),
        (answer, expected) => Err(format!("the store answers {answer:?}\nthe model answers {expected:?}")),
    }
}
