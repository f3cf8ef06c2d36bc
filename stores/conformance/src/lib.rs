//! The conformance test suite that every store runs.
//!
//! A store's `tests/conformance.rs` implements [`Factory`] and [`Instance`], invokes [`conformance_tests!`] and calls
//! [`property_test`]. The macro generates a test for every case in `cases.rs`; a store cannot select a subset. A store
//! declares its optional features in [`Capabilities`], and the cases check that the methods of all other features return
//! `Unsupported`. Each case runs twice: on the plain store, and on [`FaultyStore`], which drops responses, delays the
//! search index, and drops or duplicates wake-ups.
//!
//! The `tags` cases run on [`FailoverStore`], which loses acknowledged commits.
//!
//! A store for browsers has no test harness there: it gets the names of the cases from [`case_names`] and runs each with
//! [`run_case_on`], on the executor of the browser.
//!
//! Cases access the store through `Client`, which retries calls as the conversation manager does.
#![warn(missing_docs)]

mod cases;
mod client;
mod conversation;
mod factory;
mod failover;
mod faulty;
mod fixtures;
mod golden;
#[cfg(not(target_arch = "wasm32"))]
mod native;
mod property;
mod run;
mod tasks;

pub use factory::{Capabilities, Factory, Instance};
pub use failover::FailoverStore;
pub use faulty::FaultyStore;
pub use golden::write_golden;
#[cfg(not(target_arch = "wasm32"))]
pub use native::run_case;
pub use property::property_test;
pub use run::{case_names, run_case_on};
