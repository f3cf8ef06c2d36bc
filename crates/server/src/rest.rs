//! Our own REST, under /v1: what the library gives a program.
//!
//! A path is a folder, an action a file; the JSON that several of them speak is in `json`.

pub(crate) mod agents;
pub(crate) mod analytics;
pub(crate) mod approvals;
pub(crate) mod context;
pub(crate) mod documents;
pub(crate) mod erase;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod json;
pub(crate) mod messages;
pub(crate) mod preferences;
pub(crate) mod recall;
pub(crate) mod search;
pub(crate) mod thread_documents;
pub(crate) mod threads;
pub(crate) mod turns;
