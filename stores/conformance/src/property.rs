//! Compares a store with a simple model over random sequences of operations.

mod model;
mod operation;

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use threadkeep_core::{
    ChangePage, Conflict, IDEMPOTENCY_WINDOW_MS, Message, MessageQuery, RecordOwner, RecordQuery, Result, StoreError,
    TaggedNumber, ThreadOrder, ThreadQuery, ThreadRef, Timestamp,
};

use self::model::Model;
use self::operation::{Operation, any_operation, scopes, thread_of};
use crate::client::Client;
use crate::fixtures::at;
use crate::run::new_seed;
use crate::{Factory, FaultyStore};

/// The maximum number of attempts to find a shorter failing sequence.
const MAX_SHRINKS: u32 = 2000;

/// Executes random operations for two tenants with two users each, and compares every result with that of a simple
/// model.
///
/// Half of the sequences run on [`FaultyStore`].
///
/// # Panics
/// If a result differs. The message contains the seed and the shortest failing sequence that was found.
pub async fn property_test(factory: &dyn Factory, cases: u32) {
    let seed = new_seed();
    let config = Config { failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..Config::default() };
    let fault_seed = proptest::prop_oneof![Just(None), any::<u64>().prop_map(Some)];
    let sequences = (fault_seed, vec(any_operation(), 1..60));
    let mut runner = TestRunner::new(config);
    for _ in 0..cases {
        let sequence = sequences.new_tree(&mut runner).expect("no value is rejected");
        if let Err(failure) = run(factory, sequence.current()).await {
            let (shortest, failure) = shrink(factory, sequence, failure).await;
            panic!("seed {seed}: {failure}\nsequence: {shortest:#?}");
        }
    }
}

type Input = (Option<u64>, Vec<Operation>);

/// Returns the shortest failing sequence that can be found, and its failure. The runner of proptest does the same, but not for
/// functions that wait.
async fn shrink(
    factory: &dyn Factory,
    mut sequence: impl ValueTree<Value = Input>,
    failure: String,
) -> (Input, String) {
    let mut shortest = (sequence.current(), failure);
    let mut can_shrink = sequence.simplify();
    for _ in 0..MAX_SHRINKS {
        if !can_shrink {
            break;
        }
        can_shrink = match run(factory, sequence.current()).await {
            Ok(()) => sequence.complicate(),
            Err(failure) => {
                shortest = (sequence.current(), failure);
                sequence.simplify()
            }
        };
    }
    shortest
}

async fn run(factory: &dyn Factory, (fault_seed, operations): Input) -> Result<(), String> {
    run_sequence(factory, fault_seed, operations).await
}

async fn run_sequence(
    factory: &dyn Factory,
    fault_seed: Option<u64>,
    operations: Vec<Operation>,
) -> Result<(), String> {
    let instance = factory.create().await;
    let backend = match fault_seed {
        None => instance.backend(),
        Some(seed) => FaultyStore::wrap(instance.backend(), seed),
    };
    let mut sequence = Sequence {
        client: Client::new(backend),
        model: Model::default(),
        now: at(0),
        has_faults: fault_seed.is_some(),
    };
    for operation in operations {
        sequence.now = sequence.now.plus_ms(1000);
        let description = format!("{operation:?}");
        sequence.step(operation).await.map_err(|difference| format!("{difference}\nafter {description}"))?;
    }
    sequence.compare_everything().await
}

/// A sequence of operations on a store and on its model.
struct Sequence {
    client: Client,
    model: Model,
    now: Timestamp,
    has_faults: bool,
}

impl Sequence {
    async fn step(&mut self, operation: Operation) -> Result<(), String> {
        let now = self.now;
        self.model.remove_expired(now);
        match operation {
            Operation::Open(scope, open) => {
                let answer = self.client.open_thread(&scope, &open, now).await;
                compare(answer, self.model.open_thread(&scope, &open, now))
            }
            Operation::Commit(scope, thread, commit) => {
                let batch = commit.batch(self.model.positions(scope.tenant_id(), thread), now);
                let mut answer = self.client.commit(&scope, thread, &batch, now).await;
                let expected = self.model.commit(&scope, thread, &batch, now);
                if let (Ok(answer), Ok(expected), true) = (&mut answer, &expected, self.has_faults) {
                    // If a response was lost, the store returns the outcome of the retry.
                    answer.replayed = expected.replayed;
                }
                compare(answer, expected)
            }
            Operation::Delete(scope, thread) => {
                let answer = self.client.delete_thread(&scope, thread, now).await;
                compare(answer, self.model.delete_thread(&scope, thread, now))
            }
            Operation::Write(scope, write) => {
                let write = write.with_version(&self.model, &scope);
                let answer = self.client.write_record(&scope, &write, now).await;
                self.model.check_write(&scope, &write, answer)
            }
            Operation::Derive(scope, thread, derive) => {
                let write = derive.write(&self.model, &scope, thread);
                let answer = self.client.write_derived(&scope, thread, &write, now).await;
                compare(answer, self.model.write_derived(&scope, thread, &write))
            }
            Operation::Read(scope, thread, query) => {
                let answer = self.client.list_messages(&scope, thread, &query, now).await;
                let answer = answer.map(|page| (page.messages, page.more, page.positions));
                compare(answer, self.model.list_messages(&scope, thread, &query))
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

    /// Compares all data that is visible in each scope.
    async fn compare_everything(&mut self) -> Result<(), String> {
        self.model.remove_expired(self.now);
        for scope in scopes() {
            for number in 0..operation::THREAD_COUNT {
                let id = thread_of(number);
                let answer = self.client.find_thread(&scope, &ThreadRef::Id(id), self.now).await;
                compare(answer, Ok(self.model.find_thread(&scope, id)))?;
                let query = MessageQuery::newest(1000);
                let answer = self.client.list_messages(&scope, id, &query, self.now).await;
                let answer: Result<(Vec<Message>, bool, _)> =
                    answer.map(|page| (page.messages, page.more, page.positions));
                compare(answer, self.model.list_messages(&scope, id, &query))?;
                self.compare_changes(&scope, id).await?;
                self.compare_records(&scope, RecordOwner::Thread(id)).await?;
            }
            for owner in operation::record_owners() {
                self.compare_records(&scope, owner).await?;
            }
            for order in [ThreadOrder::Created, ThreadOrder::Recent] {
                let answer = self.client.list_threads(&scope, &ThreadQuery::new(order, 1000), self.now).await;
                let answer = answer.map(|page| page.threads);
                compare(answer, Ok(self.model.list_threads(&scope, order)))?;
            }
        }
        let report = self.client.verify().await.map_err(|error| error.to_string())?;
        if report.findings.is_empty() { Ok(()) } else { Err(format!("{:?}", report.findings)) }
    }

    async fn compare_records(&self, scope: &threadkeep_core::Scope, owner: RecordOwner) -> Result<(), String> {
        let answer = self.client.list_records(scope, &RecordQuery::of(owner.clone()), self.now).await;
        compare(answer, Ok(self.model.list_records(scope, &owner)))
    }

    async fn compare_changes(
        &self,
        scope: &threadkeep_core::Scope,
        id: threadkeep_core::ThreadId,
    ) -> Result<(), String> {
        for after in 0..8 {
            let after = TaggedNumber::from(after);
            let answer = self.client.list_changes(scope, id, after, 1000, self.now).await;
            let expected = self.model.list_changes(scope, id, after);
            // The store may or may not retain changes older than the window until the next sweep.
            if let (Ok(ChangePage::Reset { .. }), Ok(ChangePage::Changes { changes, .. })) = (&answer, &expected)
                && changes.first().is_some_and(|first| first.at.plus_ms(IDEMPOTENCY_WINDOW_MS) < self.now)
            {
                continue;
            }
            compare(answer, expected)?;
            let answer = self.client.list_changes_with_messages(scope, id, after, 1000, self.now).await;
            compare(answer.map(|read| read.page), self.model.list_changes(scope, id, after))?;
        }
        Ok(())
    }
}

/// Returns the parts of an error that must be equal: its kind, and the actual state of a conflict.
fn comparable(error: &StoreError) -> String {
    match error {
        // If several ids are in use, the store may report any of them.
        StoreError::Conflict(Conflict::MessageId { .. } | Conflict::ExternalId { .. }) => "id in use".to_owned(),
        StoreError::Invalid { .. } => "invalid".to_owned(),
        StoreError::Denied(_) => "denied".to_owned(),
        other => format!("{other:?}"),
    }
}

fn compare<T: PartialEq + Debug>(answer: Result<T>, expected: Result<T>) -> Result<(), String> {
    match (answer, expected) {
        (Ok(answer), Ok(expected)) if answer == expected => Ok(()),
        (Err(answer), Err(expected)) if comparable(&answer) == comparable(&expected) => Ok(()),
        (answer, expected) => Err(format!("the store returned {answer:?}\nthe model returned {expected:?}")),
    }
}
