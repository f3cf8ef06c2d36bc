//! JSON types that several actions share. They are separate from the types of the library, so that the library can change without
//! changing the API.

pub(crate) mod approval;
pub(crate) mod message;
pub(crate) mod part;
pub(crate) mod thread;
pub(crate) mod turn;
mod wire;
pub(crate) mod writer;
