//! Assistants over the reference store, SQLite and `Weak`, by what they call, say and store.

mod approvals;
mod bounds;
mod failures;
mod graphs;
mod hostile;
mod resume;
mod together;
mod turns;
mod world;
