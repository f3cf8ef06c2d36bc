//! The New York subway for an assistant: stations and lines, routes, live trains, comparisons.
#![warn(missing_docs)]

mod system;
mod vocabulary;

pub use system::{names, network};
