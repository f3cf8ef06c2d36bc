//! What an operator asks: whether it lives, whether it can serve, and what it offers.

pub(crate) mod document;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod ready;
pub(crate) mod session;
pub(crate) mod sweep;
pub(crate) mod viewer;
