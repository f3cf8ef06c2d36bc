//! JSON types that several actions share. They are separate from the types of the library, so that the library can change without
//! changing the API.

pub(crate) mod message;
mod wire;
pub(crate) mod writer;
