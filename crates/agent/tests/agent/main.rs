//! Tests of agents on the memory store, SQLite and `FaultyStore`: their calls, replies and stored messages.

#![expect(clippy::unwrap_used, reason = "a failed test reports the line of the unwrap")]

mod approvals;
mod bounds;
mod calls;
mod concurrent;
mod env;
mod failures;
mod fake_provider;
mod graphs;
mod hostile;
mod plans;
mod resume;
mod store_user;
mod thinking;
mod turns;
mod written_calls;
