//! Commits that come faster than they can be carried out share a transaction: one begin, one write to the disk, one answer
//! to wait for.
//!
//! A thread has one lane, so its commits meet here and not as locks in the database. Whoever finds the lane free flies at
//! once; whoever comes meanwhile flies with the next. What another instance holds is not waited for in company: such a
//! commit, and each of a flight that the server refused, is made once more alone.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use threadkeep_core::{Reason, Result, StoreError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_postgres::Row;

use crate::commit::{Call, fly_alone, fly_together, is_locked};
use crate::error::PostgresError;
use crate::pool::Shared;

/// Transactions of one instance that commit at once: enough to keep a server busy while one waits for the disk.
const LANES: usize = 8;
/// Commits of one transaction at most, and messages of them after which no further one is taken along.
const CALLS: usize = 64;
const MESSAGES: usize = 1_000;

/// The lanes of one instance.
pub(crate) struct Lanes(Vec<Mutex<Lane>>);

#[derive(Default)]
struct Lane {
    is_taken: bool,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    call: Arc<Call>,
    answer: oneshot::Sender<Result<Landed>>,
}

enum Landed {
    Row(Row),
    /// Nothing of it was done; it may be, alone.
    Again,
}

impl Lanes {
    /// Half of the connections are left to those who read.
    pub(crate) fn of(pool_size: usize) -> Self {
        Self((0..(pool_size / 2).clamp(1, LANES)).map(|_| Mutex::default()).collect())
    }

    fn number(&self, call: &Call) -> usize {
        (call.thread.0.as_u128() % self.0.len() as u128) as usize
    }

    fn lane(&self, number: usize) -> MutexGuard<'_, Lane> {
        self.0[number].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a call, and answers with the function's row.
pub(crate) async fn call(shared: &Arc<Shared>, call: &Arc<Call>) -> Result<Row> {
    shared.note_activity();
    let landed = match enter(shared, call) {
        Entry::Taken(_turn) => fly_alone(shared, call, false).await.map(Landed::Row)?,
        // Whoever flew is gone only when the runtime is.
        Entry::Waits(answer) => answer.await.unwrap_or(Err(StoreError::unavailable(Reason::Closed)))?,
    };
    match landed {
        Landed::Row(row) if !is_locked(&row) => Ok(row),
        _ => fly_alone(shared, call, true).await,
    }
}

enum Entry {
    Taken(Turn),
    Waits(oneshot::Receiver<Result<Landed>>),
}

fn enter(shared: &Arc<Shared>, call: &Arc<Call>) -> Entry {
    let number = shared.lanes.number(call);
    let mut lane = shared.lanes.lane(number);
    if lane.is_taken {
        let (answer, receiver) = oneshot::channel();
        lane.waiting.push_back(Waiting { call: Arc::clone(call), answer });
        return Entry::Waits(receiver);
    }
    lane.is_taken = true;
    Entry::Taken(Turn { shared: Arc::clone(shared), number, is_begun: true })
}

/// The right to fly on a lane. Dropped, at the end or because the caller went away, it passes on to those who wait.
struct Turn {
    shared: Arc<Shared>,
    number: usize,
    /// Not so where the runtime ended before it could be made use of: then there is nobody left to pass it on to.
    is_begun: bool,
}

impl Turn {
    /// Those who fly next; nobody who has gone away meanwhile.
    fn take(&self) -> Vec<Waiting> {
        let mut lane = self.shared.lanes.lane(self.number);
        let (mut taken, mut messages) = (Vec::new(), 0);
        while taken.len() < CALLS && messages < MESSAGES {
            let Some(next) = lane.waiting.pop_front() else { break };
            if !next.answer.is_closed() {
                messages += next.call.weight();
                taken.push(next);
            }
        }
        taken
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let runtime = Handle::try_current().ok().filter(|_| self.is_begun);
        let mut lane = self.shared.lanes.lane(self.number);
        match runtime {
            Some(runtime) if !lane.waiting.is_empty() => {
                drop(lane);
                let next = Self { shared: Arc::clone(&self.shared), number: self.number, is_begun: false };
                runtime.spawn(fly_on(next));
            }
            _ => {
                lane.is_taken = false;
                lane.waiting.clear();
            }
        }
    }
}

async fn fly_on(mut turn: Turn) {
    turn.is_begun = true;
    loop {
        let taken = turn.take();
        if taken.is_empty() {
            return;
        }
        let calls: Vec<_> = taken.iter().map(|waiting| Arc::clone(&waiting.call)).collect();
        let landed = fly(&turn.shared, &calls).await;
        for (waiting, landed) in taken.into_iter().zip(landed) {
            // Whoever has gone away does not want to know.
            drop(waiting.answer.send(landed));
        }
    }
}

async fn fly(shared: &Shared, calls: &[Arc<Call>]) -> Vec<Result<Landed>> {
    if let [call] = calls {
        return vec![fly_alone(shared, call, false).await.map(Landed::Row)];
    }
    match fly_together(shared, calls).await {
        Ok(rows) => rows.into_iter().map(|row| Ok(Landed::Row(row))).collect(),
        Err(error) => {
            let is_refused = matches!(&error, PostgresError::Server(error) if error.as_db_error().is_some());
            let error = error.of_write();
            let one = || match &error {
                StoreError::Unavailable { reason, maybe_applied, .. } if *maybe_applied || !is_refused => {
                    Err(StoreError::Unavailable { reason: *reason, maybe_applied: *maybe_applied, source: None })
                }
                _ => Ok(Landed::Again),
            };
            calls.iter().map(|_| one()).collect()
        }
    }
}
