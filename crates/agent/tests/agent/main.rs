//! Assistants over the reference store, SQLite and `Weak`, by what they call, say and store.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

mod approvals;
mod bounds;
mod calls;
mod failures;
mod graphs;
mod hostile;
mod plans;
mod resume;
mod thinking;
mod together;
mod turns;
mod wire;
mod world;
mod written_calls;
