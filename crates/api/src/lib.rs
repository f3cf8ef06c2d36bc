//! The JSON types of the HTTP API: what responses contain, and how a context policy is written.
//!
//! They are separate from the types of the library, so that the library can change without changing the API. The server uses
//! them, and so does the page that runs without a server.

pub mod agent;
pub mod analytics;
pub mod approval;
pub mod context;
pub mod event;
pub mod exchange;
pub mod file;
pub mod message;
pub mod part;
pub mod policy;
pub mod recall;
pub mod search;
pub mod thread;
pub mod turn;
pub mod whole_number;
