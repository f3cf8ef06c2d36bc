//! What subscribers read: changes together with their messages. Those who look at once share a flight.
//!
//! A hint from another instance names many threads, and each of their subscribers looks. On their own they would be as many
//! flights, of which each costs more than what it brings.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use threadkeep_core::{
    ChangePage, ChangesWithMessages, Kind, MessageQuery, OnCorrupt, PageBuilder, Result, Scope, StoreError, Tagged,
    ThreadId, Timestamp, limits,
};
use tokio::sync::oneshot;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::changes::page_of_changes;
use crate::error;
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{self, get, signed};

/// The first column of a message.
const MESSAGE: usize = 13;
/// Flights of one instance at once.
const FLIGHTS: usize = 2;
/// Looks that share one.
const LOOKS: usize = 64;
/// Messages after which a look brings no further change.
const MESSAGES: i64 = 500;
/// Bytes of text that a look brings; what is beyond is read by itself.
const BYTES: usize = limits::PAGE_BYTES / LOOKS;

/// Those who wait for a flight.
#[derive(Default)]
pub(crate) struct Following(Mutex<State>);

#[derive(Default)]
struct State {
    flights: usize,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    look: Arc<Look>,
    /// Dropped unanswered where the look has to be made alone.
    answer: oneshot::Sender<Result<ChangesWithMessages>>,
}

/// What is asked of one thread.
struct Look {
    caller: Caller,
    thread: ThreadId,
    now: i64,
    after: Tagged,
    limit: usize,
}

/// Reads a thread's changes after a position, with what they appended.
pub(crate) async fn list(
    shared: &Arc<Shared>,
    scope: &Scope,
    thread: ThreadId,
    after: Tagged,
    limit: usize,
    now: Timestamp,
) -> Result<ChangesWithMessages> {
    limits::check_page(limit)?;
    let look = Arc::new(Look { caller: Caller::of(scope), thread, now: now.as_micros(), after, limit });
    let (answer, receiver) = oneshot::channel();
    if shared.following.enter(Waiting { look: Arc::clone(&look), answer }) {
        tokio::spawn(fly_on(Turn { shared: Arc::clone(shared), has_ended: false }));
    }
    match receiver.await {
        Ok(answer) => answer,
        Err(_) => fly_alone(shared, &look).await,
    }
}

impl Following {
    /// Says whether a flight is to be begun.
    fn enter(&self, waiting: Waiting) -> bool {
        let mut state = self.lock();
        state.waiting.push_back(waiting);
        let begins = state.flights < FLIGHTS;
        state.flights += usize::from(begins);
        begins
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to fly, which ends with it.
struct Turn {
    shared: Arc<Shared>,
    has_ended: bool,
}

impl Turn {
    /// Those who fly next, but for who has gone away; with nobody left the turn ends.
    fn take(&mut self) -> Vec<Waiting> {
        let mut state = self.shared.following.lock();
        state.waiting.retain(|waiting| !waiting.answer.is_closed());
        if state.waiting.is_empty() {
            state.flights -= 1;
            self.has_ended = true;
        }
        let count = state.waiting.len().min(LOOKS);
        state.waiting.drain(..count).collect()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        // Cut off together with its runtime: whoever still waits is on its own.
        let mut state = self.shared.following.lock();
        state.flights -= 1;
        if state.flights == 0 {
            state.waiting.clear();
        }
    }
}

async fn fly_on(mut turn: Turn) {
    loop {
        // Whoever was woken by the same hint is about to look as well.
        tokio::task::yield_now().await;
        let taken = turn.take();
        if taken.is_empty() {
            return;
        }
        let looks: Vec<_> = taken.iter().map(|waiting| Arc::clone(&waiting.look)).collect();
        // What failed in company is made once more alone.
        let Ok(answers) = fly(&turn.shared, &looks).await else { continue };
        for (waiting, answer) in taken.into_iter().zip(answers) {
            // Whoever has gone away does not want to know.
            drop(waiting.answer.send(answer));
        }
    }
}

async fn fly_alone(shared: &Shared, look: &Arc<Look>) -> Result<ChangesWithMessages> {
    let answers = fly(shared, std::slice::from_ref(look)).await?;
    answers.into_iter().next().unwrap_or(Err(StoreError::NotFound(Kind::Thread)))
}

/// Makes several looks in one call; one answer each.
async fn fly(shared: &Shared, looks: &[Arc<Look>]) -> error::Result<Vec<Result<ChangesWithMessages>>> {
    let tenants: Vec<&str> = looks.iter().map(|look| look.caller.tenant.as_str()).collect();
    let callers: Vec<&str> = looks.iter().map(|look| look.caller.name.as_str()).collect();
    let threads: Vec<Uuid> = looks.iter().map(|look| look.thread.0).collect();
    let nows: Vec<i64> = looks.iter().map(|look| look.now).collect();
    let afters: Vec<i64> = looks.iter().map(|look| signed(look.after.number)).collect();
    let limits: Vec<i64> = looks.iter().map(|look| signed(look.limit as u64)).collect();
    let sql = "SELECT place, thread_seq, thread_change, thread_first_seq, thread_tag, log_from, after_tag, \
               change, at, first_seq, count, effects, tag, \
               seq, id, external_id, revision, created_at, body \
               FROM threadkeep.list_followed($1, $2, $3, $4, $5, $6, $7, $8)";
    let values: [Parameter<'_>; 8] = [
        (&tenants, Type::TEXT_ARRAY),
        (&callers, Type::TEXT_ARRAY),
        (&threads, Type::UUID_ARRAY),
        (&nows, Type::INT8_ARRAY),
        (&afters, Type::INT8_ARRAY),
        (&limits, Type::INT8_ARRAY),
        (&MESSAGES, Type::INT8),
        (&signed(BYTES as u64), Type::INT8),
    ];
    let rows = shared.call(sql, &values).await?;
    let place = |row: &Row| get::<i32>(row, 0).map_or(0, i32::unsigned_abs) as usize;
    let mut answers: Vec<_> = looks.iter().map(|_| Err(StoreError::NotFound(Kind::Thread))).collect();
    for rows in rows.chunk_by(|one, next| place(one) == place(next)) {
        let number = place(&rows[0]).wrapping_sub(1);
        if let (Some(look), Some(answer)) = (looks.get(number), answers.get_mut(number)) {
            *answer = read(rows, look.after).map_err(StoreError::from);
        }
    }
    Ok(answers)
}

/// Reads the rows of one thread: its changes, then their messages.
fn read(rows: &[Row], after: Tagged) -> error::Result<ChangesWithMessages> {
    let is_message = |row: &&Row| get::<Option<i64>>(row, MESSAGE).is_ok_and(|seq| seq.is_some());
    let (changes, messages) = rows.split_at(rows.iter().position(|row| is_message(&row)).unwrap_or(rows.len()));
    let page = page_of_changes(changes, 1, after)?;
    let ChangePage::Changes { positions, .. } = page else { return Ok(ChangesWithMessages::new(page, None)) };
    if page.appended().is_none() {
        return Ok(ChangesWithMessages::new(page, None));
    }
    let query = MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::following(0, messages.len() + 1) };
    let mut found = PageBuilder::new(&query, positions).with_bytes(BYTES);
    for row in messages {
        let bytes = get::<Option<&str>>(row, MESSAGE + 5)?.map_or(0, str::len);
        if !found.push(bytes, || row::message(row, MESSAGE))? {
            break;
        }
    }
    Ok(ChangesWithMessages::new(page, Some(found.finish())))
}
