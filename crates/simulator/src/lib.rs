//! A Kubernetes cluster and a Slack workspace on this machine, which speak the real protocols over real sockets.
//!
//! [`cluster::Cluster`] is an API server whose objects come from a folder, with the controllers that replace pods. [`slack::Slack`] is a
//! subset of Slack's Web API, with a sender of signed events. Tests use them, and so does `threadkeep slack simulate`.
#![warn(missing_docs)]

pub mod cluster;
pub mod slack;

use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Locks a mutex, poisoned or not: every change is one statement, so a panic of another holder leaves consistent data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs a TLS provider for the HTTP client, unless another part of the program has installed one.
fn install_provider() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}
