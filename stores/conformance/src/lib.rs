//! The one suite that every store runs whole.
//!
//! A store's `tests/conformance.rs` implements [`Factory`] and [`Instance`], invokes [`conformance_tests!`] and calls
//! [`property_test`]. There is one list of cases (`cases.rs`), of which the macro makes a test each, and no way to pick from
//! it; what a store cannot do it says in [`Abilities`], and then the same cases check that it answers so. Each case is two
//! tests: over the store as it is, and over [`FaultyStore`], which loses replies, hides what an index has not reached, and drops or
//! doubles wake-ups.
//!
//! [`FailingOver`] loses commits that were acknowledged; the cases of `tags` run over it.
//!
//! Cases talk to the store through `Client`, which repeats what may be repeated, as the conversation manager does.
#![warn(missing_docs)]

mod cases;
mod client;
mod conversation;
mod factory;
mod failing_over;
mod given;
mod golden;
mod property;
mod run;
mod weak;

pub use factory::{Abilities, Factory, Instance};
pub use failing_over::FailingOver;
pub use golden::write_golden;
pub use property::property_test;
pub use run::run_case;
pub use weak::FaultyStore;
